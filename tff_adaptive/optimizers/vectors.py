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
"""Arithmetic on the flat vector of all weights, held as a structure.

Every norm and product of the rules is over the whole vector: the sum over
tensors of each tensor's sum, one root at the end, never per tensor.
"""

from collections.abc import Iterable
from typing import Any

import tensorflow as tf


def step_dtype(specs: Any) -> tf.DType:
  """The dtype in which norms and step sizes are computed.

  Args:
    specs: A structure of tensors or `tf.TensorSpec`s.

  Returns:
    float64 if any leaf is float64, else float32: in bfloat16 and float16 a sum
    of squares has too few digits and overflows early.
  """
  dtypes = [leaf.dtype for leaf in tf.nest.flatten(specs)]
  return tf.float64 if tf.float64 in dtypes else tf.float32


def norm(tensors: Iterable[tf.Tensor], dtype: tf.DType) -> tf.Tensor:
  """The Euclidean norm of the concatenation of `tensors`, a scalar."""
  squares = [tf.reduce_sum(tf.square(tf.cast(t, dtype))) for t in tensors]
  return tf.sqrt(tf.add_n(squares)) if squares else tf.zeros([], dtype)


def without_slices(gradients: Any) -> Any:
  """The gradients with `None` in the place of `tf.IndexedSlices`."""
  return tf.nest.map_structure(
      lambda g: None if isinstance(g, tf.IndexedSlices) else g, gradients
  )


def descend(weights: Any, gradients: Any, step_size: tf.Tensor) -> Any:
  """`weights - step_size * gradients`, with the rows of slices only.

  Args:
    weights: A structure of tensors.
    gradients: A structure like it, of tensors, `tf.IndexedSlices` and `None`,
      which leaves its weight as it is.
    step_size: A scalar.

  Returns:
    The new weights.
  """

  def step(weight, gradient):
    if gradient is None:
      return weight
    factor = tf.cast(step_size, weight.dtype)
    if isinstance(gradient, tf.IndexedSlices):
      return tf.tensor_scatter_nd_sub(
          weight, gradient.indices[:, tf.newaxis], factor * gradient.values
      )
    return weight - factor * gradient

  return tf.nest.map_structure(step, weights, gradients)
