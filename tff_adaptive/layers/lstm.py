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
"""Keras' LSTM, fast where a CPU trains it."""

from typing import Any, Optional

import tensorflow as tf

from tff_adaptive.layers import _lstm_recurrence


@tf.keras.utils.register_keras_serializable('tff_adaptive')
class LSTM(tf.keras.layers.LSTM):
  """`tf.keras.layers.LSTM` with another implementation for the CPU.

  The arguments, the weights and the numbers (up to rounding) are those of
  `tf.keras.layers.LSTM`, and so are checkpoints and configurations. On a CPU
  a local step of two layers of 256 units takes a fraction of the time; and a
  functional model of TFF runs on TFF's native runtime, where with Keras' layer
  it fails on a placeholder that nothing feeds.

  Where TensorFlow sees a GPU, Keras' own implementation runs, which takes the
  kernel of cuDNN there. It also runs for what the fast one has not: activations
  other than tanh and sigmoid, no bias, dropout while training, `stateful`,
  `go_backwards`, `time_major`, `unroll` and half precision.

  XLA compiles the recurrence once for each size of batch that occurs.

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
    if not self._is_fast(inputs, training):
      return super().call(inputs, mask, training, initial_state)
    if initial_state is None:
      initial_state = self.get_initial_state(inputs)
    hidden, cell = initial_state
    if mask is not None:
      mask = tf.transpose(mask)[..., tf.newaxis]
    outputs, cell = _lstm_recurrence.lstm(
        tf.transpose(inputs, [1, 0, 2]),
        hidden,
        cell,
        tuple(
            tf.convert_to_tensor(weight)
            for weight in (
                self.cell.kernel,
                self.cell.recurrent_kernel,
                self.cell.bias,
            )
        ),
        mask,
    )
    hidden = outputs[-1]
    result = (
        tf.transpose(outputs, [1, 0, 2]) if self.return_sequences else hidden
    )
    return [result, hidden, cell] if self.return_state else result

  def build_from_config(self, config: dict[str, Any]) -> None:
    # From a file it is a list, which Keras takes for several inputs.
    self.build(tf.TensorShape(config['input_shape']))

  def _is_fast(self, inputs: Any, training: Any) -> bool:
    """Whether the recurrence of this package is that of the layer."""
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
        and not tf.config.list_physical_devices('GPU')
    )
