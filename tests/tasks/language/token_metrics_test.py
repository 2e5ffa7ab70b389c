# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the metrics of language models."""

from absl.testing import absltest
import numpy as np
import tensorflow as tf

from tasks.language import token_metrics

_LABELS = np.array([[3, 1, 0, 0], [2, 2, 1, 0]])
_CHOSEN = np.array([[3, 2, 0, 0], [2, 1, 1, 3]])


class TokenMetricsTest(absltest.TestCase):

  def _value(self, metric, **kwargs):
    metric.update_state(_LABELS, tf.one_hot(_CHOSEN, 4), **kwargs)
    return metric.result().numpy()

  def test_tokens_are_counted_without_masked_ones(self):
    for masked, wanted in (((), 8), ([0], 5), ([0, 1], 3)):
      metric = token_metrics.NumTokensCounter(masked)
      self.assertEqual(metric.name, 'num_tokens')
      self.assertEqual(self._value(metric), wanted)
      # Another batch is added, and a reset begins anew.
      self.assertEqual(self._value(metric), 2 * wanted)
      metric.reset_state()
      self.assertEqual(metric.result(), 0)
      self.assertEqual(metric.result().dtype, tf.int64)

  def test_accuracy_is_without_masked_labels(self):
    for masked, wanted in (((), 5 / 8), ([0], 3 / 5), ([0, 2], 2 / 3)):
      metric = token_metrics.MaskedCategoricalAccuracy(masked)
      self.assertEqual(metric.name, 'accuracy')
      self.assertAlmostEqual(self._value(metric), wanted, places=6)

  def test_weights_of_labels_count(self):
    weights = np.array([[1, 0, 1, 1], [1, 1, 0, 1]])
    self.assertEqual(
        self._value(token_metrics.NumTokensCounter([0]), sample_weight=weights),
        3,
    )
    accuracy = token_metrics.MaskedCategoricalAccuracy([0])
    self.assertAlmostEqual(
        self._value(accuracy, sample_weight=weights), 2 / 3, places=6
    )

  def test_nothing_but_masked_labels(self):
    metric = token_metrics.MaskedCategoricalAccuracy([0])
    metric.update_state([[0, 0]], tf.one_hot([[0, 1]], 4))
    self.assertEqual(metric.result(), 0.0)

  def test_configuration_makes_the_same_metric(self):
    for metric in (
        token_metrics.NumTokensCounter([0, 2], name='tokens'),
        token_metrics.MaskedCategoricalAccuracy([0, 2], name='known'),
    ):
      again = type(metric).from_config(metric.get_config())
      self.assertEqual(again.name, metric.name)
      self.assertEqual(self._value(again), self._value(metric))
