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
"""Tests of the names of what is measured."""

from absl.testing import absltest

from experiments.run_results import estimates
from tff_adaptive.analysis import run_metrics


class EstimatesTest(absltest.TestCase):

  def test_estimates_are_those_of_the_library(self):
    self.assertEqual(estimates.ESTIMATES, run_metrics.ESTIMATES)

  def test_a_metric_with_a_slash_is_a_column(self):
    self.assertEqual(estimates.column_of('accuracy'), 'evaluation/accuracy')
    self.assertEqual(estimates.column_of('clients/loss'), 'clients/loss')


if __name__ == '__main__':
  absltest.main()
