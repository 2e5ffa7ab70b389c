# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of D-Adaptation and Prodigy."""

import math

from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tests.tff_adaptive.optimizers import path_testing
from tff_adaptive import optimizers

_GRADIENTS = np.array([[1.0, -0.5], [0.8, 0.3], [0.9, -0.2], [0.4, 0.6]])


def _run(rule, gradients=_GRADIENTS):
  """Returns the iterates from (1, 2), the estimates, and the last state."""
  points, states = path_testing.follow(rule, gradients, [1.0, 2.0])
  distances = [float(rule.report(state)['distance']) for state in states]
  return points, distances, states[-1]


def _run_sgd(rate, d, momentum, growth, decay):
  x = x0 = np.array([1.0, 2.0])
  s, n, first = np.zeros(2), 0.0, None
  for g in _GRADIENTS:
    g = g + decay * x
    first = first or np.linalg.norm(g)
    step = d * rate / first
    n += step * g @ s
    s = s + step * g
    d = max(d, min(2 * n / np.linalg.norm(s), d * growth))
    x = momentum * x + (1 - momentum) * (x0 - s)
    yield x, d


def _run_adam(rate, d, beta_1, beta_2, epsilon, growth, decay, corrects):
  x = np.array([1.0, 2.0])
  q, n = math.sqrt(beta_2), 0.0
  s, m, v = (np.zeros(2) for _ in range(3))
  for k, g in enumerate(_GRADIENTS):
    step = d * rate
    if corrects:
      step *= math.sqrt(1 - beta_2 ** (k + 1)) / (1 - beta_1 ** (k + 1))
    n = q * n + (1 - q) * step * g @ (s / (np.sqrt(v) + epsilon))
    m = beta_1 * m + (1 - beta_1) * step * g
    v = beta_2 * v + (1 - beta_2) * g**2
    s = q * s + (1 - q) * step * g
    d = max(d, min(n / ((1 - q) * np.sum(np.abs(s))), d * growth))
    x = x - decay * step * x - m / (np.sqrt(v) + epsilon)
    yield x, d


def _run_prodigy(first, factor, beta_1, beta_2, beta_3, growth, decay, safe):
  x = x0 = np.array([1.0, 2.0])
  d = largest = first
  n = 0.0
  s, m, v = (np.zeros(2) for _ in range(3))
  for g in _GRADIENTS:
    step = d * 0.5
    n = beta_3 * n + d / first * step * g @ (x0 - x)
    m = beta_1 * m + (1 - beta_1) * d * g
    v = beta_2 * v + (1 - beta_2) * d**2 * g**2
    s = beta_3 * s + d / first * (d if safe else step) * g
    estimate = factor * n / np.sum(np.abs(s))
    grown = max(d, estimate) if d == first else d
    largest = max(largest, estimate)
    d = min(largest, grown * growth)
    x = x - decay * step * x - step * m / (np.sqrt(v) + d * 1e-8)
    yield x, d


class DAdaptationTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.parameters(
      (1.0, 0.01, 0.0, math.inf, 0.0), (0.5, 0.25, 0.5, 1.25, 0.125)
  )
  def test_sgd_follows_the_formulas(self, *numbers):
    points, distances, _ = _run(optimizers.build_d_adaptation_sgd(*numbers))
    expected, estimates = zip(*_run_sgd(*numbers))
    self.assertAllClose(points, expected, atol=1e-6)
    self.assertAllClose(distances, estimates, atol=1e-6)
    self.assertGreater(distances[-1], numbers[1])

  @parameterized.parameters(
      (1.0, 0.01, 0.9, 0.999, 1e-8, math.inf, 0.0, False),
      (0.5, 0.001, 0.5, 0.75, 0.125, 1.25, 0.25, True),
  )
  def test_adam_follows_the_formulas(self, *numbers):
    points, distances, _ = _run(
        optimizers.build_d_adaptation_adam(
            *numbers[:-1], bias_correction=numbers[-1]
        )
    )
    expected, estimates = zip(*_run_adam(*numbers))
    self.assertAllClose(points, expected, atol=1e-6)
    self.assertAllClose(distances, estimates, atol=1e-6)

  def test_momentum_does_not_move_weights_without_gradient(self):
    rule = optimizers.build_d_adaptation_sgd(initial_distance=0.1, momentum=0.6)
    points, _, _ = _run(rule, _GRADIENTS * [1.0, 0.0])
    self.assertAllEqual(points[:, 1], [2.0] * 4)


class ProdigyTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.parameters(
      (0.01, 1.0, 0.9, 0.999, math.sqrt(0.999), math.inf, 0.0, False),
      (0.25, 2.0, 0.5, 0.75, 0.5, 1.25, 0.125, True),
  )
  def test_follows_the_formulas(
      self, first, factor, beta_1, beta_2, beta_3, growth, decay, safe
  ):
    rule = optimizers.build_prodigy(
        0.5,
        first,
        factor,
        beta_1,
        beta_2,
        growth_rate=growth,
        weight_decay=decay,
        beta_3=None if growth == math.inf else beta_3,
        safeguard_warmup=safe,
    )
    points, distances, _ = _run(rule)
    expected, estimates = zip(
        *_run_prodigy(
            first, factor, beta_1, beta_2, beta_3, growth, decay, safe
        )
    )
    self.assertAllClose(points, expected, atol=2e-6)
    self.assertAllClose(distances, estimates, atol=1e-6)
    self.assertAllGreaterEqual(np.diff([first, *distances]), -1e-7)


class ScaleTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.named_parameters(
      ('sgd', optimizers.build_d_adaptation_sgd, {}),
      ('prodigy', optimizers.build_prodigy, dict(epsilon=0.0)),
  )
  def test_scale_of_the_loss_does_not_matter(self, build, options):
    rule = build(initial_distance=0.1, **options)
    self.assertAllClose(_run(rule)[0], _run(rule, 64.0 * _GRADIENTS)[0])

  @parameterized.named_parameters(
      ('sgd', optimizers.build_d_adaptation_sgd),
      ('adam', optimizers.build_d_adaptation_adam),
      ('prodigy', optimizers.build_prodigy),
  )
  def test_zero_gradients_before_the_first_one_count_for_nothing(self, build):
    rule = build(initial_distance=0.1)
    late = np.concatenate([np.zeros([2, 2]), _GRADIENTS])
    points, distances, _ = _run(rule, late)
    self.assertAllEqual(points[1], [1.0, 2.0])
    self.assertAllClose(points[2:], _run(rule)[0])
    self.assertAllClose(distances[2:], _run(rule)[1])

  def test_bias_correction_does_not_count_them(self):
    rule = optimizers.build_prodigy(initial_distance=0.1, bias_correction=True)
    late = np.concatenate([np.zeros([2, 2]), _GRADIENTS])
    self.assertAllClose(_run(rule, late)[0][2:], _run(rule)[0])
