# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the page of the methods of 2025 and 2026."""

import csv
from unittest import mock

from absl.testing import absltest
import attrs

from experiments.leaderboard import board
from experiments.leaderboard import plans
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

  def _write_defaults(self, method, scores):
    for trial in self.plan.finals('digits', method, plans.DEFAULTS):
      score = scores[trial.seed]
      board_testing.write_run(trial, [score, score])

  def _page(self):
    head_to_heads.write(self.folder / 'runs', 'data', self.folder)
    return (self.folder / 'methods_2026.md').read_text(encoding='utf-8')

  def test_all_methods_of_these_years_are_there_once(self):
    self.assertLen(self.all.board.methods, 17)
    registered = {
        name
        for one in self.all.board.registered
        if '2026-11-29' in str(one.time)
        for name in one.entries
    }
    self.assertEqual(set(self.all.board.methods), registered)

  def test_what_has_not_run_is_left_out(self):
    self.assertNotIn('| digits', self._page().split('What tuning adds')[1])

  def test_differences_are_paired_by_seed(self):
    old = [0.5, 0.6, 0.7, 0.8, 0.9]
    self._write_defaults('FedAvgM', old)
    self._write_defaults('FedAdam', [score + 0.05 for score in old])
    self._write_defaults('FedAdamom', [score + 0.04 for score in old])
    page = self._page()
    self.assertIn('| FedAdamom | FedAvgM | digits | +4.00 [+4.00', page)
    self.assertIn('+4.00] better | - |', page)
    self.assertIn('| FedAdamom | FedAdam | digits | -1.00 [-1.00', page)
    self.assertIn('-1.00] worse | - |', page)
    self.assertIn('| FedAdamom |  | digits | 74.00 ± 15.81 | - | - | - |', page)
    text = (self.folder / 'methods_2026.csv').read_text(encoding='utf-8')
    rows = list(csv.DictReader(text.splitlines()))
    self.assertEqual([row['rates'] for row in rows], ['defaults'] * 2)
    self.assertAlmostEqual(float(rows[1]['difference']), 4.0)

  def test_defaults_are_judged_by_the_tuned_runs_and_the_margin(self):
    self._write_defaults('AdGD', [0.9] * 5)
    board_testing.write_tuning(
        self.plan, 'digits', 'AdGD', [0.5, 0.4, 0.3, 0.2, 0.1, 0.05]
    )
    board_testing.write_finals(
        self.plan, 'digits', 'AdGD', 5, dict(enumerate([0.95, 0.96] * 3))
    )
    row = '| AdGD | yes | digits | 90.00 ± 0.00 | 95.40 ± 0.55 | -5.40 [-6.08'
    self.assertIn(row, self._page())
    self.assertIn('-4.72] | worse |', self._page())


if __name__ == '__main__':
  absltest.main()
