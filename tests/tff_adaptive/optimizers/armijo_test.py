# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of SGD with Armijo line search."""

import math

from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tests.tff_adaptive.optimizers import step_size_testing
from tff_adaptive.optimizers.client import armijo


def _plain_loop(
    curvatures, x, lowered, reset, max_step_size, c, beta, gamma, n
):
  """Returns step sizes and backtracks on 1/2 x'Ax - lowered, in NumPy."""
  step_sizes, all_backtracks = [], []
  for curvature in curvatures:
    f = lambda x, a=curvature: 0.5 * np.sum(a * x**2) - lowered
    gradient = curvature * x
    step_size = max_step_size
    if step_sizes and reset == 0:
      step_size = step_sizes[-1]
    if step_sizes and reset == 1:
      step_size = min(max_step_size, step_sizes[-1] * gamma ** (1 / n))
    backtracks = 0
    while f(x - step_size * gradient) > f(x) - c * step_size * np.sum(
        gradient**2
    ):
      step_size *= beta
      backtracks += 1
    x = x - step_size * gradient
    step_sizes.append(step_size)
    all_backtracks.append(backtracks)
  return step_sizes, all_backtracks


class _Counted:
  """A loss that counts its evaluations and may change those of the trials."""

  def __init__(self, value_and_grad_fn, change=lambda value: value):
    self.num_trials = -1  # The first evaluation is that of the point.
    self._value_and_grad_fn = value_and_grad_fn
    self._change = change

  def __call__(self, x):
    self.num_trials += 1
    value, gradients = self._value_and_grad_fn(x)
    return self._change(value) if self.num_trials else value, gradients


def _random_curvatures(seed, num_batches, lowest=0.1, highest=20.0):
  generator = np.random.default_rng(seed)
  return [
      np.exp(generator.uniform(np.log(lowest), np.log(highest), 3))
      for _ in range(num_batches)
  ]


class ArmijoTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.named_parameters(
      # Smoothness, largest step, c, beta; step, backtracks, lower bound.
      ('at_once', 1.0, 1.0, 0.1, 0.9, 1.0, 0, 1.0),
      ('shortened', 4.0, 1.0, 0.1, 0.9, 0.43046721, 8, 0.405),
      ('half', 4.0, 1.0, 0.5, 0.5, 0.25, 2, 0.125),
      ('long_at_once', 0.5, 3.0, 0.1, 0.9, 3.0, 0, 3.0),
      ('steep', 1000.0, 1.0, 0.1, 0.9, 0.0017970102999, 60, 0.00162),
  )
  def test_one_step_on_a_quadratic(
      self, smoothness, start, c, beta, step_size, backtracks, lower_bound
  ):
    loss = _Counted(step_size_testing.quadratic(smoothness))
    result = step_size_testing.run(
        armijo.build_armijo(start, c, beta), [loss], np.array(1.0)
    )
    self.assertAllClose(result.step_sizes, [step_size], rtol=1e-6)
    self.assertEqual(result.backtracks, [backtracks])
    self.assertEqual(loss.num_trials, backtracks + 1)
    self.assertGreaterEqual(result.step_sizes[0], lower_bound)

  @parameterized.product(reset=[0, 1, 2], seed=[0, 1, 2])
  def test_equals_a_plain_loop(self, reset, seed):
    # Losses are negative, too: only their differences are used.
    lowered = 64.0 * seed
    curvatures = _random_curvatures(seed, num_batches=8)
    start = np.random.default_rng(seed).normal(size=3)
    arguments = dict(max_step_size=2.0, c=0.3, beta=0.8, gamma=3.0, reset=reset)
    result = step_size_testing.run(
        armijo.build_armijo(**arguments, batches_per_epoch=4),
        [step_size_testing.quadratic(a, lowered) for a in curvatures],
        start,
    )
    step_sizes, backtracks = _plain_loop(
        curvatures, start, lowered, n=4, **arguments
    )
    self.assertAllClose(result.step_sizes, step_sizes, rtol=1e-5)
    self.assertEqual(result.backtracks, backtracks)
    self.assertGreater(max(backtracks), 0)

  def test_trial_that_is_nan_is_not_accepted(self):
    def value_and_grad_fn(x):  # Not a number left of zero.
      return x - tf.math.log(x), 1.0 - 1.0 / x

    for start in (8.0, 5.0):
      x = tf.constant(3.0, tf.float64)
      self.assertAllEqual(value_and_grad_fn(x - start * 2.0 / 3.0)[0], math.nan)
      result = step_size_testing.run(
          armijo.build_armijo(start, beta=0.8), [value_and_grad_fn], x
      )
      value, trial = (value_and_grad_fn(p)[0] for p in result.points)
      self.assertLess(trial, value)
      # The first step size that does not leave the domain is accepted.
      self.assertGreater(result.step_sizes[0], 0.8 * 4.5)
      self.assertLess(result.step_sizes[0], 4.5)

  @parameterized.named_parameters(
      ('too_large', lambda value: value + 1.0),
      ('nan', lambda value: value * math.nan),
      ('infinite', lambda value: value + math.inf),
  )
  def test_falls_back_when_all_trials_fail(self, change):
    loss = step_size_testing.quadratic(1.0)
    failing = _Counted(loss, change)
    points, step_sizes, backtracks = step_size_testing.run(
        armijo.build_armijo(), [failing, loss], np.ones(2)
    )
    self.assertEqual(failing.num_trials, 100)
    self.assertEqual(backtracks, [100, 0])
    # The fallback is also what the next step starts from.
    self.assertAllClose(
        step_sizes, [1e-6, 1e-6 * 2.0 ** (1 / 32)], rtol=1e-7, atol=0.0
    )
    self.assertAllClose(points[1], [1.0 - 1e-6] * 2, rtol=1e-12)

  def test_number_of_trials_and_fallback_are_arguments(self):
    failing = _Counted(step_size_testing.quadratic(1.0), lambda value: 9.0)
    result = step_size_testing.run(
        armijo.build_armijo(max_trials=3, fallback_step_size=0.25),
        [failing],
        np.ones(2),
    )
    self.assertEqual(failing.num_trials, 3)
    self.assertEqual((result.step_sizes, result.backtracks), ([0.25], [3]))

  @parameterized.parameters((0, 0.5), (1, 1.0), (2, 2.0))
  def test_no_search_without_a_gradient(self, reset, start):
    # On a batch of smoothness 2 the step is halved twice, from 2 to 1/2.
    steep = step_size_testing.quadratic(2.0)
    flat = _Counted(step_size_testing.quadratic(1e-9), lambda value: math.nan)
    optimizer = armijo.build_armijo(
        2.0, c=0.5, beta=0.5, reset=reset, batches_per_epoch=1
    )
    result = step_size_testing.run(optimizer, [steep, flat], np.array([1.0]))
    self.assertAllEqual(result.points[1], [0.0])
    self.assertEqual(result.step_sizes, [0.5, start])
    self.assertEqual(result.backtracks, [2, 0])
    self.assertEqual(flat.num_trials, 0)

  @parameterized.parameters((0.99e-8, 0), (1.01e-8, 1))
  def test_how_small_a_gradient_is_not_searched_along(self, norm, num_trials):
    loss = _Counted(lambda x: (tf.reduce_sum(norm * x), norm + 0.0 * x))
    step_size_testing.run(armijo.build_armijo(), [loss], np.ones(1))
    self.assertEqual(loss.num_trials, num_trials)

  @parameterized.named_parameters(
      ('nan_loss', math.nan, 1.0),
      ('nan_loss_without_gradient', math.nan, 0.0),
      ('infinite_loss', math.inf, 1.0),
      ('nan_gradient', 1.0, math.nan),
      ('infinite_gradient', 1.0, math.inf),
  )
  def test_point_that_is_not_finite_gives_nan(self, value, gradient):
    loss = _Counted(
        lambda x: (tf.constant(value, x.dtype), tf.zeros_like(x) + gradient)
    )
    result = step_size_testing.run(armijo.build_armijo(), [loss], np.ones(2))
    self.assertAllEqual(result.step_sizes, [math.nan])
    self.assertEqual(loss.num_trials, 0)

  def test_gradients_of_trials_are_not_computed(self):
    num_gradients = []

    def count(x):
      num_gradients.append(1)
      return x

    def value_and_grad_fn(x):
      gradient = tf.numpy_function(count, [x], tf.float32, stateful=False)
      return 0.5 * tf.reduce_sum(x**2), tf.ensure_shape(gradient, x.shape)

    optimizer = armijo.build_armijo(max_step_size=100.0)

    @tf.function
    def step(state, x):
      value, gradient = value_and_grad_fn(x)
      state, x = optimizer.next(
          state, x, gradient, value=value, value_and_grad_fn=value_and_grad_fn
      )
      return optimizer.report(state), x

    x = tf.constant([1.0, 2.0])
    report, _ = step(step_size_testing.initialize(optimizer, x), x)
    self.assertGreater(report['backtracks'], 10.0)
    self.assertEqual(report['gradient_evaluations'], 1)
    self.assertLen(num_gradients, 1)

  @parameterized.parameters('value', 'value_and_grad_fn')
  def test_missing_evaluation_says_what_to_do(self, missing):
    optimizer = armijo.build_armijo()
    self.assertTrue(optimizer.evaluates_again)
    loss = step_size_testing.quadratic(1.0)
    extra = dict(value=tf.constant(0.5), value_and_grad_fn=loss)
    del extra[missing]
    state = optimizer.initialize(tf.TensorSpec([], tf.float32))
    with self.assertRaisesRegex(ValueError, 'needs `value.*build_fed_opt'):
      optimizer.next(state, tf.constant(1.0), tf.constant(1.0), **extra)
