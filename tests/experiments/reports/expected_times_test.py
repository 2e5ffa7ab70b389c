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
"""Tests of how long cells that were not run are expected to take."""

import pathlib
import tempfile

from absl.testing import absltest
from absl.testing import parameterized

from experiments.reports import expected_times
from tests.experiments.reports import made_up_runs


class ExpectedTimesTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    folder = self.enter_context(tempfile.TemporaryDirectory())
    self.runs_dir = pathlib.Path(folder)
    (self.cell,) = made_up_runs.build_table(rows=['SGD']).cells

  def _write(self, name='run', seconds=(0.5,), **kwargs):
    made_up_runs.write_run(
        self.runs_dir / 'any' / name, [0.5] * 3, seconds=seconds, **kwargs
    )

  def _describe(self, seeds=1):
    times = expected_times.ExpectedTimes(self.runs_dir)
    return times.describe(self.cell, seeds)

  def test_without_runs_it_is_unknown(self):
    self.assertEqual(self._describe(), 'unknown')

  def test_rounds_and_seeds_are_multiplied(self):
    self._write()
    # Four rounds of half a second, with three seeds.
    self.assertEqual(self._describe(seeds=3), '6 s')

  def test_the_first_round_compiles_and_does_not_count(self):
    self._write(seconds=(90.0, 2.0))
    self.assertEqual(self._describe(), '8 s')

  @parameterized.named_parameters(
      ('model', {'digits_model': 'logistic'}),
      ('task', {'task': 'mnist'}),
      ('made_up_data', {'use_synthetic_data': True}),
      ('fewer_clients', {'num_clients': 5}),
      ('cohort', {'clients_per_round': 2}),
      ('batches', {'client_batch_size': 50}),
      ('epochs', {'client_epochs': 2}),
      ('examples', {'max_examples': 8}),
  )
  def test_runs_of_other_work_do_not_count(self, hparams):
    self._write('other', seconds=(9.0,), **hparams)
    self.assertEqual(self._describe(), 'unknown')
    self._write()
    self.assertEqual(self._describe(), '2 s')

  def test_the_same_method_counts_before_others(self):
    self._write('other', seconds=(9.0,), client_optimizer='adam')
    self._write('another', seconds=(7.0,), algorithm='scaffold')
    # Of others the median.
    self.assertEqual(self._describe(), '32 s')
    self._write()
    self.assertEqual(self._describe(), '2 s')

  def test_damaged_runs_are_left_out(self):
    self._write()
    self._write('bad')
    self._write('worse')
    (self.runs_dir / 'any' / 'bad' / 'hparams.json').write_text('{')
    (self.runs_dir / 'any' / 'worse' / 'metrics.csv').write_text('x\n1,2\n')
    self.assertEqual(self._describe(), '2 s')


if __name__ == '__main__':
  absltest.main()
