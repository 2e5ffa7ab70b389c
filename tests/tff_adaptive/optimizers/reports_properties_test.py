# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what holds for the server rules that see reports, in any round."""

from absl.testing import parameterized
import hypothesis
from hypothesis import strategies as st
import numpy as np
import tensorflow as tf

from tests.tff_adaptive import property_testing
from tests.tff_adaptive.optimizers import path_testing
from tests.tff_adaptive.optimizers import reports_testing
from tff_adaptive import optimizers

_RATES = property_testing.positive(0.125, 2.0)
_LOSSES = st.floats(-64.0, 64.0, width=32)


class FedExPPropertiesTest(tf.test.TestCase):

  @hypothesis.given(property_testing.weighted_changes())
  def test_step_size_is_the_formula_and_at_least_one(self, weighted_changes):
    changes, weights = weighted_changes
    mean = weights @ changes
    squares = weights @ np.sum(changes**2, axis=1)
    expected = max(1.0, squares / (2 * (mean @ mean + 1e-3)))
    x = np.ones(property_testing.SIZE)
    step = reports_testing.step(
        optimizers.build_fedexp(), x, changes, weights=weights
    )
    found = step.report['server_step_size']
    self.assertAllClose(found, expected, rtol=1e-5)
    self.assertGreaterEqual(found, 1.0)
    self.assertAllClose(step.x - x, found * mean, rtol=1e-5, atol=1e-6)


class FrankWolfePropertiesTest(tf.test.TestCase):

  def _step(self, changes, weights, loss, x=None, **arguments):
    """Returns a step where all clients have the same loss."""
    x = np.zeros(property_testing.SIZE) if x is None else x
    return reports_testing.step(
        optimizers.build_frank_wolfe(**arguments),
        x,
        changes,
        weights=weights,
        losses=np.full(len(changes), loss),
    )

  @hypothesis.given(property_testing.weighted_changes(), _LOSSES, _RATES)
  def test_step_is_between_none_and_the_learning_rate(
      self, weighted_changes, loss, rate
  ):
    changes, weights = weighted_changes
    step = self._step(changes, weights, loss, learning_rate=rate)
    mean = weights @ changes
    gamma = step.report['gamma']
    self.assertBetween(gamma, 0.0, 1.0)
    self.assertAllClose(step.x, rate * gamma * mean, rtol=1e-6, atol=1e-9)
    # gamma is below 1 exactly where the loss is below a threshold.
    threshold = rate * mean @ mean + 1e-5
    hypothesis.assume(abs(loss - threshold) > 1e-4)
    self.assertEqual(gamma < 1.0, loss < threshold)
    if 0.0 < gamma < 1.0:  # About the step of Polyak.
      self.assertAllClose(rate * gamma * threshold, rate * loss, rtol=1e-5)

  @hypothesis.given(
      property_testing.weighted_changes(), property_testing.vectors()
  )
  def test_gamma_of_one_is_the_mean(self, weighted_changes, x):
    changes, weights = weighted_changes
    step = self._step(changes, weights, 1e5, x)
    self.assertEqual(step.report['gamma'], 1.0)
    expected = weights @ (x + changes)
    self.assertAllClose(step.x, expected, rtol=1e-9, atol=1e-9)

  @hypothesis.given(
      property_testing.weighted_changes(),
      property_testing.vectors(),
      st.lists(_LOSSES, min_size=2, max_size=4),
      _RATES,
  )
  def test_gamma_does_not_fall_with_the_loss(
      self, weighted_changes, x, losses, rate
  ):
    gammas = [
        self._step(
            *weighted_changes, loss, x, learning_rate=rate, weight_decay=0.125
        ).report['gamma']
        for loss in sorted(losses)
    ]
    self.assertTrue(np.all(np.diff(gammas) >= 0.0))

  @hypothesis.given(
      property_testing.weighted_changes(), property_testing.positive(), _RATES
  )
  def test_negative_loss_does_not_move(self, weighted_changes, depth, rate):
    step = self._step(*weighted_changes, -depth, learning_rate=rate)
    self.assertEqual(step.report['gamma'], 0.0)
    self.assertAllEqual(step.x, np.zeros_like(step.x))


class LineSearchStepPropertiesTest(tf.test.TestCase):

  @hypothesis.given(
      property_testing.weighted_changes(), property_testing.vectors(), _RATES
  )
  def test_step_is_that_of_the_largest_client(self, weighted_changes, x, rate):
    changes, weights = weighted_changes
    step_sizes = rate * np.linspace(0.25, 1.0, len(changes) + 1)[1:]
    step = reports_testing.step(
        optimizers.build_line_search_step('max'),
        x,
        changes,
        weights=weights,
        step_sizes=step_sizes,
    )
    expected = x + rate * (weights @ changes)
    self.assertAllClose(step.x, expected, rtol=1e-6, atol=1e-6)
    self.assertAllClose(step.report['server_step_size'], rate)
    if rate == 1.0:
      self.assertAllClose(step.x, weights @ (x + changes), atol=1e-9)

  @hypothesis.given(
      st.lists(property_testing.hessians(), min_size=1, max_size=3),
      property_testing.vectors(),
      property_testing.STARTS,
      st.integers(1, 4),
  )
  def test_clients_end_below_the_loss_of_the_received_model(
      self, curved, center, x, num_steps
  ):
    before, after = [], []
    for place, client in enumerate(curved):
      # Each client's minimum is elsewhere.
      batches = property_testing.quadratic(client.hessian, num_steps)
      start = x + place * center
      path = path_testing.run(optimizers.build_armijo, batches, start)
      before.append(batches.value(0, start))
      after.append(batches.value(0, path.points[-1]))
    self.assertLess(np.mean(after), np.mean(before) + 1e-12)

  @hypothesis.given(
      property_testing.hessians(), property_testing.STARTS, st.integers(1, 4)
  )
  def test_loss_falls_where_all_clients_are_equal(self, curved, x, num_steps):
    batches = property_testing.quadratic(curved.hessian, num_steps)
    path = path_testing.run(optimizers.build_armijo, batches, x)
    step = reports_testing.step(
        optimizers.build_line_search_step('max'),
        x,
        [path.points[-1] - x] * 2,
        step_sizes=path.step_sizes[[-1, -1]],
    )
    # With a step of 1 the server ends where the clients do.
    for end in (step.x, path.points[-1]):
      self.assertLess(batches.value(0, end), batches.value(0, x))
    self.assertBetween(step.report['server_step_size'], 0.0, 1.0)


class NegativeReportsTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.parameters(
      (optimizers.build_fedexp, 'squared_norm', 1.0),
      (optimizers.build_fedexprox_grads, 'squared_norm', 1.0),
      (optimizers.build_fednova, 'normalizer', 0.0),
  )
  def test_noise_does_not_make_the_server_ascend(self, build, name, step):
    rule = build()
    state = rule.initialize(tf.TensorSpec([2], tf.float32))
    reports = {name: tf.constant(-3.0)}
    _, x = rule.next(state, tf.zeros([2]), tf.ones([2]), reports=reports)
    self.assertAllClose(x, [-step] * 2)
