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
"""Values of TFF types as the tensors that a graph takes."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tff_adaptive import _compat
from tff_adaptive.runtime import elements
from tff_adaptive.runtime import shared_arrays
from tff_adaptive.runtime import values


def _build_leaf(leaf_type: _compat.Type) -> Callable[[Any], tf.Tensor]:
  if isinstance(leaf_type, _compat.SequenceType):
    return lambda value: tf.data.experimental.to_variant(
        elements.as_dataset(value, leaf_type)
    )
  spec = values.tensor_spec(leaf_type)

  def convert(value):
    tensor = shared_arrays.to_tensor(value, spec.dtype)
    if not spec.shape.is_compatible_with(tensor.shape):
      raise TypeError(
          f'Expected a value of type {leaf_type}, found one of shape '
          f'{tensor.shape}.'
      )
    return tensor

  return convert


def build_conversion(
    type_spec: _compat.Type,
) -> Callable[[Any], list[tf.Tensor]]:
  """Builds what turns values of a type into tensors.

  Args:
    type_spec: A type without functions.

  Returns:
    A function from a value of the type, without clients, to its leaves in the
    order of `values.leaf_types`; a sequence becomes the variant of a dataset.
    It raises a `TypeError`, or a `ValueError` of TensorFlow, if the value does
    not fit.
  """
  flatten = values.build_flatten(type_spec)
  convert_leaves = list(map(_build_leaf, values.leaf_types(type_spec)))

  def convert(value):
    return [
        convert_leaf(leaf)
        for convert_leaf, leaf in zip(convert_leaves, flatten(value))
    ]

  return convert
