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
"""Tests of the aggregation of what clients report to a server rule."""

import collections

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.aggregators import client_reports

_ClientReport = client_reports.ClientReport
_Dict = collections.OrderedDict


def _build(reports, aggregators=None, weighs_examples=True):
  return client_reports.build_reports_factory(
      reports, aggregators or {}, weighs_examples
  )


@pytest.mark.usefixtures('native_runtime')
class ClientReportsTest(tf.test.TestCase, parameterized.TestCase):

  def _aggregate(self, factory, reports, *clients):
    """The result of clients, each a pair of values and a weight."""
    process = factory.create(
        tff.to_type(_Dict((r.value, np.float32) for r in reports)),
        tff.TensorType(np.float32),
    )
    values = [
        _Dict(zip((r.value for r in reports), map(np.float32, client)))
        for client, _ in clients
    ]
    weights = [np.float32(weight) for _, weight in clients]
    return process.next(process.initialize(), values, weights).result

  def test_all_but_the_step_size_are_weighted_means(self):
    reports = list(_ClientReport)
    result = self._aggregate(
        _build(reports), reports, ([1.0] * 5, 3.0), ([2.0] * 5, 1.0)
    )
    self.assertEqual(
        result,
        _Dict(
            squared_norm=1.25,
            mean_loss=1.25,
            received_model_loss=1.25,
            last_loss=1.25,
            last_step_size=2.0,
        ),
    )

  def test_client_without_weight_counts_nowhere(self):
    # It sends zeros, and the others have less.
    reports = [_ClientReport.LAST_LOSS, _ClientReport.LAST_STEP_SIZE]
    result = self._aggregate(
        _build(reports), reports, ([-3.0, -0.5], 2.0), ([0.0, 0.0], 0.0)
    )
    self.assertEqual(result, _Dict(last_loss=-3.0, last_step_size=-0.5))

  def test_takes_an_aggregator_by_name(self):
    reports = [_ClientReport.SQUARED_NORM, _ClientReport.MEAN_LOSS]
    factory = _build(
        reports, {'mean_loss': tff.aggregators.SumFactory()}, False
    )
    result = self._aggregate(
        factory, reports, ([1.0, 1.0], 1.0), ([2.0, 2.0], 1.0)
    )
    self.assertEqual(result, _Dict(squared_norm=1.5, mean_loss=3.0))

  def test_unweighted_aggregator_under_weights_by_examples_raises(self):
    with self.assertRaisesRegex(
        ValueError, "aggregator of 'mean_loss' is unweighted"
    ):
      _build(
          [_ClientReport.MEAN_LOSS],
          {'mean_loss': tff.aggregators.SumFactory()},
      )

  @parameterized.named_parameters(
      ('mean', lambda: tff.aggregators.MeanFactory()),
      ('secure', lambda: tff.learning.secure_aggregator()),
      ('private', lambda: tff.learning.dp_aggregator(1e-3, 10.0)),
  )
  def test_any_aggregator_of_a_maximum_raises(self, build):
    with self.assertRaisesRegex(
        ValueError, "'last_step_size' the largest counts, which is no sum"
    ):
      _build([_ClientReport.LAST_STEP_SIZE], {'last_step_size': build()}, False)


if __name__ == '__main__':
  tf.test.main()
