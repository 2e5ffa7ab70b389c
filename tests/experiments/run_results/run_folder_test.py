# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what is read of a run, and whether it is the one that is wanted."""

import json
import math

from absl.testing import parameterized
import numpy as np

from experiments import published
from experiments.run_results import agreement
from experiments.run_results import run_folder
from tasks import digits
from tests import folder_testing

_HEADER = 'round_num,evaluation/accuracy,device,seconds\n'
_ROWS = '1,0.5,CPU:0,9.0\n2,,CPU:0,1.0\n3,0.75,CPU:0,3.0\n'


class RunFolderTest(folder_testing.FolderTestCase):

  def _write(self, metrics=_HEADER + _ROWS, name='run', **hparams):
    path = self.folder / name
    path.mkdir()
    (path / 'hparams.json').write_text(
        json.dumps({'total_rounds': 3, **hparams})
    )
    if metrics is not None:
      (path / 'metrics.csv').write_text(metrics)
    return path

  def test_a_metric_with_a_slash_is_a_column(self):
    self.assertEqual(run_folder.column_of('accuracy'), 'evaluation/accuracy')
    self.assertEqual(run_folder.column_of('clients/loss'), 'clients/loss')

  def test_numbers_of_a_finished_run(self):
    run = run_folder.read_run(self._write())
    self.assertTrue(run.is_finished)
    self.assertEqual(run.rounds_done, 3)
    self.assertEqual(run.summarize('accuracy', 'final'), 0.75)
    self.assertEqual(run.seconds, 13.0)
    # The first round, which compiles, does not count.
    self.assertEqual(run.seconds_per_round, 2.0)
    self.assertEqual(run.find_round('accuracy', 0.6), 3)
    self.assertEqual(run.find_round('accuracy', 0.9), math.inf)

  def test_missing_measurements_are_no_numbers(self):
    run = run_folder.read_run(self._write(None))
    for number in (
        run.seconds,
        run.seconds_per_round,
        run.total('clients/bytes_up'),
        run.summarize('accuracy', 'final'),
    ):
      self.assertTrue(math.isnan(number))
    self.assertEqual(run.rounds_done, 0)

  def test_a_metric_that_is_not_finite_at_the_end_leaves_no_number(self):
    path = self._write(_HEADER + _ROWS.replace('0.75', 'nan'))
    run = run_folder.read_run(path)
    self.assertTrue(math.isnan(run.summarize('accuracy', 'best')))

  def test_a_last_round_without_clients_is_no_divergence(self):
    metrics = (
        'round_num,clients/loss,clients/num_clients,evaluation/accuracy\n'
        '1,0.5,2,0.1\n2,0.25,1,\n3,,0,\n'
    )
    run = run_folder.read_run(self._write(metrics))
    self.assertEqual(run.summarize('clients/loss', 'final'), 0.25)
    self.assertTrue(math.isnan(run.summarize('accuracy', 'final')))

  @parameterized.parameters((0, 0.625), (2, math.nan))
  def test_a_round_without_training_examples_measures_nothing(
      self, num_clients, expected
  ):
    metrics = (
        'round_num,train/loss,clients/num_examples,clients/num_clients\n'
        f'1,0.75,9,2\n2,0.5,9,2\n3,0.0,0,{num_clients}\n'
    )
    run = run_folder.read_run(self._write(metrics))
    self.assertEqual(run.series('train/loss'), ([1, 2], [0.75, 0.5]))
    found = run.summarize('train/loss', 'last_100_rounds')
    np.testing.assert_equal(found, expected)

  @parameterized.parameters('seed_\u0663', 'seed_\u00b2')
  def test_other_digits_are_no_seeds(self, name):
    self._write(name=name)
    self.assertEqual(run_folder.read_seeds(self.folder), {})

  def test_a_row_that_is_being_written_is_not_there_yet(self):
    run = run_folder.read_run(self._write(_HEADER + _ROWS + '4,0.8'))
    self.assertEqual(run.rounds_done, 3)

  @parameterized.named_parameters(
      ('metrics', {'metrics': _HEADER + '1,2\n'}, 'metrics.csv, line 2 is dam'),
      ('no_number', {'total_rounds': 'x'}, 'hparams.json is damaged'),
      ('no_seed', {'seed': '<b>'}, 'hparams.json is damaged'),
      ('no_rounds', {'total_rounds': None}, 'hparams.json is damaged'),
  )
  def test_damaged_files(self, files, sentence):
    path = self._write(**files)
    with self.assertRaisesRegex(run_folder.RunError, sentence):
      run_folder.read_run(path)

  def test_other_folders(self):
    with self.assertRaisesRegex(run_folder.RunError, 'has no hparams.json'):
      run_folder.read_run(self.folder)
    self.assertIsNone(run_folder.read_hparams(self.folder))

  def test_seeds_are_found_in_their_order(self):
    for name in ('seed_10', 'seed_2', 'seed_02', 'seed_1_0', 'seed_x', 'other'):
      self._write(name=name)
    self.assertEqual(list(run_folder.read_seeds(self.folder)), [2, 10])
    self.assertEqual(run_folder.read_seeds(self.folder / 'missing'), {})

  def test_damaged_runs_are_not_found(self):
    good = self._write(name='good')
    self._write(name='bad', total_rounds='x')
    self._write(_HEADER + 'x,1,2,3\n', name='worse')
    found = run_folder.find_runs(self.folder)
    self.assertEqual([run.path for run in found], [good])


class GlanceTest(folder_testing.FolderTestCase):

  @parameterized.parameters(
      ('x,device\n1,0.5,CPU\n2,,CPU\n3', {'round_num': 2.0, 'x': 0.5}),
      ('x\n1,0.5\n2,1_0\n', {'round_num': 2.0, 'x': 0.5}),
      ('x\n1,2\n7,8,9\n3\n', {'round_num': 1.0, 'x': 2.0}),
      ('x\n1,2\n2,"3\n3,4\n4,"5" \n', {'round_num': 3.0, 'x': 4.0}),
      (
          'x\n' + ''.join(f'{n},{n / 1000}\n' for n in range(1, 20_001)),
          {'round_num': 20000.0, 'x': 20.0},
      ),
  )
  def test_last_row_has_the_last_numbers_of_whole_lines(self, text, expected):
    (self.folder / 'metrics.csv').write_text(f'round_num,{text}')
    self.assertEqual(run_folder.read_last_row(self.folder), expected)

  def test_no_file_has_no_row(self):
    self.assertEqual(run_folder.read_last_row(self.folder), {})

  def test_hparams_that_are_none(self):
    for text in ('{', '[1]'):
      (self.folder / 'hparams.json').write_text(text)
      self.assertIsNone(run_folder.read_hparams(self.folder))


_ROUNDS = digits.DIGITS.protocol.total_rounds
_ARGUMENTS = ('--task=digits', '--client_optimizer=sgd', '--seed=2')


def _recorded(**hparams):
  """Returns the records of a run of `_ARGUMENTS`, with the plan it found."""
  wanted = agreement.of_arguments(_ARGUMENTS)
  return {**wanted.values, 'devices': 'CPU:0', **hparams}


class AgreementTest(parameterized.TestCase):

  def _differences(self, recorded, *arguments):
    wanted = agreement.of_arguments([*_ARGUMENTS, *arguments])
    return wanted.find_differences(recorded)

  def test_values_are_those_in_force(self):
    values = agreement.of_arguments(_ARGUMENTS).values
    self.assertEqual(values['total_rounds'], _ROUNDS)
    self.assertEqual(values['server_optimizer'], 'fedavg')
    self.assertEqual(values['rounds_per_evaluation'], 5)
    self.assertEqual(values['seed'], 2)
    self.assertIsNone(values['num_clients'])

  @parameterized.named_parameters(
      ('the_same', (), {}),
      ('default_given', (f'--total_rounds={_ROUNDS}',), {}),
      ('elsewhere', ('--devices=GPU', '--num_parallel_clients=1'), {}),
      ('more_is_kept', (), {'keep_best': True, 'monitored_mode': 'max'}),
      ('more_is_averaged', (), {'weights_average_rounds': 3}),
      ('more_is_evaluated', (), {'evaluations': ['central', 'per_client']}),
  )
  def test_runs_that_are_wanted(self, arguments, recorded):
    self.assertEmpty(self._differences(_recorded(**recorded), *arguments))

  @parameterized.named_parameters(
      ('fewer_clients', (), 'num_clients', 5, None),
      ('other_cohort', (), 'clients_per_round', 3, 10),
      ('other_rows', (), 'server_optimizer', 'fedadam', 'fedavg'),
      ('argument_of_a_row', (), 'sgd_momentum', 0.9, 0.0),
      ('evaluated_more_often', (), 'rounds_per_evaluation', 1, 5),
      ('made_up_data', (), 'use_synthetic_data', True, False),
      ('other_weights', (), 'initial_weights', 'w.npz', None),
      ('not_evaluated', (), 'evaluations', ['per_client'], None),
      ('asked_to_keep', ('--keep_best',), 'keep_best', False, True),
  )
  def test_runs_that_are_not_wanted(self, arguments, name, found, wanted):
    recorded = _recorded(**{name: found})
    differences = self._differences(recorded, *arguments)
    self.assertIn((name, found, wanted), differences)

  def test_a_run_of_before_a_flag_has_its_default(self):
    recorded = _recorded()
    for name in ('sgd_momentum', 'loss_term', 'keep_best', 'client_epochs'):
      del recorded[name]
    self.assertEmpty(self._differences(recorded))
    self.assertEqual(
        self._differences(recorded, '--sgd_momentum=0.5'),
        [('sgd_momentum', 0.0, 0.5)],
    )

  @parameterized.parameters('always', 'if_moved')
  def test_a_run_older_than_a_flag_fits_several_values(self, growth):
    arguments = ('--client_optimizer=delta_sgd', f'--delta_sgd_growth={growth}')
    wanted = agreement.of_arguments(arguments)
    recorded = dict(wanted.values)
    del recorded['delta_sgd_growth']
    self.assertEmpty(wanted.find_differences(recorded))
    other = {'always': 'if_moved', 'if_moved': 'always'}[growth]
    recorded['delta_sgd_growth'] = other
    self.assertEqual(
        wanted.find_differences(recorded), [('delta_sgd_growth', other, growth)]
    )

  def test_only_some_names_may_matter(self):
    wanted = agreement.of_arguments(_ARGUMENTS)
    recorded = _recorded(seed=7, num_clients=5)
    self.assertEqual(
        wanted.find_differences(recorded, ['num_clients', 'task']),
        [('num_clients', 5, None)],
    )

  def test_a_cell_has_the_flags_of_its_files(self):
    cell = published.find_table('delta_sgd/table_1').cell(
        'alpha = 1', 'SGD', 'MNIST'
    )
    values = agreement.of_cell(cell, seed=3).values
    self.assertEqual(values['seed'], 3)
    self.assertEqual(values['total_rounds'], 500)
    self.assertEqual(values['mnist_alpha'], 1.0)
