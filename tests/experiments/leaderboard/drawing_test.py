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
"""Tests of the figures of a leaderboard."""

import pathlib
import tempfile
from unittest import mock

from absl.testing import absltest
import numpy as np

from experiments.leaderboard import drawing
from experiments.leaderboard import results as results_lib
from tests.experiments.leaderboard import board_testing
from tff_adaptive import analysis


class DrawingTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    folder = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory()))
    plan = board_testing.build_plan(folder, tasks=['digits'])
    board_testing.write_tuning(
        plan, 'digits', 'FedAvg', [0.3, 0.1, 0.2], [float('nan'), 0.9, 0.6]
    )
    board_testing.write_finals(plan, 'digits', 'FedAvg', 1, {0: 0.96, 1: 1.0})
    plot = self.enter_context(mock.patch.object(analysis, 'plot_band_curves'))
    drawing.draw(results_lib.Results(plan), folder / 'leaderboard')
    self.curves = {
        call.args[1].stem: call.args[0]['digits']['FedAvg']
        for call in plot.call_args_list
    }
    self.options = [call.kwargs for call in plot.call_args_list]

  def test_seeds_are_shown_by_what_is_missing(self):
    curve = self.curves['leaderboard_accuracy']
    np.testing.assert_array_equal(curve.x, [2, 4])
    np.testing.assert_allclose(curve.mean, [2.0, 2.0])
    # A perfect seed still has a place on the axis.
    np.testing.assert_allclose(curve.low, [0.01, 0.01])
    np.testing.assert_allclose(curve.high, [4.0, 4.0])
    self.assertTrue(all(options['log_y'] for options in self.options))

  def test_a_trial_that_diverged_misses_everything(self):
    curve = self.curves['leaderboard_trials']
    np.testing.assert_array_equal(curve.x, [1, 2, 3])
    # Of one trial the mean of 100, 10 and 40; of two the better by the loss:
    # 10, 10 and 40.
    np.testing.assert_allclose(curve.mean, [50.0, 20.0, 10.0])


if __name__ == '__main__':
  absltest.main()
