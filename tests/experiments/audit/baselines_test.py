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
"""Tests that the checks of the baselines' claims can come out either way."""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np

from experiments.audit import baselines
from experiments.audit import quadratics
from experiments.audit.claim import Status
from tests.experiments.audit import fake_lab


class BaselinesTest(parameterized.TestCase):

  @parameterized.parameters((1.0, Status.HOLDS), (0.9, Status.COUNTEREXAMPLE))
  def test_fedexp(self, step, status):
    lab = fake_lab.create(server_step=lambda *args: step)
    self.assertEqual(baselines.step_at_least_one(lab).status, status)

  @parameterized.parameters((0.0, Status.HOLDS), (0.5, Status.COUNTEREXAMPLE))
  def test_sps(self, left, status):
    def steps(rule, batches, start, c):
      del rule, batches, c
      return fake_lab.path([start, left * start])

    lab = fake_lab.create(steps=steps)
    verdict = baselines.exact_on_isotropic_quadratics(lab)
    self.assertEqual(verdict.status, status)

  def test_sps_that_is_not_a_number_solves_nothing(self):
    def steps(rule, batches, start, c):
      del rule, c
      is_first = batches.hessians[0, 0, 0] == 0.01
      return fake_lab.path([start, (0.0 if is_first else np.nan) * start])

    lab = fake_lab.create(steps=steps)
    verdict = baselines.exact_on_isotropic_quadratics(lab)
    self.assertEqual(verdict.status, Status.COUNTEREXAMPLE)
    self.assertStartsWith(verdict.evidence, 'At most nan')

  @parameterized.parameters(
      (0.0, 0.2, Status.HOLDS), (0.2, 0.2, Status.FAILS), (0, 0, Status.FAILS)
  )
  def test_scaffold(self, scaffold, fedavg, status):
    def train(config, **kwargs):
      del kwargs
      left = fedavg if fake_lab.is_fedavg(config) else scaffold
      return fake_lab.training([0.0, quadratics.MINIMIZER + left])

    verdict = baselines.corrects_drift(fake_lab.create(train=train))
    self.assertEqual(verdict.status, status)

  @parameterized.parameters((0.5, Status.HOLDS), (1.2, Status.FAILS))
  def test_fedprox(self, moved, status):
    lab = fake_lab.create(
        steps=lambda *args, **kwargs: fake_lab.path(np.array([[0.0], [1.0]])),
        train=lambda *args, **kwargs: fake_lab.training([0.0, moved]),
    )
    self.assertEqual(baselines.limits_drift(lab).status, status)


if __name__ == '__main__':
  absltest.main()
