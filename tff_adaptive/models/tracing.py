# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Functions of a Keras model that can be called in any graph.

A Keras model that was made eagerly cannot run in the graph of a TFF
computation: its layers may hold eager tensors, and Keras 2 takes such a graph
for one of TensorFlow 1. Here its functions are traced once, outside of graphs.
"""

from collections.abc import Callable, Iterator
import contextlib
import threading
from typing import Any

import tensorflow as tf
from tensorflow.python.autograph.core import ag_ctx

from tff_adaptive.models import lookups

_Function: Any = type(tf.function(lambda: None))


class HiddenStateError(ValueError):
  """A function uses state that is not among its arguments.

  Attributes:
    name: The name of the variable, or empty if the resource is no variable.
  """

  def __init__(self, name: str):
    super().__init__(f'hidden state: {name}')
    self.name = name


class TracedFunction:
  """A pure function of tensors, traced once.

  Attributes:
    result: The structure of the result: `tf.TensorSpec`s and `None`.
  """

  def __init__(self, fn: Callable[..., Any], *args: Any):
    """Traces a function.

    Args:
      fn: A function of structures of tensors and `None`.
      *args: The structures of its arguments: `tf.TensorSpec`s and `None`.

    Raises:
      HiddenStateError: If the function uses a variable or a table that changes.
    """
    leaves = tf.nest.flatten(args)

    def run(*tensors):
      remaining = iter(tensors)
      filled = [None if leaf is None else next(remaining) for leaf in leaves]
      return fn(*tf.nest.pack_sequence_as(args, filled))

    with lookups.as_tensors(), _inlined_functions():
      self._concrete = tf.function(run).get_concrete_function(
          *(leaf for leaf in leaves if leaf is not None)
      )
    variables = {id(v.handle): v.name for v in self._concrete.graph.variables}
    for tensor in self._concrete.captured_inputs:
      if tensor.dtype in (tf.resource, tf.variant):
        raise HiddenStateError(variables.get(id(tensor), ''))
    # Tensors of layers, such as the mean of `Normalization`.
    self._constants = [t.numpy() for t in self._concrete.captured_inputs]
    self._lock = threading.Lock()
    self.result = tf.nest.map_structure(
        lambda t: None if t is None else tf.TensorSpec(t.shape, t.dtype),
        self._concrete.structured_outputs,
    )

  def __call__(self, *args: Any) -> Any:
    """Calls the function, eagerly or in any graph."""
    leaves = [leaf for leaf in tf.nest.flatten(args) if leaf is not None]
    if not self._constants:
      return self._concrete(*leaves)
    # Another thread may build another graph.
    with self._lock:
      self._concrete.set_external_captures(
          [tf.constant(value) for value in self._constants]
      )
      return self._concrete(*leaves)


@contextlib.contextmanager
def _inlined_functions() -> Iterator[None]:
  """Lets `tf.function`s inside of a trace be part of it.

  They keep their own traces, with variables, or with values of another trace.
  The lock of `lookups.as_tensors` keeps other traces out; what other threads
  call in the meantime stays as it is.
  """
  before, tracing_thread = _Function.__call__, threading.get_ident()

  def call(function, *args, **kwargs):
    is_traced = threading.get_ident() == tracing_thread
    # Those with attributes, as in LSTM of Keras 2, are chosen by the device.
    has_attributes = function._attributes  # pylint: disable=protected-access
    if tf.executing_eagerly() or has_attributes or not is_traced:
      return before(function, *args, **kwargs)
    inlined = _inline(function)
    if not function._jit_compile:  # pylint: disable=protected-access
      return inlined(*args, **kwargs)
    # XLA compiles a function as a whole, so this one is traced anew.
    own = tf.function(inlined, jit_compile=True, autograph=False)
    return before(own, *args, **kwargs)

  _Function.__call__ = call
  try:
    yield
  finally:
    _Function.__call__ = before


def _inline(function: Any) -> Callable[..., Any]:
  """Returns the Python function of a `tf.function`, with AutoGraph if asked."""
  status = ag_ctx.Status
  context = ag_ctx.ControlStatusCtx(
      # pylint: disable-next=protected-access
      status.ENABLED
      if function._autograph
      else status.DISABLED
  )
  return tf.__internal__.autograph.tf_convert(function.python_function, context)
