# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that secure sums give the same on compiled and native runtime."""

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tests.tff_adaptive.runtime import equality_testing


@pytest.mark.filterwarnings('ignore:Secure sums are computed in the clear')
class SecureSumsTest(equality_testing.TestCase):

  @pytest.fixture(autouse=True)
  def _use_secure_runtime(self, secure_test_runtime):
    with tff.framework.get_context_stack().install(secure_test_runtime):
      yield

  @parameterized.parameters('functional', 'variable')
  @pytest.mark.slow
  def test_secure_aggregator(self, kind):
    process = tff.learning.algorithms.build_weighted_fed_avg(
        testing.either_model(kind),
        tff.learning.optimizers.build_sgdm(0.1),
        model_aggregator=tff.learning.secure_aggregator(),
    )
    cohorts = [equality_testing.cohort(0), equality_testing.cohort(1)]
    self.assert_process_equals(process, map(list, cohorts), cohorts)

  def test_secure_sums(self):
    @tff.federated_computation(testing.at_clients((np.int32, (np.int32, [2]))))
    def add_up(values):
      return tff.federated_secure_sum_bitwidth(values, 8)

    found = self.assert_equals(add_up, [(1, [2, 3]), (4, [5, 6])])
    self.assertAllEqual(found[1], [7, 9])
