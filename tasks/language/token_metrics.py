# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Metrics of language models that ignore some tokens.

Their names and values are those of TFF's baselines for Shakespeare and Stack
Overflow, whose classes TFF does not export.
"""

from collections.abc import Iterable
from typing import Any, Optional

import keras
import tensorflow as tf


def _weights(
    labels: tf.Tensor,
    sample_weight: Optional[tf.Tensor],
    masked_tokens: Iterable[int],
    dtype: Any,
) -> tf.Tensor:
  """Returns the weight of each label, zero for a masked token."""
  if sample_weight is None:
    weights = tf.ones_like(labels, dtype)
  else:
    weights = tf.cast(sample_weight, dtype)
  for token in masked_tokens:
    weights *= tf.cast(tf.not_equal(labels, token), dtype)
  return weights


class NumTokensCounter(keras.metrics.Sum):
  """The number of labels that are not masked tokens.

  Example:

    >>> metric = NumTokensCounter(masked_tokens=[0])
    >>> metric.update_state(y_true=[[3, 1, 0, 0]], y_pred=tf.zeros([1, 4, 5]))
    >>> int(metric.result())
    2
  """

  def __init__(
      self,
      masked_tokens: Iterable[int] = (),
      name: str = 'num_tokens',
      dtype: Any = tf.int64,
  ):
    """Initializes the metric.

    Args:
      masked_tokens: The tokens to ignore. Defaults to none.
      name: The name of the metric.
      dtype: The dtype of the number.
    """
    super().__init__(name, dtype)
    self._masked_tokens = tuple(masked_tokens)

  def update_state(
      self, y_true: tf.Tensor, y_pred: Any, sample_weight: Any = None
  ) -> None:
    labels = tf.convert_to_tensor(y_true)
    super().update_state(
        _weights(labels, sample_weight, self._masked_tokens, self.dtype)
    )

  def get_config(self) -> dict[str, Any]:
    return {**super().get_config(), 'masked_tokens': self._masked_tokens}


class MaskedCategoricalAccuracy(keras.metrics.SparseCategoricalAccuracy):
  """The share of the labels with the largest score, without masked tokens.

  ```
  sum [y != masked] [argmax over k of s_k = y] / sum [y != masked]
  ```

  over all labels y, with the scores s_k of all tokens; a masked token as the
  prediction counts as wrong.

  Example:

    >>> metric = MaskedCategoricalAccuracy(masked_tokens=[0])
    >>> metric.update_state([[1, 2, 0]], tf.one_hot([[1, 1, 0]], depth=3))
    >>> float(metric.result())
    0.5
  """

  def __init__(
      self,
      masked_tokens: Iterable[int] = (),
      name: str = 'accuracy',
      dtype: Any = None,
  ):
    """Initializes the metric.

    Args:
      masked_tokens: The labels to ignore. Defaults to none.
      name: The name of the metric.
      dtype: The dtype of the sums; Keras' default if None.
    """
    super().__init__(name, dtype)
    self._masked_tokens = tuple(masked_tokens)

  def update_state(
      self, y_true: tf.Tensor, y_pred: tf.Tensor, sample_weight: Any = None
  ) -> None:
    labels = tf.convert_to_tensor(y_true)
    weights = _weights(labels, sample_weight, self._masked_tokens, self.dtype)
    super().update_state(labels, y_pred, weights)

  def get_config(self) -> dict[str, Any]:
    return {**super().get_config(), 'masked_tokens': self._masked_tokens}
