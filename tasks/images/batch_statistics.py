# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Batch normalization by the statistics of the batch, always."""

import tensorflow as tf


@tf.keras.utils.register_keras_serializable('tff_adaptive')
class BatchStatisticsNormalization(tf.keras.layers.Layer):
  """Batch normalization that keeps no running statistics.

  ```
  y = gamma * (x - mean(x)) / sqrt(variance(x) + epsilon) + beta
  ```

  for every channel, mean and variance over the batch and the image, also where
  a model does not train: PyTorch's `track_running_stats=False`. What it makes
  of an example depends on the other ones in its batch.

  Example:

    >>> layer = BatchStatisticsNormalization()
    >>> float(tf.reduce_mean(layer(tf.ones([2, 3, 3, 1]))))
    0.0

  References:
    Ioffe and Szegedy, Batch Normalization, ICML 2015,
    https://arxiv.org/abs/1502.03167.
  """

  # There is no functional form of such a model.
  mixes_examples = True

  def __init__(self, epsilon: float = 1e-5, **kwargs):
    """Initializes the layer.

    Args:
      epsilon: What is added to the variance. Defaults to 1e-5, as in PyTorch.
      **kwargs: Of `tf.keras.layers.Layer`.
    """
    super().__init__(**kwargs)
    self._epsilon = epsilon

  def build(self, input_shape):
    """Adds the scale and the shift of every channel."""
    channels = input_shape[-1]
    self.gamma = self.add_weight('gamma', [channels], initializer='ones')
    self.beta = self.add_weight('beta', [channels], initializer='zeros')
    super().build(input_shape)

  def call(self, inputs: tf.Tensor) -> tf.Tensor:
    """Returns the normalized images, of shape [batch, height, width, c]."""
    return tf.compat.v1.nn.fused_batch_norm(
        inputs, self.gamma, self.beta, epsilon=self._epsilon, is_training=True
    )[0]

  def get_config(self):
    """Returns what a copy of the layer is built from."""
    return {**super().get_config(), 'epsilon': self._epsilon}
