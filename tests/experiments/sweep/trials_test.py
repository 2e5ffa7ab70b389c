# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the trials of a sweep, and of the records that they leave."""

import dataclasses
import pathlib
import tempfile
from unittest import mock

from absl.testing import parameterized
import numpy as np

from experiments import command_line
from experiments import hparams
from experiments import published
from experiments import registry
from experiments.run_results import agreement
from experiments.run_results import inputs
from experiments.sweep import trials as trials_lib
from tests import folder_testing
from tests.experiments import hparams_testing
from tests.experiments.report import made_up_runs
from tests.experiments.sweep import sweep_testing
from tff_adaptive.simulation import weights_files


class RecordsTest(folder_testing.FolderTestCase):

  def _trial(self, **given):
    given = {'total_rounds': '3', **given}
    (trial,) = sweep_testing.build_trials(self.folder, ('0.1',), **given)
    return trial

  def _write(self, trial, num_rounds=3, **hparams):
    """Writes what a run has left."""
    recorded = agreement.of_arguments(trial.arguments).values
    made_up_runs.write_run(
        trial.folder,
        [0.5] * num_rounds,
        **{**recorded, 'total_rounds': 3, **hparams},
    )
    for name in ('checkpoints', 'plots'):
      (trial.folder / name).mkdir(exist_ok=True)
    (trial.folder / 'plots' / 'training.png').touch()

  def _is_finished(self, trial):
    return trials_lib.Record(trial.home).is_finished(trial)

  @parameterized.parameters((3, True), (2, False))
  def test_files_tell_without_a_record(self, num_rounds, expected):
    trial = self._trial()
    self._write(trial, num_rounds)
    self.assertEqual(self._is_finished(trial), expected)

  @parameterized.parameters(True, False)
  def test_a_run_that_was_killed_as_it_drew_is_not_finished(self, was_drawing):
    trial = self._trial()
    self._write(trial)
    picture = trial.folder / 'plots' / 'training.png'
    if was_drawing:
      picture.with_name('training.png.tmp').touch()
    else:
      picture.unlink()
    self.assertFalse(self._is_finished(trial))

  @parameterized.named_parameters(
      ('other_rate', {}, {'client_learning_rate': 0.2}),
      ('more_rounds', {'total_rounds': '5'}, {}),
      (
          'no_early_stopping',
          {'early_stopping_patience': '1'},
          {'early_stopping_patience': None},
      ),
      ('final_evaluation', {'final_evaluations': 'central'}, {}),
  )
  def test_files_of_other_flags_are_not_finished(self, given, hparams):
    trial = self._trial(**given)
    self._write(trial, **hparams)
    self.assertFalse(self._is_finished(trial))

  def test_a_record_tells_of_early_stopping(self):
    trial = self._trial(early_stopping_patience='1')
    self._write(trial, num_rounds=2)
    self.assertFalse(self._is_finished(trial))
    trials_lib.Record(trial.home).add(trial)
    self.assertTrue(self._is_finished(trial))

  def test_a_record_of_other_flags_does_not_count(self):
    trial = self._trial()
    self._write(trial)
    trials_lib.Record(trial.home).add(trial)
    self.assertTrue(self._is_finished(self._trial(data_dir='elsewhere')))
    # The default before, which the files cannot tell from a value.
    self.assertFalse(self._is_finished(self._trial(clients_per_round='10')))

  @parameterized.parameters({}, {'total_rounds': '3'})
  def test_a_run_that_continues_to_more_rounds_is_not_finished(self, **given):
    (trial,) = sweep_testing.build_trials(self.folder, ('0.1',), **given)
    trials_lib.Record(trial.home).add(trial)
    rounds = agreement.of_arguments(trial.arguments).values['total_rounds']
    self._write(trial, total_rounds=rounds)
    self.assertTrue(self._is_finished(trial))
    self._write(trial, num_rounds=4, total_rounds=2 * rounds)
    self.assertFalse(self._is_finished(trial))

  @parameterized.parameters(True, False)
  def test_a_run_of_other_data_is_not_finished(self, is_recorded):
    data_dir = self.folder / 'data'
    data_dir.mkdir()
    data = data_dir / 'a.csv'
    data.write_text('1')
    trial = self._trial(data_dir=str(data_dir))
    self._write(trial)
    reads = inputs.Reads({str(data)})
    inputs.record(trial.folder, reads, str(data_dir), own=())
    if is_recorded:
      trials_lib.Record(trial.home).add(trial)
    self.assertTrue(self._is_finished(trial))
    data.write_text('2')
    self.assertFalse(self._is_finished(trial))
    moved = self._trial(data_dir=str(data_dir.rename(self.folder / 'moved')))
    self.assertFalse(self._is_finished(moved))
    (self.folder / 'moved' / 'a.csv').write_text('1')
    self.assertTrue(self._is_finished(moved))

  def test_a_run_of_other_weights_is_not_finished(self):
    path = self.folder / 'weights.npz'
    np.savez(path, a=np.float32(1))
    trial = self._trial(initial_weights=str(path))
    digest = weights_files.read_weights(path).digest()
    self._write(trial, initial_weights_sha256=digest)
    trials_lib.Record(trial.home).add(trial)
    self.assertTrue(self._is_finished(trial))
    np.savez(path, a=np.float32(2))
    self.assertFalse(self._is_finished(trial))
    np.savez_compressed(path, a=np.float32(1))  # The same weights.
    self.assertTrue(self._is_finished(trial))
    path.unlink()
    self.assertTrue(self._is_finished(trial))

  def test_a_run_of_another_file_of_a_rule_is_not_finished(self):
    (self.folder / 'own_of_trials.py').write_text(
        'def build_small(rate: float = 0.1):\n  pass\n'
    )
    place = 'own_of_trials:build_small'
    rows = registry.ROWS[registry.CLIENT_OPTIMIZER]
    folder_testing.import_from(self, self.folder)
    self.enter_context(mock.patch.dict(rows))
    trial = trials_lib.build_trial(
        {},
        [f'--client_optimizer={place}', '--total_rounds=3'],
        seed=0,
        output_dir=str(self.folder),
        home='home',
        name='a',
    )
    self._write(trial)
    trials_lib.Record(trial.home).add(trial)
    self.assertTrue(self._is_finished(trial))
    rows[place] = dataclasses.replace(rows[place], digest='another')
    self.assertFalse(self._is_finished(trial))

  def test_a_record_without_a_folder_does_not_count(self):
    trial = self._trial()
    trials_lib.Record(trial.home).add(trial)
    self.assertFalse(self._is_finished(trial))

  @parameterized.parameters('{', 'null', '[1]')
  def test_a_damaged_record_is_one_sentence(self, text):
    trial = self._trial()
    trials_lib.Record(trial.home).add(trial)
    (trial.home / 'sweep.json').write_text(text)
    with self.assertRaisesRegex(
        command_line.UserError, 'sweep.json is damaged'
    ):
      trials_lib.Record(trial.home)

  def test_a_record_that_cannot_be_read_is_one_sentence(self):
    (self.folder / 'file').touch()
    for name, reason in (('file', 'Not a directory'), ('a' * 256, 'File name')):
      with self.assertRaisesRegex(
          command_line.EnvironmentalError, f'could not read .*json: {reason}'
      ):
        trials_lib.Record(self.folder / name)


def _given(*arguments):
  return trials_lib.read_given_flags(hparams_testing.parse(*arguments))


class GivenFlagsTest(parameterized.TestCase):

  def test_are_those_of_the_command_line_and_its_flagfiles(self):
    with tempfile.NamedTemporaryFile('w', suffix='.flags') as file:
      file.write('--task=mnist\n')
      file.flush()
      given = _given(
          f'--flagfile={file.name}', '--nokeep_best', '--task=digits'
      )
    self.assertEqual(
        given, {'task': '--task=digits', 'keep_best': '--nokeep_best'}
    )

  @parameterized.parameters(
      ('--seed=1', 'give --seeds'), ('--experiment_name=x', 'give --sweep_name')
  )
  def test_what_the_sweep_gives_is_refused(self, flag, sentence):
    with self.assertRaisesRegex(hparams.HparamError, sentence):
      _given(flag)


class SearchTrialsTest(parameterized.TestCase):

  def test_each_has_its_folder_log_and_flags(self):
    trials = sweep_testing.build_trials('out', seeds=(0, 3))
    self.assertLen(trials, 4)
    trial = trials[1]
    self.assertEqual(
        trial.arguments,
        (
            '--client_optimizer=sgd',
            '--client_learning_rate=0.01',
            '--seed=3',
            '--output_dir=out',
            '--experiment_name=rates/client_learning_rate=0.01/seed_3',
        ),
    )
    self.assertEqual(
        trial.folder, pathlib.Path('out/rates/client_learning_rate=0.01/seed_3')
    )
    self.assertEqual(
        trial.log,
        pathlib.Path('out/rates/logs/client_learning_rate=0.01.seed_3.log'),
    )
    self.assertEqual(trial.hparams['client_learning_rate'], 0.01)
    self.assertEqual(trial.hparams['seed'], 3)

  def test_a_log_has_a_name_that_files_may_have(self):
    (trial,) = sweep_testing.build_trials('out', ('0.1',))
    folder = trial.home / 'transfer' / ('a' * 100) / ('b' * 200) / 'seed_7'
    log = dataclasses.replace(trial, folder=folder).log
    self.assertLen(log.name, 254)
    self.assertEndsWith(log.name, 'b.seed_7.log')

  @parameterized.named_parameters(
      ('flag', ('client_learning_rat', '1'), 'Did you mean'),
      ('number', ('client_learning_rate', 'x'), 'client_learning_rate=x'),
      ('name', ('client_optimizer', 'sdg'), 'did you mean sgd'),
      ('foreign', ('delta_sgd_gamma', '1'), 'belongs to'),
      ('negated', ('nokeep_best', 'true'), 'does not take an argument'),
  )
  def test_one_that_does_not_fit_is_named(self, pair, sentence):
    with self.assertRaisesRegex(
        hparams.HparamError,
        f'rates/{pair[0]}={pair[1]}/seed_0 has invalid flags: .*{sentence}',
    ):
      trials_lib.build_search_trials(
          [(pair,)],
          {'client_optimizer': '--client_optimizer=sgd'},
          seeds=[0],
          output_dir='out',
          sweep_name='rates',
      )

  def test_slugs_are_folders_and_differ(self):
    long = [(f'flag_{i}', str(i)) for i in range(50)]
    slugs = [
        trials_lib.to_slug(assignment)
        for assignment in (
            (('a', 'x/y'),),
            (('a', 'x_y'),),
            (('a', 'x y'),),
            tuple(long),
            (*long, ('last', '1')),
        )
    ]
    self.assertLen(set(slugs), 5)
    for slug in slugs:
      self.assertRegex(slug, r'^[\w.+=,-]{1,220}$')
    self.assertEqual(slugs[1], 'a=x_y')


class TransferTrialsTest(folder_testing.FolderTestCase):

  def _build(self, text, assignment, **given):
    path = self.folder / 'other.flags'
    path.write_text(text)
    return trials_lib.build_search_trials(
        [assignment],
        {name: f'--{name}={value}' for name, value in given.items()},
        seeds=[0],
        output_dir='out',
        sweep_name='rates',
        transfer_to=str(path),
    )

  def test_the_other_task_wins_and_the_first_one_leaves(self):
    (trial,) = self._build(
        '--task=mnist\n--use_synthetic_data\n--total_rounds=7\n',
        (('client_learning_rate', '0.1'),),
        client_optimizer='sgd',
        task='digits',
        digits_alpha='0.3',
        total_rounds='5',
        clients_per_round='4',
    )
    self.assertEqual(trial.hparams['task'], 'mnist')
    self.assertEqual(trial.hparams['total_rounds'], 7)
    self.assertEqual(trial.hparams['clients_per_round'], 4)
    self.assertEqual(trial.hparams['client_learning_rate'], 0.1)
    self.assertEqual(
        trial.name, 'transfer/other/client_learning_rate=0.1/seed_0'
    )

  def test_a_preset_is_another_task(self):
    (trial,) = trials_lib.build_search_trials(
        [()],
        {'use_synthetic_data': '--use_synthetic_data'},
        seeds=[0],
        output_dir='out',
        sweep_name='rates',
        transfer_to='delta_sgd/mnist',
    )
    self.assertEqual(trial.hparams['mnist_examples_per_client'], '500')
    self.assertIn('transfer/mnist/', trial.name)

  def test_an_assignment_that_does_not_belong_is_refused(self):
    with self.assertRaisesRegex(
        hparams.HparamError,
        'transfer/other/digits_alpha=1/seed_0 .*--digits_alpha belongs to',
    ):
      self._build(
          '--task=mnist\n--use_synthetic_data', (('digits_alpha', '1'),)
      )


class TableTrialsTest(parameterized.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.table = published.find_table('delta_sgd/table_1')

  def _build(self, seeds=None, given=None, **names):
    return trials_lib.build_table_trials(
        self.table.restrict(**names), given or {}, seeds=seeds, output_dir='out'
    )

  def test_all_cells_lie_where_their_commands_put_them(self):
    trials = self._build(columns=['MNIST'])
    cells = self.table.restrict(columns=['MNIST']).cells
    self.assertCountEqual(
        [trial.folder for trial in trials],
        [
            pathlib.Path('out', cell.experiment_name, f'seed_{seed}')
            for cell in cells
            for seed in range(self.table.seeds)
        ],
    )

  def test_names_choose_cells_and_given_flags_win(self):
    trials = self._build(
        seeds=[0, 1],
        given={
            'total_rounds': '--total_rounds=2',
            'use_synthetic_data': '--use_synthetic_data',
        },
        rows=['SGD', 'Delta-SGD'],
        columns=['MNIST'],
        groups=['alpha = 1'],
    )
    self.assertEqual(
        [(trial.configuration, trial.seed) for trial in trials],
        [
            (('alpha = 1', row, 'MNIST'), seed)
            for row in ('SGD', 'Delta-SGD')
            for seed in (0, 1)
        ],
    )
    for trial in trials:
      self.assertEqual(trial.hparams['total_rounds'], 2)
      self.assertTrue(trial.hparams['use_synthetic_data'])

  @parameterized.parameters(
      ({}, True),
      ({'use_synthetic_data': '--nouse_synthetic_data'}, True),
      ({'use_synthetic_data': '--use_synthetic_data'}, False),
  )
  def test_files_are_read_unless_the_data_are_synthetic(self, given, expected):
    trial, *_ = self._build(seeds=[0], given=given, rows=['SGD'])
    self.assertEqual('--data_dir=data' in trial.arguments, expected)
