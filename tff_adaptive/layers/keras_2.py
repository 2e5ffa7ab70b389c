# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The layers for Keras 2."""

from typing import Any, Optional

import tensorflow as tf

from tff_adaptive.layers import bags_of_words
from tff_adaptive.layers import recurrence


@tf.keras.utils.register_keras_serializable('tff_adaptive')
class BagOfWordsDense(bags_of_words.BagOfWordsDense, tf.keras.layers.Layer):
  """`tff_adaptive.layers.bags_of_words.BagOfWordsDense` for Keras 2."""

  initializers = tf.keras.initializers


@tf.keras.utils.register_keras_serializable('tff_adaptive')
class LSTM(tf.keras.layers.LSTM):
  """`tf.keras.layers.LSTM` with a faster implementation.

  Arguments, weights, results (up to rounding), checkpoints and configurations
  are those of `tf.keras.layers.LSTM`. A local step of two layers of 256 units
  takes a fraction of the time, on a CPU and, because functional models never
  use Keras' cuDNN kernel, on a GPU; and a functional model runs on TFF's
  native runtime, where Keras' layer fails on a placeholder without a value.

  Keras' own implementation runs where the fast one does not apply: activations
  other than tanh and sigmoid, no bias, dropout while training, `stateful`,
  `go_backwards`, `time_major`, `unroll` and half precision; and for masked
  inputs with an initial state, or with zeros at masked steps, which
  `tf.keras.layers.Bidirectional` asks for.

  XLA compiles the recurrence once for each batch size. Its gradients cannot be
  differentiated again; take `tf.keras.layers.LSTM` for second derivatives.

  Example:

    >>> layer = LSTM(256, return_sequences=True)
    >>> layer(tf.zeros([4, 80, 8])).shape
    TensorShape([4, 80, 256])

  References:
    Hochreiter and Schmidhuber, Long Short-Term Memory, Neural Computation 1997;
    with forget gates: Gers et al., Learning to Forget, Neural Computation 2000.
  """

  def call(
      self,
      inputs: Any,
      mask: Optional[tf.Tensor] = None,
      training: Any = None,
      initial_state: Any = None,
  ) -> Any:
    # Keras puts zeros where the fast recurrence repeats its last output.
    has_zeros = mask is not None and (
        initial_state is not None or self.zero_output_for_mask
    )
    if has_zeros or not self._is_fast(inputs, training):
      return super().call(inputs, mask, training, initial_state)
    if initial_state is None:
      initial_state = self.get_initial_state(inputs)
    hidden, cell = initial_state
    if mask is not None:
      mask = tf.cast(tf.transpose(mask), tf.bool)[..., tf.newaxis]
    weights = (self.cell.kernel, self.cell.recurrent_kernel, self.cell.bias)
    outputs, cell = recurrence.lstm(
        tf.transpose(inputs, [1, 0, 2]),
        hidden,
        cell,
        tuple(map(tf.convert_to_tensor, weights)),
        mask,
    )
    hidden = outputs[-1]
    result = (
        tf.transpose(outputs, [1, 0, 2]) if self.return_sequences else hidden
    )
    return [result, hidden, cell] if self.return_state else result

  def build_from_config(self, config: dict[str, Any]) -> None:
    shape = config['input_shape']
    # Read from a file it is a list, which Keras would take for several inputs;
    # with an initial state there are several.
    is_one = not isinstance(shape[0], (list, tuple, tf.TensorShape))
    self.build(tf.TensorShape(shape if is_one else shape[0]))

  def _is_fast(self, inputs: Any, training: Any) -> bool:
    """Returns whether the fast recurrence supports the layer's settings."""
    has_dropout = bool(self.dropout or self.recurrent_dropout)
    return (
        isinstance(inputs, tf.Tensor)
        and inputs.dtype in (tf.float32, tf.float64)
        and self.activation is tf.keras.activations.tanh
        and self.recurrent_activation is tf.keras.activations.sigmoid
        and self.use_bias
        and not (has_dropout and training is not False)
        and not (self.stateful or self.go_backwards or self.time_major)
        and not self.unroll
    )
