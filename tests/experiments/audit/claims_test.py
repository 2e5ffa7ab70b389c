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
"""Tests of the verdicts on the library itself: rules, processes and CKA."""

import pathlib

from absl.testing import absltest
from absl.testing import parameterized
import pytest

from experiments import audit
from experiments.audit.claim import Status

_SMALL = {
    'fedexp.step_at_least_one': Status.HOLDS,
    'fedcada.cka_as_printed': Status.COUNTEREXAMPLE,
    'fedli.published_code_moves': Status.FAILS,
    'sps.exact_on_isotropic_quadratics': Status.HOLDS,
}
_LARGE = {
    'delta_sgd.theorem': Status.HOLDS,
    'delta_sgd.theorem_at_defaults': Status.COUNTEREXAMPLE,
    'delta_sgd.step_bounds': Status.HOLDS,
    'delta_sgd.no_additional_gradients': Status.FAILS,
    'delta_sgd.no_additional_communication': Status.HOLDS,
    'delta_sgd.same_batch_is_better': Status.HOLDS,
    'fedcada.adjustment_fades': Status.HOLDS,
    'fedcada.same_communication': Status.FAILS,
    'fedcada.shorter_than_adam': Status.COUNTEREXAMPLE,
    'fedli.local_descent': Status.HOLDS,
    'fedli.longer_server_steps': Status.FAILS,
    'fedli.step_bounds': Status.HOLDS,
    'fedopt.lookahead': Status.HOLDS,
    'fedopt.no_client_state': Status.HOLDS,
    'fedopt.published_code': Status.COUNTEREXAMPLE,
    'fedopt.tau_is_adaptivity': Status.HOLDS,
    'fedopt.yogi_changes_slowly': Status.HOLDS,
    'fedprox.limits_drift': Status.HOLDS,
    'scaffold.corrects_drift': Status.HOLDS,
}


def _check(name):
  return audit.CLAIMS[name].check(audit.Workbench(pathlib.Path('no runs')))


class ClaimsTest(parameterized.TestCase):

  @parameterized.parameters(*_SMALL.items())
  def test_verdict(self, name, status):
    self.assertEqual(_check(name).status, status)

  @parameterized.parameters(*_LARGE.items())
  @pytest.mark.slow
  def test_verdict_that_takes_longer(self, name, status):
    self.assertEqual(_check(name).status, status)

  @pytest.mark.slow
  def test_free_descent_has_a_counterexample(self):
    verdict = _check('fedli.free_descent')
    self.assertEqual(verdict.status, Status.COUNTEREXAMPLE)
    self.assertAlmostEqual(verdict.numbers['before'], 0.909, places=3)
    self.assertAlmostEqual(verdict.numbers['after'], 2.487, places=3)

  @pytest.mark.slow
  def test_steps_of_fedcada(self):
    verdict = _check('fedcada.smaller_steps')
    self.assertEqual(verdict.status, Status.COUNTEREXAMPLE)
    found = verdict.numbers['beta_1 0.9']
    self.assertAlmostEqual(found['round 1'], 0.742, places=3)
    self.assertEqual(found['first longer round'], 10)
    self.assertAlmostEqual(found['largest'], 1.274, places=3)
    self.assertEqual(found['round of the largest'], 37)
    found = verdict.numbers['beta_1 0.1']
    self.assertAlmostEqual(found['round 1'], 1.282, places=3)
    self.assertAlmostEqual(found['largest'], 1.402, places=3)
    self.assertEqual(found['round of the largest'], 3)


if __name__ == '__main__':
  absltest.main()
