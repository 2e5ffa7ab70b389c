# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Lets TFF's worker read TFRecord files.

TensorFlow 2.21 asks for a reader without a buffer of its own by the size -1,
which the TensorFlow within TFF 0.87's worker rejects.
"""

from typing import Any, Optional
import weakref

import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import _function_library
from tff_adaptive.runtime import computations
from tff_adaptive.runtime.datasets import dataset_graphs

# The default of `tf.data.TFRecordDataset` before TensorFlow 2.21.
_BUFFER_BYTES = 256 * 1024
_BUFFER_PLACE = 2
# A dataset that the worker reads in place of another one; None for the same.
_readable: weakref.WeakKeyDictionary[
    tf.data.Dataset, Optional[tf.data.Dataset]
] = weakref.WeakKeyDictionary()


def _set_buffers(graph_def: Any) -> bool:
  """Gives readers of records a buffer, in place; returns whether it did."""
  has_changed = False
  for nodes in [
      graph_def.node,
      *(function.node_def for function in graph_def.library.function),
  ]:
    by_name = {node.name: node for node in nodes}
    for node in nodes:
      if node.op.startswith('TFRecordDataset'):
        name = _function_library.node_of(node.input[_BUFFER_PLACE])
        size = by_name.get(name)
        if size is not None and dataset_graphs.scalar(size) == -1:
          size.attr['value'].tensor.CopyFrom(
              tf.make_tensor_proto(_BUFFER_BYTES, tf.int64)
          )
          has_changed = True
  return has_changed


def of_dataset(dataset: tf.data.Dataset) -> tf.data.Dataset:
  """Returns a dataset with the same elements that the worker reads."""
  if dataset not in _readable:
    graph = dataset_graphs.DatasetGraph.of(dataset)
    changed = None
    if graph is not None and _set_buffers(graph.graph_def):
      changed = graph.build(dataset.element_spec)
    _readable[dataset] = changed
  return _readable[dataset] or dataset


def of_computation(
    computation: tff.framework.ConcreteComputation,
) -> tff.framework.ConcreteComputation:
  """Returns a computation of the same that the worker runs."""
  proto = tff.framework.serialize_computation(computation)
  if b'TFRecordDataset' not in proto.SerializeToString():
    return computation
  for part in computations.tensorflow_parts(proto):
    graph_def = tf.compat.v1.GraphDef()
    part.tensorflow.graph_def.Unpack(graph_def)
    if _set_buffers(graph_def):
      part.tensorflow.graph_def.Pack(graph_def)
      # The cache key belongs to the original graph.
      part.tensorflow.ClearField('cache_key')
  # The original type also names Python's containers.
  return tff.framework.ConcreteComputation.with_type(
      tff.framework.deserialize_computation(proto), computation.type_signature
  )
