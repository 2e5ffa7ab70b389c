# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what clients count, and of rounds in which nobody does."""

import collections

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import aggregators
from tff_adaptive.aggregators import weighting

_WEIGHT = tff.TensorType(np.float32)
_HALF = np.float16
_HALF_TYPE = tff.to_type(
    collections.OrderedDict(a=(_HALF, (2,)), b=(np.float64, ()))
)


def _half(a, b):
  return collections.OrderedDict(a=np.full(2, a, _HALF), b=np.float64(b))


@pytest.mark.usefixtures('native_runtime')
class WidenedTest(tf.test.TestCase, parameterized.TestCase):

  def _next(self, factory, values, weights):
    process = weighting.WidenedFactory(factory).create(_HALF_TYPE, _WEIGHT)
    return process.next(process.initialize(), values, weights).result

  def test_weights_above_the_range_of_float16(self):
    values = [_half(3.0, 1.0), _half(1.0, 2.0)]
    result = self._next(
        tff.aggregators.MeanFactory(), values, [90000.0, 30000.0]
    )
    self.assertEqual(result['a'].dtype, np.float16)
    self.assertAllEqual(result['a'], [2.5, 2.5])
    self.assertEqual(result['b'].dtype, np.float64)
    self.assertAllClose(result['b'], 1.25)

  def test_small_values_do_not_vanish_in_the_sum(self):
    # In float16, 1 + 2^-11 is 1.
    values = [_half(1.0, 0.0), *[_half(2**-11, 0.0)] * 3]
    result = self._next(tff.aggregators.MeanFactory(), values, [1.0] * 4)
    self.assertAllEqual(result['a'], np.full(2, (1 + 3 * 2**-11) / 4, _HALF))

  def test_norms_above_the_range_of_float16(self):
    factory = tff.aggregators.clipping_factory(
        500.0, tff.aggregators.MeanFactory()
    )
    result = self._next(
        factory, [_half(300.0, 0.0), _half(0.0, 0.0)], [1.0, 1.0]
    )
    self.assertAllEqual(result['a'], [150.0, 150.0])


_VALUE = tff.to_type((np.float32, (np.float32, (2,))))


def _value(scale):
  return (np.float32(scale), scale * np.ones(2, np.float32))


@pytest.mark.usefixtures('native_runtime')
class HealthyRoundsTest(tf.test.TestCase):

  def test_is_the_inner_aggregator_in_a_healthy_round(self):
    process = aggregators.HealthyRoundsFactory(
        tff.aggregators.MeanFactory()
    ).create(_VALUE, _WEIGHT)
    output = process.next(
        process.initialize(), [_value(1.0), _value(4.0)], [1.0, 2.0]
    )
    self.assertAllClose(output.result[0], 3.0)
    self.assertAllClose(output.result[1], [3.0, 3.0])

  def test_state_stays_and_result_is_nan_without_weight(self):
    # The clipping norm of the robust aggregator follows what it sees.
    factory = tff.learning.robust_aggregator(zeroing=False)
    process = aggregators.HealthyRoundsFactory(factory).create(_VALUE, _WEIGHT)
    state = process.next(
        process.initialize(), [_value(9.0)] * 2, [1.0, 1.0]
    ).state
    moved = process.next(state, [_value(0.1)] * 2, [1.0, 1.0]).state
    self.assertNotAllClose(*(tf.nest.flatten(s)[0] for s in (state, moved)))
    output = process.next(state, [_value(0.0)] * 2, [0.0, 0.0])
    for before, after in zip(
        tf.nest.flatten(state), tf.nest.flatten(output.state)
    ):
      self.assertAllEqual(before, after)
    self.assertAllEqual(np.isnan(output.result[1]), [True, True])

  def test_an_unweighted_aggregator_is_refused(self):
    with self.assertRaisesRegex(TypeError, 'SumFactory.*as_weighted_aggreg'):
      aggregators.HealthyRoundsFactory(tff.aggregators.SumFactory())
