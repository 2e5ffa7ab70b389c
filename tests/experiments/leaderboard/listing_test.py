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
"""Tests of what is still to run."""

import dataclasses
import pathlib
import tempfile

from absl.testing import absltest

from experiments.leaderboard import listing
from experiments.leaderboard import results as results_lib
from tests.experiments.leaderboard import board_testing


class ListingTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    self.folder = self.enter_context(tempfile.TemporaryDirectory())
    self.plan = board_testing.build_plan(pathlib.Path(self.folder))

  def _entries(self, plan=None, **kwargs):
    results = results_lib.Results(plan or self.plan)
    return list(listing.list_entries(results, **kwargs))

  def test_every_method_has_an_entry_with_its_command(self):
    entries = self._entries(per_method=True)
    self.assertEqual(
        [(entry.task, entry.methods) for entry in entries],
        [(t, m) for t in board_testing.TASKS for m in board_testing.METHODS],
    )
    # Three trials, two seeds of the chosen, and two of the defaults.
    self.assertEqual({entry.num_runs for entry in entries}, {7})
    # Each 20 s and 4 rounds of 0.6 s.
    self.assertEqual(entries[2].time, '2 min 37 s')
    self.assertIn('--tasks=mnist --methods=FedAvg', entries[2].command)

  def test_what_is_finished_is_not_listed(self):
    board_testing.write_tuning(self.plan, 'digits', 'FedAvg', [0.1, 0.2, 0.3])
    entries = self._entries(per_method=True)
    # The defaults are the best, so that there are two runs left.
    self.assertEqual(entries[0].num_runs, 2)
    board_testing.write_finals(self.plan, 'digits', 'FedAvg', 0, {0: 1, 1: 1})
    entries = self._entries(per_method=True)
    self.assertEqual(
        (entries[0].task, entries[0].methods), ('digits', 'Delta-SGD')
    )

  def test_unknown_times_are_unknown(self):
    plan = board_testing.build_plan(
        pathlib.Path(self.folder), tasks=['cifar10']
    )
    entries = self._entries(plan, per_method=False)
    self.assertEqual(
        [(entry.methods, entry.time) for entry in entries], [('all', 'unknown')]
    )

  def test_commands_repeat_the_rules_that_were_given(self):
    plan = dataclasses.replace(self.plan, given=('--trials=3',))
    entries = self._entries(plan, per_method=False)
    self.assertEndsWith(entries[0].command, ' --trials=3')


if __name__ == '__main__':
  absltest.main()
