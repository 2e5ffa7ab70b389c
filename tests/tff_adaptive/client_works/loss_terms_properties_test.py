# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what holds for the terms of FedProx and MOON with any weights."""

import hypothesis
from hypothesis import strategies as st
import numpy as np
import tensorflow as tf

from tests.tff_adaptive import property_testing
from tff_adaptive import client_works

_MUS = property_testing.positive(0.0625, 4.0)
_TEMPERATURES = property_testing.positive(0.25, 4.0)
# Weights, received model, previous model.
_MODELS = st.tuples(*[property_testing.vectors()] * 3)


def _value_and_gradient(term, x, *args, **kwargs):
  x = tf.constant(x)
  with tf.GradientTape() as tape:
    tape.watch(x)
    value = tf.cast(term((x,), *args, **kwargs), x.dtype)
  return float(value), np.array(tape.gradient(value, x))


class FedProxPropertiesTest(tf.test.TestCase):

  @hypothesis.given(
      property_testing.vectors(), property_testing.vectors(), _MUS
  )
  def test_pulls_to_the_received_model(self, x, received, mu):
    value, gradient = _value_and_gradient(
        client_works.build_fedprox(mu), x, (tf.constant(received),), None
    )
    self.assertAllClose(value, mu / 2 * np.sum(np.square(x - received)))
    self.assertAllClose(gradient, mu * (x - received))


class MoonPropertiesTest(tf.test.TestCase):

  def _evaluate(self, models, **arguments):
    """Evaluates the term where the weights are the representation."""
    term = client_works.build_moon(
        lambda weights, batch: batch * weights[0][tf.newaxis], **arguments
    )
    x, received, previous = models
    return _value_and_gradient(
        term,
        x,
        (tf.constant(received),),
        tf.ones([1, 1], tf.float64),
        previous_model=(tf.constant(previous),),
    )

  @hypothesis.given(_MODELS, _TEMPERATURES)
  def test_is_between_the_limits_of_the_cosines(self, models, temperature):
    value, gradient = self._evaluate(models, temperature=temperature)
    lowest, highest = (
        np.log1p(np.exp(gap / temperature)) for gap in (-2.0, 2.0)
    )
    self.assertBetween(value, lowest * (1 - 1e-6), highest * (1 + 1e-6))
    self.assertGreater(value, 0.0)
    self.assertTrue(np.all(np.isfinite(gradient)))

  @hypothesis.given(
      property_testing.vectors(), property_testing.vectors(), _TEMPERATURES
  )
  def test_equal_models_are_log_two_without_a_gradient(
      self, x, received, temperature
  ):
    # As in a client's first participation.
    value, gradient = self._evaluate(
        (x, received, received), temperature=temperature
    )
    self.assertAllClose(value, np.log(2.0), rtol=1e-9)
    self.assertAllEqual(gradient, np.zeros_like(x))

  @hypothesis.given(_MODELS, _MUS)
  def test_mu_scales_the_term(self, models, mu):
    one, scaled = (self._evaluate(models, mu=factor) for factor in (1.0, mu))
    self.assertAllClose(mu * one[0], scaled[0])
    self.assertAllClose(mu * one[1], scaled[1])

  @hypothesis.given(
      _MODELS, st.tuples(*[property_testing.positive(0.25, 4.0)] * 3)
  )
  def test_sizes_of_representations_change_nothing(self, models, sizes):
    one, other = (
        self._evaluate(points)[0]
        for points in (models, [s * m for s, m in zip(sizes, models)])
    )
    self.assertAllClose(one, other, rtol=1e-9)
