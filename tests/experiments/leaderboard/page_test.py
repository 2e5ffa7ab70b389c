# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the page of the leaderboard, and of its pictures."""

import contextlib
import dataclasses
import datetime
import io
import json
import math
import pathlib
from unittest import mock

from absl.testing import absltest
import attrs
import numpy as np

from experiments.leaderboard import board
from experiments.leaderboard import drawing
from experiments.leaderboard import page
from experiments.leaderboard import results as results_lib
from tests import folder_testing
from tests.experiments.leaderboard import board_testing
from tff_adaptive import analysis

_METHODS = ('FedAvg', 'Delta-SGD', 'SCAFFOLD')
_LOSSES = [0.3, 0.1, 0.2]
_COMMAND = 'python -m experiments.leaderboard --report_only'


def _write(plan, results_dir):
  """Writes the page; returns it as Markdown."""
  with contextlib.redirect_stdout(io.StringIO()):
    page.write(plan, plan, results_dir, _COMMAND)
  return (results_dir / 'leaderboard.md').read_text(encoding='utf-8')


def _write_digits(plan):
  """Writes tuned and default runs on digits; there are none on mnist."""
  for method, tuned in (
      ('FedAvg', {0: 0.960, 1: 0.970, 2: 0.980}),
      ('Delta-SGD', {0: 0.961, 1: 0.972, 2: 0.981}),
      ('SCAFFOLD', {0: 0.860, 1: math.nan, 2: 0.880}),
  ):
    accuracy = 0.6 if method == 'FedAvg' else 0.5
    board_testing.write_tuning(plan, 'digits', method, _LOSSES, [accuracy] * 3)
    board_testing.write_finals(plan, 'digits', method, 1, tuned)
  for method, defaults in (
      ('FedAvg', {0: 0.86, 1: 0.87, 2: 0.88}),
      ('Delta-SGD', {0: 0.96, 1: 0.97, 2: 0.97}),
  ):
    seconds = 0.25 if method == 'Delta-SGD' else 0.75
    board_testing.write_finals(plan, 'digits', method, 0, defaults, seconds)


def _build_plan(folder):
  return board_testing.build_plan(
      folder / 'runs', methods=_METHODS, num_seeds=3
  )


class PageTest(absltest.TestCase):
  """Tests of one page that shows runs on digits."""

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    folder = folder_testing.new(cls)
    cls.plan = _build_plan(folder)
    cls.results_dir = folder / 'results'
    _write_digits(cls.plan)
    cls.text = _write(cls.plan, cls.results_dir)

  def test_page_ranks_and_picks(self):
    rows = [
        [cell.strip() for cell in line.strip('|').split('|')]
        for line in self.text.partition('## digits, tuned')[2].splitlines()
        if line.startswith('| ')
    ]
    first = next(i for i, row in enumerate(rows) if row[0] == 'Delta-SGD')
    self.assertEqual(rows[first][1:4], ['97.13 ± 1.00', '-', '**best**'])
    # By hand: differences -0.1, -0.2, -0.1; error 0.0577 / sqrt(3) = 0.0333,
    # times t = 4.3027.
    self.assertEqual(
        rows[first + 1][:4],
        ['FedAvg', '97.00 ± 1.00', '-0.13 [-0.28, +0.01]', '**as good**'],
    )
    self.assertEqual(rows[first + 1][4], '2')
    self.assertEqual(
        rows[first + 2][:5],
        ['SCAFFOLD', 'diverged', 'diverged', 'diverged', 'never'],
    )

  def test_page_shows_what_not_tuning_costs(self):
    self.assertIn(
        '| digits | FedAvg | 97.00 | -10.00 [-10.00, -10.00] |', self.text
    )

  def test_the_first_paragraph_says_what_is_compared_and_ranks_nobody(self):
    _, _, first, *_ = self.text.splitlines()
    self.assertStartsWith(
        first,
        'One budget for all on digits (3 methods, up to 3 trials): 4 rounds,',
    )
    for method in _METHODS:
      self.assertNotIn(method, first)

  def test_defaults_are_in_the_order_of_their_distance_to_the_best(self):
    _, _, section = self.text.partition('## Without tuning\n')
    rows = [line for line in section.splitlines() if line.startswith('| ')]
    self.assertEqual(
        rows[2:4],
        [
            '| Delta-SGD | yes | paper | **96.67 ± 0.58** |',
            '| FedAvg |  | other | 87.00 ± 1.00 |',
        ],
    )
    # It was not run with its defaults.
    self.assertNotIn('SCAFFOLD', section.partition('## How to')[0])

  def test_every_method_has_one_number_and_its_costs(self):
    # Of FedAvg every trial has 60, of the others 50. Its four rounds have 400
    # gradients and 12 MB. Of Delta-SGD the final runs are the fastest.
    self.assertIn(
        '| FedAvg |  | 60.00 | 60.00 | 60.00 | 60.00 | 0.00 | 400 | 12 | 0.5 |',
        self.text,
    )
    self.assertIn(
        '| Delta-SGD | yes | 50.00 | 50.00 | 50.00 | 50.00 | 0.00 | 400 | 12 '
        '| 0.25 |',
        self.text,
    )
    rows = folder_testing.read_rows(self.results_dir / 'leaderboard_trials.csv')
    self.assertLen(rows, 9)
    self.assertEqual(
        rows[2],
        {
            'task': 'digits',
            'method': 'FedAvg',
            'tuning_free': 'False',
            'area': '60',
            'trials': '3',
            'expected': '60',
        },
    )

  def test_page_says_how_it_was_made_and_what_is_missing(self):
    self.assertIn(_COMMAND, self.text)
    self.assertIn('seeds also differ in the partition', self.text)
    # On digits the defaults of SCAFFOLD; on mnist, of each method three trials,
    # and three seeds of the defaults, of the best and of the best on digits.
    self.assertIn('methods compared above: 39 runs to go, one after', self.text)
    self.assertIn('a decade to each side of the default 0.1', self.text)
    self.assertIn(
        '`.venv/bin/python -m experiments.leaderboard --tasks=mnist '
        f'--methods=all --data_dir=data --output_dir={self.plan.output_dir}`',
        self.text,
    )
    for name in ('accuracy', 'trials'):
      self.assertIn(f'leaderboard_{name}.png', self.text)
      self.assertTrue(
          (self.results_dir / f'leaderboard_{name}.png').stat().st_size
      )
    self.assertIn('| SCAFFOLD |', self.text)

  def test_rules_that_the_command_sets_are_named(self):
    self.assertIn('`experiments/presets/leaderboard.yaml`; [below]', self.text)
    plan = dataclasses.replace(
        self.plan, given=('--results_dir=results', '--num_seeds=3')
    )
    text = _write(plan, folder_testing.new(self))
    self.assertIn('leaderboard.yaml`, except `--num_seeds=3`; [below]', text)

  def test_csv_has_a_row_for_every_origin_of_the_rates(self):
    rows = folder_testing.read_rows(self.results_dir / 'leaderboard.csv')
    self.assertEqual(
        [(row['task'], row['rates'], row['method']) for row in rows],
        [
            ('digits', 'tuned', 'Delta-SGD'),
            ('digits', 'tuned', 'FedAvg'),
            ('digits', 'tuned', 'SCAFFOLD'),
            ('digits', 'defaults', 'Delta-SGD'),
            ('digits', 'defaults', 'FedAvg'),
        ],
    )
    self.assertEqual(rows[1]['verdict'], 'as good')
    self.assertEqual(rows[1]['megabytes_to_target'], '6')
    self.assertEqual(rows[2]['mean'], '-inf')
    self.assertEqual(rows[3]['assignment'], 'defaults')

  def test_runs_before_their_rules_were_committed_are_counted(self):
    section = self.text.partition('## When the rules were committed')[2]
    self.assertIn(' runs began earlier.', section)
    self.assertRegex(
        section,
        r'\| `a44903da` \| 2026-11-22 07:00 \| digits, mnist, FedAvg, '
        r'SCAFFOLD, Delta-SGD \| \d+ \| 0 \|',
    )

  def test_tasks_have_their_rules(self):
    self.assertRegex(
        self.text, r'\| digits \| - \| `accuracy` \| 3 \| 1 point \| '
    )


class OtherPagesTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    folder = folder_testing.new(self)
    self.plan = _build_plan(folder)
    self.results_dir = folder / 'results'

  def test_a_page_without_runs_says_so(self):
    text = _write(self.plan, self.results_dir)
    self.assertIn('Nothing to compare yet', text)
    self.assertIn('No method has all its runs yet', text)
    self.assertFalse(list(self.results_dir.glob('*.png')))

  def test_a_method_whose_runs_failed_is_shown_as_failed(self):
    board_testing.write_tuning(self.plan, 'digits', 'FedAvg', _LOSSES)
    board_testing.write_finals(
        self.plan, 'digits', 'FedAvg', 1, dict.fromkeys(range(3), 0.9)
    )
    trial = self.plan.tuning('digits', 'SCAFFOLD')[0]
    home = pathlib.Path(self.plan.output_dir) / 'digits'
    (home / 'failed.json').write_text(json.dumps([trial.name]))
    text = _write(self.plan, self.results_dir)
    self.assertRegex(text, r'\| SCAFFOLD \| - \| - \| failed \| - ')
    self.assertIn('because runs failed: SCAFFOLD on digits.', text)
    self.assertIn(f'| digits | `{trial.name}` | `{trial.log}` |', text)
    self.assertNotIn('FedAvg on digits', text)

  def test_a_task_that_is_excluded_is_named_with_its_reason(self):
    text = _write(self.plan, self.results_dir)
    self.assertIn('`emnist_ae` is not on the leaderboard: its metric', text)

  def test_runs_older_than_their_rules_or_without_are_counted(self):
    time = datetime.datetime(2999, 1, 2, tzinfo=datetime.timezone.utc)
    rules = board.Registration('abc', time, ('digits', 'FedAvg'))
    plan = dataclasses.replace(
        self.plan, board=attrs.evolve(self.plan.board, registered=(rules,))
    )
    for method in ('FedAvg', 'Delta-SGD'):
      accuracies = dict.fromkeys(range(3), 0.9)
      board_testing.write_finals(plan, 'digits', method, 0, accuracies)
    text = _write(plan, self.results_dir)
    self.assertIn('6 of 6 runs began earlier.', text)
    self.assertIn('| `abc` | 2999-01-02 00:00 | digits, FedAvg | 3 | 3 |', text)
    self.assertIn('| not registered |  |  | 3 | 3 |', text)

  def test_defaults_are_compared_with_tuned_runs_that_diverged(self):
    board_testing.write_tuning(self.plan, 'digits', 'FedAvg', _LOSSES)
    healthy = dict.fromkeys(range(3), 0.9)
    broken = dict.fromkeys(range(3), math.nan)
    board_testing.write_finals(self.plan, 'digits', 'FedAvg', 1, broken)
    board_testing.write_finals(self.plan, 'digits', 'FedAvg', 0, healthy)
    text = _write(self.plan, self.results_dir)
    self.assertIn('| digits | FedAvg | diverged | the other diverged |', text)


class CurvesTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    folder = folder_testing.new(self)
    self.plan = _build_plan(folder)

  def _write_trials(self, method, accuracies):
    trials = self.plan.tuning('digits', method)
    for trial, accuracy in zip(trials, accuracies):
      board_testing.write_run(trial, [accuracy, accuracy])

  def _find(self):
    return results_lib.Results(self.plan).curves('digits')

  def test_methods_with_fewer_trials_have_no_area(self):
    self._write_trials('FedAvg', [0.5, 0.5, 0.5])
    self._write_trials('Delta-SGD', [0.6, 0.6, 0.6])
    self._write_trials('SCAFFOLD', [0.7])
    curves = self._find()
    self.assertEqual(curves.budget, 3)
    self.assertEqual(curves.methods, ['Delta-SGD', 'FedAvg', 'SCAFFOLD'])
    self.assertEqual(list(curves.areas), ['Delta-SGD', 'FedAvg'])
    self.assertEqual(curves.spreads, {'Delta-SGD': 0.0, 'FedAvg': 0.0})

  def test_one_trial_has_no_area(self):
    self._write_trials('FedAvg', [0.5])
    self._write_trials('Delta-SGD', [0.6])
    curves = self._find()
    self.assertEqual(curves.methods, ['Delta-SGD', 'FedAvg'])
    self.assertEmpty(curves.areas)
    text = _write(self.plan, folder_testing.new(self))
    self.assertIn('On digits, with the defaults alone:', text)


def _draw(plan, folder):
  """Plots the pictures; returns their captions."""
  results = results_lib.Results(plan)
  curves = {task: results.curves(task) for task in plan.board.tasks}
  return drawing.draw(results, curves, folder / 'leaderboard')


class DrawingTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    folder = folder_testing.new(self)
    plan = board_testing.build_plan(folder, tasks=['digits'])
    board_testing.write_tuning(
        plan, 'digits', 'FedAvg', [0.3, 0.1, 0.2], [float('nan'), 0.9, 0.6]
    )
    board_testing.write_tuning(plan, 'digits', 'Delta-SGD', [0.3, 0.1, 0.2])
    board_testing.write_finals(plan, 'digits', 'FedAvg', 1, {0: 0.96, 1: 1.0})
    plot = self.enter_context(mock.patch.object(analysis, 'plot_band_curves'))
    _draw(plan, folder)
    self.curves = {
        call.args[1].stem: call.args[0]['digits']['FedAvg']
        for call in plot.call_args_list
    }
    self.options = [call.kwargs for call in plot.call_args_list]

  def test_seeds_are_a_band(self):
    curve = self.curves['leaderboard_accuracy']
    np.testing.assert_array_equal(curve.x, [2, 4])
    np.testing.assert_allclose(curve.mean, [98.0, 98.0])
    np.testing.assert_allclose(curve.low, [96.0, 96.0])
    np.testing.assert_allclose(curve.high, [100.0, 100.0])
    for options in self.options:
      self.assertEqual(options['log_below'], 100.0)

  def test_a_trial_that_diverged_knows_nothing(self):
    curve = self.curves['leaderboard_trials']
    np.testing.assert_array_equal(curve.x, [1, 2, 3])
    # The defaults have 0; one more, better trial has 90 or 60.
    np.testing.assert_allclose(curve.mean, [0.0, 75.0, 90.0])

  def test_of_many_methods_the_best_have_a_color(self):
    for options in self.options:
      self.assertFalse(options['only_names'])
    folder = folder_testing.new(self)
    methods = [
        *list(board.load().default_methods)[:6],
        'FedAvg',
        'FedAdam',
        'FedYogi',
    ]
    plan = board_testing.build_plan(folder, tasks=['digits'], methods=methods)
    for place, method in enumerate(methods):
      board_testing.write_tuning(
          plan, 'digits', method, [0.1, 0.2, 0.3], [place / 10] * 3
      )
    with mock.patch.object(analysis, 'plot_band_curves') as plot:
      _draw(plan, folder)
    options = plot.call_args.kwargs
    self.assertTrue(options['only_names'])
    self.assertEqual(
        options['names'],
        ['FedAvg', 'FedYogi', 'FedAdam', *reversed(methods[1:6])],
    )

  def test_profiles_over_the_tasks_are_steps(self):
    folder = folder_testing.new(self)
    plan = board_testing.build_plan(folder)
    # FedAvg reaches both targets in round 2, Delta-SGD one of them in round 4.
    for task, slow in (('digits', [0.5, 1.0]), ('mnist', [0.5, 0.5])):
      for method, finals in (('FedAvg', [1.0, 1.0]), ('Delta-SGD', slow)):
        board_testing.write_tuning(plan, task, method, [0.3, 0.1, 0.2])
        for trial in plan.finals(task, method, plan.assignments(method)[1]):
          board_testing.write_run(trial, finals)
    with mock.patch.object(analysis, 'plot_band_curves') as plot:
      _draw(plan, folder)
    (call,) = (
        c for c in plot.call_args_list if c.args[1].stem[-7:] == 'profile'
    )
    curves = call.args[0]['']
    np.testing.assert_array_equal(curves['FedAvg'].x, [1.0, 2.0, 2.0])
    np.testing.assert_array_equal(curves['FedAvg'].mean, [1.0, 1.0, 1.0])
    np.testing.assert_array_equal(curves['Delta-SGD'].mean, [0.0, 0.0, 0.5])
