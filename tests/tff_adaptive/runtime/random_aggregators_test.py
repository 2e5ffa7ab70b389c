# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of aggregators that draw random numbers on the compiled runtime.

No two runtimes draw the same, so that it is the distribution that is tested.
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

  @pytest.mark.slow
  def test_noise_of_differential_privacy(self):
    # Clients without examples change nothing: what changes is the noise.
    process = _learning.build_unweighted_fed_avg(
        testing.least_squares_model(np.float32, 20_000),
        _sgdm(0.1),
        model_aggregator=tff.learning.dp_aggregator(0.5, 10.0),
    )
    empty = [[]] * 10
    with runtime.CompiledContext(strict=True, seed=1) as context:
      start = process.initialize()
      changes = []
      for seed, round_num in ((1, 0), (1, 0), (1, 1), (2, 0)):
        context.begin_round(seed, round_num)
        end = process.next(start, empty).state
        changes.append(
            [
                new - old
                for new, old in zip(
                    testing.trainable(end), testing.trainable(start)
                )
            ]
        )
    first, again, other_round, other_seed = changes
    for left, right in zip(first, again):
      self.assertAllEqual(left, right)
    # Adaptive clipping starts at 0.1. It counts the clipped clients with noise
    # of its own, of deviation 0.05 a client, and takes that from the privacy of
    # the sum: Andrew et al., Differentially Private Learning with Adaptive
    # Clipping, Theorem 1.
    count_deviation = 0.05 * 10
    multiplier = (0.5**-2 - (2 * count_deviation) ** -2) ** -0.5
    deviation = multiplier * 0.1 / 10
    kernel, bias = first
    for sample in (kernel, bias):
      # Four times the error of a sample's deviation, and of its kurtosis.
      tolerance = 4 / np.sqrt(2 * sample.size)
      self.assertAllClose(np.std(sample) / deviation, 1.0, atol=tolerance)
      self.assertAllClose(
          np.mean(np.square(np.square(sample / deviation))),
          3.0,
          atol=4 * np.sqrt(96 / sample.size),
      )
    # Draws differ between rows, tensors, rounds and seeds.
    pairs = [
        (kernel[0], kernel[1]),
        (kernel[0], bias),
        (kernel[0], other_round[0][0]),
        (kernel[0], other_seed[0][0]),
    ]
    for left, right in pairs:
      self.assertLess(
          abs(np.corrcoef(left, right)[0, 1]), 4 / np.sqrt(bias.size)
      )

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
