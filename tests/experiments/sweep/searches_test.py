# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of whole searches, with a program that only writes files."""

import contextlib
import dataclasses
import io
import math
import os
import signal
import sys
from unittest import mock

from absl.testing import parameterized

from experiments import command_line
from experiments import hparams
from experiments.sweep import running
from experiments.sweep import scores
from experiments.sweep import searches
from tasks import programs
from tests import folder_testing
from tests.experiments import hparams_testing
from tests.experiments.sweep import sweep_testing

_GIVEN = {
    'client_optimizer': '--client_optimizer=sgd',
    'digits_alpha': '--digits_alpha=0.3',
}


class SearchesTest(folder_testing.FolderTestCase):

  def setUp(self):
    super().setUp()
    self.home = self.folder / 'rates'
    self.enter_context(
        mock.patch.object(running, 'TRAIN', sweep_testing.FAKE_TRAIN)
    )

  def _build(self, *rates, flag='client_learning_rate', given=None, **kwargs):
    kwargs = {
        'seeds': [0, 1],
        'selection': scores.TRAIN_LOSS,
        'metric': 'accuracy',
        **kwargs,
    }
    return searches.build_search(
        [((flag, rate),) for rate in rates] or [()],
        {**_GIVEN, **(given or {})},
        output_dir=str(self.folder),
        sweep_name='rates',
        **kwargs,
    )

  def _run(self, search):
    with contextlib.redirect_stdout(io.StringIO()) as out:
      searches.run(search, num_at_once=2)
    return out.getvalue().splitlines()

  def _flagfile(self, name, text):
    path = self.folder / name
    path.write_text(text)
    return str(path)

  def test_runs_all_and_writes_what_is_best(self):
    search = self._build('0.01', '0.1', '1')
    lines = self._run(search)
    self.assertEqual(
        lines[-1],
        'best by train_loss_last100: --client_learning_rate=0.1 (0): '
        f'{self.home}/best.csv',
    )
    rows = folder_testing.read_rows(self.home / 'results.csv')
    self.assertLen(rows, 6)
    self.assertEqual({row['status'] for row in rows}, {'finished'})
    self.assertEqual(rows[0]['gradient_evaluations'], '30')
    (best,) = folder_testing.read_rows(self.home / 'best.csv')
    self.assertEqual(best['client_learning_rate'], '0.1')
    ranked = folder_testing.read_rows(self.home / 'configurations.csv')
    self.assertEqual([row['rank'] for row in ranked], ['1', '2', '3'])
    text = (self.home / 'best.flags').read_text()
    self.assertIn('=0.1\n', text)
    self.assertRegex(
        text,
        r'\n# .*experiments.train .*--client_optimizer=sgd .*'
        r'--client_learning_rate=0.1 --seed=0 ',
    )

  def test_a_wider_grid_starts_what_is_new_and_a_second_call_nothing(self):
    self._run(self._build('0.01', seeds=[0]))
    search = self._build('0.01', '0.1')
    first = self._run(search)
    self.assertEqual(self._run(self._build('0.01', '0.1')), first[-1:])
    counts = [sweep_testing.count_starts(trial) for trial in search.trials]
    self.assertEqual(counts, [1, 1, 1, 1])

  def test_changed_flags_are_left_to_the_runs(self):
    self._run(self._build('0.1', seeds=[0]))
    given = {'clients_per_round': '--clients_per_round=5'}
    search = self._build('0.1', seeds=[0], given=given)
    self._run(search)
    self.assertEqual(sweep_testing.count_starts(search.trials[0]), 2)

  def test_a_failed_trial_is_named_and_the_others_continue(self):
    flagfile = self._flagfile('other.flags', '--digits_alpha=1\n')
    search = self._build('13', '0.1', seeds=[0], transfer_to=[flagfile])
    with contextlib.redirect_stdout(io.StringIO()) as out:
      with self.assertRaisesRegex(
          command_line.EnvironmentalError,
          r'1 of 2 trials failed, .*=13/seed_0 \(.*=13\.seed_0\.log\)',
      ):
        searches.run(search, num_at_once=1)
    self.assertIn('error: it is thirteen.', out.getvalue())
    rows = folder_testing.read_rows(self.home / 'results.csv')
    self.assertEqual([row['status'] for row in rows], ['failed', 'finished'])
    self.assertFalse((self.home / 'transfer.csv').exists())
    self.assertStartsWith(
        (self.home / 'best.flags').read_text(),
        '# The best by train_loss_last100: 0 (1 of 2 runs are finished). Its ',
    )

  def test_ctrl_c_ends_the_trials_and_says_how_to_continue(self):
    given = {'client_epochs': '--client_epochs=99'}
    search = self._build('0.01', '0.1', '1', seeds=[0], given=given)
    waits = [trial.folder / 'waits' for trial in search.trials]

    def interrupt(unused_keeper):
      if all(path.exists() for path in waits[:2]):
        os.kill(os.getpid(), signal.SIGINT)

    with mock.patch.object(running.Keeper, 'tick', interrupt):
      with self.assertRaisesRegex(
          KeyboardInterrupt, 'Interrupted: 0 of 3 .* run the same command'
      ):
        self._run(search)
    for trial in search.trials[:2]:
      self.assertEqual(trial.log.read_text(), 'saved.\n')
    self.assertFalse(search.trials[2].log.exists())
    rows = folder_testing.read_rows(self.home / 'results.csv')
    self.assertEqual([row['status'] for row in rows], ['waiting'] * 3)
    # The lock is free again.
    self._run(self._build('0.01', '0.1', '1', seeds=[0]))

  def test_the_best_is_carried_to_other_tasks(self):
    files = [
        self._flagfile('a.flags', '--task=mnist\n--use_synthetic_data\n'),
        self._flagfile('b.flags', '--digits_alpha=10\n'),
    ]
    search = self._build('0.01', '0.1', transfer_to=files)
    self.assertLen(search.transfers, 8)
    lines = self._run(search)
    self.assertEqual(lines[-2], f'other tasks: {self.home}/transfer.csv')
    rows = folder_testing.read_rows(self.home / 'transfer.csv')
    self.assertEqual(
        [(row['transfer_to'], row['seed'], row['status']) for row in rows],
        [
            (name, seed, 'finished')
            for name in ('a', 'b')
            for seed in ('0', '1')
        ],
    )
    self.assertEqual(
        rows[0]['run'],
        str(self.home / 'transfer/a/client_learning_rate=0.1/seed_0'),
    )

  def test_the_best_of_each_value_is_carried(self):
    flagfile = self._flagfile('b.flags', '--digits_alpha=10\n')
    search = self._build(
        '0.01', '0.1', best_per='client_learning_rate', transfer_to=[flagfile]
    )
    self._run(search)
    self.assertLen(folder_testing.read_rows(self.home / 'best.csv'), 2)
    self.assertLen(folder_testing.read_rows(self.home / 'transfer.csv'), 4)

  def test_no_score_has_no_best(self):
    lines = self._run(self._build('0.1', selection=scores.TRAIN_ACCURACY))
    self.assertStartsWith(lines[-1], 'best: none, because no assignment has')
    self.assertFalse((self.home / 'best.csv').exists())

  def test_what_was_best_before_does_not_stay(self):
    self._run(self._build('0.1'))
    files = [
        self.home / name for name in ('best.csv', 'best.flags', 'transfer.csv')
    ]
    files[-1].touch()
    self.assertTrue(all(path.exists() for path in files))
    self._run(self._build('0.1', selection=scores.TRAIN_ACCURACY))
    self.assertFalse(any(path.exists() for path in files))

  def test_a_damaged_run_is_one_sentence(self):
    search = self._build('0.1', seeds=[0])
    self._run(search)
    (search.trials[0].folder / 'metrics.csv').write_text('round_num\nx\n')
    with self.assertRaisesRegex(
        command_line.UserError, 'seed_0/metrics.csv, line 2 is damaged'
    ):
      self._run(self._build('0.1', seeds=[0]))

  def test_cores_are_shared_by_what_is_not_finished(self):
    self._run(self._build('0.01', '0.1', seeds=[0]))
    search = self._build('0.01', '0.1', '1', seeds=[0])
    with mock.patch.object(running, 'default_jobs', return_value=1) as jobs:
      with contextlib.redirect_stdout(io.StringIO()):
        searches.run(search)
    jobs.assert_called_once_with(search.trials[2:])

  def test_a_choice_on_the_test_data_is_stamped(self):
    lines = self._run(self._build('0.1', selection=scores.POSTHOC_TEST))
    stamp = 'replication only: chosen on the test data'
    self.assertIn(stamp, lines[-1])
    for name in ('results.csv', 'configurations.csv', 'best.csv', 'best.flags'):
      self.assertIn(stamp, (self.home / name).read_text())

  def test_a_row_a_run(self):
    results = sweep_testing.build_results({'0.1': (0.25, math.nan)})
    path = self.folder / 'results.csv'
    searches.write_results(path, results, scores.TRAIN_LOSS)
    rows = folder_testing.read_rows(path)
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
    result = scores.RunResult(trial, scores.WAITING)
    path = self.folder / 'results.csv'
    searches.write_results(path, [result])
    (row,) = folder_testing.read_rows(path)
    self.assertEqual((row['status'], row['best']), ('waiting', ''))
    self.assertNotIn('score', row)

  def test_rows_of_other_runs_stay_if_wanted(self):
    path = self.folder / 'results.csv'
    old = sweep_testing.build_results({'1': (1, 1), '2': (2, 2)})
    searches.write_results(path, old)
    new = sweep_testing.build_results({'2': (5, 5)})
    searches.write_results(path, new, keep_others=True)
    self.assertEqual(
        [row['last_10_evaluations'] for row in folder_testing.read_rows(path)],
        ['0.5', '0.5', '2.5', '2.5'],
    )
    searches.write_results(path, new)
    self.assertLen(folder_testing.read_rows(path), 2)

  def test_a_run_has_one_row_whatever_its_folder_is_called(self):
    path = self.folder / 'results.csv'
    searches.write_results(path, sweep_testing.build_results({'1': (1, 1)}))
    again = sweep_testing.build_results({'1': (3, 3)}, output_dir='../here/out')
    searches.write_results(path, again, keep_others=True)
    self.assertEqual(
        [row['last_10_evaluations'] for row in folder_testing.read_rows(path)],
        ['1.5', '1.5'],
    )

  def _write(self, rates, values, **kwargs):
    """Writes the files of a search with these scores."""
    search = self._build(*rates, **kwargs)
    results = sweep_testing.build_results(dict(zip(rates, values)))
    search.write(
        [
            dataclasses.replace(result, trial=trial)
            for result, trial in zip(results, search.trials)
        ]
    )

  def test_a_row_a_configuration(self):
    self._write(('1', '2'), [(2.0, 4.0), (1.0, 1.0)])
    rows = folder_testing.read_rows(self.home / 'configurations.csv')
    self.assertEqual(
        [(row['rank'], row['client_learning_rate']) for row in rows],
        [('1', '2'), ('2', '1')],
    )
    self.assertEqual(rows[1]['score_mean'], '3')
    self.assertEqual(rows[1]['score_std'], '1.414213562')
    self.assertEqual(rows[1]['last_10_evaluations_mean'], '1.5')
    self.assertEqual(rows[1]['num_finished'], '2')
    self.assertEqual(rows[1]['runs'], str(self.home / 'client_learning_rate=1'))

  def test_the_flagfile_is_one(self):
    self._write(('0.05',), [(1.0, 2.0)])
    path = self.home / 'best.flags'
    first, command, *method = path.read_text().splitlines()
    self.assertEqual(first, '# The best by train_loss_last100: 1.5. Its run:')
    self.assertStartsWith(command, '# .venv/bin/python -m experiments.train ')
    # The whole method, without its task.
    self.assertEqual(
        method,
        [
            '--client_optimizer=sgd',
            '--server_optimizer=fedavg',
            '--client_learning_rate=0.05',
        ],
    )
    values = hparams_testing.parse(f'--flagfile={path}')
    self.assertEqual(values.client_learning_rate, 0.05)
    with mock.patch.dict(os.environ, {programs.STARTED_BY: 'tff-adaptive'}):
      self._write(('0.05',), [(1.0, 2.0)])
    self.assertIn('\n# tff-adaptive train --client_optim', path.read_text())

  def test_one_setting_is_run_with_its_seeds(self):
    search = self._build(seeds=[3, 4])
    self.assertEqual(
        [trial.name for trial in search.trials],
        ['setting/seed_3', 'setting/seed_4'],
    )
    *_, last = self._run(search)
    self.assertStartsWith(last, '2 runs of one setting (')
    (best,) = folder_testing.read_rows(self.home / 'best.csv')
    self.assertEqual(best['num_finished'], '2')
    self.assertIn(
        '--client_optimizer=sgd\n', (self.home / 'best.flags').read_text()
    )

  @parameterized.parameters(
      ({'best_per': 'task'}, '--best_per .* found .task.'),
      ({'transfer_to': ['a/x.flags', 'b/x.flags']}, 'with distinct names'),
      ({'transfer_to': ['/nowhere.flags']}, 'does not exist'),
      ({'transfer_to': ['a' * 256]}, 'does not exist'),
      ({'transfer_to': [sys.executable]}, "'utf-8' codec"),
      ({'metric': 'x/y', 'selection': scores.VALIDATION}, 'x/y'),
      ({'selection': scores.VALIDATION}, 'needs --evaluation_data=validation'),
      ({'flag': 'seed'}, 'give --seeds'),
      ({'flag': 'output_dir'}, 'cannot be swept'),
  )
  def test_data_that_do_not_fit_are_refused(self, kwargs, sentence):
    with self.assertRaisesRegex(hparams.HparamError, sentence):
      self._build('0.1', **kwargs)
