# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Variables in JAX: boxes whose content changes while a program is traced.

A graph runs its nodes in the order of its control inputs, so that reads come
after the assignments that they wait for. A box that a loop or a branch assigns
is a part of its state, see `control_lowerings`.
"""

from typing import Any

import jax.numpy as jnp

from tff_adaptive.runtime.accelerators import lowerings


class Variable:
  """The handle of a variable.

  Attributes:
    value: Its value; None before the first assignment.
  """

  def __init__(self):
    self.value: Any = None


@lowerings.lowers('VarHandleOp')
def _make(node):
  del node  # Unused.
  return Variable()


@lowerings.lowers('AssignVariableOp')
def _assign(node, variable, value):
  del node  # Unused.
  variable.value = value
  return ()


@lowerings.lowers('AssignAddVariableOp')
def _assign_add(node, variable, value):
  del node  # Unused.
  variable.value = jnp.add(_value_of(variable), value)
  return ()


@lowerings.lowers('AssignSubVariableOp')
def _assign_sub(node, variable, value):
  del node  # Unused.
  variable.value = jnp.subtract(_value_of(variable), value)
  return ()


@lowerings.lowers('ReadVariableOp')
def _read(node, variable):
  del node  # Unused.
  return _value_of(variable)


@lowerings.lowers('VarIsInitializedOp')
def _is_initialized(node, variable):
  raise lowerings.NoLoweringError(f'{node.op} asks for a variable')


@lowerings.lowers('DestroyResourceOp')
def _destroy(node, variable):
  del node, variable  # Unused.
  return ()


def _value_of(variable: Variable) -> Any:
  if variable.value is None:
    raise lowerings.NoLoweringError('a variable is read before it has a value')
  return variable.value
