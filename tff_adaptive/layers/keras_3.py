# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The layers for Keras 3 with the backend of TensorFlow."""

from typing import Any, Optional

import keras
import tensorflow as tf

from tff_adaptive.layers import bags_of_words
from tff_adaptive.layers import recurrence


@keras.saving.register_keras_serializable('tff_adaptive')
class BagOfWordsDense(bags_of_words.BagOfWordsDense, keras.layers.Layer):
  """`tff_adaptive.layers.bags_of_words.BagOfWordsDense` for Keras 3."""

  initializers = keras.initializers


@keras.saving.register_keras_serializable('tff_adaptive')
class LSTM(keras.layers.LSTM):
  """`keras.layers.LSTM` with a faster implementation.

  Arguments, weights, results (up to rounding), files and configurations are
  those of `keras.layers.LSTM`; see `tff_adaptive.layers.LSTM`. Keras' own
  implementation runs where the fast one does not apply: activations other than
  tanh and sigmoid, no bias, dropout while training, `stateful`, `go_backwards`,
  `unroll`, half precision and masks inside of `Bidirectional`.

  Example:

    >>> from tff_adaptive.layers import keras_3
    >>> layer = keras_3.LSTM(256, return_sequences=True)
    >>> layer(tf.zeros([4, 80, 8])).shape
    TensorShape([4, 80, 256])
  """

  def inner_loop(
      self,
      sequences: Any,
      initial_state: Any,
      mask: Optional[tf.Tensor],
      training: Any = False,
  ) -> Any:
    if not self._is_fast(sequences, mask, training):
      return super().inner_loop(sequences, initial_state, mask, training)
    time_mask = None
    if mask is not None:
      time_mask = tf.cast(tf.transpose(mask), tf.bool)[..., tf.newaxis]
    weights = (self.cell.kernel, self.cell.recurrent_kernel, self.cell.bias)
    hidden, cell = initial_state
    outputs, cell = recurrence.lstm(
        tf.transpose(sequences, [1, 0, 2]),
        hidden,
        cell,
        tuple(map(tf.convert_to_tensor, weights)),
        time_mask,
    )
    hidden = outputs[-1]
    if time_mask is not None:
      # Keras has zeros before the first step, even with an initial state.
      num_before = tf.cumsum(tf.cast(time_mask, tf.int32))
      outputs = tf.where(num_before > 0, outputs, 0)
    return outputs[-1], tf.transpose(outputs, [1, 0, 2]), [hidden, cell]

  def _is_fast(self, sequences: Any, mask: Any, training: Any) -> bool:
    """Returns whether the fast recurrence supports the layer's settings."""
    has_dropout = bool(self.dropout or self.recurrent_dropout)
    return (
        isinstance(sequences, tf.Tensor)
        and sequences.dtype in (tf.float32, tf.float64)
        and self.activation is keras.activations.tanh
        and self.recurrent_activation is keras.activations.sigmoid
        and self.use_bias
        and not (has_dropout and training)
        and not (self.stateful or self.go_backwards or self.unroll)
        and not (mask is not None and self.zero_output_for_mask)
    )
