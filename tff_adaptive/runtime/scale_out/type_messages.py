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
"""Types of TFF on their way to another process.

They cannot be pickled, and what TFF serializes has lost the containers, which
the order of a sequence's components depends on.
"""

from typing import Any, NamedTuple, Optional, Union

import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.runtime import values


class Struct(NamedTuple):
  """A struct.

  Attributes:
    names: The names of the fields; None for those without.
    fields: The types of the fields.
    container: The class that holds them; None for none in particular.
  """

  names: list[Optional[str]]
  fields: list['TypeMessage']
  container: Optional[type[Any]]


class Sequence(NamedTuple):
  """A sequence.

  Attributes:
    element: The type of its elements.
  """

  element: 'TypeMessage'


TypeMessage = Union[tf.TensorSpec, Struct, Sequence]


def from_type(type_spec: tff.Type) -> TypeMessage:
  """Returns what is sent of a type.

  Args:
    type_spec: A type of tensors, sequences and structs.

  Returns:
    What `to_type` makes the same type of.
  """
  if isinstance(type_spec, tff.StructType):
    return Struct(
        tff.structure.name_list_with_nones(type_spec),
        [
            from_type(field)
            for _, field in tff.structure.iter_elements(type_spec)
        ],
        getattr(type_spec, 'python_container', None),
    )
  if isinstance(type_spec, tff.SequenceType):
    return Sequence(from_type(type_spec.element))
  return values.tensor_spec(type_spec)


def to_type(message: TypeMessage) -> tff.Type:
  """Returns the type that a message is of."""
  if isinstance(message, Struct):
    fields = list(zip(message.names, map(to_type, message.fields)))
    if message.container is None:
      return tff.StructType(fields)
    return tff.StructWithPythonType(fields, message.container)
  if isinstance(message, Sequence):
    return tff.SequenceType(to_type(message.element))
  return tff.types.tensorflow_to_type(message)
