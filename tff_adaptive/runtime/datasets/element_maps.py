# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Functions of a dataset's `map`, called for the elements of a round.

Functions that draw random numbers, as augmentations do, have to be called in
every round. A loop in one graph calls them in a fraction of the time that a
`tf.data` pipeline needs.
"""

from collections.abc import Callable, Sequence
import functools
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import _graph_defs
from tff_adaptive.runtime import computations
from tff_adaptive.runtime import plans
from tff_adaptive.runtime.datasets import dataset_graphs
from tff_adaptive.runtime.graphs import graph_functions

_ELEMENT = 'element'
_CALL = 'call'
# Functions of so many maps are kept; clients share them.
_MAX_KEPT = 64


class ElementMap:
  """A function of elements.

  Attributes:
    differs: Whether two calls differ, for example by random numbers.
    gives_batches: Whether it returns batches of any size.
  """

  def __init__(
      self, graph: dataset_graphs.DatasetGraph, node: Any, of_batches: bool
  ):
    """Builds the function.

    Args:
      graph: The graph of a dataset.
      node: The node of a map in it.
      of_batches: Whether its elements are batches of rows, or rows.

    Raises:
      UnsupportedComputationError: If it captures other than constants, or
        cannot be compiled.
    """
    specs = dataset_graphs.specs_of(graph.source_of(node))
    results = dataset_graphs.specs_of(node)
    self.gives_batches = not all(s.shape.is_fully_defined() for s in results)
    graph_def = _to_graph_def(graph, node, specs)
    self._function, takes_seed = _build(
        graph_def.SerializeToString(deterministic=True),
        tuple(specs),
        tuple(results),
        of_batches,
    )
    name = node.attr['f'].func.name
    self.differs = takes_seed or graph.kind_of_function(name).differs

  def __call__(
      self,
      rows: tuple[np.ndarray, ...],
      order: np.ndarray,
      lengths: np.ndarray,
      seed: np.ndarray,
  ) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    """Calls the function for all elements.

    Args:
      rows: An array of rows for each component.
      order: The row numbers of all elements, one element after the other.
      lengths: The number of rows of each element.
      seed: The seed of random numbers, int32 of shape [2].

    Returns:
      The rows of the results, and the number of rows of each: 1 if they are no
      batches of any size.
    """
    *columns, sizes = self._function(
        *map(tf.convert_to_tensor, rows),
        tf.constant(order, tf.int64),
        tf.constant(lengths, tf.int64),
        tf.constant(seed, tf.int32),
    )
    return tuple(column.numpy() for column in columns), sizes.numpy()


def _to_graph_def(
    graph: dataset_graphs.DatasetGraph, node: Any, specs: list[tf.TensorSpec]
) -> Any:
  """Returns a graph that calls a map's function; names follow from what it is.

  A function that is traced for each client has another name each time.
  """
  num_captured = len(node.attr['Targuments'].list.type)
  captured = _graph_defs.sources_of(node)[1 : 1 + num_captured]
  constants = [graph.nodes[name] for name in captured]
  if any(constant.op != 'Const' for constant in constants):
    raise computations.UnsupportedComputationError('it captures state')
  graph_def = tf.compat.v1.GraphDef(versions=graph.graph_def.versions)
  inputs = []
  for place, spec in enumerate(specs):
    given = graph_def.node.add(name=f'{_ELEMENT}{place}', op='Placeholder')
    given.attr['dtype'].type = spec.dtype.as_datatype_enum
    given.attr['shape'].shape.CopyFrom(spec.shape.as_proto())
    inputs.append(given.name)
  for place, constant in enumerate(constants):
    copied = graph_def.node.add()
    copied.CopyFrom(constant)
    copied.name = f'captured{place}'
    inputs.append(copied.name)
  call = graph_def.node.add(name=_CALL, op='StatefulPartitionedCall')
  call.input.extend(inputs)
  call.attr['f'].func.name = node.attr['f'].func.name
  call.attr['Tin'].list.type.extend(
      [spec.dtype.as_datatype_enum for spec in specs]
      + [constant.attr['dtype'].type for constant in constants]
  )
  call.attr['Tout'].list.type.extend(
      spec.dtype.as_datatype_enum for spec in dataset_graphs.specs_of(node)
  )
  graph_def.library.CopyFrom(graph.graph_def.library)
  _graph_defs.number_functions(graph_def)
  if any(map(_has_seed, _graph_defs.all_nodes(graph_def))):
    raise computations.UnsupportedComputationError(
        'it draws numbers that go on from element to element'
    )
  return graph_def


def _has_seed(node: Any) -> bool:
  """Returns whether a node draws the same numbers in each run."""
  return any(
      node.attr[name].i for name in ('seed', 'seed2') if name in node.attr
  )


@functools.lru_cache(maxsize=_MAX_KEPT)
def _build(
    serialized: bytes,
    specs: tuple[tf.TensorSpec, ...],
    results: tuple[tf.TensorSpec, ...],
    of_batches: bool,
) -> tuple[Any, bool]:
  """Builds the loop over a function; returns also whether it draws."""
  signature = tff.FunctionType(
      tff.types.tensorflow_to_type(specs), tff.types.tensorflow_to_type(results)
  )
  graph = computations.Serialized(
      tf.compat.v1.GraphDef.FromString(serialized),
      [f'{_ELEMENT}{place}:0' for place in range(len(specs))],
      [f'{_CALL}:{place}' for place in range(len(results))],
      '',
  )
  try:
    function = graph_functions.of_graph(
        graph, signature, tensor_sequences=False
    )
  except ValueError as e:  # It calls Python.
    raise computations.UnsupportedComputationError(str(e)) from e

  def add(*tensors):
    *rows, order, lengths, seed = tensors
    begins = tf.cumsum(lengths, exclusive=True)

    def call(number):
      picks = tf.gather(order, number)
      if of_batches:
        place, size = tf.gather(begins, number), tf.gather(lengths, number)
        picks = tf.slice(order, [place], [size])
      element = [tf.gather(column, picks) for column in rows]
      for component, spec in zip(element, specs):
        component.set_shape(spec.shape)
      folded = None
      if function.takes_seed:
        folded = tf.random.experimental.stateless_fold_in(seed, number)
      return function(*element, seed=folded)

    # Elements are small, as in `tf.data`, which runs there.
    with tf.device('/device:CPU:0'):
      return _add_loop(call, tf.size(lengths), results)

  rows_specs = [
      tf.TensorSpec([None, *spec.shape[of_batches:]], spec.dtype)
      for spec in specs
  ]
  numbers = tf.TensorSpec([None], tf.int64)
  seed = tf.TensorSpec([2], tf.int32)
  built = graph_functions.build(add, [*rows_specs, numbers, numbers, seed])
  return built, function.takes_seed


def _add_loop(
    call: Callable[[tf.Tensor], list[tf.Tensor]],
    count: tf.Tensor,
    specs: Sequence[tf.TensorSpec],
) -> list[tf.Tensor]:
  """Adds a loop to the graph that is being built.

  Args:
    call: Returns the components of the result with a number.
    count: The number of results.
    specs: The specs of the components.

  Returns:
    The rows of all results, by component, and the number of rows of each.
  """
  are_alike = all(spec.shape.is_fully_defined() for spec in specs)
  empty = [
      tf.TensorArray(
          spec.dtype, count, infer_shape=False, element_shape=spec.shape
      )
      for spec in [*specs, tf.TensorSpec([], tf.int64)]
  ]

  def turn(number, arrays):
    components = call(number)
    size = tf.constant(1, tf.int64)
    if not are_alike:
      size = tf.shape(components[0], tf.int64)[0]
    written = [
        array.write(number, tensor)
        for array, tensor in zip(arrays, [*components, size])
    ]
    return number + 1, written

  _, filled = tf.while_loop(
      lambda number, _: number < count,
      turn,
      (tf.zeros([], tf.int32), empty),
      parallel_iterations=plans.num_cores(),
  )
  *columns, sizes = filled
  return [
      *(array.stack() if are_alike else array.concat() for array in columns),
      sizes.stack(),
  ]
