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
"""Layers whose initial weights depend on a seed and on their names alone."""

import math
from typing import Any

import tensorflow as tf

from tff_adaptive.data import random_streams


def initializer_seed(seed: int, layer: str, weight: str) -> int:
  """Returns the seed of a weight, another one for each.

  Args:
    seed: The seed of the model, a non-negative integer.
    layer: The name of the layer, unique in its model.
    weight: The name of the weight in its layer.

  Returns:
    An integer for a Keras initializer.
  """
  return random_streams.derived_seed(
      seed, random_streams.INITIAL_WEIGHTS, 'cifar', layer, weight
  )


def uniform_convolution(
    name: str,
    filters: int,
    kernel_size: int,
    num_inputs: int,
    seed: int,
    *,
    use_bias: bool = True,
    **options: Any,
) -> tf.keras.layers.Layer:
  """Builds a convolution with the initial weights that PyTorch's has.

  Args:
    name: The name of the layer.
    filters: The number of channels that come out.
    kernel_size: The height and the width of the kernel.
    num_inputs: The number of channels that go in.
    seed: The seed of the model.
    use_bias: Whether there is a bias. Defaults to True.
    **options: Of `tf.keras.layers.Conv2D`.

  Returns:
    The layer: kernel and bias uniform in [-1 / sqrt(fan_in), 1 / sqrt(fan_in)].

  Example:

    >>> layer = uniform_convolution('stem', 64, 3, 3, seed=1, padding='same')
    >>> layer(tf.zeros([1, 32, 32, 3])).shape
    TensorShape([1, 32, 32, 64])
  """
  return tf.keras.layers.Conv2D(
      filters,
      kernel_size,
      use_bias=use_bias,
      name=name,
      **_uniform(name, kernel_size**2 * num_inputs, seed),
      **options,
  )


def uniform_dense(
    name: str, units: int, num_inputs: int, seed: int, **options: Any
) -> tf.keras.layers.Layer:
  """Builds a dense layer with the initial weights that PyTorch's has.

  Args:
    name: The name of the layer.
    units: The number of outputs.
    num_inputs: The number of inputs.
    seed: The seed of the model.
    **options: Of `tf.keras.layers.Dense`.

  Returns:
    The layer: kernel and bias uniform in [-1 / sqrt(fan_in), 1 / sqrt(fan_in)].

  Example:

    >>> uniform_dense('logits', 10, 512, seed=1)(tf.zeros([1, 512])).shape
    TensorShape([1, 10])
  """
  return tf.keras.layers.Dense(
      units, name=name, **_uniform(name, num_inputs, seed), **options
  )


def _uniform(layer: str, fan_in: int, seed: int) -> dict[str, Any]:
  """Returns the initializers of a layer's kernel and bias."""
  limit = 1.0 / math.sqrt(fan_in)
  return {
      f'{weight}_initializer': tf.keras.initializers.RandomUniform(
          -limit, limit, seed=initializer_seed(seed, layer, weight)
      )
      for weight in ('kernel', 'bias')
  }
