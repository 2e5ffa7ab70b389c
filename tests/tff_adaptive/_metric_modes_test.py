# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the direction that the name of a metric tells."""

import inspect

from absl.testing import parameterized
import tensorflow as tf

from tff_adaptive import _metric_modes

# Names of the field, whose direction is that of their definition.
_MAX = """
accuracy val_acc train/masked_categorical_accuracy flattened_accuracy
sparse_top_k_categorical_accuracy top_1 top5 top_5_accuracy recall_at_5 recall@5
hit@10 auc AUC auroc pr_auc average_precision f1 f1_score F1Score FBetaScore
fbeta_score precision_at_recall sensitivity_at_specificity true_positives
true_negative_rate negative_predictive_value mean_io_u MeanIoU dice_coefficient
matthews_correlation_coefficient cohen_kappa r2 R2Score explained_variance
cosine_similarity mean_reciprocal_rank ndcg_at_10 bleu_4 rouge1 rougeL
log_likelihood elbo neg_mean_squared_error neg_brier_score one_minus_ece
evaluation/clients/accuracy_worst_decile accuracy_min jains_index
demographic_parity_ratio accuracy_without_padding
accuracy_without_out_of_vocab_or_end_of_sentence
""".split()
_MIN = """
loss clients/loss focalloss loss_1 loss_per_token error word_error_rate
mae mean_squared_error mean_absolute_percentage_error log_cosh huber poisson
categorical_hinge kl_divergence crossentropy cross_entropy bce wmse nrmse nll
negative_log_likelihood perplexity ppl bits_per_character bpc wer cer ece
expected_calibration_error brier_score crps false_positives num_false_positives
false_negatives false_positive_rate false_discovery_rate fpr miss_rate eer
top_5_error one_minus_accuracy mean_rank edit_distance hamming_loss
evaluation/mean_squared_error_1_worst_decile misclassification_rate
evaluation/clients/false_positives_mean evaluation/clients/val_rmse_median
evaluation/personalized/after/error_median accuracy_std loss_variance
accuracy_gap demographic_parity_difference
""".split()
_UNKNOWN = """
gmae clients/step_size_mean learning_rate gradient_norm entropy dice gini score
my_score confidence inaccuracy loss_reduction loss_ratio negative_recall mean
tokens_per_second clients_per_round layer privacy/epsilon foo seconds
""".split()
_COUNTS = 'num_examples num_batches num_tokens clients/num_clients'.split()


class MetricModesTest(parameterized.TestCase):

  @parameterized.parameters(*_MAX)
  def test_larger_is_better(self, metric):
    self.assertEqual(_metric_modes.find_mode(metric), 'max')
    self.assertTrue(_metric_modes.is_higher_better(metric))

  @parameterized.parameters(*_MIN)
  def test_smaller_is_better(self, metric):
    self.assertEqual(_metric_modes.find_mode(metric), 'min')
    self.assertFalse(_metric_modes.is_higher_better(metric))

  @parameterized.parameters(*_UNKNOWN, *_COUNTS)
  def test_other_names_ask_for_the_mode(self, metric):
    self.assertIsNone(_metric_modes.find_mode(metric))
    with self.assertRaisesRegex(ValueError, f"'{metric}' .* give --mode: 'max"):
      _metric_modes.mode_of(metric, argument='--mode')
    self.assertEqual(_metric_modes.mode_of(metric, 'min'), 'min')

  def test_a_given_mode_wins(self):
    self.assertEqual(_metric_modes.mode_of('accuracy', 'min'), 'min')

  def test_counts_need_no_mode(self):
    self.assertTrue(all(map(_metric_modes.is_count, _COUNTS)))
    self.assertFalse(any(map(_metric_modes.is_count, _UNKNOWN)))
    self.assertFalse(_metric_modes.is_count('num_false_positives'))
    _metric_modes.check_modes(['loss', 'foo', *_COUNTS], {'foo': 'max'}, 'm')
    with self.assertRaisesRegex(ValueError, "'bar' .* give m of 'bar'"):
      _metric_modes.check_modes(['loss', 'bar'], {}, 'm')
    with self.assertRaisesRegex(ValueError, "names the metric 'bar'"):
      _metric_modes.check_modes(['loss'], {'bar': 'max'}, '`modes`')
    with self.assertRaisesRegex(ValueError, "must be 'max' or 'min', found"):
      _metric_modes.check_modes(['bar'], {'bar': 'up'}, '`modes`')

  def test_every_metric_of_keras_is_known(self):
    unknown = {
        name
        for name, metric in inspect.getmembers(
            tf.keras.metrics, inspect.isclass
        )
        if _metric_modes.find_mode(name) is None
    }
    # Statistics of any number, and base classes.
    self.assertEqual(
        unknown, {'Mean', 'MeanMetricWrapper', 'MeanTensor', 'Metric', 'Sum'}
    )

  def test_every_loss_of_keras_is_lower_or_asked_for(self):
    modes = {
        name: _metric_modes.find_mode(name)
        for name, loss in inspect.getmembers(tf.keras.losses, inspect.isclass)
        if name not in ('Loss', 'Reduction', 'CosineSimilarity')
    }
    self.assertNotIn('max', modes.values())
    unknown = {name for name, mode in modes.items() if mode is None}
    self.assertLessEqual(unknown, {'Dice', 'Tversky', 'Circle'})
