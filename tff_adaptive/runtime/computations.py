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
"""TensorFlow computations as TFF keeps them: graphs and names in them."""

from typing import Any, Optional

import attrs
import tensorflow as tf
import tensorflow_federated as tff


class UnsupportedComputationError(Exception):
  """A computation cannot be compiled; the text says why."""


@attrs.frozen(eq=False)
class Serialized:
  """A computation as TFF keeps it: a graph and names in it.

  Attributes:
    graph_def: A `GraphDef`; it may be changed in place.
    parameters: The names of the parameter's tensors, in the order of its
      leaves.
    results: The same of the result.
    initialize_op: The name of the op that initializes variables; '' without.
  """

  graph_def: Any
  parameters: list[str]
  results: list[str]
  initialize_op: str


def binding_names(binding: Any) -> list[str]:
  """The tensor names of a binding, in the order of the type's leaves.

  Args:
    binding: The parameter or the result of serialized TensorFlow.

  Returns:
    The names; that of the variant tensor for a sequence.

  Raises:
    UnsupportedComputationError: If a sequence has no variant tensor.
  """
  kind = binding.WhichOneof('binding')
  if kind is None:
    return []
  if kind == 'struct':
    return [
        name
        for element in binding.struct.element
        for name in binding_names(element)
    ]
  if kind == 'tensor':
    return [binding.tensor.tensor_name]
  name = binding.sequence.variant_tensor_name
  if not name:
    raise UnsupportedComputationError(
        'a sequence is kept as a graph instead of a variant tensor'
    )
  return [name]


def _tensorflow_of(
    computation: tff.framework.ConcreteComputation,
) -> Optional[Any]:
  """The serialized TensorFlow of a computation, None if there is more to it."""
  proto = tff.framework.serialize_computation(computation)
  if proto.WhichOneof('computation') != 'tensorflow':
    return None
  return proto.tensorflow


def is_tensorflow(computation: tff.framework.ConcreteComputation) -> bool:
  """Whether a computation is TensorFlow alone."""
  return _tensorflow_of(computation) is not None


def read(computation: tff.framework.ConcreteComputation) -> Serialized:
  """Reads the graph of a computation.

  Args:
    computation: A computation of TensorFlow alone.

  Returns:
    A copy of its graph, with the names of what goes in and out.

  Raises:
    UnsupportedComputationError: If there is more to it than TensorFlow, or a
      sequence has no variant tensor.
  """
  tensorflow = _tensorflow_of(computation)
  if tensorflow is None:
    raise UnsupportedComputationError(
        f'{computation.type_signature} is not TensorFlow alone'
    )
  graph_def = tf.compat.v1.GraphDef()
  tensorflow.graph_def.Unpack(graph_def)
  parameters: list[str] = []
  if tensorflow.HasField('parameter'):
    parameters = binding_names(tensorflow.parameter)
  return Serialized(
      graph_def,
      parameters,
      binding_names(tensorflow.result),
      tensorflow.initialize_op,
  )
