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
"""Keras layers of language models whose initial weights follow a seed."""

from typing import Any

import tensorflow as tf

from tff_adaptive import layers
from tff_adaptive.data import random_streams


class SeededLayers:
  """Makes the layers of a task's models.

  The initial weights of a layer depend on the seed, the task and the layer's
  name, and not on what was made before. The distributions are Keras' defaults,
  unless said otherwise.

  Example:

    >>> maker = SeededLayers('shakespeare', seed=1)
    >>> maker.dense('logits', 90).name
    'logits'
  """

  def __init__(self, task: str, seed: int):
    """Initializes the maker.

    Args:
      task: The name of the task.
      seed: The seed of the initial weights, a non-negative integer.
    """
    self._task = task
    self._seed = random_streams.check_seed(seed)

  def embedding(
      self, name: str, num_tokens: int, size: int
  ) -> tf.keras.layers.Layer:
    """Makes an embedding whose token 0 is padding that recurrent layers skip.

    Args:
      name: The name of the layer.
      num_tokens: How many tokens there are.
      size: The size of the vectors.

    Returns:
      The layer; its weights are uniform in [-0.05, 0.05].
    """
    return tf.keras.layers.Embedding(
        num_tokens,
        size,
        mask_zero=True,
        embeddings_initializer=tf.keras.initializers.RandomUniform(
            seed=self._seed_of(name, 'embeddings')
        ),
        name=name,
    )

  def lstm(
      self, name: str, units: int, kernel_initializer: str = 'GlorotUniform'
  ) -> tf.keras.layers.Layer:
    """Makes a recurrent layer that returns the outputs of all steps.

    Args:
      name: The name of the layer.
      units: The number of units.
      kernel_initializer: The name of the class of Keras that makes the kernel.

    Returns:
      The layer; the recurrent kernel is orthogonal, the bias zero but for the
      ones of the forget gate.
    """
    return layers.LSTM(
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

  def dense(self, name: str, units: int) -> tf.keras.layers.Layer:
    """Makes a dense layer without activation.

    Args:
      name: The name of the layer.
      units: The number of units.

    Returns:
      The layer; its kernel is Glorot's uniform one, its bias zero.
    """
    return tf.keras.layers.Dense(
        units, kernel_initializer=self.glorot_uniform(name), name=name
    )

  def glorot_uniform(self, name: str) -> tf.keras.initializers.Initializer:
    """Makes the initializer of the kernel of the layer of this name."""
    return self._initializer(name, 'kernel', 'GlorotUniform')

  def _initializer(self, name: str, weight: str, class_name: str) -> Any:
    initializer = getattr(tf.keras.initializers, class_name)
    return initializer(seed=self._seed_of(name, weight))

  def _seed_of(self, name: str, weight: str) -> int:
    return random_streams.derived_seed(
        self._seed, random_streams.INITIAL_WEIGHTS, self._task, name, weight
    )
