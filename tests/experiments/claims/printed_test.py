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
"""Tests for `printed`."""

from absl.testing import absltest
from absl.testing import parameterized

from experiments.claims import printed
from experiments.claims.claim import Status
from tests.experiments.claims import fake_lab
from tests.experiments.report import made_up_runs


def _lead(numbers, rows=('Delta-SGD',)):
  table = made_up_runs.build_table(
      columns=('digits', 'mnist'),
      numbers={('', *key): number for key, number in numbers.items()},
  )
  lab = fake_lab.create(find_table=lambda name: table)
  return printed.lead(lab, 'paper/table_1', rows)


class LeadTest(parameterized.TestCase):

  @parameterized.parameters((80.0, Status.HOLDS), (91.0, Status.FAILS))
  def test_first_in_every_column_that_is_printed(self, other, status):
    verdict = _lead({('SGD', 'digits'): other, ('Delta-SGD', 'digits'): 90.0})
    self.assertEqual(verdict.status, status)
    self.assertEqual(verdict.numbers, {'digits': 1 + (other > 90.0)})

  def test_no_printed_number_says_nothing(self):
    verdict = _lead({('SGD', 'digits'): 90.0})
    self.assertEqual(verdict.status, Status.NOT_RUN)
    self.assertIn('prints no number of Delta-SGD', verdict.evidence)

  def test_missing_table(self):
    lab = fake_lab.create(find_table=lambda name: None)
    verdict = printed.lead(lab, 'paper/table_9', ('SGD',))
    self.assertEqual(verdict.status, Status.NOT_RUN)


if __name__ == '__main__':
  absltest.main()
