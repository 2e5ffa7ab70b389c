# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of how the runs of the leaderboard are made, and of those that fail."""

import contextlib
import dataclasses
import io
import itertools
import pathlib
import tempfile
import time
from unittest import mock

from absl.testing import absltest

from experiments import command_line
from experiments import folders
from experiments import hparams
from experiments.leaderboard import execution
from experiments.leaderboard import results as results_lib
from experiments.sweep import running
from tests import folder_testing
from tests.experiments.leaderboard import board_testing
from tests.experiments.sweep import sweep_testing


def _run(plan, max_seconds=1e6, clock=time.monotonic):
  """Runs a plan with the made-up program; returns its end and its output."""
  with (
      mock.patch.object(running, 'TRAIN', sweep_testing.FAKE_TRAIN),
      mock.patch.object(hparams, 'check_data_files'),  # It reads none.
      contextlib.redirect_stdout(io.StringIO()) as out,
  ):
    ending = execution.run(
        plan, num_at_once=4, max_seconds=max_seconds, now=clock
    )
  return ending, out.getvalue()


class ExecutionTest(folder_testing.FolderTestCase):

  def setUp(self):
    super().setUp()
    # The made-up program trains three rounds.
    self.plan = board_testing.build_plan(
        self.folder, methods=('FedAvg',), num_trials=3, total_rounds=3
    )

  def _runs(self):
    """Returns a line for every start, by run."""
    return {
        path.relative_to(self.folder).as_posix(): path.read_text()
        for path in self.folder.rglob('*.starts')
    }

  def test_runs_the_stages_and_nothing_twice(self):
    ending, out = _run(self.plan)
    self.assertEqual(ending, (True, []))
    titles = [line for line in out.splitlines() if line.endswith(' to run')]
    # The loss of the made-up program is the distance of the rate to 0.1, 0 by
    # default, and so one draw is the best on both tasks.
    self.assertEqual(
        titles,
        [
            'final runs of the defaults: 4 to run',
            'tuning trials: 6 to run',
            'final runs of the best: 4 to run',
        ],
    )
    results = results_lib.Results(self.plan)
    for task in board_testing.TASKS:
      self.assertIn('FedAvg', set(results.tuned(task).method))
      self.assertIn('FedAvg', set(results.defaults(task).method))
      others = [name for name in board_testing.TASKS if name != task]
      self.assertIn('FedAvg', set(results.tuned(task, others[0]).method))

    before = self._runs()
    self.assertLen(before, 14)
    ending, out = _run(self.plan)
    self.assertEqual(ending, (True, []))
    self.assertEqual(out, '')
    self.assertEqual(self._runs(), before)

  def test_after_the_time_no_run_begins_and_the_next_call_continues(self):
    # It is read at the start, before the first runs, and again and again.
    clock = itertools.chain([0.0, 1.0], itertools.repeat(11.0))
    ending, out = _run(self.plan, 10.0, lambda: next(clock))
    self.assertEqual(ending, (False, []))
    done = self._runs()
    self.assertLen(done, 4)
    self.assertNotIn('client_learning_rate', out)

    ending, _ = _run(self.plan)
    self.assertEqual(ending, (True, []))
    after = self._runs()
    self.assertLen(after, 14)
    for name, text in done.items():
      self.assertEqual(after[name], text)


class FailureTest(folder_testing.FolderTestCase):
  """Tests of a method whose runs fail, beside one whose runs succeed."""

  def setUp(self):
    super().setUp()
    plan = board_testing.build_plan(
        self.folder, tasks=('digits',), num_trials=1, total_rounds=3
    )
    self.mended = plan
    self.plan = dataclasses.replace(
        plan, board=board_testing.break_method(plan.board, 'FedAvg')
    )

  def test_failures_are_tried_again_and_forgotten_once_they_end_well(self):
    first, _ = _run(self.plan)
    results = results_lib.Results(self.plan)
    self.assertEqual(execution.find_failed(results), first.failed)
    self.assertLen(first.failed, 3)
    again, out = _run(self.plan)
    self.assertEqual(again, first)
    self.assertIn('tuning trials: 1 to run', out)

    ending, _ = _run(self.mended)
    self.assertEqual(ending, (True, []))
    self.assertEmpty(execution.find_failed(results_lib.Results(self.mended)))

  def test_a_damaged_note_is_one_sentence(self):
    (self.folder / 'digits').mkdir()
    (self.folder / 'digits' / 'failed.json').write_text('{')
    with self.assertRaisesRegex(command_line.UserError, 'failed.json is dama'):
      execution.find_failed(results_lib.Results(self.plan))

  def test_another_process_in_the_folder_is_no_failed_run(self):
    with folders.locked(self.folder / 'digits'):
      with self.assertRaisesRegex(
          command_line.EnvironmentalError, 'is in use by process'
      ):
        _run(self.plan)


class ListingTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    self.folder = self.enter_context(tempfile.TemporaryDirectory())
    self.plan = board_testing.build_plan(pathlib.Path(self.folder))

  def _entries(self, plan=None, **kwargs):
    results = results_lib.Results(plan or self.plan)
    return list(execution.list_missing(results, **kwargs))

  def test_every_method_has_an_entry_with_its_command(self):
    entries = self._entries(per_method=True)
    *entries, total = entries
    self.assertEqual(
        [tuple(entry[:2]) for entry in entries],
        [(t, m) for t in board_testing.TASKS for m in board_testing.METHODS],
    )
    # Three trials, two seeds of the chosen, and two of the defaults.
    self.assertEqual({entry[2] for entry in entries}, {'7'})
    # Each 20 s and 4 rounds of 0.6 s.
    self.assertEqual(entries[2][3], '2 min 37 s')
    self.assertIn('--tasks=mnist --methods=FedAvg', entries[2][4])
    # 28 runs of 20 s, 14 with 4 rounds of 0.06 s and 14 with 0.6 s.
    self.assertEqual(total[:4], ['all', 'all', '28', '9 min 57 s'])
    self.assertIn('--tasks=digits,mnist --methods=FedAvg,Delta-SGD', total[4])

  def test_finished_runs_are_not_listed(self):
    board_testing.write_tuning(self.plan, 'digits', 'FedAvg', [0.1, 0.2, 0.3])
    entries = self._entries(per_method=True)
    # The defaults are the best, so that there are two runs left.
    self.assertEqual(entries[0][2], '2')
    board_testing.write_finals(self.plan, 'digits', 'FedAvg', 0, {0: 1, 1: 1})
    entries = self._entries(per_method=True)
    self.assertEqual(entries[0][:2], ['digits', 'Delta-SGD'])

  def test_final_runs_of_rates_of_other_tasks_are_counted(self):
    for task, losses in (
        ('digits', [0.3, 0.1, 0.2]),
        ('mnist', [0.1, 0.2, 0.3]),
    ):
      board_testing.write_tuning(self.plan, task, 'FedAvg', losses)
    entries = {tuple(e[:2]): e for e in self._entries(per_method=True)}
    # Two of the defaults, and two of the best of digits, on both tasks.
    for task in ('digits', 'mnist'):
      self.assertEqual(entries[task, 'FedAvg'][2], '4')

  def test_unknown_times_are_unknown(self):
    plan = board_testing.build_plan(
        pathlib.Path(self.folder), tasks=['cifar10']
    )
    entries = self._entries(plan, per_method=False)
    self.assertEqual([entry[1:4:2] for entry in entries], [['all', 'unknown']])

  def test_commands_repeat_the_rules_that_were_given(self):
    plan = dataclasses.replace(self.plan, given=('--trials=3',))
    entries = self._entries(plan, per_method=False)
    self.assertEndsWith(entries[0][4], ' --trials=3')
