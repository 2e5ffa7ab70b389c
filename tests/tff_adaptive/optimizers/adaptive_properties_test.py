# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what holds for the adaptive rules on any gradients."""

from absl.testing import parameterized
import hypothesis
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import property_testing
from tests.tff_adaptive.optimizers import path_testing
from tff_adaptive import optimizers

_BUILDERS = {
    'adam': optimizers.build_adam,
    'adagrad': optimizers.build_adagrad,
    'yogi': optimizers.build_yogi,
    'fedadagrad': optimizers.build_fedadagrad,
    'fedadam': optimizers.build_fedadam,
    'fedyogi': optimizers.build_fedyogi,
    'fedams': optimizers.build_fedams,
}
_CLIENT_RULES = ('adam', 'adagrad')
_SERVER_RULES = ('fedadagrad', 'fedadam', 'fedyogi')
_RATES = property_testing.positive(0.0625, 2.0)
_EPSILONS = property_testing.positive(2.0**-10, 1.0)


def _run(name, gradients, **arguments):
  """Steps; in the server rules' own terms the changes are `-gradients`."""
  return path_testing.run(
      _BUILDERS[name], property_testing.linear(gradients), **arguments
  )


class AdaptivePropertiesTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.parameters(*_CLIENT_RULES)
  @hypothesis.given(
      property_testing.vectors(), _RATES, property_testing.shares()
  )
  def test_first_step_depends_on_epsilon_alone(
      self, name, gradient, rate, epsilon
  ):
    path = _run(name, [gradient], learning_rate=rate, epsilon=epsilon)
    sizes = np.abs(gradient)
    # Without a gradient it is 0, even if epsilon is.
    expected = -rate * gradient / np.where(sizes > 0.0, sizes + epsilon, 1.0)
    # 1 - 0.999 has five digits in float32.
    self.assertAllClose(path.points[-1], expected, rtol=1e-4, atol=0.0)

  @parameterized.named_parameters(
      ('adam', 'adam', 0.001, tff.learning.optimizers.build_adam, (0.9, 0.999)),
      (
          'adagrad',
          'adagrad',
          0.5,
          tff.learning.optimizers.build_adagrad,
          (0.0,),
      ),
  )
  @hypothesis.given(property_testing.sequences(max_length=3))
  @hypothesis.settings(max_examples=5)
  def test_client_rules_equal_tff_where_epsilon_is_tiny(
      self, name, rate, build, arguments, gradients
  ):
    path = _run(name, gradients, learning_rate=rate)
    optimizer = build(rate, *arguments, 1e-14)
    x = tf.zeros_like(gradients[0])
    state = optimizer.initialize(tf.TensorSpec(x.shape, x.dtype))
    for gradient, point in zip(gradients, path.points[1:]):
      state, x = optimizer.next(state, x, tf.constant(gradient))
      self.assertAllClose(x, point, rtol=1e-4, atol=1e-6)

  @parameterized.parameters('adagrad', 'fedadagrad')
  @hypothesis.given(property_testing.sequences(), _RATES)
  def test_adagrad_never_forgets_and_steps_at_most_the_rate(
      self, name, gradients, rate
  ):
    path = _run(name, gradients, learning_rate=rate)
    v = path.states['preconditioner']
    start = 1e-6 * (name == 'fedadagrad')
    expected = start + np.cumsum(np.square(gradients), axis=0)
    self.assertAllClose(v, expected, rtol=1e-6, atol=1e-12)
    self.assertTrue(np.all(np.diff(v, axis=0) >= 0.0))
    self.assertAllLessEqual(np.abs(np.diff(path.points, axis=0)), rate)

  @parameterized.product(
      name=_SERVER_RULES, second_moment_of=['update', 'momentum']
  )
  @hypothesis.given(
      property_testing.sequences(),
      property_testing.shares(),
      property_testing.positive(0.25, 4.0),
  )
  def test_scaling_changes_epsilon_and_start_leaves_the_weights(
      self, name, second_moment_of, changes, beta_1, scale
  ):
    paths = [
        _run(
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

  @parameterized.parameters(*_SERVER_RULES)
  @hypothesis.given(property_testing.sequences(), property_testing.shares())
  def test_without_adaptivity_is_damped_momentum(self, name, changes, beta_1):
    # epsilon to infinity, with a rate that grows with it.
    path = _run(
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

  @parameterized.parameters(*_SERVER_RULES)
  @hypothesis.given(property_testing.sequences())
  def test_without_adaptivity_the_start_damps(self, name, changes):
    path = _run(name, changes, learning_rate=1e9, beta_1=0.875, epsilon=1e9)
    # The start decays in FedAdam alone.
    kept = np.float32(0.99) if name == 'fedadam' else 1.0
    divisors = 1 + kept ** (np.arange(1, len(changes) + 1) / 2)
    self.assertAllClose(
        np.diff(path.points, axis=0),
        -path.states['accumulator'] / divisors[:, np.newaxis],
        rtol=1e-4,
        atol=1e-6,
    )

  @parameterized.product(name=_SERVER_RULES, start=[None, 0.0])
  @hypothesis.given(
      property_testing.vectors(), property_testing.shares(), _RATES, _EPSILONS
  )
  def test_first_step_is_bounded_by_the_change_over_epsilon(
      self, name, start, change, beta_1, rate, epsilon
  ):
    path = _run(
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

  @parameterized.parameters(*_BUILDERS)
  @hypothesis.given(property_testing.sequences())
  def test_coordinates_without_gradient_do_not_move(self, name, gradients):
    gradients[:, 0] = 0.0
    path = _run(name, gradients)
    self.assertAllEqual(path.points[:, 0], np.zeros(len(path.points)))
    self.assertTrue(np.all(np.isfinite(path.points)))

  @hypothesis.given(property_testing.sequences(), _EPSILONS)
  def test_fedyogi_changes_by_a_share_of_the_square_or_not_at_all(
      self, changes, epsilon
  ):
    v = _run('fedyogi', changes, epsilon=epsilon).states['preconditioner']
    start = np.square(np.float32(epsilon))
    before = np.concatenate([np.full_like(v[:1], start), v[:-1]])
    squares = np.square(changes)
    expected = 0.01 * squares * np.sign(squares - before)
    self.assertAllClose(v - before, expected, rtol=1e-4, atol=1e-9)
    # So it loses at most that share of itself, and else grows.
    self.assertTrue(np.all(v >= 0.99 * before * (1 - 1e-6)))
    self.assertTrue(np.all(v[squares > before] > before[squares > before]))

  @parameterized.parameters(*_SERVER_RULES)
  @hypothesis.given(property_testing.sequences(), _EPSILONS)
  def test_second_moment_that_starts_above_zero_stays_there(
      self, name, changes, epsilon
  ):
    path = _run(name, changes, epsilon=epsilon)
    self.assertAllGreater(path.states['preconditioner'], 0.0)


class FedAMSPropertiesTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.product(option=[1, 2], bias_correction=[False, True])
  @hypothesis.given(property_testing.sequences(), _EPSILONS)
  def test_maximum_never_falls_and_bounds_the_second_moment(
      self, option, bias_correction, changes, epsilon
  ):
    # The changes shrink, so that the second moment would.
    scales = 0.125 ** np.arange(len(changes))
    path = _run(
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

  @hypothesis.given(property_testing.sequences(), _EPSILONS)
  def test_steps_of_amsgrad_are_at_most_those_of_fedadam(
      self, changes, epsilon
  ):
    common = dict(learning_rate=0.5, epsilon=epsilon)
    fedams = _run('fedams', changes, option=2, **common)
    fedadam = _run('fedadam', changes, initial_second_moment=0.0, **common)
    self.assertAllEqual(
        fedams.states['preconditioner'], fedadam.states['preconditioner']
    )
    shorter, longer = (
        np.abs(np.diff(path.points, axis=0)) for path in (fedams, fedadam)
    )
    self.assertAllLessEqual(shorter - longer, 1e-12)
