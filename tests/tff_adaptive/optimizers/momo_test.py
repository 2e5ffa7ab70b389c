# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of MoMo and MoMo-Adam."""

from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tff_adaptive import optimizers

_SCALE = np.array([1.0, 3.0])
_SPEC = tf.TensorSpec([2], tf.float64)


def _loss(x):
  return 0.5 * float(np.sum(_SCALE * x**2)) + 0.2


def _run(rule, num_steps=4):
  """Returns the iterates of the loss from (2, -1), and the last state."""
  state, x = rule.initialize(_SPEC), tf.constant([2.0, -1.0], tf.float64)
  points = []
  for _ in range(num_steps):
    value = tf.constant(_loss(x.numpy()), tf.float64)
    state, x = rule.next(state, x, _SCALE * x, value=value)
    points.append(x.numpy())
  return np.array(points), state


class MomoTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.parameters(
      dict(),
      dict(beta=0.5, weight_decay=0.25),
      dict(beta=0.0, learning_rate=0.0625),
      dict(learning_rate=0.125, lower_bound=-0.5),
      dict(bias_correction=True, beta=0.75),
      dict(estimate_lower_bound=True, bias_correction=True, lower_bound=0.25),
  )
  def test_follows_the_formulas(self, **arguments):
    points, state = _run(optimizers.build_momo(**arguments))
    rate, beta = arguments.get('learning_rate', 1.0), arguments.get('beta', 0.9)
    first_bound = bound = arguments.get('lower_bound', 0.0)
    corrects = 'bias_correction' in arguments
    decay = 1.0 + rate * arguments.get('weight_decay', 0.0)
    x, d, f, c = np.array([2.0, -1.0]), np.zeros(2), 0.0, 0.0
    for k, point in enumerate(points):
      g = _SCALE * x
      b = beta if corrects or k else 0.0
      d = b * d + (1 - b) * g
      f = b * f + (1 - b) * _loss(x)
      c = b * c + (1 - b) * g @ x
      rho = 1 - beta ** (k + 1) if corrects else 1.0
      cap = decay * (f - c) + d @ x
      if 'estimate_lower_bound' in arguments and cap < decay * rho * bound:
        bound = max(cap / (2 * decay * rho), first_bound)
      tau = min(rate / rho, max(cap - decay * rho * bound, 0.0) / (d @ d))
      if 'estimate_lower_bound' in arguments:
        bound = max((f + d @ x - c - 0.5 * tau * d @ d) / rho, first_bound)
      x = (x - tau * d) / decay
      # Hyperparameters are float32.
      self.assertAllClose(point, x, atol=1e-6)
    self.assertAllClose(state['last_step_size'], tau, atol=1e-6)

  def test_loss_at_the_bound_moves_nothing(self):
    rule = optimizers.build_momo(lower_bound=0.5)
    x = tf.constant([1.0, 1.0], tf.float64)
    value = tf.constant(0.5, tf.float64)
    _, moved = rule.next(rule.initialize(_SPEC), x, x, value=value)
    self.assertAllClose(moved, x)

  @parameterized.parameters(0.0, 1.0)
  def test_loss_that_is_not_finite_is_not_hidden(self, scale):
    rule = optimizers.build_momo()
    x = tf.constant([1.0, 1.0], tf.float64)
    value = tf.constant(float('nan'), tf.float64)
    _, moved = rule.next(rule.initialize(_SPEC), x, scale * x, value=value)
    self.assertTrue(np.all(np.isnan(moved)))


class MomoAdamTest(tf.test.TestCase):

  def test_small_rate_is_adam(self):
    points, _ = _run(optimizers.build_momo_adam(0.01))
    expected, _ = _run(_WithoutLoss(optimizers.build_adam(0.01)))
    self.assertAllClose(points, expected, rtol=1e-5)

  def test_large_rate_is_the_polyak_step_in_the_preconditioner(self):
    points, state = _run(optimizers.build_momo_adam(1e6, beta_1=0.0), 1)
    g = np.array([2.0, -3.0])  # Of which the preconditioner is |g|.
    tau = _loss(np.array([2.0, -1.0])) / np.sum(np.abs(g))
    self.assertAllClose(points[0], [2.0 - tau, -1.0 + tau], atol=1e-6)
    self.assertAllClose(state['last_step_size'], tau, atol=1e-6)


class _WithoutLoss:
  """An optimizer of TFF's protocol that is given a loss."""

  def __init__(self, optimizer):
    self.initialize = optimizer.initialize
    self._optimizer = optimizer

  def next(self, state, weights, gradients, value):
    del value  # Unused.
    return self._optimizer.next(state, weights, gradients)
