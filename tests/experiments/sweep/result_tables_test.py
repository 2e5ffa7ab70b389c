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
"""Tests of the CSV files of a sweep."""

import csv
import math
import pathlib
import tempfile

from absl import flags
from absl.testing import absltest

from experiments import hparam_flags
from experiments.sweep import result_tables
from experiments.sweep import scores
from tests.experiments.sweep import sweep_testing

_STAMP = 'replication only: chosen on the test data'
_MEASURED = dict.fromkeys(scores.MEASURED, 2.5)


def _read(path):
  with open(path, encoding='utf-8', newline='') as file:
    return list(csv.DictReader(file))


def _results(scores_of_rates, seeds=(0, 1), output_dir='out'):
  """Finished runs: the scores of each seed, by the learning rate."""
  trials = sweep_testing.build_trials(
      output_dir, tuple(scores_of_rates), seeds=seeds
  )
  values = [score for found in scores_of_rates.values() for score in found]
  return [
      result_tables.RunResult(
          trial,
          result_tables.FINISHED,
          metric='accuracy',
          score=score,
          measured={**_MEASURED, 'last_10_evaluations': score / 2},
      )
      for trial, score in zip(trials, values)
  ]


def _rates(configurations):
  return [found.labels['client_learning_rate'] for found in configurations]


class RankTest(absltest.TestCase):

  def test_the_best_is_first_and_what_is_not_finite_last(self):
    results = _results(
        {
            '1': (math.nan, 0.1),
            '2': (3.0, 5.0),
            '3': (1.0, 2.0),
            '4': (math.inf, 1.0),
        }
    )
    ranked = result_tables.rank(results, higher_is_better=False)
    self.assertEqual(_rates(ranked), ['3', '2', '1', '4'])
    self.assertEqual([found.rank for found in ranked], [1, 2, 3, 4])
    ranked = result_tables.rank(results, higher_is_better=True)
    self.assertEqual(_rates(ranked), ['2', '3', '1', '4'])

  def test_mean_and_sample_deviation(self):
    (found,) = result_tables.rank(
        _results({'1': (1.0, 4.0, 4.0)}, seeds=(0, 1, 2)),
        higher_is_better=True,
    )
    self.assertAlmostEqual(found.score, 3.0)
    # sqrt(((-2)^2 + 1^2 + 1^2) / 2)
    self.assertAlmostEqual(found.std('score'), 3**0.5)
    self.assertAlmostEqual(found.mean('last_10_evaluations'), 1.5)

  def test_one_seed_has_no_deviation(self):
    (found,) = result_tables.rank(
        _results({'1': (1.0,)}, seeds=(0,)), higher_is_better=True
    )
    self.assertIsNone(found.std('score'))

  def test_no_finite_score_has_no_best(self):
    results = _results({'1': (math.nan, 1.0)})
    ranked = result_tables.rank(results, higher_is_better=True)
    self.assertEqual(result_tables.choose_best(ranked), [])

  def test_best_per_flag(self):
    results = _results({'1': (1, 1), '2': (2, 2), '3': (math.nan, 3)})
    ranked = result_tables.rank(results, higher_is_better=True)
    self.assertEqual(_rates(result_tables.choose_best(ranked)), ['2'])
    best = result_tables.choose_best(ranked, 'client_learning_rate')
    self.assertEqual(_rates(best), ['2', '1'])


class FilesTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    self.folder = pathlib.Path(
        self.enter_context(tempfile.TemporaryDirectory())
    )

  def test_a_row_a_run(self):
    results = _results({'0.1': (0.25, math.nan)})
    path = self.folder / 'results.csv'
    result_tables.write_results(path, results, scores.TRAIN_LOSS)
    rows = _read(path)
    self.assertEqual(
        rows[0],
        {
            'client_learning_rate': '0.1',
            'seed': '0',
            'status': 'finished',
            'selected_by': 'train_loss_last100',
            'score': '0.25',
            'metric': 'accuracy',
            'evaluation_data': 'test',
            'last_10_evaluations': '0.125',
            'best': '2.5',
            'seconds': '2.5',
            'gradient_evaluations': '2.5',
            'bytes_up': '2.5',
            'bytes_down': '2.5',
            'run': 'out/rates/client_learning_rate=0.1/seed_0',
        },
    )
    self.assertEqual(rows[1]['score'], '')

  def test_a_run_without_numbers_has_a_row(self):
    (trial,) = sweep_testing.build_trials('out', ('0.1',))
    result = result_tables.RunResult(trial, result_tables.WAITING)
    path = self.folder / 'results.csv'
    result_tables.write_results(path, [result])
    (row,) = _read(path)
    self.assertEqual((row['status'], row['best']), ('waiting', ''))
    self.assertNotIn('score', row)

  def test_rows_of_other_runs_stay_if_wanted(self):
    path = self.folder / 'results.csv'
    old = _results({'1': (1, 1), '2': (2, 2)})
    result_tables.write_results(path, old)
    new = _results({'2': (5, 5)})
    result_tables.write_results(path, new, keep_others=True)
    self.assertEqual(
        [row['last_10_evaluations'] for row in _read(path)],
        ['0.5', '0.5', '2.5', '2.5'],
    )
    result_tables.write_results(path, new)
    self.assertLen(_read(path), 2)

  def test_a_run_has_one_row_whatever_its_folder_is_called(self):
    path = self.folder / 'results.csv'
    result_tables.write_results(path, _results({'1': (1, 1)}))
    again = _results({'1': (3, 3)}, output_dir='../here/out')
    result_tables.write_results(path, again, keep_others=True)
    self.assertEqual(
        [row['last_10_evaluations'] for row in _read(path)], ['1.5', '1.5']
    )

  def test_large_totals_keep_their_digits(self):
    (result,) = _results({'1': (1.0,)}, seeds=(0,))
    result = result_tables.RunResult(
        result.trial, result.status, measured={'bytes_up': 123456789012345.0}
    )
    path = self.folder / 'results.csv'
    result_tables.write_results(path, [result])
    self.assertEqual(_read(path)[0]['bytes_up'], '123456789012345')

  def test_a_row_a_configuration(self):
    ranked = result_tables.rank(
        _results({'1': (2.0, 4.0), '2': (1.0, 1.0)}), higher_is_better=False
    )
    path = self.folder / 'configurations.csv'
    result_tables.write_configurations(path, ranked, scores.TRAIN_LOSS)
    rows = _read(path)
    self.assertEqual(
        [(row['rank'], row['client_learning_rate']) for row in rows],
        [('1', '2'), ('2', '1')],
    )
    self.assertEqual(rows[1]['score_mean'], '3')
    self.assertEqual(rows[1]['score_std'], '1.414213562')
    self.assertEqual(rows[1]['last_10_evaluations_mean'], '1.5')
    self.assertEqual(rows[1]['num_finished'], '2')
    self.assertEqual(rows[1]['runs'], 'out/rates/client_learning_rate=1')

  def test_a_choice_on_the_test_data_is_stamped(self):
    results = _results({'1': (2.0, 4.0)})
    ranked = result_tables.rank(results, higher_is_better=True)
    selection = scores.POSTHOC_TEST
    result_tables.write_results(self.folder / 'a', results, selection)
    result_tables.write_configurations(self.folder / 'b', ranked, selection)
    result_tables.write_flagfile(self.folder / 'c', ranked[0], selection)
    for name in 'abc':
      self.assertIn(_STAMP, (self.folder / name).read_text())

  def test_the_flagfile_is_one(self):
    ranked = result_tables.rank(
        _results({'0.05': (1.0, 2.0)}), higher_is_better=True
    )
    path = self.folder / 'best.flags'
    result_tables.write_flagfile(path, ranked[0], scores.TRAIN_LOSS)
    self.assertEqual(
        path.read_text(),
        '# The best by train_loss_last100: 1.5.\n--client_learning_rate=0.05\n',
    )
    values = flags.FlagValues()
    hparam_flags.define(values)
    values(['train', f'--flagfile={path}'])
    self.assertEqual(values.client_learning_rate, 0.05)
