# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of aggregators that draw random numbers on the compiled runtime.

No two runtimes draw the same, so that it is the distribution that is tested;
`private_rounds_test` has that of noise.
"""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tests.tff_adaptive.runtime import equality_testing
from tff_adaptive import runtime

_sgdm = tff.learning.optimizers.build_sgdm
_learning = tff.learning.algorithms


class RandomAggregatorsTest(tf.test.TestCase):

  def test_samples_hold_any_client(self):
    sample = tff.aggregators.UnweightedReservoirSamplingFactory(sample_size=5)
    process = sample.create(tff.to_type(np.int32))
    num_clients, num_rounds = 50, 60
    counts = np.zeros(num_clients)
    with runtime.CompiledContext(strict=True, seed=1):
      state = process.initialize()
      for _ in range(num_rounds):
        result = process.next(state, list(range(num_clients))).result
        self.assertLen(set(result), 5)
        counts[result] += 1
    # Four times the deviation of how often a client is in the sample.
    expected = 5 * num_rounds / num_clients
    self.assertAllInRange(
        counts, 0, expected + 4 * np.sqrt(expected * (1 - 5 / num_clients))
    )
    self.assertGreater(np.sum(counts > 0), 0.95 * num_clients)

  @pytest.mark.slow
  def test_compression_of_a_large_model(self):
    # From 20,000 weights on updates are quantized, with random rounding.
    num_outputs = 10_000
    model = testing.least_squares_model(np.float32, num_outputs)
    plain, compressed = (
        _learning.build_weighted_fed_avg(
            model, _sgdm(1000.0), model_aggregator=aggregator
        )
        for aggregator in (None, tff.learning.compression_aggregator())
    )
    dataset = testing.least_squares_dataset(5, np.float32, num_outputs)
    changes = []
    for process in (plain, compressed):
      with equality_testing.compiled():
        start = process.initialize()
        end = process.next(start, [dataset]).state
        changes.append(testing.trainable(end)[0] - testing.trainable(start)[0])
    expected, found = changes
    # Clipping scales the change as a whole.
    expected *= np.vdot(expected, found) / np.vdot(expected, expected)
    step = (np.max(found) - np.min(found)) / 255
    error = found - expected
    self.assertLess(np.max(np.abs(error)), 1.1 * step)
    self.assertGreater(np.std(error), 0.1 * step)
    self.assertLess(abs(np.mean(error)), 4 * step / np.sqrt(error.size))
