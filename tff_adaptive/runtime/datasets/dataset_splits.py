# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Splits a dataset into rows to read once and ops that choose among them.

The rows are the elements of the dataset's source, with all functions that look
at one row only. The ops act on the rows' numbers, see `element_orders`. Other
functions, such as those that draw, are called for the elements that are chosen.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
import itertools
from typing import Any, NamedTuple, Optional

import numpy as np
import tensorflow as tf

from tff_adaptive import _dataset_elements
from tff_adaptive import _graph_defs
from tff_adaptive.runtime.datasets import dataset_graphs
from tff_adaptive.runtime.datasets import element_orders
from tff_adaptive.runtime.datasets import elements
from tff_adaptive.runtime.datasets import row_functions

# Ops that do not change elements.
_PASSED = (
    'AssertCardinalityDataset',
    'FinalizeDataset',
    'MaxIntraOpParallelismDataset',
    'ModelDataset',
    'OptionsDataset',
    'PrefetchDataset',
    'PrivateThreadPoolDataset',
)
_BATCHES = (*_graph_defs.BATCH_OPS, 'PaddedBatchDatasetV2')
_FILTERS = ('FilterDataset', 'ParallelFilterDataset')
# Answers of a filter that are computed at once.
_READ_SIZE = 256
# The place of `drop_remainder` among the arguments of batch ops, from the end
# for padded ones, which have several padded shapes.
_DROP_PLACES = {
    'BatchDatasetV2': 1,
    'ParallelBatchDataset': 2,
    'PaddedBatchDatasetV2': -1,
}


class _Step(NamedTuple):
  """A node of the chain above the rows.

  Attributes:
    node: The node.
    op: What it does to numbers, if anything.
    is_map: Whether it maps rows.
    is_filter: Whether it keeps rows.
    maps_rows_late: Whether it maps rows after they were chosen.
    maps_batches_late: Whether it maps batches after they were chosen.
  """

  node: Any
  op: Optional[element_orders.Op] = None
  is_map: bool = False
  is_filter: bool = False
  maps_rows_late: bool = False
  maps_batches_late: bool = False

  @property
  def is_late(self) -> bool:
    """Whether it maps what was chosen."""
    return self.maps_rows_late or self.maps_batches_late


class Split(NamedTuple):
  """A dataset as rows and ops on their numbers.

  Attributes:
    graph: The graph of the dataset.
    source: The node whose elements have numbers.
    steps: The steps from there.
  """

  graph: dataset_graphs.DatasetGraph
  source: Any
  steps: list[_Step]

  @property
  def row_maps(self) -> list[Any]:
    """The nodes of the functions of rows that were chosen."""
    return [step.node for step in self.steps if step.maps_rows_late]

  @property
  def batch_maps(self) -> list[Any]:
    """The nodes of the functions of batches that were chosen."""
    return [step.node for step in self.steps if step.maps_batches_late]

  @property
  def _early_steps(self) -> list[_Step]:
    """The steps before a function is called for what was chosen."""
    return list(itertools.takewhile(lambda step: not step.is_late, self.steps))

  @property
  def is_batched(self) -> bool:
    """Whether the elements of the dataset of `rows` are batches of rows."""
    ops = [step.node.op for step in self._early_steps]
    kinds = [op for op in ops if op in (*_BATCHES, 'UnbatchDataset')]
    return bool(kinds) and kinds[-1] in _BATCHES

  def rows(self) -> tuple[tf.data.Dataset, list[element_orders.Op]]:
    """Returns a dataset of all rows, in order, and the ops on their numbers.

    The elements of the dataset are batches of rows if `is_batched`.
    """
    ops: list[element_orders.Op] = []
    for place, step in enumerate(self.steps):
      if step.is_filter:
        ops.append(element_orders.Filter(self._keeps(place)))
      elif step.op is not None:
        ops.append(step.op)
    return self._dataset(self._early_steps), ops

  def _keeps(self, place: int) -> np.ndarray:
    """Returns for each row whether a filter keeps it."""
    dataset = self._dataset(self.steps[: place + 1], of_filter=True)
    batches = _dataset_elements.iterate(dataset.batch(_READ_SIZE))
    return np.concatenate([np.zeros(0, bool), *(one for (one,) in batches)])

  def _dataset(
      self, steps: Sequence[_Step], of_filter: bool = False
  ) -> tf.data.Dataset:
    """Returns the dataset of the rows, or of what a last filter says."""
    nodes = dict(self.graph.nodes)
    below, is_relaxed = self.source, False
    for place, step in enumerate(steps):
      is_wanted = of_filter and place == len(steps) - 1
      keeps_rows = step.node.op in (*_BATCHES, 'UnbatchDataset')
      if not (step.is_map or keeps_rows or is_wanted):
        continue
      node = type(step.node)()
      node.CopyFrom(step.node)
      node.input[0] = below.name
      if step.node.op in _BATCHES:
        _read_many(node, nodes)
      is_relaxed = step.node.op in _BATCHES or (
          is_relaxed and step.node.op != 'UnbatchDataset'
      )
      if is_relaxed:
        for shape in node.attr['output_shapes'].list.shape:
          if shape.dim:
            shape.dim[0].size = -1
      if step.is_filter:
        _turn_into_map(node)
      nodes[node.name] = below = node
    graph = self.graph.ending_at(below.name, nodes)
    dataset = graph.build(tuple(dataset_graphs.specs_of(below)))
    return dataset.with_options(element_orders.untuned())


def _chain(graph: dataset_graphs.DatasetGraph) -> list[Any]:
  """Returns the source and the ops on it that may act on numbers."""
  chain = [graph.nodes[graph.root]]
  while chain[-1].op in _NUMBER_OPS:
    chain.append(graph.source_of(chain[-1]))
  return chain[::-1]


def splits(graph: dataset_graphs.DatasetGraph) -> Iterator[Split]:
  """Yields ways to split the dataset into rows and ops on their numbers.

  All rows go through the functions, also those that `skip` or `filter` drops,
  for which they may fail. A later split has a higher source, which TensorFlow
  runs as it is.
  """
  chain = _chain(graph)
  draws = [graph.kinds[node.name].draws for node in chain]
  # What is below the first draw is the same in all runs and iterations.
  num_alike = draws.index(True) if True in draws else len(chain)
  starts = [0]
  while starts[-1] < num_alike:
    steps, failed = _steps(graph, chain[starts[-1] + 1 :])
    if failed is None:
      yield Split(graph, chain[starts[-1]], steps)
    if starts[-1] == num_alike - 1:
      break
    failed = num_alike if failed is None else starts[-1] + 1 + failed
    starts.append(min(failed, num_alike - 1))
  for start in starts[-2:]:
    steps, failed = _steps(graph, chain[start + 1 :], may_be_late=True)
    if failed is None and start < num_alike:
      if any(step.is_late for step in steps):
        yield Split(graph, chain[start], steps)


def _steps(
    graph: dataset_graphs.DatasetGraph,
    nodes: Sequence[Any],
    may_be_late: bool = False,
) -> tuple[list[_Step], Optional[int]]:
  """Returns the steps of nodes, or the place of one that cannot be one.

  Args:
    graph: The graph.
    nodes: The nodes.
    may_be_late: Whether functions may be called for what was chosen. Defaults
      to False.
  """
  steps: list[_Step] = []
  is_batched, keeps_order = False, False
  for place, node in enumerate(nodes):
    is_late = any(step.is_late for step in steps)
    step = None
    if not is_late or node.op in _AFTER_LATE_MAPS:
      step = _step(graph, node, is_batched)
    if step is None and may_be_late:
      step = _late_step(node, is_batched)
    if node.op == 'UnbatchDataset' and any(s.maps_batches_late for s in steps):
      step = None
    if node.op == 'CacheDatasetV2' and graph.kinds[node.name].draws:
      keeps_order = True
    # Whether a cache becomes whole depends on how much TensorFlow reads of it.
    if step is None or (keeps_order and node.op == 'TakeDataset'):
      return steps, place
    steps.append(step)
    if node.op in _BATCHES:
      is_batched = True
    elif node.op == 'UnbatchDataset':
      is_batched = False
  return steps, None


def _late_step(node: Any, is_batched: bool) -> Optional[_Step]:
  """Returns the step of a function that is called for what was chosen."""
  shapes = dataset_graphs.shapes_of(node)
  if node.op not in _graph_defs.MAP_OPS or not shapes:
    return None
  if all(shape.is_fully_defined() for shape in shapes):
    return _Step(
        node, maps_rows_late=not is_batched, maps_batches_late=is_batched
    )
  are_batches = all(
      shape.rank and shape[0] is None and shape[1:].is_fully_defined()
      for shape in shapes
  )
  if is_batched and are_batches:
    return _Step(node, maps_batches_late=True)
  return None


def _step(
    graph: dataset_graphs.DatasetGraph, node: Any, is_batched: bool
) -> Optional[_Step]:
  """Returns the step of a node; None if it needs the elements themselves."""
  arguments = [
      dataset_graphs.scalar(graph.nodes[_graph_defs.node_of(name)])
      for name in node.input[1:]
      if _graph_defs.node_of(name) in graph.nodes
  ]
  if node.op in _PASSED:
    return _Step(node)
  if node.op in _graph_defs.MAP_OPS:
    acts_on_rows = not is_batched or row_functions.acts_on_rows(
        node.attr['f'].func.name,
        dataset_graphs.shapes_of(graph.source_of(node)),
        graph.graph_def.library,
    )
    if acts_on_rows and not _function_kind(graph, node, 'f').draws:
      return _Step(node, is_map=True)
    return None
  if node.op in _FILTERS:
    draws = _function_kind(graph, node, 'predicate').draws
    return None if is_batched or draws else _Step(node, is_filter=True)
  if node.op in _BATCHES:
    if is_batched or not _can_batch(graph, node, arguments):
      return None
    size, drop = arguments[0], arguments[_DROP_PLACES[node.op]]
    return _Step(node, op=element_orders.Batch(int(size), bool(drop)))
  if node.op == 'UnbatchDataset':
    return _Step(node, op=element_orders.Unbatch()) if is_batched else None
  num_numbers, build = _NUMBER_STEPS[node.op]
  if None in arguments[:num_numbers]:
    return None
  if node.op == 'CacheDatasetV2' and arguments[0]:
    return None  # A file.
  source = graph.source_of(node)
  return _Step(node, op=build(node, source, *arguments[:num_numbers]))


def _function_kind(
    graph: dataset_graphs.DatasetGraph, node: Any, name: str
) -> dataset_graphs.Kind:
  """Returns the kind of a node's function and of what it captures."""
  captured = map(_graph_defs.node_of, node.input[1:])
  kinds = [graph.kinds[source] for source in captured]
  own = graph.kind_of_function(node.attr[name].func.name)
  return dataset_graphs.merged([own, *kinds])


def _can_batch(
    graph: dataset_graphs.DatasetGraph, node: Any, arguments: Sequence[Any]
) -> bool:
  """Returns whether a batch is its elements, one after the other."""
  if arguments[0] is None or arguments[_DROP_PLACES[node.op]] is None:
    return False
  shapes = dataset_graphs.shapes_of(graph.source_of(node))
  if node.op != 'PaddedBatchDatasetV2':
    return all(shape.rank is not None for shape in shapes)
  padded = dataset_graphs.shapes_of(node)
  return all(
      shape.is_fully_defined() and batch[1:].as_list() == shape.as_list()
      for shape, batch in zip(shapes, padded)
  )


def _read_many(node: Any, nodes: dict[str, Any]) -> None:
  """Lets a batch op make large batches, of all rows, in place."""
  places = range(1, len(node.input))
  rows = [
      tf.TensorSpec(spec.shape[1:], spec.dtype)
      for spec in dataset_graphs.specs_of(node)
  ]
  for place, value in (
      (places[0], np.int64(elements.num_at_once(rows))),
      (places[_DROP_PLACES[node.op]], False),
  ):
    constant = type(node)()
    constant.CopyFrom(nodes[_graph_defs.node_of(node.input[place])])
    constant.name = f'{node.name}/{place}'
    constant.attr['value'].tensor.CopyFrom(tf.make_tensor_proto(value))
    nodes[constant.name] = constant
    node.input[place] = constant.name


def _turn_into_map(node: Any) -> None:
  """Turns a filter into a map to what it says, in place."""
  predicate = node.attr.pop('predicate')
  node.op = 'MapDataset'
  node.attr.pop('deterministic', None)
  node.attr['f'].CopyFrom(predicate)
  node.attr['output_types'].list.type[:] = [tf.bool.as_datatype_enum]
  del node.attr['output_shapes'].list.shape[:]
  node.attr['output_shapes'].list.shape.add()
  node.attr['use_inter_op_parallelism'].b = True
  node.attr['preserve_cardinality'].b = True


def _repeat(node: Any, source: Any, count: int) -> element_orders.Op:
  del node
  return element_orders.Repeat(
      count, is_joined=source.op in _graph_defs.SHUFFLE_OPS
  )


def _shuffle(
    node: Any, source: Any, size: int, seed: int, seed2: int
) -> element_orders.Op:
  del source
  return element_orders.Shuffle(
      element_orders.UNLIMITED if size < 0 else size,
      (seed, seed2),
      node.attr['reshuffle_each_iteration'].b,
  )


def _of_numbers(op: Callable[..., element_orders.Op]) -> Callable[..., Any]:
  return lambda node, source, *numbers: op(*numbers)


# The number of numbers that an op takes, and its build from a node, the node of
# its input and these.
_NUMBER_STEPS: Mapping[str, tuple[int, Callable[..., element_orders.Op]]] = {
    'CacheDatasetV2': (1, lambda *_: element_orders.Cache()),
    'RepeatDataset': (1, _repeat),
    'ShardDataset': (2, _of_numbers(element_orders.Shard)),
    **{op: (3, _shuffle) for op in _graph_defs.SHUFFLE_OPS},
    'SkipDataset': (1, _of_numbers(element_orders.Skip)),
    'TakeDataset': (1, _of_numbers(element_orders.Take)),
}
# Ops that commute with functions of elements. A cache keeps what they draw.
_AFTER_LATE_MAPS = (
    *_PASSED,
    *_BATCHES,
    'UnbatchDataset',
    *(op for op in _NUMBER_STEPS if op != 'CacheDatasetV2'),
)
_NUMBER_OPS = (
    *_PASSED,
    *_graph_defs.MAP_OPS,
    *_FILTERS,
    *_BATCHES,
    'UnbatchDataset',
    *_NUMBER_STEPS,
)
