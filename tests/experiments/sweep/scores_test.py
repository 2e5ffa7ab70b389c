# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of scores, and of the choice by them."""

import math
import pathlib

from absl.testing import absltest
from absl.testing import parameterized

from experiments import hparams
from experiments.run_results import run_folder
from experiments.sweep import scores
from tests.experiments.sweep import sweep_testing


def _run(num_rounds, **values_of_rounds):
  """Returns a finished run of rounds 1, 2, ... with values by function."""
  rounds = list(range(1, num_rounds + 1))
  columns = {'round_num': (rounds, [float(n) for n in rounds])}
  for name, function in values_of_rounds.items():
    values = {n: function(n) for n in rounds}
    finite = [n for n in rounds if math.isfinite(values[n])]
    series = finite, [values[n] for n in finite]
    columns[name.replace('__', '/')] = series
  hparams = {'total_rounds': num_rounds, 'rounds_per_evaluation': 5}
  return run_folder.Run(pathlib.Path('run'), hparams, columns)


def _is_five(n):
  return n / 10 if n % 5 == 0 else math.nan


def _error(call):
  """Returns with which words a call is refused, empty if it is not."""
  try:
    call()
  except hparams.HparamError as error:
    return str(error)
  return ''


class ScoresTest(parameterized.TestCase):

  @parameterized.named_parameters(
      # The mean of 51, ..., 150.
      ('loss', scores.TRAIN_LOSS, {'clients__loss': float}, 100.5),
      # The mean of 91, ..., 100.
      ('accuracy', scores.TRAIN_ACCURACY, {'train__accuracy': float}, 95.5),
      # The mean of 10.5, 11, ..., 15.
      (
          'validation',
          scores.VALIDATION,
          {'evaluation__accuracy': _is_five},
          12.75,
      ),
      ('test', scores.POSTHOC_TEST, {'evaluation__accuracy': _is_five}, 12.75),
  )
  def test_score_of_150_rounds(self, selection, values, expected):
    run = _run(150, **values)
    found = scores.compute_score(selection, run, 'accuracy')
    self.assertAlmostEqual(found, expected)

  def test_loss_of_a_short_run_is_the_mean_of_all_rounds(self):
    run = _run(3, clients__loss=float)
    found = scores.compute_score(scores.TRAIN_LOSS, run, 'accuracy')
    self.assertAlmostEqual(found, 2.0)

  @parameterized.parameters(
      (scores.TRAIN_LOSS, lambda n: math.nan if n == 120 else 1.0),
      (scores.TRAIN_LOSS, lambda n: 1.0 if n < 20 else math.inf),
      (scores.TRAIN_ACCURACY, lambda n: math.nan if n == 100 else 1.0),
      (scores.VALIDATION, lambda n: _is_five(n) if n < 150 else math.nan),
      (scores.VALIDATION, None),
  )
  def test_values_that_are_not_finite_have_no_score(self, selection, values):
    columns = {
        scores.TRAIN_LOSS: 'clients__loss',
        scores.TRAIN_ACCURACY: 'train__accuracy',
        scores.VALIDATION: 'evaluation__accuracy',
    }
    run = _run(150, **({columns[selection]: values} if values else {}))
    found = scores.compute_score(selection, run, 'accuracy')
    self.assertTrue(math.isnan(found))

  def test_a_value_outside_of_the_window_does_not_matter(self):
    run = _run(150, clients__loss=lambda n: math.nan if n == 50 else 1.0)
    found = scores.compute_score(scores.TRAIN_LOSS, run, 'accuracy')
    self.assertEqual(found, 1.0)

  @parameterized.parameters(
      # The values that are measured without examples.
      (scores.TRAIN_LOSS, 'clients__loss', math.nan),
      (scores.TRAIN_ACCURACY, 'train__accuracy', 0.0),
  )
  def test_rounds_without_clients_do_not_count(self, selection, name, value):
    run = _run(
        100,
        clients__num_clients=lambda n: float(n < 100),
        **{name: lambda n: 1.0 if n < 100 else value},
    )
    found = scores.compute_score(selection, run, 'accuracy')
    self.assertEqual(found, 1.0)

  def test_no_score_is_that_of_no_example(self):
    run = _run(
        100,
        clients__num_clients=lambda n: 2.0,
        # In the last round all were rejected.
        clients__num_examples=lambda n: float(n < 100),
        train__loss=lambda n: float(n < 100),
    )
    found = scores.compute_score(scores.TRAIN_ACCURACY, run, 'loss')
    self.assertTrue(math.isnan(found))

  def test_accuracy_of_a_run_of_less_than_100_rounds_has_no_score(self):
    run = _run(99, train__accuracy=float)
    found = scores.compute_score(scores.TRAIN_ACCURACY, run, 'accuracy')
    self.assertTrue(math.isnan(found))

  @parameterized.parameters(
      (scores.TRAIN_LOSS, 'accuracy', False),
      (scores.TRAIN_ACCURACY, 'accuracy', True),
      (scores.VALIDATION, 'recall_at_5', True),
      (scores.VALIDATION, 'loss', False),
      (scores.VALIDATION, 'false_positives', False),
      (scores.VALIDATION, 'evaluation_average/loss', False),
      (scores.VALIDATION, 'mean_squared_error', False),
      (scores.POSTHOC_TEST, 'evaluation/clients/loss_mean', False),
  )
  def test_what_is_better(self, selection, metric, expected):
    self.assertEqual(selection.is_higher_better(metric), expected)

  def test_a_metric_whose_name_does_not_tell_needs_a_mode(self):
    for selection in (scores.VALIDATION, scores.TRAIN_ACCURACY):
      with self.assertRaisesRegex(
          hparams.HparamError, '--metric=.* --metric_m'
      ):
        selection.is_higher_better('turnover')
      self.assertFalse(selection.is_higher_better('turnover', 'min'))
    self.assertFalse(scores.TRAIN_LOSS.is_higher_better('turnover'))

  @parameterized.parameters(
      (scores.TRAIN_ACCURACY, 'evaluation/accuracy', 'a column of train/, fou'),
      (scores.TRAIN_ACCURACY, 'clients/loss', 'a column of train/, found'),
      (scores.TRAIN_ACCURACY, 'evaluation_average/loss', 'a column of train/'),
      (scores.TRAIN_ACCURACY, 'accuracy', ''),
      (scores.TRAIN_ACCURACY, 'train/recall_at_5', ''),
      (scores.VALIDATION, 'train/accuracy', 'a column of evaluation/, found'),
      (scores.VALIDATION, 'evaluation_average/accuracy', ''),
      *(
          (scores.VALIDATION, f'{metric}/accuracy_mean', 'test examples')
          for metric in (
              'evaluation_average/clients',
              'evaluation/clients',
              'evaluation/personalized/after',
          )
      ),
      (scores.POSTHOC_TEST, 'clients/loss', 'a column of evaluation/, found'),
      (scores.POSTHOC_TEST, 'evaluation/clients/accuracy_mean', ''),
      # The criterion of the choice does not depend on it.
      (scores.TRAIN_LOSS, 'evaluation_average/accuracy', ''),
  )
  def test_a_choice_is_on_the_data_that_it_says(
      self, selection, metric, sentence
  ):
    found = _error(lambda: selection.check_metric(metric))
    self.assertEqual(bool(found), bool(sentence), found)
    self.assertIn(sentence, found)

  @parameterized.parameters(
      (scores.VALIDATION, {}, '--evaluation_data=validation, but'),
      (scores.VALIDATION, {'evaluation_data': 'validation'}, ''),
      (
          scores.POSTHOC_TEST,
          {'evaluation_data': 'validation'},
          'rate=0.01/seed_0 has validation',
      ),
      (scores.POSTHOC_TEST, {}, ''),
      (scores.TRAIN_ACCURACY, {'total_rounds': '99'}, 'at least 100'),
      (scores.TRAIN_ACCURACY, {'total_rounds': '100'}, ''),
      (scores.TRAIN_ACCURACY, {}, ''),
      (scores.TRAIN_LOSS, {}, ''),
  )
  def test_trials_must_measure_it(self, selection, given, sentence):
    trials = sweep_testing.build_trials('out', **given)
    found = _error(lambda: scores.check(selection, trials))
    self.assertEqual(bool(found), bool(sentence), found)
    self.assertIn(sentence, found)


def _rates(configurations):
  return list(configurations.client_learning_rate)


class RankTest(absltest.TestCase):

  def test_the_best_is_first_and_what_is_not_finite_last(self):
    results = sweep_testing.build_results(
        {
            '1': (math.nan, 0.1),
            '2': (3.0, 5.0),
            '3': (1.0, 2.0),
            '4': (math.inf, 1.0),
        }
    )
    ranked = scores.rank(results, higher_is_better=False)
    self.assertEqual(_rates(ranked), ['3', '2', '1', '4'])
    self.assertEqual(list(ranked['rank']), [1, 2, 3, 4])
    ranked = scores.rank(results, higher_is_better=True)
    self.assertEqual(_rates(ranked), ['2', '3', '1', '4'])

  def test_mean_and_sample_deviation(self):
    found = scores.rank(
        sweep_testing.build_results({'1': (1.0, 4.0, 4.0)}, seeds=(0, 1, 2)),
        higher_is_better=True,
    ).iloc[0]
    self.assertAlmostEqual(found.score_mean, 3.0)
    # sqrt(((-2)^2 + 1^2 + 1^2) / 2)
    self.assertAlmostEqual(found.score_std, 3**0.5)
    self.assertAlmostEqual(found.last_10_evaluations_mean, 1.5)

  def test_no_finite_score_has_no_best(self):
    results = sweep_testing.build_results({'1': (math.nan, 1.0)})
    ranked = scores.rank(results, higher_is_better=True)
    self.assertEmpty(scores.choose_best(ranked))

  def test_best_per_flag(self):
    results = sweep_testing.build_results(
        {'1': (1, 1), '2': (2, 2), '3': (math.nan, 3)}
    )
    ranked = scores.rank(results, higher_is_better=True)
    self.assertEqual(_rates(scores.choose_best(ranked)), ['2'])
    best = scores.choose_best(ranked, 'client_learning_rate')
    self.assertEqual(_rates(best), ['2', '1'])
