# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Layers whose initial weights depend only on a seed and the layers' names."""

from collections.abc import Sequence
import math
from typing import Any, Optional

import keras

from tff_adaptive.data import random_streams
from tff_adaptive.layers import keras_3

CIFAR = 'cifar'


def initializer_seed(seed: int, *keys: random_streams.Key) -> int:
  """Returns the seed of an initializer.

  Args:
    seed: The seed of the run, a non-negative integer.
    *keys: Keys that distinguish the weight from all others, such as the names
      of the task, of the layer and of the weight.

  Returns:
    The seed; equal arguments give equal seeds.

  Raises:
    TypeError: If `seed` is not an integer, or a key neither integer nor string.
    ValueError: If `seed` is negative.
  """
  return random_streams.derived_seed(
      seed, random_streams.INITIAL_WEIGHTS, *keys
  )


def chain(
    input_shape: Sequence[int], layers: Sequence[keras.layers.Layer]
) -> keras.Model:
  """Returns a model that applies layers one after the other."""
  inputs = keras.Input(input_shape)
  outputs = inputs
  for layer in layers:
    outputs = layer(outputs)
  return keras.Model(inputs, outputs)


def glorot_uniform(
    seed: int, *keys: random_streams.Key
) -> keras.initializers.Initializer:
  """Returns Keras' default initializer of kernels; see `initializer_seed`.

  Example:
    >>> glorot_uniform(1, 'emnist', 'dense')([784, 10]).shape
    TensorShape([784, 10])
  """
  return keras.initializers.GlorotUniform(initializer_seed(seed, *keys))


def glorot_convolution(
    name: str,
    filters: int,
    kernel_size: int,
    seed: int,
    *,
    family: str,
    padding: str = 'valid',
) -> keras.layers.Layer:
  """Builds a convolution with ReLU and Keras' default initial weights."""
  return keras.layers.Conv2D(
      filters,
      kernel_size,
      padding=padding,
      activation='relu',
      kernel_initializer=glorot_uniform(seed, family, name),
      name=name,
  )


def glorot_dense(
    name: str,
    units: int,
    seed: int,
    *,
    family: str,
    activation: Optional[str] = 'relu',
) -> keras.layers.Layer:
  """Builds a dense layer with Keras' default initial weights."""
  return keras.layers.Dense(
      units,
      activation=activation,
      kernel_initializer=glorot_uniform(seed, family, name),
      name=name,
  )


def uniform_convolution(
    name: str,
    filters: int,
    kernel_size: int,
    num_inputs: int,
    seed: int,
    *,
    use_bias: bool = True,
    family: str = CIFAR,
    **options: Any,
) -> keras.layers.Layer:
  """Builds a convolution with PyTorch's initial weights.

  Args:
    name: The name of the layer.
    filters: The number of output channels.
    kernel_size: The height and the width of the kernel.
    num_inputs: The number of input channels.
    seed: The seed of the model.
    use_bias: Whether to add a bias. Defaults to True.
    family: The name of the model's task or family.
    **options: See `keras.layers.Conv2D`.

  Returns:
    The layer: kernel and bias uniform in [-1 / sqrt(fan_in), 1 / sqrt(fan_in)].

  Example:
    >>> layer = uniform_convolution('stem', 64, 3, 3, seed=1, padding='same')
    >>> layer(tf.zeros([1, 32, 32, 3])).shape
    TensorShape([1, 32, 32, 64])
  """
  return keras.layers.Conv2D(
      filters,
      kernel_size,
      use_bias=use_bias,
      name=name,
      **_uniform(name, kernel_size**2 * num_inputs, seed, family),
      **options,
  )


def uniform_dense(
    name: str,
    units: int,
    num_inputs: int,
    seed: int,
    *,
    family: str = CIFAR,
    **options: Any,
) -> keras.layers.Layer:
  """Builds a dense layer with PyTorch's initial weights.

  Args:
    name: The name of the layer.
    units: The number of outputs.
    num_inputs: The number of inputs.
    seed: The seed of the model.
    family: The name of the model's task or family.
    **options: See `keras.layers.Dense`.

  Returns:
    The layer: kernel and bias uniform in [-1 / sqrt(fan_in), 1 / sqrt(fan_in)].

  Example:
    >>> uniform_dense('logits', 10, 512, seed=1)(tf.zeros([1, 512])).shape
    TensorShape([1, 10])
  """
  return keras.layers.Dense(
      units, name=name, **_uniform(name, num_inputs, seed, family), **options
  )


def _uniform(layer: str, fan_in: int, seed: int, family: str) -> dict[str, Any]:
  """Returns the initializers of a layer's kernel and bias."""
  limit = 1.0 / math.sqrt(fan_in)
  return {
      f'{weight}_initializer': keras.initializers.RandomUniform(
          -limit, limit, seed=initializer_seed(seed, family, layer, weight)
      )
      for weight in ('kernel', 'bias')
  }


class SeededLayers:
  """Builds the layers of a task's models.

  The initial weights of a layer depend only on the seed, the task and the
  layer's name, and not on other layers. The distributions are Keras' defaults,
  unless stated otherwise.

  Example:
    >>> maker = SeededLayers('shakespeare', seed=1)
    >>> maker.dense('logits', 90).name
    'logits'
  """

  def __init__(self, task: str, seed: int):
    """Initializes the builder with a task and a non-negative seed."""
    self._task = task
    self._seed = random_streams.check_seed(seed)

  def embedding(
      self, name: str, num_tokens: int, size: int
  ) -> keras.layers.Layer:
    """Builds an embedding; token 0 is padding, which recurrent layers skip.

    Its weights are uniform in [-0.05, 0.05].
    """
    return keras.layers.Embedding(
        num_tokens,
        size,
        mask_zero=True,
        embeddings_initializer=keras.initializers.RandomUniform(
            seed=self._seed_of(name, 'embeddings')
        ),
        name=name,
    )

  def lstm(
      self, name: str, units: int, kernel_initializer: str = 'GlorotUniform'
  ) -> keras.layers.Layer:
    """Builds an LSTM layer that returns the outputs of all steps.

    The kernel's initializer is a Keras class, by name. The recurrent kernel is
    orthogonal, and the bias zero except for ones at the forget gate.
    """
    return keras_3.LSTM(
        units,
        return_sequences=True,
        kernel_initializer=self._initializer(
            name, 'kernel', kernel_initializer
        ),
        recurrent_initializer=self._initializer(
            name, 'recurrent_kernel', 'Orthogonal'
        ),
        name=name,
    )

  def dense(self, name: str, units: int) -> keras.layers.Layer:
    """Builds a dense layer without activation.

    Its kernel is Glorot uniform, its bias zero.
    """
    return keras.layers.Dense(
        units, kernel_initializer=self.glorot_uniform(name), name=name
    )

  def glorot_uniform(self, name: str) -> keras.initializers.Initializer:
    """Builds the initializer of the kernel of a layer."""
    return self._initializer(name, 'kernel', 'GlorotUniform')

  def _initializer(self, name: str, weight: str, class_name: str) -> Any:
    initializer = getattr(keras.initializers, class_name)
    return initializer(seed=self._seed_of(name, weight))

  def _seed_of(self, name: str, weight: str) -> int:
    return initializer_seed(self._seed, self._task, name, weight)
