# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""A dense layer on bags of words that skips absent words."""

from typing import Any

import tensorflow as tf

_Initializer = Any
# Subclasses have a layer of Keras as second base.
_Layer: Any = object


class BagOfWordsDense(_Layer):
  """A dense layer on word frequencies that takes word ids.

  This class has all but the base class, a layer of Keras 2 or Keras 3.

  A text of 20 words is a vector of 10,000 frequencies, nearly all of them zero.
  `tf.keras.layers.Dense` multiplies the zeros; this layer takes word ids,
  gathers their rows of the kernel and averages them. Its outputs equal those of
  `Dense` on `to_frequencies(words)`, up to rounding. The gradient of the kernel
  is a `tf.IndexedSlices` of those rows, which
  `tff_adaptive.optimizers.build_sgd` without momentum applies without making it
  dense.

  Ids without a row (padding, words out of the vocabulary) are ignored, as in
  TFF's `baselines.stackoverflow.create_tag_prediction_task`.

  Input shape: [batch, length] of any length, an integer dtype.
  Output shape: [batch, units].

  Attributes:
    kernel: The weights, [vocabulary_size, units], as in `Dense`.
    bias: The bias, [units], or None.
    initializers: The module `initializers` of Keras.

  Example:

    >>> from tff_adaptive import layers
    >>> layer = layers.BagOfWordsDense(units=500, vocabulary_size=10_000)
    >>> layer(tf.constant([[3, 17, 3], [5, -1, -1]])).shape
    TensorShape([2, 500])
  """

  initializers: Any

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
      vocabulary_size: The number of words with a row of weights, positive.
      use_bias: Whether to add a bias. Defaults to True.
      kernel_initializer: See `tf.keras.layers.Dense`.
      bias_initializer: See `tf.keras.layers.Dense`.
      **kwargs: See `tf.keras.layers.Layer`.

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
    get = self.initializers.get
    self.kernel_initializer = get(kernel_initializer)
    self.bias_initializer = get(bias_initializer)

  def build(self, input_shape: tf.TensorShape):
    self.kernel = self.add_weight(
        name='kernel',
        shape=(self.vocabulary_size, self.units),
        initializer=self.kernel_initializer,
    )
    self.bias: Any = None
    if self.use_bias:
      self.bias = self.add_weight(
          name='bias', shape=(self.units,), initializer=self.bias_initializer
      )
    super().build(input_shape)

  def call(self, words: tf.Tensor) -> tf.Tensor:
    if not tf.as_dtype(words.dtype).is_integer:
      raise TypeError(
          '`BagOfWordsDense` takes word ids of an integer dtype, found '
          f'{tf.as_dtype(words.dtype).name}; for frequencies use `Dense`.'
      )
    words = _widened(words)
    shares = _shares(words, self.vocabulary_size, self.compute_dtype)
    rows = tf.gather(self.kernel, _rows(words, self.vocabulary_size))
    outputs = tf.reduce_sum(rows * shares[..., tf.newaxis], axis=1)
    return outputs if self.bias is None else outputs + self.bias

  def compute_output_shape(self, input_shape: Any) -> Any:
    return type(input_shape)((input_shape[0], self.units))

  def get_config(self) -> dict[str, Any]:
    serialize = self.initializers.serialize
    return {
        **super().get_config(),
        'units': self.units,
        'vocabulary_size': self.vocabulary_size,
        'use_bias': self.use_bias,
        'kernel_initializer': serialize(self.kernel_initializer),
        'bias_initializer': serialize(self.bias_initializer),
    }


def _widened(words: Any) -> tf.Tensor:
  """Returns ids in a dtype that holds any number of words."""
  words = tf.convert_to_tensor(words)
  is_wide = words.dtype in (tf.int32, tf.int64)
  return words if is_wide else tf.cast(words, tf.int64)


def _is_known(words: tf.Tensor, vocabulary_size: int) -> tf.Tensor:
  return (words >= 0) & (words < vocabulary_size)


def _rows(words: tf.Tensor, vocabulary_size: int) -> tf.Tensor:
  """Returns the rows to gather: 0, with a share of zero, for unknown words."""
  return tf.where(_is_known(words, vocabulary_size), words, 0)


def _shares(
    words: tf.Tensor, vocabulary_size: int, dtype: Any = tf.float32
) -> tf.Tensor:
  """Returns each word's share: 1 / the text's known words, or 0 if unknown."""
  counts = tf.cast(_is_known(words, vocabulary_size), dtype)
  return tf.math.divide_no_nan(
      counts, tf.reduce_sum(counts, axis=1, keepdims=True)
  )


def to_frequencies(words: tf.Tensor, vocabulary_size: int) -> tf.Tensor:
  """Converts word ids to the frequencies that a dense layer takes.

  Args:
    words: Word ids, [batch, length], see `BagOfWordsDense`.
    vocabulary_size: The number of words.

  Returns:
    A float32 tensor, [batch, vocabulary_size]: each word's count divided by the
    number of known words in the text; zeros for a text without any.
  """
  words = _widened(words)
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
