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
"""Initial weights that depend on a run's seed alone."""

import tensorflow as tf

from tff_adaptive.data import random_streams


def glorot_uniform(
    seed: int, *keys: random_streams.Key
) -> tf.keras.initializers.Initializer:
  """Returns Keras' default initializer of kernels, seeded.

  Args:
    seed: The seed of the run, a non-negative integer.
    *keys: What tells the kernel from all others, such as the names of the task
      and of the layer.

  Returns:
    The initializer; equal arguments give equal kernels.

  Raises:
    TypeError: If `seed` is not an integer, or a key neither integer nor string.
    ValueError: If `seed` is negative.

  Example:

    >>> glorot_uniform(1, 'emnist', 'dense')([784, 10]).shape
    TensorShape([784, 10])
  """
  return tf.keras.initializers.GlorotUniform(
      seed=random_streams.derived_seed(
          seed, random_streams.INITIAL_WEIGHTS, *keys
      )
  )
