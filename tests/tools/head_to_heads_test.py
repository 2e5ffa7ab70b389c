# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the page of the methods of 2025 and 2026."""

import csv
from unittest import mock

from absl.testing import absltest
import attrs

from experiments.leaderboard import board
from experiments.leaderboard import results as results_lib
from tests import folder_testing
from tests.experiments.leaderboard import board_testing
from tools import head_to_heads


class HeadToHeadsTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    rules = board.load()
    short = attrs.evolve(rules.protocol, total_rounds=board_testing.ROUNDS)
    self.enter_context(
        mock.patch.object(
            board, 'load', lambda: attrs.evolve(rules, protocol=short)
        )
    )
    self.folder = folder_testing.new(self)
    self.plan, self.all = head_to_heads.make_plans(self.folder / 'runs', 'data')

  def _write(self, defaults=None, tuned=None):
    """Writes all runs on digits: scores by method and seed, 0.5 for others."""
    for method in self.plan.board.methods:
      scores = (defaults or {}).get(method, [0.5] * 5)
      for trial in self.plan.finals('digits', method, results_lib.DEFAULTS):
        board_testing.write_run(trial, [scores[trial.seed]] * 2)
      num_trials = len(self.plan.assignments(method))
      # The last trial has the lowest loss.
      losses = [1 / place for place in range(1, num_trials + 1)]
      board_testing.write_tuning(self.plan, 'digits', method, losses)
      scores = (tuned or {}).get(method, [0.5] * 5)
      found = dict(enumerate(scores))
      board_testing.write_finals(
          self.plan, 'digits', method, num_trials - 1, found
      )

  def _page(self):
    head_to_heads.write(self.folder / 'runs', 'data', self.folder)
    return (self.folder / 'methods_2026.md').read_text(encoding='utf-8')

  def test_all_methods_of_these_years_are_there_once(self):
    self.assertLen(self.all.board.methods, 17)
    registered = {
        name
        for one in self.all.board.registered
        if str(one.time) > '2026-11-29'
        for name in one.entries
    }
    self.assertEqual(set(self.all.board.methods), registered)

  def test_what_has_not_run_is_left_out_and_named(self):
    self._write()
    last, *_ = self.plan.finals('digits', 'AdGD', results_lib.DEFAULTS)
    (last.folder / 'metrics.csv').unlink()
    page = self._page()
    self.assertNotIn('| digits |', page)
    for task in ('digits', 'ag_news', 'mnist'):
      self.assertIn(f'\n\nNot finished on {task}: FedSLS, ', page)

  def test_differences_are_paired_by_seed(self):
    old = [0.5, 0.6, 0.7, 0.8, 0.9]
    scores = {
        'FedAvgM': old,
        'FedAdam': [score + 0.05 for score in old],
        'FedAdamom': [score + 0.04 for score in old],
    }
    self._write(scores)
    page = self._page()
    equal = '+0.00 [+0.00, +0.00] |'
    self.assertIn('| FedAdamom | FedAvgM | digits | +4.00 [+4.00', page)
    self.assertIn(f'+4.00] better | {equal}', page)
    self.assertIn('| FedAdamom | FedAdam | digits | -1.00 [-1.00', page)
    self.assertIn(f'-1.00] worse | {equal}', page)
    self.assertIn('| FedAdamom |  | digits | 74.00 ± 15.81 | 50.00', page)
    self.assertIn('\n\nNot finished on ag_news: FedSLS, ', page)
    self.assertIn('\n\nNot finished on digits: FedAvgM-Nesterov, ', page)
    text = (self.folder / 'methods_2026.csv').read_text(encoding='utf-8')
    found = {
        (row['method'], row['against'], row['rates']): row['difference']
        for row in csv.DictReader(text.splitlines())
    }
    self.assertLen(found, 2 * len(head_to_heads.PAIRS))
    difference = float(found['FedAdamom', 'FedAvgM', 'defaults'])
    self.assertAlmostEqual(difference, 4.0)

  def test_defaults_are_judged_by_the_tuned_runs_and_the_margin(self):
    tuned = [0.95, 0.96, 0.95, 0.96, 0.95]
    self._write({'AdGD': [0.9] * 5}, {'AdGD': tuned})
    row = '| AdGD | yes | digits | 90.00 ± 0.00 | 95.40 ± 0.55 | -5.40 [-6.08'
    page = self._page()
    self.assertIn(row, page)
    self.assertIn('-4.72] | worse |', page)


if __name__ == '__main__':
  absltest.main()
