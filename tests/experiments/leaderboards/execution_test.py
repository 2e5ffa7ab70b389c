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
"""Tests of running a leaderboard: stages, time and resumption."""

import contextlib
import io
import itertools
import pathlib
import tempfile

from absl.testing import absltest

from experiments.leaderboards import execution
from experiments.leaderboards import results as results_lib
from tests.experiments.leaderboards import board_testing
from tests.experiments.sweeps import sweep_testing

_FOREVER = 1e6


class ExecutionTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    self.folder = pathlib.Path(
        self.enter_context(tempfile.TemporaryDirectory())
    )
    # The made-up program trains three rounds.
    self.plan = board_testing.build_plan(
        self.folder, methods=('FedAvg',), num_trials=3, total_rounds=3
    )

  def _run(self, max_seconds=_FOREVER, clock=None):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
      is_finished = execution.run(
          self.plan,
          num_at_once=4,
          max_seconds=max_seconds,
          command=sweep_testing.FAKE_TRAIN,
          **({} if clock is None else {'now': clock}),
      )
    return is_finished, out.getvalue()

  def _runs(self):
    """Returns a line for every start, by run."""
    return {
        path.relative_to(self.folder).as_posix(): path.read_text()
        for path in self.folder.rglob('*.starts')
    }

  def test_runs_the_stages_and_nothing_twice(self):
    is_finished, out = self._run()
    self.assertTrue(is_finished)
    titles = [line for line in out.splitlines() if line.endswith(' to run')]
    # The loss of the made-up program is the distance of the rate to 0.1, 0 by
    # default, and so one draw is the best on both tasks.
    self.assertEqual(
        titles,
        [
            'tuning trials: 6 to run',
            'final runs of the best: 4 to run',
            'final runs of the defaults: 4 to run',
        ],
    )
    results = results_lib.Results(self.plan)
    for task in board_testing.TASKS:
      self.assertIn('FedAvg', results.tuned(task))
      self.assertIn('FedAvg', results.defaults(task))
      others = [name for name in board_testing.TASKS if name != task]
      self.assertIn('FedAvg', results.carried(task, others[0]))

    before = self._runs()
    self.assertLen(before, 14)
    is_finished, out = self._run()
    self.assertTrue(is_finished)
    self.assertEqual(out, '')
    self.assertEqual(self._runs(), before)

  def test_after_the_time_no_run_begins_and_the_next_call_goes_on(self):
    # It is read at the start, before the first runs, and again and again.
    clock = itertools.chain([0.0, 1.0], itertools.repeat(11.0))
    is_finished, out = self._run(10.0, lambda: next(clock))
    self.assertFalse(is_finished)
    done = self._runs()
    self.assertLen(done, 4)
    self.assertNotIn('final runs', out)

    is_finished, _ = self._run()
    self.assertTrue(is_finished)
    after = self._runs()
    self.assertLen(after, 14)
    for name, text in done.items():
      self.assertEqual(after[name], text)

  def test_no_time_runs_nothing(self):
    is_finished, _ = self._run(0.0)
    self.assertFalse(is_finished)
    self.assertEqual(self._runs(), {})


if __name__ == '__main__':
  absltest.main()
