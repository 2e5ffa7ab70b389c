# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the client work with rules whose state crosses rounds."""

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tests.tff_adaptive.optimizers import federated_testing
from tff_adaptive import optimizers

_UNIFORM = tff.learning.ClientWeighting.UNIFORM
_NUM_WEIGHTS = (testing.NUM_FEATURES + 1) * testing.NUM_CLASSES


class ClientWorkTest(tf.test.TestCase, parameterized.TestCase):

  @pytest.mark.slow
  def test_bytes_are_those_of_the_model_and_what_is_shared(self):
    (output,) = federated_testing.run_process(
        optimizers.build_fedcada_adam(0.1), 1, client_weighting=_UNIFORM
    )
    measured = output.metrics['client_work']['clients']
    # Down: the model, the moments, four hyperparameters, the round. Up: the
    # change and the moments, each with its weight.
    self.assertEqual(measured['bytes_down'], 2 * 4 * (3 * _NUM_WEIGHTS + 5))
    self.assertEqual(measured['bytes_up'], 2 * 4 * (3 * _NUM_WEIGHTS + 2))

  @pytest.mark.slow
  def test_mean_that_is_not_finite_leaves_what_is_shared(self):
    # The sum of the second moments of four clients overflows.
    outputs = federated_testing.run_process(
        optimizers.build_adaalter(0.0, initial_second_moment=1e38),
        clients=testing.clients([10, 7, 5, 5]),
    )
    for output in outputs:
      kernel, _ = output.state.client_work['shared']['second_moment']
      self.assertAllEqual(kernel, np.full_like(kernel, 1e38))
      measured = output.metrics['client_work']['clients']
      self.assertEqual(measured['num_rejected'], 0)
    self.assertEqual(output.state.client_work['round_num'], 0)
