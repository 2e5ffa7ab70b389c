# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The multi-class hinge loss."""

from typing import Any

import tensorflow as tf

# Subclasses have a loss of Keras as second base.
_Loss: Any = object


class MulticlassHinge(_Loss):
  """The multi-class hinge loss of Crammer and Singer.

  This class has all but the base class, a loss of Keras 2 or Keras 3.

  For class scores s and the label y,

  ```
  max over k of (s_k + [k != y]) - s_y
  ```

  which is zero where the label's score exceeds all others by at least one.

  Example:

    >>> from tff_adaptive import losses
    >>> loss = losses.MulticlassHinge()
    >>> float(loss([1], [[0.5, 1.0, 0.0]]))
    0.5

  References:
    Crammer and Singer, On the Algorithmic Implementation of Multiclass
    Kernel-based Vector Machines, JMLR 2, 2001; Berrada, Zisserman, Kumar, Deep
    Frank-Wolfe For Neural Network Optimization, ICLR 2019,
    https://arxiv.org/abs/1811.07591, train with it.
  """

  def __init__(self, name: str = 'multiclass_hinge', **kwargs):
    """Initializes the loss.

    Args:
      name: The name of the loss. Defaults to 'multiclass_hinge'.
      **kwargs: See `keras.losses.Loss`.
    """
    super().__init__(name=name, **kwargs)

  def call(self, y_true: tf.Tensor, y_pred: tf.Tensor) -> tf.Tensor:
    """Returns the loss of each example.

    Args:
      y_true: Labels, integers of shape [batch, ...] or [batch, ..., 1].
      y_pred: Class scores, [batch, ..., classes].

    Returns:
      A tensor of shape [batch, ...]; NaN where the label is no class.
    """
    y_pred = tf.convert_to_tensor(y_pred)
    labels = tf.reshape(tf.cast(y_true, tf.int32), tf.shape(y_pred)[:-1])
    is_label = tf.one_hot(labels, tf.shape(y_pred)[-1], dtype=y_pred.dtype) > 0
    # Selected, not multiplied by zero: a score may be -inf.
    margins = tf.where(is_label, y_pred, y_pred + 1.0)
    score = tf.reduce_sum(tf.where(is_label, y_pred, 0.0), axis=-1)
    loss = tf.reduce_max(margins, axis=-1) - score
    return tf.where(tf.reduce_any(is_label, axis=-1), loss, float('nan'))
