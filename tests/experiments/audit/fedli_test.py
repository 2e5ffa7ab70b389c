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
"""Tests that the checks of FedLi's claims can come out either way."""

import itertools
import pathlib

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np

from experiments import audit
from experiments.audit import fedli
from experiments.audit import quadratics
from experiments.audit.claim import Status
from tests.experiments.audit import fake_lab


class FedLiTest(parameterized.TestCase):

  @parameterized.parameters(
      (quadratics.MINIMIZER, Status.HOLDS),
      (0.0, Status.COUNTEREXAMPLE),
      (np.nan, Status.COUNTEREXAMPLE),
  )
  def test_free_descent(self, after, status):
    lab = fake_lab.create(
        train=lambda config, start: fake_lab.training([start, after])
    )
    verdict = fedli.free_descent(lab)
    self.assertEqual(verdict.status, status)
    # Why it rises is told where it does.
    self.assertEqual(after == 0.0, 'not of f_i(x_i)' in verdict.evidence)

  @parameterized.parameters(
      (fake_lab.still, Status.HOLDS), (fake_lab.away, Status.COUNTEREXAMPLE)
  )
  def test_local_descent(self, steps, status):
    verdict = fedli.local_descent(fake_lab.create(steps=steps))
    self.assertEqual(verdict.status, status)

  @parameterized.parameters(
      (1.0, Status.HOLDS),
      (1.1, Status.COUNTEREXAMPLE),
      (1e-4, Status.COUNTEREXAMPLE),
  )
  def test_step_bounds(self, step_size, status):
    def steps(rule, batches, start):
      found = fake_lab.still(rule, batches, start)
      found.step_sizes = np.full(len(batches.slopes), step_size)
      return found

    verdict = fedli.step_bounds(fake_lab.create(steps=steps))
    self.assertEqual(verdict.status, status)

  @parameterized.named_parameters(
      ('none', 0, 1.0, Status.FAILS),
      ('one', 1, 1.0, Status.FAILS),
      ('half', 100, 1.0, Status.FAILS),
      ('most', 101, 1.0, Status.HOLDS),
      ('nan', 0, np.nan, Status.FAILS),
  )
  def test_longer_server_steps(self, num_longer, others, status):
    steps = itertools.chain([1.5] * num_longer, itertools.repeat(others))
    lab = fake_lab.create(server_step=lambda *args: next(steps))
    verdict = fedli.longer_server_steps(lab)
    self.assertEqual(verdict.status, status)
    self.assertStartsWith(verdict.evidence, f'{num_longer} of 200 steps are')
    can_only_damp = num_longer == 0 and others == 1.0
    self.assertEqual(can_only_damp, 'can only damp' in verdict.evidence)

  @parameterized.parameters(
      (0.0, Status.FAILS), (0.1, Status.HOLDS), (np.nan, Status.FAILS)
  )
  def test_published_code(self, step, status):
    lab = fake_lab.create(server_step=lambda *args, **kwargs: step)
    self.assertEqual(fedli.published_code_moves(lab).status, status)

  def test_published_lead(self):
    lab = audit.Workbench(pathlib.Path('no runs'))
    verdict = fedli.published_lead(lab)
    self.assertEqual(verdict.status, Status.FAILS)
    self.assertIn('behind in Shakespeare', verdict.evidence)

  def test_without_runs(self):
    lab = audit.Workbench(pathlib.Path('no runs'))
    for check, name in (
        (fedli.line_search_helps, 'ls'),
        (fedli.linearization_helps, 'lu'),
    ):
      verdict = check(lab)
      self.assertEqual(verdict.status, Status.NOT_RUN)
      self.assertIn(f'methods/{name}.flags', verdict.evidence)


if __name__ == '__main__':
  absltest.main()
