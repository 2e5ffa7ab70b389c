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
"""Tests that the checks of FedOpt's claims can come out either way."""

import pathlib

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np

from experiments import audit
from experiments.audit import fedopt
from experiments.audit.claim import Status
from tests.experiments.audit import fake_lab
from tests.experiments.report import made_up_runs


class FedOptTest(parameterized.TestCase):

  @parameterized.parameters(
      ({}, Status.HOLDS),
      ({'bytes_down': 80}, Status.FAILS),
      ({'keeps_state': True}, Status.FAILS),
  )
  def test_no_client_state(self, changed, status):
    def train(config):
      changes = {} if fake_lab.is_fedavg(config) else changed
      return fake_lab.training(**changes)

    verdict = fedopt.no_client_state(fake_lab.create(train=train))
    self.assertEqual(verdict.status, status)

  @parameterized.parameters((True, Status.HOLDS), (False, Status.FAILS))
  def test_tau(self, is_right, status):
    def steps(rule, batches, start, epsilon):
      del rule, start
      turned = 1 / epsilon if is_right else epsilon
      momentum = np.ones_like(batches.slopes)
      last = momentum[-1].copy()
      last[0] += turned
      return fake_lab.path([0.0 * last, last], accumulator=-momentum)

    verdict = fedopt.tau_is_adaptivity(fake_lab.create(steps=steps))
    self.assertEqual(verdict.status, status)

  @parameterized.parameters((0.5, Status.HOLDS), (0.4, Status.FAILS))
  def test_lookahead(self, moved, status):
    lab = fake_lab.create(
        steps=lambda *args, **kwargs: fake_lab.path([[0.0], [1.0]]),
        train=lambda *args, **kwargs: fake_lab.training([0.0, moved]),
    )
    self.assertEqual(fedopt.lookahead(lab).status, status)

  @parameterized.parameters(
      (0.01, 1.0, Status.HOLDS),
      (0.02, 1.0, Status.FAILS),
      (0.01, 0.01, Status.FAILS),
  )
  def test_yogi(self, yogi, adam, status):
    def steps(rule, batches, start):
      share = yogi if rule == 'fedyogi' else adam
      v = np.cumsum(share * batches.slopes**2, axis=0)
      return fake_lab.path([start, start], preconditioner=v)

    verdict = fedopt.yogi_changes_slowly(fake_lab.create(steps=steps))
    self.assertEqual(verdict.status, status)

  @parameterized.parameters((0.0, Status.HOLDS), (0.3, Status.COUNTEREXAMPLE))
  def test_published_code(self, gap, status):
    def steps(rule, batches, start, **arguments):
      del batches, arguments
      return fake_lab.path([start, start + (gap if ':' in rule else 0.0)])

    verdict = fedopt.published_code(fake_lab.create(steps=steps))
    self.assertEqual(verdict.status, status)

  def test_published_lead(self):
    lab = audit.Workbench(pathlib.Path('no runs'))
    self.assertEqual(fedopt.published_lead(lab).status, Status.HOLDS)

  def test_published_lead_of_a_table_without_it(self):
    numbers = {('', 'FedAvg', 'digits'): 2.0, ('', 'FedYogi', 'digits'): 1.0}
    table = made_up_runs.build_table(
        rows=['FedAvg', 'FedYogi'], numbers=numbers
    )
    lab = fake_lab.create(find_table=lambda name: table)
    verdict = fedopt.published_lead(lab)
    self.assertEqual(verdict.status, Status.FAILS)
    self.assertIn('behind in digits', verdict.evidence)


if __name__ == '__main__':
  absltest.main()
