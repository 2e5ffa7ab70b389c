# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads once what is the same in all rounds of a dataset that differs.

Below an op that draws anew in each round, a dataset may read files or call
functions that give the same each time. Their elements are put in their place.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Optional

import numpy as np
import tensorflow as tf

from tff_adaptive import _function_library
from tff_adaptive.runtime.datasets import dataset_graphs

# What is put into a graph is copied in each round.
_MAX_BYTES = 2**25
# Returns the arrays of all elements of a dataset, by component; None if they
# have more than a number of bytes.
Read = Callable[[tf.data.Dataset, int], Optional[Sequence[np.ndarray]]]


def keep(
    graph: dataset_graphs.DatasetGraph, read: Read
) -> dataset_graphs.DatasetGraph:
  """Returns a graph with elements in place of the datasets that are alike.

  Args:
    graph: The graph of a dataset that differs between rounds.
    read: Reads a dataset that does not.

  Returns:
    A graph of the same elements.
  """
  nodes = dict(graph.nodes)
  nodes.update({node.name: node for node in _alike(graph, graph.root, read)})
  return graph.ending_at(graph.root, nodes)


def _alike(
    graph: dataset_graphs.DatasetGraph, name: str, read: Read
) -> Iterator[Any]:
  """Yields nodes to put in place of those below a node, and new ones."""
  for source in map(_function_library.node_of, graph.nodes[name].input):
    node = graph.nodes[source]
    if 'Dataset' not in node.op:
      continue
    below = _function_library.in_order(graph.nodes, [source])
    if not any(map(_takes_time, below)):
      continue
    kept = None
    if not graph.kinds[source].draws:
      kept = _keep(graph, node, read)
    yield from _alike(graph, source, read) if kept is None else kept


def _takes_time(node: Any) -> bool:
  """Returns whether a node reads files or calls functions."""
  return dataset_graphs.reads_files(node) or any(
      True for _ in _function_library.functions_in(node)
  )


def _keep(
    graph: dataset_graphs.DatasetGraph, node: Any, read: Read
) -> Optional[list[Any]]:
  """Returns nodes with the elements of a node; None if they are not kept."""
  specs = dataset_graphs.specs_of(node)
  if not all(
      spec.shape.is_fully_defined() and spec.dtype.is_numpy_compatible
      for spec in specs
  ):
    return None
  below = graph.ending_at(node.name, graph.nodes)
  arrays = read(below.build(tuple(specs)), _MAX_BYTES)
  if arrays is None:
    return None
  constants = []
  for place, (array, spec) in enumerate(zip(arrays, specs)):
    constant = type(node)(name=f'{node.name}/kept/{place}', op='Const')
    constant.attr['dtype'].type = spec.dtype.as_datatype_enum
    constant.attr['value'].tensor.CopyFrom(
        tf.make_tensor_proto(array, spec.dtype)
    )
    constants.append(constant)
  kept = type(node)(
      name=node.name,
      op='TensorSliceDataset',
      input=[constant.name for constant in constants],
  )
  kept.attr['Toutput_types'].list.type.extend(
      spec.dtype.as_datatype_enum for spec in specs
  )
  kept.attr['output_shapes'].list.shape.extend(
      spec.shape.as_proto() for spec in specs
  )
  return [*constants, kept]
