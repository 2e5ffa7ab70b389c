# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests client rules with all server rules: the other pairs."""

from absl.testing import parameterized
import pytest

from tests.tff_adaptive.algorithms import matrix_testing


class OddMatrixTest(matrix_testing.TestCase):

  @parameterized.named_parameters(*matrix_testing.PAIRS[1::2])
  @pytest.mark.sample(1)
  def test_pair_builds_and_runs_or_is_refused(self, *pair):
    self.assert_builds_and_runs(*pair)
