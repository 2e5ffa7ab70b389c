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
"""A dense layer on bags of words that looks at the words there are only."""

from typing import Any, Optional

import tensorflow as tf

_Initializer = Any


@tf.keras.utils.register_keras_serializable('tff_adaptive')
class BagOfWordsDense(tf.keras.layers.Layer):
  """The dense layer on the frequencies of words, from the words themselves.

  A text of 20 words is a vector of 10,000 frequencies, nearly all of them zero.
  Where `tf.keras.layers.Dense` multiplies the zeros, this layer takes the
  numbers of the words, gathers their rows of the kernel and averages them: the
  numbers of `Dense` on `to_frequencies(words)`, up to rounding. The gradient of
  the kernel is a `tf.IndexedSlices` of those rows, which
  `tff_adaptive.optimizers.build_sgd` without momentum applies as it is; other
  optimizers make it dense.

  Numbers that are no row (padding, words out of the vocabulary) count for
  nothing, as in TFF's `baselines.stackoverflow.create_tag_prediction_task`.

  Input shape: [batch, length] of any length, an integer dtype.
  Output shape: [batch, units].

  Attributes:
    kernel: The weights, [vocabulary_size, units], as of `Dense`.
    bias: The bias, [units], or None.

  Example:

    >>> layer = BagOfWordsDense(units=500, vocabulary_size=10_000)
    >>> layer(tf.constant([[3, 17, 3], [5, -1, -1]])).shape
    TensorShape([2, 500])
  """

  def __init__(
      self,
      units: int,
      vocabulary_size: int,
      use_bias: bool = True,
      kernel_initializer: _Initializer = 'glorot_uniform',
      bias_initializer: _Initializer = 'zeros',
      **kwargs: Any,
  ):
    """Initializes the layer.

    Args:
      units: The number of outputs, positive.
      vocabulary_size: How many words have a row of weights, positive.
      use_bias: Whether a bias is added. Defaults to True.
      kernel_initializer: As of `tf.keras.layers.Dense`.
      bias_initializer: As of `tf.keras.layers.Dense`.
      **kwargs: As of `tf.keras.layers.Layer`.

    Raises:
      ValueError: If a number is not positive.
    """
    super().__init__(**kwargs)
    for name, value in (('units', units), ('vocabulary_size', vocabulary_size)):
      if value < 1:
        raise ValueError(f'`{name}` must be positive, found {value}.')
    self.units = units
    self.vocabulary_size = vocabulary_size
    self.use_bias = use_bias
    self.kernel_initializer = tf.keras.initializers.get(kernel_initializer)
    self.bias_initializer = tf.keras.initializers.get(bias_initializer)

  def build(self, input_shape: tf.TensorShape):
    self.kernel = self.add_weight(
        'kernel',
        [self.vocabulary_size, self.units],
        initializer=self.kernel_initializer,
    )
    self.bias: Optional[tf.Variable] = None
    if self.use_bias:
      self.bias = self.add_weight(
          'bias', [self.units], initializer=self.bias_initializer
      )
    super().build(input_shape)

  def call(self, words: tf.Tensor) -> tf.Tensor:
    if not words.dtype.is_integer:
      raise TypeError(
          '`BagOfWordsDense` takes the numbers of words, an integer dtype, '
          f'found {words.dtype.name}; frequencies are for '
          '`tf.keras.layers.Dense`.'
      )
    shares = _shares(words, self.vocabulary_size, self.compute_dtype)
    rows = tf.gather(self.kernel, _rows(words, self.vocabulary_size))
    outputs = tf.reduce_sum(rows * shares[..., tf.newaxis], axis=1)
    return outputs if self.bias is None else outputs + self.bias

  def compute_output_shape(self, input_shape: Any) -> tf.TensorShape:
    return tf.TensorShape([input_shape[0], self.units])

  def get_config(self) -> dict[str, Any]:
    return {
        **super().get_config(),
        'units': self.units,
        'vocabulary_size': self.vocabulary_size,
        'use_bias': self.use_bias,
        'kernel_initializer': tf.keras.initializers.serialize(
            self.kernel_initializer
        ),
        'bias_initializer': tf.keras.initializers.serialize(
            self.bias_initializer
        ),
    }


def _is_known(words: tf.Tensor, vocabulary_size: int) -> tf.Tensor:
  return (words >= 0) & (words < vocabulary_size)


def _rows(words: tf.Tensor, vocabulary_size: int) -> tf.Tensor:
  """The rows to gather; where there is none any, with a share of zero."""
  return tf.where(_is_known(words, vocabulary_size), words, 0)


def _shares(
    words: tf.Tensor, vocabulary_size: int, dtype: Any = tf.float32
) -> tf.Tensor:
  """What each word of a text counts: one of all that have a row, or zero."""
  counts = tf.cast(_is_known(words, vocabulary_size), dtype)
  return tf.math.divide_no_nan(
      counts, tf.reduce_sum(counts, axis=1, keepdims=True)
  )


def to_frequencies(words: tf.Tensor, vocabulary_size: int) -> tf.Tensor:
  """Makes the frequencies of words that a dense layer takes.

  Args:
    words: The numbers of words, [batch, length], see `BagOfWordsDense`.
    vocabulary_size: How many words there are.

  Returns:
    A float32 tensor, [batch, vocabulary_size]: how often each word occurs,
    over that of all words that have a row; zeros for a text without any.
  """
  shares = _shares(words, vocabulary_size)
  texts = tf.broadcast_to(
      tf.range(tf.shape(words)[0])[:, tf.newaxis], tf.shape(words)
  )
  rows = tf.cast(_rows(words, vocabulary_size), tf.int32)
  return tf.scatter_nd(
      tf.stack([texts, rows], axis=2),
      shares,
      [tf.shape(words)[0], vocabulary_size],
  )
