# Copyright 2026 The tff_adaptive Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""Dropout on TFF's native runtime that a run started again draws again.

The native runtime draws random numbers anew in each run, and a computation
cannot tell it the round or the client. What a client's training draws can be
fixed by what it has: here it is keyed by a digest of the client's data and of
all else that the client received, the weights of the round among it. So masks
differ by client, round and step, and are the same whenever the round is.
"""

from collections.abc import Iterator
from typing import Any

from google.protobuf import message as message_lib
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import _function_library
from tff_adaptive import _random_ops
from tff_adaptive.runtime import computations
from tff_adaptive.runtime import values

_SCOPE = 'seed_of_client'
_COMPUTATION = 'tensorflow_federated.v0.Computation'
# Odd, so that products keep all bits.
_FACTORS = (0x2545F491, 0x1B873593)
_NEXT_ELEMENT = 0x01000193


def _messages(message: Any, full_name: str) -> Iterator[Any]:
  """All messages of a kind within a message."""
  if message.DESCRIPTOR.full_name == full_name:
    yield message
  for field, value in message.ListFields():
    if field.message_type is None:
      continue
    for part in [value] if isinstance(value, message_lib.Message) else value:
      yield from _messages(part, full_name)


def _as_integers(tensor: tf.Tensor) -> tf.Tensor:
  """The bits of a tensor as one row of int32."""
  if tensor.dtype == tf.string:
    tensor = tf.strings.to_hash_bucket_fast(tensor, tf.int32.max)
  if tensor.dtype.size >= 4:
    tensor = tf.bitcast(tensor, tf.int32)
  elif tensor.dtype.is_floating:
    tensor = tf.bitcast(tensor, tf.int16)
  return tf.reshape(tf.cast(tensor, tf.int32), [-1])


def _digest(tensors: list[tf.Tensor]) -> tf.Tensor:
  """Two integers, int32 [2], that depend on every bit and its place."""
  digest = tf.zeros([2], tf.int32)
  for tensor in tensors:
    numbers = _as_integers(tensor)
    places = 2 * tf.range(tf.size(numbers)) + 1
    # Sums of integers do not depend on their order, unlike those of floats.
    sums = [tf.reduce_sum(numbers * places * factor) for factor in _FACTORS]
    digest = digest * _NEXT_ELEMENT + tf.stack(sums)
  return digest


def _element_specs(type_spec: tff.Type) -> Any:
  """The specs of elements, whose containers a serialized type does not name."""
  if not isinstance(type_spec, tff.StructType):
    return values.tensor_spec(type_spec)
  fields = [
      (name, _element_specs(field))
      for name, field in tff.structure.iter_elements(type_spec)
  ]
  if all(name is not None for name, _ in fields):
    return dict(fields)
  return tuple(spec for _, spec in fields)


def _digest_of_leaf(leaf_type: tff.Type, name: str) -> tf.Tensor:
  """The digest of a part of the argument, whose placeholder is added."""
  node_name = _function_library.node_of(name)
  if not isinstance(leaf_type, tff.SequenceType):
    spec = values.tensor_spec(leaf_type)
    tensor = tf.compat.v1.placeholder(spec.dtype, spec.shape, name=node_name)
    with tf.name_scope(_SCOPE):
      return _digest([tensor])
  variant = tf.compat.v1.placeholder(tf.variant, [], name=node_name)
  specs = _element_specs(leaf_type.element)
  with tf.name_scope(_SCOPE):
    return tf.data.experimental.from_variant(variant, specs).reduce(
        tf.zeros([2], tf.int32),
        lambda digest, element: digest * _NEXT_ELEMENT
        + _digest(tf.nest.flatten(element)),
    )


def _build_seed(
    leaf_types: list[tff.Type], names: list[str]
) -> tuple[Any, str]:
  """The graph of the seed, without placeholders, and the seed's name."""
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
  """Keys what a client's training draws, in place; others stay as they are."""
  graph_def = tf.compat.v1.GraphDef()
  proto.tensorflow.graph_def.Unpack(graph_def)
  rewriter = _random_ops.RandomOpRewriter(graph_def, '_of_client')
  # Outside of loops, variables draw initial values that nothing ever reads.
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
  # It would stand for the graph as it was.
  proto.tensorflow.ClearField('cache_key')


def with_seeds(
    computation: tff.framework.ConcreteComputation,
) -> tff.framework.ConcreteComputation:
  """Fixes what clients draw in their training by what they train on and with.

  Args:
    computation: A computation.

  Returns:
    A computation with the same type and results, but for random numbers in
    loops of TensorFlow that takes a sequence, which are the same whenever the
    argument is.

  Raises:
    UnsupportedRandomOpError: If a random op stands where it cannot be replaced.
  """
  proto = tff.framework.serialize_computation(computation)
  for part in _messages(proto, _COMPUTATION):
    if part.WhichOneof('computation') == 'tensorflow':
      _fix_random_ops(part)
  # The type that it had names Python's containers, too.
  return tff.framework.ConcreteComputation.with_type(
      tff.framework.deserialize_computation(proto), computation.type_signature
  )
