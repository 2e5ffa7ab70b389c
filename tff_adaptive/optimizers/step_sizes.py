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
"""What the rules share that set their step size from the loss."""

import tensorflow as tf

# A gradient with a smaller norm is no direction, only rounding.
_NEGLIGIBLE_NORM = 1e-8


def is_negligible(gradient_norm: tf.Tensor) -> tf.Tensor:
  """Whether a gradient is too small to be followed; false for NaN."""
  return gradient_norm < _NEGLIGIBLE_NORM


def is_finite(loss: tf.Tensor, gradient_norm: tf.Tensor) -> tf.Tensor:
  """Whether there is a step size at all, for a loss and a gradient's norm.

  Comparisons and minima choose a number over a NaN. So a rule asks first, and
  gives NaN as its step size where this is false: the client must be seen to
  fail.

  Args:
    loss: The loss at the current point, a scalar.
    gradient_norm: The norm of the gradient there, a scalar.

  Returns:
    A boolean scalar.
  """
  return tf.math.is_finite(loss) & tf.math.is_finite(gradient_norm)


def grow(
    step_size: tf.Tensor, gamma: tf.Tensor, batches_per_epoch: tf.Tensor
) -> tf.Tensor:
  """A step size after one step of a growth by `gamma` an epoch."""
  return step_size * tf.pow(gamma, 1.0 / batches_per_epoch)
