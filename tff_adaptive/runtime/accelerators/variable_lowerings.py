# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Variables in JAX: boxes whose content changes while a program is traced.

A graph runs its nodes in the order of its control inputs, so that reads come
after the assignments that they wait for. A box that a loop or a branch assigns
is a part of its state, see `control_lowerings`.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from tff_adaptive.runtime.accelerators import array_lowerings
from tff_adaptive.runtime.accelerators import lowerings


class Variable:
  """The handle of a variable.

  Attributes:
    value: Its value; None before the first assignment.
  """

  def __init__(self):
    self.value: Any = None


def handles_in(values: Iterable[Any]) -> list[Variable]:
  """Returns the variables among values, each once."""
  found = {id(one): one for one in values if isinstance(one, Variable)}
  return list(found.values())


def with_values(
    function: Callable[..., Sequence[Any]], variables: Sequence[Variable]
) -> Callable[..., list[Any]]:
  """Returns a function that takes and returns also the values of variables.

  It leaves the variables as they are. What a function in a loop or a branch
  assigns must not reach what is traced outside of it.

  Args:
    function: A function of other arguments.
    variables: The variables that it may read and assign.

  Returns:
    A function of a list of the values and of the other arguments, which returns
    the values after the results.
  """

  def call(given, *arguments):
    before = [one.value for one in variables]
    try:
      for one, value in zip(variables, given):
        one.value = value
      results = function(*arguments)
      return [*results, *(one.value for one in variables)]
    finally:
      for one, value in zip(variables, before):
        one.value = value

  return call


def check_have_values(variables: Iterable[Variable]) -> None:
  """Raises an error if a variable has no value, whose shape is not known."""
  for one in variables:
    _value_of(one)


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


@lowerings.lowers('VariableShape')
def _shape(node, variable):
  return np.asarray(np.shape(_value_of(variable)), node.dtype('out_type'))


@lowerings.lowers('ResourceGather')
def _gather(node, variable, indices):
  return array_lowerings.gather(node, _value_of(variable), indices)


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
