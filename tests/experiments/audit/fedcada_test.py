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
"""Tests that the checks of FedCAda's claims can come out either way."""

import pathlib

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np

from experiments import audit
from experiments.audit import fedcada
from experiments.audit.claim import Status
from tests.experiments.audit import fake_lab


def _lab(length):
  """A workbench with a length of a step by option and round, from 1 on."""

  def steps(rule, batches, start, *, option, round_num=0, **arguments):
    del rule, arguments
    moved = length(option, round_num + 1) * len(batches.slopes)
    return fake_lab.path(np.linspace(start, start - moved, len(batches[0]) + 1))

  return fake_lab.create(steps=steps)


class FedCAdaTest(parameterized.TestCase):

  @parameterized.parameters(
      (0.9, Status.HOLDS, 'never longer'),
      (1.1, Status.COUNTEREXAMPLE, 'longer from round 1 on'),
      (np.nan, Status.COUNTEREXAMPLE, 'nan in round 1'),
  )
  def test_smaller_steps(self, ratio, status, told):
    lab = _lab(lambda option, t: 1.0 if option == 'none' else ratio)
    verdict = fedcada.smaller_steps(lab)
    self.assertEqual(verdict.status, status)
    self.assertIn(told, verdict.evidence)

  def test_an_effect_that_is_not_a_number_does_not_fade(self):
    def length(option, t):
      is_broken = option != 'none' and t == 5
      return np.nan if is_broken else 1.0

    verdict = fedcada.adjustment_fades(_lab(length))
    self.assertEqual(verdict.status, Status.FAILS)

  @parameterized.parameters((-0.1, Status.HOLDS), (0.0, Status.FAILS))
  def test_adjustment_fades(self, rate, status):
    lab = _lab(lambda o, t: 1.0 if o == 'none' else 1 - 0.3 * np.exp(rate * t))
    self.assertEqual(fedcada.adjustment_fades(lab).status, status)

  @parameterized.parameters(
      (0.9, Status.HOLDS),
      (1.1, Status.COUNTEREXAMPLE),
      (np.nan, Status.COUNTEREXAMPLE),
  )
  def test_shorter_than_adam(self, ratio, status):
    lab = _lab(lambda option, t: 1.0 if option == 'adam' else ratio)
    self.assertEqual(fedcada.shorter_than_adam(lab).status, status)

  @parameterized.parameters((40, Status.HOLDS), (120, Status.FAILS))
  def test_communication(self, sent, status):
    def train(config):
      up = 40 if fake_lab.is_fedavg(config) else sent
      return fake_lab.training(bytes_up=up)

    verdict = fedcada.same_communication(fake_lab.create(train=train))
    self.assertEqual(verdict.status, status)

  def test_published_lead(self):
    lab = audit.Workbench(pathlib.Path('no runs'))
    verdict = fedcada.published_lead(lab)
    self.assertEqual(verdict.status, Status.FAILS)
    self.assertStartsWith(verdict.evidence, 'First in 7 of 10 columns')

  def test_without_runs(self):
    lab = audit.Workbench(pathlib.Path('no runs'))
    verdict = fedcada.adjustment_helps(lab)
    self.assertEqual(verdict.status, Status.NOT_RUN)
    # Both rows are found by their flags.
    self.assertStartsWith(
        verdict.evidence, 'cells without all finished runs: 2;'
    )
    self.assertIn('--fedcada_adam_option=none', verdict.evidence)
    self.assertEqual(fedcada.beats_fedavg(lab).status, Status.NOT_RUN)
    self.assertEqual(
        fedcada.beats_others_on_cifar(lab).status, Status.NOT_TESTABLE
    )


if __name__ == '__main__':
  absltest.main()
