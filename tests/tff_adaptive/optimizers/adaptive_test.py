# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the adaptive rules, on clients and on the server.

The literals come from the following plain loop, on two coordinates:

```
for s, g in enumerate(gradients, 1):
  m = b1 * m + (1 - b1) * g
  q = (m if second_moment_of == 'momentum' else g) ** 2
  v = {'adagrad': v + q, 'adam': b2 * v + (1 - b2) * q,
       'yogi': v - (1 - b2) * q * sign(v - q)}[rule]
  c1, c2 = (1 - b1**s, 1 - b2**s) if bias_correction else (1, 1)
  x -= lr * (m / c1) / (math.sqrt(v / c2) + eps)
```
"""

from absl.testing import parameterized
import hypothesis
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import property_testing
from tests.tff_adaptive.optimizers import path_testing
from tff_adaptive import optimizers

_START = (1.0, -2.0)
_GRADIENTS = ((1.0, -0.5), (2.0, 0.5), (-1.0, 0.25))
_ADAM = [[0.9, -1.9], [0.8034818, -1.9052632], [0.7614729, -1.9304066]]
_RULES = ('fedadagrad', 'fedadam', 'fedyogi')


def _build(name, *args, **kwargs):
  return getattr(optimizers, f'build_{name}')(*args, **kwargs)


def _run(optimizer, gradients=_GRADIENTS):
  return path_testing.follow(optimizer, gradients, _START)


class AdaptiveTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.named_parameters(
      ('adam', optimizers.build_adam(0.1), _ADAM),
      (
          'adagrad',
          optimizers.build_adagrad(0.1),
          [[0.9, -1.9], [0.8105573, -1.9707107], [0.8513821, -2.004044]],
      ),
      (
          'yogi',
          optimizers.build_yogi(0.1),
          [
              [0.6936142, -1.7031404],
              [0.2892512, -1.7245234],
              [0.0840671, -1.8437724],
          ],
      ),
      (
          'fedadagrad',
          optimizers.build_fedadagrad(0.1),
          [
              [0.9001, -1.9001998],
              [0.8106972, -1.9708105],
              [0.8515054, -2.0040995],
          ],
      ),
      (
          'fedadam',
          optimizers.build_fedadam(0.1),
          [
              [0.900995, -1.9019798],
              [0.771753, -1.9089688],
              [0.7059649, -1.9480383],
          ],
      ),
      (
          'fedadam_second_moment_of_momentum',
          optimizers.build_fedadam(0.1, second_moment_of='momentum'),
          [
              [0.0949717, -1.1800643],
              [-0.8205653, -1.2620709],
              [-1.2739883, -1.6916558],
          ],
      ),
      (
          'fedadam_of_pytorch',
          optimizers.build_fedadam(
              0.1,
              0.9,
              0.999,
              1e-8,
              initial_second_moment=0.0,
              bias_correction=True,
          ),
          _ADAM,
      ),
      (
          'fedyogi',
          optimizers.build_fedyogi(0.1),
          [
              [0.900995, -1.90198],
              [0.7718818, -1.9089518],
              [0.7064216, -1.9477642],
          ],
      ),
      (
          'fedyogi_from_above',
          optimizers.build_fedyogi(0.1, initial_second_moment=4.0),
          [
              [0.9949962, -1.9975005],
              [0.9805575, -1.9977505],
              [0.9725316, -1.9992258],
          ],
      ),
  )
  def test_literal_numbers(self, optimizer, expected):
    # Hyperparameters are float32: 1 - 0.999 has five digits.
    self.assertAllClose(_run(optimizer)[0], expected, rtol=0, atol=1e-5)

  def test_adam_equals_keras(self):
    keras = tf.keras.optimizers.Adam(0.1, epsilon=1e-9)
    variable = tf.Variable(_START)
    points, _ = _run(optimizers.build_adam(0.1, epsilon=1e-9))
    for gradient, point in zip(_GRADIENTS, points):
      keras.apply_gradients([(tf.constant(gradient), variable)])
      self.assertAllClose(variable, point, atol=1e-5)

  @parameterized.parameters(
      ('fedadam', tff.learning.optimizers.build_adam),
      ('fedyogi', tff.learning.optimizers.build_yogi),
  )
  def test_epsilon_hat_is_that_of_tff(self, name, build_theirs):
    shared = {'beta_1': 0.9, 'beta_2': 0.99, 'epsilon': 0.1}
    start = {} if name == 'fedadam' else {'initial_preconditioner_value': 0.0}
    corrected = dict(initial_second_moment=0.0, bias_correction=True)
    theirs, _ = _run(build_theirs(0.1, **shared, **start))
    ours, _ = _run(_build(name, 0.1, **shared, **corrected, epsilon_hat=True))
    kingma, _ = _run(_build(name, 0.1, **shared, **corrected))
    self.assertAllClose(ours, theirs, rtol=1e-6)
    self.assertNotAllClose(kingma, theirs, rtol=1e-2)

  def test_adagrad_accumulates_from_zero(self):
    _, states = _run(optimizers.build_adagrad(0.1))
    self.assertAllClose(
        [state['preconditioner'] for state in states],
        [[1.0, 0.25], [5.0, 0.5], [6.0, 0.5625]],
    )

  def test_yogi_stands_still_where_the_accumulator_is_the_square(self):
    optimizer = optimizers.build_fedyogi(
        0.1, beta_1=0.0, initial_second_moment=0.25
    )
    _, states = _run(optimizer, [(0.5, 0.5)])
    self.assertAllEqual(states[0]['preconditioner'], [0.25, 0.25])

  def test_initial_second_moment_is_the_square_of_epsilon(self):
    for name in _RULES:
      state = _build(name, epsilon=0.5).initialize(
          tf.TensorSpec([2], tf.float32)
      )
      self.assertAllClose(state['preconditioner'], [0.25, 0.25])

  def test_without_average_none_is_held(self):
    state = optimizers.build_fedadagrad().initialize(
        tf.TensorSpec([2], tf.float32)
    )
    self.assertNotIn('accumulator', state)

  def test_bfloat16_averages_although_its_shares_round_to_one(self):
    optimizer = optimizers.build_adam(0.5)
    weights = tf.constant([1.0], tf.bfloat16)
    state = optimizer.initialize(tf.TensorSpec([1], tf.bfloat16))
    state, weights = optimizer.next(state, weights, tf.ones([1], tf.bfloat16))
    self.assertAllClose(tf.cast(weights, tf.float32), [0.5], atol=0.01)
    # Then 200 steps without a gradient: v decays by 0.999 each.
    before = state['preconditioner']
    for _ in range(200):
      state, weights = optimizer.next(
          state, weights, tf.zeros([1], tf.bfloat16)
      )
    self.assertAllClose(
        state['preconditioner'] / before, [0.999**200], rtol=1e-3
    )


_CLIENT_RULES = ('adam', 'adagrad')
_RATES = property_testing.positive(0.0625, 2.0)
_EPSILONS = property_testing.positive(2.0**-10, 1.0)


def _run_path(name, gradients, **arguments):
  """Steps; in the server rules' own terms the changes are `-gradients`."""
  return path_testing.run(
      getattr(optimizers, f'build_{name}'),
      property_testing.linear(gradients),
      **arguments,
  )


class AdaptivePropertiesTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.parameters(*_CLIENT_RULES)
  @hypothesis.given(
      property_testing.vectors(), _RATES, property_testing.shares()
  )
  def test_first_step_depends_on_epsilon_alone(
      self, name, gradient, rate, epsilon
  ):
    path = _run_path(name, [gradient], learning_rate=rate, epsilon=epsilon)
    sizes = np.abs(gradient)
    # Without a gradient it is 0, even if epsilon is.
    expected = -rate * gradient / np.where(sizes > 0.0, sizes + epsilon, 1.0)
    # 1 - 0.999 has five digits in float32.
    self.assertAllClose(path.points[-1], expected, rtol=1e-4, atol=0.0)

  @parameterized.parameters('adagrad', 'fedadagrad')
  @hypothesis.given(property_testing.sequences(), _RATES)
  def test_adagrad_never_forgets_and_steps_at_most_the_rate(
      self, name, gradients, rate
  ):
    path = _run_path(name, gradients, learning_rate=rate)
    v = path.states['preconditioner']
    start = 1e-6 * (name == 'fedadagrad')
    expected = start + np.cumsum(np.square(gradients), axis=0)
    self.assertAllClose(v, expected, rtol=1e-6, atol=1e-12)
    self.assertTrue(np.all(np.diff(v, axis=0) >= 0.0))
    self.assertAllLessEqual(np.abs(np.diff(path.points, axis=0)), rate)

  @parameterized.product(name=_RULES, second_moment_of=['update', 'momentum'])
  @hypothesis.given(
      property_testing.sequences(),
      property_testing.shares(),
      property_testing.positive(0.25, 4.0),
  )
  def test_scaling_changes_epsilon_and_start_leaves_the_weights(
      self, name, second_moment_of, changes, beta_1, scale
  ):
    paths = [
        _run_path(
            name,
            c * changes,
            learning_rate=0.25,
            beta_1=beta_1,
            epsilon=0.125 * c,
            initial_second_moment=0.5 * c**2,
            second_moment_of=second_moment_of,
        )
        for c in (1.0, scale)
    ]
    self.assertAllClose(paths[0].points, paths[1].points, rtol=1e-5, atol=1e-7)

  @parameterized.parameters(*_RULES)
  @hypothesis.given(property_testing.sequences(), property_testing.shares())
  def test_without_adaptivity_is_damped_momentum(self, name, changes, beta_1):
    # epsilon to infinity, with a rate that grows with it.
    path = _run_path(
        name,
        changes,
        learning_rate=1e9,
        beta_1=beta_1,
        epsilon=1e9,
        initial_second_moment=0.0,
    )
    momentum = path_testing.run(
        optimizers.build_fedavgm,
        property_testing.linear((1.0 - beta_1) * changes),
        momentum=beta_1,
    )
    self.assertAllClose(path.points, momentum.points, rtol=1e-5, atol=1e-5)

  @parameterized.parameters(*_RULES)
  @hypothesis.given(property_testing.sequences())
  def test_without_adaptivity_the_start_damps(self, name, changes):
    path = _run_path(
        name, changes, learning_rate=1e9, beta_1=0.875, epsilon=1e9
    )
    # The start decays in FedAdam alone.
    kept = np.float32(0.99) if name == 'fedadam' else 1.0
    divisors = 1 + kept ** (np.arange(1, len(changes) + 1) / 2)
    self.assertAllClose(
        np.diff(path.points, axis=0),
        -path.states['accumulator'] / divisors[:, np.newaxis],
        rtol=1e-4,
        atol=1e-6,
    )

  @parameterized.product(name=_RULES, start=[None, 0.0])
  @hypothesis.given(
      property_testing.vectors(), property_testing.shares(), _RATES, _EPSILONS
  )
  def test_first_step_is_bounded_by_the_change_over_epsilon(
      self, name, start, change, beta_1, rate, epsilon
  ):
    path = _run_path(
        name,
        [change],
        learning_rate=rate,
        beta_1=beta_1,
        epsilon=epsilon,
        initial_second_moment=start,
    )
    bound = rate * (1 - beta_1) * np.abs(change) / epsilon
    self.assertAllLessEqual(np.abs(path.points[-1]) - bound * (1 + 1e-6), 0.0)
    self.assertAllEqual(np.sign(path.points[-1]), -np.sign(change))

  @hypothesis.given(property_testing.sequences(), _EPSILONS)
  def test_fedyogi_changes_by_a_share_of_the_square_or_not_at_all(
      self, changes, epsilon
  ):
    v = _run_path('fedyogi', changes, epsilon=epsilon).states['preconditioner']
    start = np.square(np.float32(epsilon))
    before = np.concatenate([np.full_like(v[:1], start), v[:-1]])
    squares = np.square(changes)
    expected = 0.01 * squares * np.sign(squares - before)
    self.assertAllClose(v - before, expected, rtol=1e-4, atol=1e-9)
    # So it loses at most that share of itself, and else grows.
    self.assertTrue(np.all(v >= 0.99 * before * (1 - 1e-6)))
    self.assertTrue(np.all(v[squares > before] > before[squares > before]))


class FedAMSPropertiesTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.product(option=[1, 2], bias_correction=[False, True])
  @hypothesis.given(property_testing.sequences(), _EPSILONS)
  def test_maximum_never_falls_and_bounds_the_second_moment(
      self, option, bias_correction, changes, epsilon
  ):
    # The changes shrink, so that the second moment would.
    scales = 0.125 ** np.arange(len(changes))
    path = _run_path(
        'fedams',
        changes * scales[:, np.newaxis],
        beta_2=0.5,
        epsilon=epsilon,
        option=option,
        bias_correction=bias_correction,
    )
    v, largest = (
        path.states[key] for key in ('preconditioner', 'max_preconditioner')
    )
    self.assertTrue(np.all(np.diff(largest, axis=0) >= 0.0))
    self.assertTrue(np.all(largest >= v))
    if option == 1:
      self.assertAllGreaterEqual(largest, epsilon)
