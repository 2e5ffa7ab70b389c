# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the aggregators of differential privacy."""

import functools
import math

from absl.testing import parameterized
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive.runtime import compiled_testing
from tff_adaptive import privacy

_SIZE = 20_000
_MEDIAN = privacy.AdaptiveClipping()


def _build(**kwargs):
  kwargs = dict(noise_multiplier=1.0, clients_per_round=10) | kwargs
  return privacy.DifferentialPrivacy(**kwargs)


@functools.cache
def _process(adaptive, noise_multiplier):
  """Returns the aggregation of a large vector; 40 clients are expected."""
  factory, _ = _build(
      noise_multiplier=noise_multiplier,
      clients_per_round=40,
      clip_norm=0.5,
      adaptive_clipping=_MEDIAN if adaptive else None,
  ).build_aggregators()
  return factory.create(tff.TensorType(np.float32, [_SIZE]))


def _aggregate(values, *, adaptive=False, noise_multiplier=1.0):
  """Returns the output of the aggregation of values, the start of vectors."""
  vectors = [np.zeros(_SIZE, np.float32) for _ in values]
  for vector, value in zip(vectors, values):
    vector[:2] = value
  process = _process(adaptive, noise_multiplier)
  with compiled_testing.installed():
    return process.next(process.initialize(), vectors)


class AggregatorsTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.parameters(0, 3, 40)
  def test_noise_has_the_same_deviation_whoever_takes_part(self, num_clients):
    noise = _aggregate([(0.0, 0.0)] * num_clients).result
    self.assertAllClose(np.std(noise), 0.5 / 40, rtol=0.05)
    self.assertLess(abs(np.mean(noise)), 5 * 0.5 / 40 / math.sqrt(_SIZE))

  def test_adaptive_clipping_pays_for_the_count_with_more_noise(self):
    noise = _aggregate([(0.0, 0.0)] * 3, adaptive=True).result
    # Andrew et al. 2021, Theorem 1: the count has noise of 40 / 20.
    multiplier = (1.0**-2 - (2 * 2.0) ** -2) ** -0.5
    self.assertGreater(multiplier, 1.03)
    self.assertAllClose(np.std(noise), multiplier * 0.5 / 40, rtol=0.02)

  def test_vectors_beyond_the_bound_are_clipped(self):
    found = _aggregate(
        [(3.0, 4.0), (0.0, 0.25), (0.0, 0.0)], noise_multiplier=0.0
    ).result
    expected = (np.array([0.3, 0.4]) + [0.0, 0.25]) / 40
    self.assertAllClose(found[:2], expected)
    self.assertAllEqual(found[2:], np.zeros(_SIZE - 2))

  @parameterized.parameters(False, True)
  def test_a_norm_that_overflows_is_clipped(self, adaptive):
    found = _aggregate(
        [(1e20, -1e20), (0.0, 0.25)], adaptive=adaptive, noise_multiplier=0.0
    ).result
    bound = 0.5 / math.sqrt(2)
    self.assertAllClose(found[:2], np.array([bound, 0.25 - bound]) / 40)

  def test_adaptive_bound_follows_the_median(self):
    # Three of the expected 40 are there, and two are not clipped:
    # the fraction is 1/2 + (2 - 1) / 2 / 40.
    output = _aggregate(
        [(3.0, 4.0), (0.0, 0.25), (0.0, 0.0)],
        adaptive=True,
        noise_multiplier=0.0,
    )
    bound = output.state.query_state.numerator_state.sum_state.l2_norm_clip
    self.assertAllClose(bound, 0.5 * math.exp(-0.2 * 0.5 / 40))


class BuildAggregatorsTest(tf.test.TestCase, parameterized.TestCase):

  def test_vectors_have_the_noise_multiplier_together(self):
    payloads = ['first_moment', 'second_moment']
    built = _build(
        noise_multiplier=0.7,
        clip_norm=2.0,
        payload_clip_norms={'second_moment': 0.25, 'first_moment': 0.5},
    )
    change, of_payloads = built.build_aggregators(payloads)
    self.assertCountEqual(of_payloads, payloads)
    multipliers = []
    for factory, bound in (
        (change, 2.0),
        (of_payloads['first_moment'], 0.5),
        (of_payloads['second_moment'], 0.25),
    ):
      process = factory.create(tff.TensorType(np.float32))
      with compiled_testing.installed():
        query = process.initialize().query_state
      self.assertAllClose(query.denominator, 10.0)
      self.assertAllClose(query.numerator_state.l2_norm_clip, bound)
      multipliers.append(query.numerator_state.stddev / bound)
    joint = sum(z**-2 for z in multipliers) ** -0.5
    self.assertAllClose(joint, 0.7)

  def test_adaptive_payload_starts_at_the_bound_of_the_change(self):
    _, of_payloads = _build(
        noise_multiplier=0.1, clip_norm=0.3, adaptive_clipping=_MEDIAN
    ).build_aggregators(['control'])
    process = of_payloads['control'].create(tff.TensorType(np.float32))
    with compiled_testing.installed():
      query = process.initialize().query_state
    self.assertAllClose(query.numerator_state.sum_state.l2_norm_clip, 0.3)

  def test_too_few_clients_for_adaptive_clipping_are_refused(self):
    built = _build(noise_multiplier=2.0, adaptive_clipping=_MEDIAN)
    with self.assertRaisesRegex(ValueError, 'above half.* 1, found 0.5'):
      built.build_aggregators()
    _build(
        noise_multiplier=2.0,
        adaptive_clipping=privacy.AdaptiveClipping(count_stddev=1.5),
    ).build_aggregators()
