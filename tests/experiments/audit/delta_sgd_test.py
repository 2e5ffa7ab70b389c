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
"""Tests that the checks of Delta-SGD's claims can come out either way."""

import pathlib
import tempfile

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np

from experiments import audit
from experiments import published
from experiments.audit import delta_sgd
from experiments.audit.claim import Status
from tests.experiments.audit import fake_lab
from tests.experiments.report import made_up_runs

_GROUPS = ('alpha = 1', 'alpha = 0.1', 'alpha = 0.01')


def _spend(sgd, other):
  """Rounds of FedAvg and of something else, in the place of `train`."""
  return lambda config, **_: fake_lab.training(
      **(sgd if fake_lab.is_fedavg(config) else other)
  )


def _reuse(rule, batches, start, **arguments):
  found = fake_lab.still(rule, batches, start, **arguments)
  found.reports = {'gradient_evaluations': np.ones(len(batches.slopes))}
  return found


class DeltaSgdTest(parameterized.TestCase):

  @parameterized.parameters(
      (fake_lab.still, Status.HOLDS), (fake_lab.away, Status.COUNTEREXAMPLE)
  )
  def test_theorem(self, steps, status):
    lab = fake_lab.create(steps=steps)
    self.assertEqual(delta_sgd.theorem(lab).status, status)
    self.assertEqual(delta_sgd.theorem_at_defaults(lab).status, status)

  @parameterized.parameters(
      (1e-4, Status.COUNTEREXAMPLE),
      (np.nan, Status.COUNTEREXAMPLE),
      (None, Status.HOLDS),
  )
  def test_step_bounds(self, step_size, status):
    def steps(rule, batches, start, **arguments):
      found = fake_lab.still(rule, batches, start, **arguments)
      largest = np.linalg.eigvalsh(batches.hessians[0])[-1]
      found.step_sizes[:] = step_size or 1 / largest
      return found

    verdict = delta_sgd.step_bounds(fake_lab.create(steps=steps))
    self.assertEqual(verdict.status, status)

  @parameterized.parameters((10, Status.HOLDS), (18, Status.FAILS))
  def test_gradients(self, count, status):
    train = _spend({}, {'num_gradient_evaluations': count})
    verdict = delta_sgd.no_additional_gradients(
        fake_lab.create(train=train, steps=_reuse)
    )
    self.assertEqual(verdict.status, status)
    self.assertEqual(verdict.numbers['Delta-SGD'], count)

  @parameterized.parameters((40, Status.HOLDS), (80, Status.FAILS))
  def test_communication(self, sent, status):
    train = _spend({}, {'bytes_up': sent})
    verdict = delta_sgd.no_additional_communication(
        fake_lab.create(train=train)
    )
    self.assertEqual(verdict.status, status)

  @parameterized.parameters(
      ('recompute', Status.HOLDS), ('reuse', Status.FAILS)
  )
  def test_same_batch(self, better, status):
    def steps(rule, batches, start, previous_gradient):
      del rule
      left = 0.01 if previous_gradient == better else 0.1
      minimizer = np.linalg.solve(
          batches.hessians.sum(axis=0), -batches.slopes.sum(axis=0)
      )
      return fake_lab.path([start, minimizer + left])

    verdict = delta_sgd.same_batch_is_better(fake_lab.create(steps=steps))
    self.assertEqual(verdict.status, status)

  def test_published_places(self):
    lab = audit.Workbench(pathlib.Path('no runs'))
    verdict = delta_sgd.published_places(lab)
    self.assertEqual(verdict.status, Status.HOLDS)
    self.assertAlmostEqual(verdict.numbers['first'], 11 / 15)
    self.assertEqual(verdict.numbers['first or second'], 1.0)

  def test_published_places_of_a_table_where_it_is_second(self):
    table = made_up_runs.build_table(
        numbers={('', 'SGD', 'digits'): 90.0, ('', 'Delta-SGD', 'digits'): 80.0}
    )
    lab = fake_lab.create(find_table=lambda name: table)
    self.assertEqual(delta_sgd.published_places(lab).status, Status.FAILS)


class DeltaSgdRunsTest(parameterized.TestCase):
  """Of Table 1, MNIST, with made-up runs of all its cells."""

  def setUp(self):
    super().setUp()
    folder = self.enter_context(tempfile.TemporaryDirectory())
    self.lab = audit.Workbench(pathlib.Path(folder))
    self.table = self.lab.find_table('delta_sgd/table_1')

  def _write(self, accuracies, num_seeds, others=0.9):
    """Writes runs with accuracies of Delta-SGD by group."""
    for cell in self.table.cells:
      if cell.column == 'MNIST':
        is_ours = cell.row == 'Delta-SGD'
        accuracy = accuracies[cell.group] if is_ours else others
        made_up_runs.write_cell(
            self.lab.runs_dir,
            cell,
            [[accuracy] * 500] * num_seeds,
            **{
                item.name: item.value
                for item in published.hyperparameters(cell)
                if item.name != 'seed'
            },
        )

  @parameterized.named_parameters(
      ('is_best', (0.92, 0.92, 0.92), Status.HOLDS, Status.HOLDS),
      ('is_near', (0.902, 0.9, 0.896), Status.HOLDS, Status.FAILS),
      ('is_behind_once', (0.92, 0.92, 0.89), Status.FAILS, Status.FAILS),
  )
  def test_lead(self, accuracies, as_good, leads):
    self._write(dict(zip(_GROUPS, accuracies)), num_seeds=2)
    verdict = delta_sgd.as_good_without_tuning(self.lab)
    self.assertEqual(verdict.status, as_good)
    self.assertEqual(list(verdict.numbers), [f'{g}, MNIST' for g in _GROUPS])
    self.assertEqual(delta_sgd.leads_without_tuning(self.lab).status, leads)

  def test_one_seed_leaves_the_lead_open(self):
    self._write(dict.fromkeys(_GROUPS, 0.92), num_seeds=1)
    for check in (
        delta_sgd.as_good_without_tuning,
        delta_sgd.leads_without_tuning,
    ):
      verdict = check(self.lab)
      self.assertEqual(verdict.status, Status.OPEN)
      self.assertIn('Delta-SGD 92.00', verdict.evidence)
      self.assertIn('one seed', verdict.evidence)

  def test_without_runs(self):
    verdict = delta_sgd.as_good_without_tuning(self.lab)
    self.assertEqual(verdict.status, Status.NOT_RUN)
    self.assertIn('python -m experiments.train', verdict.evidence)
    for check in (delta_sgd.with_fedadam, delta_sgd.with_fedprox):
      self.assertEqual(check(self.lab).status, Status.NOT_RUN)
    for check in (delta_sgd.with_moon, delta_sgd.on_text):
      self.assertEqual(check(self.lab).status, Status.NOT_TESTABLE)


if __name__ == '__main__':
  absltest.main()
