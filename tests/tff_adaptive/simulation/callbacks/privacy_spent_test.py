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
"""Tests of what reports the privacy spent."""

from absl.testing import absltest
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tests.tff_adaptive.runtime import compiled_testing
from tff_adaptive import algorithms
from tff_adaptive import optimizers
from tff_adaptive import privacy
from tff_adaptive.simulation import callbacks


def _build_accountant():
  return privacy.RoundAccountant(
      noise_multiplier=1.0,
      num_clients=100,
      clients_per_round=40,
      sampling=privacy.CohortSampling.POISSON,
  )


def _initial_state(**kwargs):
  """The initial state of a private process with a payload."""
  process = algorithms.build_scaffold(
      testing.functional_model(),
      optimizers.build_scaffold_sgd(100),
      client_weighting=tff.learning.ClientWeighting.UNIFORM,
      privacy=privacy.DifferentialPrivacy(
          noise_multiplier=1.0,
          clients_per_round=40,
          clip_norm=0.5,
          payload_clip_norms={'control': 0.25},
          **kwargs,
      ),
  )
  with compiled_testing.installed():
    return process.initialize()


class PrivacySpentTest(absltest.TestCase):

  def _measure(self, state, round_num):
    accountant = _build_accountant()
    round_end = callbacks.RoundEnd(
        round_num=round_num,
        state=state,
        get_weights=lambda: None,
        metrics={},
        evaluation=None,
    )
    spent = callbacks.PrivacySpent(accountant, delta=1e-3)
    row = dict(spent.measure(round_end))
    self.assertEqual(
        row.pop('privacy/epsilon'), accountant.get_epsilon(round_num, 1e-3)
    )
    return row

  def test_fixed_bounds_are_no_metrics(self):
    state = _initial_state()
    for round_num in (1, 7):
      self.assertEmpty(self._measure(state, round_num))

  def test_adaptive_bounds_have_the_names_of_what_they_bound(self):
    state = _initial_state(adaptive_clipping=privacy.AdaptiveClipping())
    self.assertEqual(
        self._measure(state, 1),
        {'privacy/clip_norm': 0.5, 'privacy/clip_norm_of_control': 0.25},
    )

  def test_delta_is_checked_before_the_first_round(self):
    with self.assertRaisesRegex(ValueError, '`delta`.*found 2'):
      callbacks.PrivacySpent(_build_accountant(), delta=2.0)


if __name__ == '__main__':
  absltest.main()
