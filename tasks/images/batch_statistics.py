# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Batch normalization that always uses the statistics of the batch."""

import keras
import tensorflow as tf


@keras.saving.register_keras_serializable('tff_adaptive')
class BatchStatisticsNormalization(keras.layers.Layer):
  """Batch normalization without running statistics.

  ```
  y = gamma * (x - mean(x)) / sqrt(variance(x) + epsilon) + beta
  ```

  per channel, with mean and variance over the batch and the image, also in
  evaluation, like PyTorch's `track_running_stats=False`. The output for an
  example depends on the other examples of its batch.

  Example:

    >>> layer = BatchStatisticsNormalization()
    >>> float(tf.reduce_mean(layer(tf.ones([2, 3, 3, 1]))))
    0.0

  References:
    Ioffe and Szegedy, Batch Normalization, ICML 2015,
    https://arxiv.org/abs/1502.03167.
  """

  def __init__(self, epsilon: float = 1e-5, **kwargs):
    """Initializes the layer.

    Args:
      epsilon: The value added to the variance. Defaults to 1e-5, as in PyTorch.
      **kwargs: See `keras.layers.Layer`.
    """
    super().__init__(**kwargs)
    self._epsilon = epsilon

  def build(self, input_shape):
    """Adds the scale and the shift of each channel."""
    channels = input_shape[-1]
    self.gamma = self.add_weight([channels], 'ones', name='gamma')
    self.beta = self.add_weight([channels], 'zeros', name='beta')
    super().build(input_shape)

  def call(self, inputs: tf.Tensor) -> tf.Tensor:
    """Returns the normalized images, of shape [batch, height, width, c]."""
    return tf.compat.v1.nn.fused_batch_norm(
        inputs, self.gamma, self.beta, epsilon=self._epsilon, is_training=True
    )[0]

  def get_config(self):
    """Returns the arguments from which the layer can be rebuilt."""
    return {**super().get_config(), 'epsilon': self._epsilon}
