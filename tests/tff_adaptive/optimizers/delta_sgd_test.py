# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of Delta-SGD.

The literals follow Algorithm 1:

```
def delta_sgd(g, x, batches, eta=.2, theta=1., gamma=2., delta=.1):
  for k, b in enumerate(batches):
    if k > 0:
      grow = math.sqrt(1 + delta * theta) * eta
      dx, dg = norm(x - x_old), norm(g(x, b) - g(x_old, b))
      new = min(gamma * dx / (2 * dg), grow) if dx > 0 and dg > 0 else grow
      eta, theta = new, new / eta
    x_old, x = x, x - eta * g(x, b)
```

After a step that did not move the weights, `grow` is eta_{k-1} by default.
"""

import math

from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tests.tff_adaptive.optimizers import federated_testing
from tff_adaptive.optimizers.client import delta_sgd

# The step size and theta where 0.2 and 1 grow.
_GROWN = (0.20976176963, 1.0488088482)
_ALWAYS = dict(growth='always')


def _reports(optimizer, gradient_fn, x, num_steps):
  """Steps on a full batch; returns iterates and what is reported of steps."""
  x = tf.nest.map_structure(tf.convert_to_tensor, x)
  state = optimizer.initialize(
      tf.nest.map_structure(lambda t: tf.TensorSpec(t.shape, t.dtype), x)
  )
  points, reports = [x], []
  for _ in range(num_steps):
    state, x = optimizer.next(
        state,
        x,
        gradient_fn(x),
        value_and_grad_fn=lambda at: (tf.constant(0.0), gradient_fn(at)),
    )
    points.append(x)
    reports.append(
        {name: float(value) for name, value in optimizer.report(state).items()}
    )
  return points, reports


def _run(optimizer, gradient_fn, x, num_steps):
  """Steps on a full batch; returns iterates, step sizes and thetas."""
  points, reports = _reports(optimizer, gradient_fn, x, num_steps)
  steps, thetas = ([r[key] for r in reports] for key in ('step_size', 'theta'))
  return points, steps, thetas


def _smoothness_limit(gamma, dx, dg):
  return gamma * np.linalg.norm(dx) / (2 * np.linalg.norm(dg))


def _plain_steps(batches, x, previous_gradient, eta=0.2, gamma=2.0, delta=0.1):
  """One round in numpy: yields the points after the steps and their sizes."""
  eta, gamma, delta = federated_testing.single(eta, gamma, delta)
  theta = 1.0
  x_old, g_old = x, np.zeros_like(x)
  for k, batch in enumerate(batches):
    g = federated_testing.gradient(batch, x)
    if k > 0:
      if previous_gradient == 'recompute':
        change = g - federated_testing.gradient(batch, x_old)
      elif previous_gradient == 'reuse':
        change = g - g_old
      else:
        change = federated_testing.gradient(batches[k - 1], x) - g_old
      smooth = _smoothness_limit(gamma, x - x_old, change)
      new = min(smooth, np.sqrt(1 + delta * theta) * eta)
      eta, theta = new, new / eta
    x_old, g_old, x = x, g, x - eta * g
    yield x, eta


def _plain_carried_rounds(cohorts, previous_gradient, eta0, gamma, delta):
  """Clients that keep their history, in numpy; yields the model and steps."""
  eta0, gamma, delta = federated_testing.single(eta0, gamma, delta)
  x, own = federated_testing.START, {}
  for cohort in cohorts:
    ends, steps = [], []
    for i in cohort:
      y = x
      for batch in federated_testing.CLIENTS[i]:
        g = federated_testing.gradient(batch, y)
        if i not in own:
          eta, theta = eta0, 1.0
        else:
          y_old, g_old, eta_old, theta_old = own[i]
          if previous_gradient == 'recompute':
            g_old = federated_testing.gradient(batch, y_old)
          smooth = _smoothness_limit(gamma, y - y_old, g - g_old)
          eta = min(smooth, np.sqrt(1 + delta * theta_old) * eta_old)
          theta = eta / eta_old
        own[i] = (y, g, eta, theta)
        y = y - eta * g
        steps.append(eta)
      ends.append(y)
    x = np.mean(ends, axis=0)
    yield x, steps


class CarriedStateTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.product(
      previous_gradient=['recompute', 'reuse'],
      # The defaults, and equation (4).
      hparams=[(0.2, 2.0, 0.1), (0.05, 1.0, 1.0)],
  )
  def test_rounds_equal_a_plain_loop(self, previous_gradient, hparams):
    eta, gamma, delta = hparams
    rounds = federated_testing.Rounds(
        delta_sgd.build_delta_sgd(
            eta,
            gamma=gamma,
            delta=delta,
            previous_gradient=previous_gradient,
            carry_state=True,
        )
    )
    self.assertEmpty(rounds.shared)
    cohorts = [(0, 1), (0,), (1,), (0, 1), (0, 1)]
    expected = _plain_carried_rounds(cohorts, previous_gradient, *hparams)
    for cohort, (x, steps) in zip(cohorts, expected):
      kept = rounds.next({i: federated_testing.COHORT[i] for i in cohort})
      self.assertAllClose(rounds.x, x, **federated_testing.EXACT)
      self.assertAllClose(
          kept[cohort[-1]]['last_step_size'],
          steps[-1],
          **federated_testing.EXACT,
      )


class DeltaSgdTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.named_parameters(
      # dx, dg, eta, theta, and what differs; expected eta and theta.
      ('grows', (0.3, 0.2, 0.2, 1.0), {}, _GROWN),
      ('follows_smoothness', (0.3, 0.2, 2.0, 1.0), {}, (1.5, 0.75)),
      ('grows_on_a_line', (0.3, 0.0, 0.2, 1.0), {}, _GROWN),
      ('grows_always', (0.0, 0.0, 0.2, 1.0), _ALWAYS, _GROWN),
      ('grows_where_gradients_differ', (0.0, 0.4, 0.2, 1.0), _ALWAYS, _GROWN),
      ('stays', (0.0, 0.0, 0.2, 1.0), {}, (0.2, 1.0)),
      ('stays_where_gradients_differ', (0.0, 0.4, 0.2, 1.0), {}, (0.2, 1.0)),
      ('shrinks_at_once', (0.001, 5.0, 0.2, 0.5), {}, (0.0002, 0.001)),
      (
          'other_gamma_and_delta',
          (0.5, 0.1, 0.1, 3.0),
          dict(gamma=0.5, delta=1.0),
          (0.2, 2.0),
      ),
      (
          'grows_to_the_limit',
          (0.3, 0.0, 0.2, 1.0),
          dict(max_step_size=0.203125),
          (0.203125, 1.015625),
      ),
      (
          'is_within_the_limit',
          (0.3, 0.2, 0.2, 1.0),
          dict(max_step_size=0.125),
          (0.125, 0.625),
      ),
  )
  def test_step_size_rule(self, numbers, options, expected):
    options = {
        **dict(gamma=2.0, delta=0.1, growth='if_moved', max_step_size=math.inf),
        **options,
    }
    result = delta_sgd._next_step_size(
        *(tf.constant(v, tf.float64) for v in numbers), **options
    )
    self.assertAllClose(result[:2], expected, rtol=1e-9)
    self.assertEqual(
        min(result.smoothness_limit, result.growth_limit), result.step_size
    )
    if not numbers[0] * numbers[1]:
      self.assertEqual(result.smoothness_limit, result.growth_limit)
    self.assertLessEqual(float(result.growth_limit), options['max_step_size'])

  @parameterized.product(
      bad=[float('nan'), float('inf')],
      which=['weights', 'gradients'],
      growth=['if_moved', 'always'],
  )
  def test_change_that_is_not_finite_gives_nan(self, bad, which, growth):
    changes = (bad, 1.0) if which == 'weights' else (1.0, bad)
    result = delta_sgd._next_step_size(
        *map(tf.constant, (*changes, 0.2, 1.0)),
        2.0,
        0.1,
        growth=growth,
        max_step_size=math.inf,
    )
    self.assertTrue(math.isnan(result.step_size))
    self.assertTrue(math.isnan(result.smoothness_limit))
    self.assertAllClose(result.growth_limit, 0.20976176963)

  @parameterized.parameters('recompute', 'reuse', 'previous_batch')
  def test_batches_of_both_gradients(self, previous_gradient):
    batches = [
        batch for _ in range(3) for batch in federated_testing.CLIENTS[1]
    ]
    optimizer = delta_sgd.build_delta_sgd(previous_gradient=previous_gradient)
    x = tf.constant(federated_testing.START)
    state = optimizer.initialize(tf.TensorSpec(x.shape, x.dtype))
    expected = _plain_steps(batches, federated_testing.START, previous_gradient)
    for batch, (point, step_size) in zip(batches, expected):
      evaluate = federated_testing.to_batch(batch)
      _, g = evaluate(x)
      state, x = optimizer.next(state, x, g, value_and_grad_fn=evaluate)
      self.assertAllClose(x, point, **federated_testing.EXACT)
      self.assertAllClose(
          optimizer.report(state)['step_size'],
          step_size,
          **federated_testing.EXACT,
      )

  def test_the_first_step_is_within_the_limit(self):
    for amplify_first in (False, True):
      _, reports = _reports(
          delta_sgd.build_delta_sgd(
              max_step_size=0.05, amplify_first=amplify_first
          ),
          lambda x: 1e-3 * x,
          np.ones(2),
          3,
      )
      for report in reports:
        self.assertAllClose(report['step_size'], 0.05)
        self.assertAllClose(report['relative_step_size'], 0.25)

  @parameterized.product(
      previous_gradient=['recompute', 'reuse', 'previous_batch'],
      amplify_first=[False, True],
  )
  def test_reports_both_limits(self, previous_gradient, amplify_first):
    # f(x) = 1/2 |s x|^2 with the smoothness 20 in every direction.
    _, reports = _reports(
        delta_sgd.build_delta_sgd(
            gamma=1.0,
            previous_gradient=previous_gradient,
            amplify_first=amplify_first,
        ),
        lambda x: 20.0 * x,
        np.array([1.0, -2.0]),
        4,
    )
    first, *later = reports
    for key in ('smoothness_limit', 'growth_limit'):
      self.assertEqual(first[key], first['step_size'])
    for before, report in zip(reports, later):
      self.assertAllClose(report['smoothness_limit'], 1 / 40, rtol=1e-9)
      self.assertAllClose(
          report['growth_limit'],
          math.sqrt(1 + 0.1 * before['theta']) * before['step_size'],
          rtol=1e-9,
      )
      self.assertEqual(
          report['step_size'],
          min(report['smoothness_limit'], report['growth_limit']),
      )

  @parameterized.parameters('float32', 'float64')
  def test_a_limit_that_overflows_is_finite_and_does_not_bind(self, dtype):
    # The smoothness is 1e-34: sums of its limit are beyond float32.
    _, reports = _reports(
        delta_sgd.build_delta_sgd(),
        lambda x: tf.stack([tf.constant(1e17, x.dtype), 1e-34 * x[0]]),
        np.zeros(2, dtype),
        3,
    )
    for report in reports[1:]:
      self.assertEqual(report['step_size'], report['growth_limit'])
    self.assertAllClose(reports[1]['smoothness_limit'], 1e30, rtol=1e-6)

  def test_amplify_first_grows_the_first_step(self):
    _, steps, thetas = _run(
        delta_sgd.build_delta_sgd(amplify_first=True),
        lambda x: 0.01 * x,
        np.ones(2),
        2,
    )
    self.assertAllClose(steps[0], 0.20976176963)
    self.assertAllClose(thetas[0], 1.0488088482)
    self.assertAllClose(steps[1], 0.20976176963 * math.sqrt(1 + 0.10488088482))

  @parameterized.parameters(
      # At the point before, from the second step on.
      ('recompute', [1, 2, 2], [1.0, 0.6]),
      # At the point after each step.
      ('previous_batch', [2, 2, 2], [0.6, 0.348285876, 0.194700478]),
  )
  def test_second_gradient_is_evaluated_once_a_step(
      self, previous_gradient, expected, expected_points
  ):
    optimizer = delta_sgd.build_delta_sgd(previous_gradient=previous_gradient)
    state = optimizer.initialize(tf.TensorSpec([], tf.float32))
    x, asked = tf.constant(1.0), []

    def value_and_grad_fn(at):
      asked.append(float(at))
      return at, 2.0 * at

    evaluations = []
    for _ in range(3):
      state, x = optimizer.next(
          state, x, 2.0 * x, value_and_grad_fn=value_and_grad_fn
      )
      evaluations.append(int(optimizer.report(state)['gradient_evaluations']))
    self.assertEqual(evaluations, expected)
    self.assertAllClose(asked, expected_points)
