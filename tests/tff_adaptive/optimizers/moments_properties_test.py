# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what holds for the client rules that send moments.

FedCAda, FAFED and AdaAlter, from whatever the server sends them.
"""

from absl.testing import parameterized
import hypothesis
from hypothesis import strategies as st
import numpy as np
import tensorflow as tf

from tests.tff_adaptive import property_testing
from tests.tff_adaptive.optimizers import path_testing
from tff_adaptive import optimizers
from tff_adaptive.optimizers import fedcada

_BOUNDED = ('option1', 'option2', 'option3', 'option4')
_RATES = property_testing.positive(0.0625, 2.0)
_SQUARES = property_testing.vectors(property_testing.positive())


class FedCAdaPropertiesTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.parameters(*_BOUNDED)
  @hypothesis.given(
      property_testing.positive(0.125, 1.0 - 2.0**-10), st.integers(1, 6)
  )
  def test_options_are_above_one_and_fade_to_one(self, option, beta, t):
    values = [
        fedcada.correction(option, np.float64(beta), time).numpy()
        for time in (t, t + 1, 10**5)
    ]
    self.assertBetween(values[0], 1.0 + 1e-12, 2.0)
    self.assertLess(values[1], values[0])
    self.assertAllClose(values[2], 1.0, atol=1e-12)

  @parameterized.parameters(*_BOUNDED)
  @hypothesis.given(
      property_testing.sequences(),
      _SQUARES,
      property_testing.shares(),
      st.integers(0, 40),
  )
  def test_steps_are_those_of_none_up_to_a_factor(
      self, option, gradients, second_moment, beta_1, round_num
  ):
    betas = (beta_1, np.float32(0.99).item())
    paths = [
        path_testing.run(
            optimizers.build_fedcada_adam,
            property_testing.linear(gradients),
            received=dict(second_moment=second_moment),
            round_num=round_num,
            learning_rate=0.5,
            beta_1=betas[0],
            epsilon=0.0,
            option=name,
        )
        for name in (option, 'none')
    ]
    c1, c2 = (
        fedcada.correction(option, np.float64(beta), round_num + 1)
        for beta in betas
    )
    self.assertAllClose(
        paths[0].points, np.sqrt(c2) / c1 * paths[1].points, rtol=1e-6
    )
    # What is sent is not corrected.
    for name in ('first_moment', 'second_moment'):
      self.assertAllEqual(paths[0].sent[name], paths[1].sent[name])

  @hypothesis.given(
      property_testing.sequences(), property_testing.shares(), _RATES
  )
  def test_without_correction_it_is_adam_without_correction(
      self, gradients, beta_1, rate
  ):
    batches = property_testing.linear(gradients)
    common = dict(learning_rate=rate, beta_1=beta_1, beta_2=0.99, epsilon=0.25)
    ours = path_testing.run(
        optimizers.build_fedcada_adam, batches, option='none', **common
    )
    adam = path_testing.run(
        optimizers.build_fedadam, batches, initial_second_moment=0.0, **common
    )
    self.assertAllClose(ours.points, adam.points, rtol=1e-9, atol=1e-12)

  @hypothesis.given(
      property_testing.sequences(), property_testing.shares(), _RATES
  )
  def test_with_adams_correction_of_local_steps_it_is_adam(
      self, gradients, beta_1, rate
  ):
    batches = property_testing.linear(gradients)
    common = dict(learning_rate=rate, beta_1=beta_1, beta_2=0.99)
    ours = path_testing.run(
        optimizers.build_fedcada_adam,
        batches,
        option='adam',
        time='local_step',
        **common,
    )
    adam = path_testing.run(optimizers.build_adam, batches, **common)
    self.assertAllClose(ours.points, adam.points, rtol=1e-6, atol=1e-9)

  @parameterized.parameters(*fedcada.TIMES)
  @hypothesis.given(
      property_testing.sequences(), property_testing.vectors(), _SQUARES
  )
  def test_second_moment_is_an_average_of_squares(
      self, time, gradients, first_moment, second_moment
  ):
    path = path_testing.run(
        optimizers.build_fedcada_adam,
        property_testing.linear(gradients),
        received=dict(first_moment=first_moment, second_moment=second_moment),
        round_num=3,
        time=time,
    )
    squares = np.concatenate([[second_moment], np.square(gradients)])
    for found, lowest, highest in zip(
        path.sent['second_moment'], squares.min(0), squares.max(0)
    ):
      self.assertBetween(found, lowest * (1 - 1e-6), highest * (1 + 1e-6))

  @parameterized.product(option=list(fedcada.CORRECTIONS), epsilon=[0.0, 1e-8])
  def test_zero_gradients_do_not_move(self, option, epsilon):
    gradients = np.zeros([4, property_testing.SIZE])
    path = path_testing.run(
        optimizers.build_fedcada_adam,
        property_testing.linear(gradients),
        epsilon=epsilon,
        option=option,
    )
    self.assertAllEqual(path.points, np.zeros_like(path.points))
    for moment in path.sent.values():
      self.assertAllEqual(moment, gradients[0])


class FafedPropertiesTest(tf.test.TestCase, parameterized.TestCase):

  @hypothesis.given(
      property_testing.batch_sequences(), property_testing.STARTS, _RATES
  )
  def test_warm_up_is_one_step_of_gradient_descent(self, batches, x, rate):
    path = path_testing.run(
        optimizers.build_fafed, batches, x, learning_rate=rate
    )
    gradient = batches.gradient(0, x)
    self.assertAllClose(path.points[-1], x - rate * gradient, rtol=1e-9)
    self.assertAllClose(path.sent['momentum'], gradient, rtol=1e-9)
    self.assertAllClose(path.sent['second_moment'], gradient**2, rtol=1e-9)

  @hypothesis.given(
      property_testing.batch_sequences(),
      property_testing.STARTS,
      property_testing.vectors(),
      _SQUARES,
  )
  def test_momentum_is_the_gradient_with_alpha_one(
      self, batches, x, momentum, second_moment
  ):
    path = path_testing.run(
        optimizers.build_fafed,
        batches,
        x,
        received=dict(momentum=momentum, second_moment=second_moment),
        round_num=1,
        learning_rate=0.0625,
        alpha=1.0,
    )
    last = batches.gradient(len(batches.slopes) - 1, path.points[-2])
    self.assertAllClose(path.sent['momentum'], last, rtol=1e-6, atol=1e-6)

  @hypothesis.given(
      property_testing.sequences(),
      property_testing.vectors(),
      _RATES,
      property_testing.positive(0.0625, 2.0),
  )
  def test_gradient_descent_with_alpha_one_and_no_second_moment(
      self, gradients, momentum, rate, rho
  ):
    path = path_testing.run(
        optimizers.build_fafed,
        property_testing.linear(gradients),
        received=dict(momentum=momentum),
        round_num=1,
        learning_rate=rate,
        alpha=1.0,
        rho=rho,
    )
    expected = -rate / rho * np.cumsum(gradients, axis=0)
    self.assertAllClose(path.points[1:], expected, rtol=1e-9, atol=1e-9)

  @hypothesis.given(
      property_testing.batch_sequences(),
      property_testing.vectors(),
      _SQUARES,
      property_testing.positive(0.125, 0.875),
  )
  def test_scale_depends_on_what_the_server_sends_alone(
      self, batches, momentum, second_moment, beta
  ):
    # The share of the local second moment changes what is sent, not the path.
    one, other = (
        path_testing.run(
            optimizers.build_fafed,
            batches,
            received=dict(momentum=momentum, second_moment=second_moment),
            round_num=2,
            beta=value,
        )
        for value in (beta, 1.0)
    )
    self.assertAllEqual(one.points, other.points)
    self.assertAllEqual(other.sent['second_moment'], second_moment)

  @hypothesis.given(
      property_testing.vectors(),
      property_testing.vectors(),
      _SQUARES,
      property_testing.positive(0.0625, 1.0),
  )
  def test_first_step_of_a_round_averages(
      self, gradient, momentum, second_moment, alpha
  ):
    # The previous point is the received model: both gradients are equal.
    path = path_testing.run(
        optimizers.build_fafed,
        property_testing.linear([gradient]),
        received=dict(momentum=momentum, second_moment=second_moment),
        round_num=1,
        learning_rate=0.5,
        alpha=alpha,
        rho=0.25,
    )
    expected = alpha * gradient + (1 - alpha) * momentum
    self.assertAllClose(path.sent['momentum'], expected, atol=1e-9)
    step = -0.5 * expected / (np.sqrt(second_moment) + 0.25)
    self.assertAllClose(path.points[-1], step, atol=1e-9)


class AdaAlterPropertiesTest(tf.test.TestCase):

  @hypothesis.given(property_testing.batch_sequences(), _SQUARES, _RATES)
  def test_accumulator_grows_by_the_squares_of_the_round(
      self, batches, second_moment, rate
  ):
    path = path_testing.run(
        optimizers.build_adaalter,
        batches,
        received=dict(second_moment=second_moment),
        learning_rate=rate,
    )
    gradients = np.array(
        [batches.gradient(k, x) for k, x in enumerate(path.points[:-1])]
    )
    expected = second_moment + np.sum(np.square(gradients), axis=0)
    self.assertAllClose(path.sent['second_moment'], expected, rtol=1e-6)

  @hypothesis.given(
      property_testing.sequences(),
      _SQUARES,
      _RATES,
      property_testing.positive(0.125, 4.0),
  )
  def test_accumulator_is_frozen_in_a_round(
      self, gradients, second_moment, rate, epsilon
  ):
    path = path_testing.run(
        optimizers.build_adaalter,
        property_testing.linear(gradients),
        received=dict(second_moment=second_moment),
        learning_rate=rate,
        epsilon=epsilon,
    )
    ages = np.arange(1, len(gradients) + 1)[:, np.newaxis]
    expected = -rate * gradients / np.sqrt(second_moment + ages * epsilon**2)
    self.assertAllClose(
        np.diff(path.points, axis=0), expected, rtol=1e-6, atol=1e-9
    )

  @hypothesis.given(property_testing.batch_sequences(), _RATES)
  def test_without_epsilon_a_round_is_gradient_descent(self, batches, rate):
    rate *= 0.0625
    ours = path_testing.run(
        optimizers.build_adaalter,
        batches,
        received=dict(second_moment=np.full(property_testing.SIZE, 4.0)),
        learning_rate=rate,
        epsilon=0.0,
    )
    descent = path_testing.run(
        optimizers.build_sgd, batches, learning_rate=0.5 * rate
    )
    self.assertAllClose(ours.points, descent.points, rtol=1e-9, atol=1e-9)
