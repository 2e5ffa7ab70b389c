# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Seeds the random ops of clients' training by their data.

TFF's native runtime has no seed of a round or a client, so that dropout would
differ from run to run. Here the seed is a digest of what the client's training
reads: its data and the broadcast value.
"""

from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import _function_library
from tff_adaptive import _random_ops
from tff_adaptive.runtime import computations
from tff_adaptive.runtime import elements
from tff_adaptive.runtime import values

_SCOPE = 'seed_of_client'
_NEXT_ELEMENT = 0x01000193


def _as_integers(tensor: tf.Tensor) -> tf.Tensor:
  """Returns the bits of a tensor as a vector of int32."""
  if tensor.dtype == tf.string:
    tensor = tf.strings.to_hash_bucket_fast(tensor, tf.int32.max)
  if tensor.dtype.size >= 4:
    tensor = tf.bitcast(tensor, tf.int32)
  elif tensor.dtype.is_floating:
    tensor = tf.bitcast(tensor, tf.int16)
  return tf.reshape(tf.cast(tensor, tf.int32), [-1])


def _digest(tensors: list[tf.Tensor]) -> tf.Tensor:
  """Returns two int32 numbers that depend on every bit and its position."""
  digest = tf.zeros([2], tf.int32)
  for tensor in tensors:
    numbers = _as_integers(tensor)
    places = 2 * tf.range(tf.size(numbers)) + 1
    # Unlike sums of floats, sums of integers do not depend on their order.
    sums = [
        tf.reduce_sum(numbers * places * factor)
        for factor in _random_ops.SPREADING_FACTORS
    ]
    digest = digest * _NEXT_ELEMENT + tf.stack(sums)
  return digest


def _digest_of_leaf(leaf_type: tff.Type, name: str) -> tf.Tensor:
  """Returns the digest of a leaf of the argument; adds its placeholder."""
  node_name = _function_library.node_of(name)
  if not isinstance(leaf_type, tff.SequenceType):
    spec = values.tensor_spec(leaf_type)
    tensor = tf.compat.v1.placeholder(spec.dtype, spec.shape, name=node_name)
    with tf.name_scope(_SCOPE):
      return _digest([tensor])
  variant = tf.compat.v1.placeholder(tf.variant, [], name=node_name)
  spec = elements.element_spec(leaf_type)
  with tf.name_scope(_SCOPE):
    return tf.data.experimental.from_variant(variant, spec).reduce(
        tf.zeros([2], tf.int32),
        lambda digest, element: digest * _NEXT_ELEMENT
        + _digest(tf.nest.flatten(element)),
    )


def _build_seed(
    leaf_types: list[tff.Type], names: list[str]
) -> tuple[Any, str]:
  """Returns the seed's graph, without placeholders, and the seed's name."""
  graph = tf.Graph()
  with graph.as_default():
    digests = [
        _digest_of_leaf(leaf_type, name)
        for leaf_type, name in zip(leaf_types, names)
    ]
    with tf.name_scope(_SCOPE):
      seed = _digest(digests)
  graph_def = graph.as_graph_def()
  nodes = [node for node in graph_def.node if node.op != 'Placeholder']
  del graph_def.node[:]
  graph_def.node.extend(nodes)
  return graph_def, seed.name


def _fix_random_ops(proto: Any) -> None:
  """Seeds the random ops of a client's training loop, in place."""
  graph_def = tf.compat.v1.GraphDef()
  proto.tensorflow.graph_def.Unpack(graph_def)
  rewriter = _random_ops.RandomOpRewriter(graph_def, '_of_client')
  # Outside of loops, random ops only initialize variables, and the initial
  # values are never read.
  if not rewriter.draws_in_loops(graph_def.node):
    return
  signature = tff.framework.deserialize_computation(proto).type_signature
  leaf_types = values.leaf_types(signature.parameter)
  if not any(isinstance(leaf, tff.SequenceType) for leaf in leaf_types):
    return
  names = computations.binding_names(proto.tensorflow.parameter)
  seed_graph, seed = _build_seed(leaf_types, names)
  nodes = rewriter.rewrite(graph_def.node, seed, ':0')
  del graph_def.node[:]
  graph_def.node.extend([*seed_graph.node, *nodes])
  graph_def.library.function.extend(
      [*seed_graph.library.function, *rewriter.changed_functions]
  )
  proto.tensorflow.graph_def.Pack(graph_def)
  # The cache key belongs to the original graph.
  proto.tensorflow.ClearField('cache_key')


def with_seeds(
    computation: tff.framework.ConcreteComputation,
) -> tff.framework.ConcreteComputation:
  """Seeds the clients' training by their data and the broadcast value.

  Args:
    computation: A computation.

  Returns:
    A computation with the same type and results, except that random numbers in
    the loops over a sequence are the same whenever the argument is.

  Raises:
    UnsupportedRandomOpError: If a random op is in a place where it cannot be
      replaced.
  """
  proto = tff.framework.serialize_computation(computation)
  for part in computations.tensorflow_parts(proto):
    _fix_random_ops(part)
  # The original type also names Python's containers.
  return tff.framework.ConcreteComputation.with_type(
      tff.framework.deserialize_computation(proto), computation.type_signature
  )
