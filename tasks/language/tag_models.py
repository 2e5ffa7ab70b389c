# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Logistic regression that predicts the tags of Stack Overflow's sentences.

```
P(tag t) = sigmoid(b_t + sum over words w of W_wt x_w)
```

with the frequencies x of words, see `bags_of_words.WordFrequencies`. The two
models have the same initial weights and, up to rounding, the same outputs;
5,000,500 weights with 10,000 words and 500 tags. The kernel is Glorot uniform,
the bias zero, as in TFF; they depend only on the seed.

References:
  Reddi et al., Adaptive Federated Optimization, ICLR 2021,
  https://arxiv.org/abs/2003.00295, Section 5;
  `tff.simulation.baselines.stackoverflow.create_tag_prediction_task`.
"""

import keras
import tensorflow as tf

from tasks import seeded_layers
from tff_adaptive.layers import keras_3

_TASK = 'stackoverflow_lr'
_RECALL_AT = 5


@keras.saving.register_keras_serializable('tff_adaptive')
class TrimWords(keras.layers.Layer):
  """Trims lists of words to the longest one of the batch.

  Nearly all texts have far fewer words than a list has room for. Only -1 is cut
  off, which has no effect.

  Example:

    >>> TrimWords()(tf.constant([[3, 1, -1, -1], [2, -1, -1, -1]])).shape
    TensorShape([2, 2])
  """

  def call(self, words: tf.Tensor) -> tf.Tensor:
    is_used = tf.reduce_any(words >= 0, axis=0)
    num_used = tf.math.count_nonzero(is_used, dtype=tf.int32)
    return words[:, :num_used]


def build_of_words(
    vocab_size: int, tag_vocab_size: int, max_words: int, seed: int
) -> keras.Model:
  """Builds the model on lists of words, which reads only their rows.

  An example takes a tenth of the memory, and training on a CPU a fraction of
  the time. XLA cannot compile it.

  Args:
    vocab_size: The number of words.
    tag_vocab_size: The number of tags.
    max_words: The length of the lists, see `bags_of_words.WordLists`.
    seed: The seed of the initial weights, a non-negative integer.

  Returns:
    A model from lists to probabilities of tags, [batch, tag_vocab_size].
  """
  maker = seeded_layers.SeededLayers(_TASK, seed)
  inputs = keras.Input([max_words], dtype='int32')
  outputs = keras_3.BagOfWordsDense(
      tag_vocab_size,
      vocab_size,
      kernel_initializer=maker.glorot_uniform('logits'),
      name='logits',
  )(TrimWords()(inputs))
  return keras.Model(inputs, keras.layers.Activation('sigmoid')(outputs))


def build_of_frequencies(
    vocab_size: int, tag_vocab_size: int, seed: int
) -> keras.Model:
  """Builds the model on the frequencies of words, as in TFF's baseline."""
  maker = seeded_layers.SeededLayers(_TASK, seed)
  inputs = keras.Input([vocab_size])
  outputs = maker.dense('logits', tag_vocab_size)(inputs)
  return keras.Model(inputs, keras.layers.Activation('sigmoid')(outputs))


class _BinaryCrossentropy(keras.losses.Loss):
  """Binary cross entropy by the formula of Keras 2.

  It adds epsilon to clipped probabilities, and Keras 3 does not: the loss of a
  probability of 0 is 15.4 here, and 16.1 there.
  """

  def call(self, y_true: tf.Tensor, y_pred: tf.Tensor) -> tf.Tensor:
    epsilon = keras.config.epsilon()
    y_pred = tf.clip_by_value(y_pred, epsilon, 1.0 - epsilon)
    likelihood = y_true * tf.math.log(y_pred + epsilon)
    likelihood += (1.0 - y_true) * tf.math.log(1.0 - y_pred + epsilon)
    return -tf.reduce_mean(likelihood, axis=-1)


def build_loss() -> keras.losses.Loss:
  """Builds the loss: binary cross entropy, as in TFF's baseline.

  It is the sum over the examples of a batch of the mean over the tags. That is
  why published step sizes are as large as 100. Evaluations and the metrics of
  clients report the mean over examples; `train/loss` remains a mean of sums.
  """
  loss = _BinaryCrossentropy(reduction='sum')
  loss.reports_mean = True
  return loss


def build_metrics() -> list[keras.metrics.Metric]:
  """Builds the metrics of TFF's baseline: precision, and recall at 5.

  'precision' is the precision of tags with a probability above 1/2;
  'recall_at_5', which publications report, is the share of all tags that are
  among the five most probable ones of their sentence.
  """
  return [
      keras.metrics.Precision(name='precision'),
      keras.metrics.Recall(top_k=_RECALL_AT, name=f'recall_at_{_RECALL_AT}'),
  ]
