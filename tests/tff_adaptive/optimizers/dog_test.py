# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of DoG and DoWG."""

import math

from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tff_adaptive import optimizers

_SPEC = tf.TensorSpec([], tf.float64)


def _run(rule, num_steps, x=1.0, scale=1.0, state=None):
  """Returns the iterates of `scale` / 2 x^2, and the last state."""
  state = state or rule.initialize(_SPEC)
  x, points = tf.constant(x, tf.float64), []
  for _ in range(num_steps):
    state, x = rule.next(state, x, scale * x, value=0.5 * scale * x**2)
    points.append(float(x))
  return points, state


class DoGTest(tf.test.TestCase, parameterized.TestCase):

  def test_three_steps_by_hand(self):
    rule = optimizers.build_dog(relative_distance=0.05, epsilon=0.25)
    points, state = _run(rule, 3)
    # r is 0.05 * (1 + 1), then the distance from 1 where that is larger.
    x1 = 1.0 - 0.1 / math.sqrt(1.0 + 0.25)
    squares = 1.0 + x1**2
    x2 = x1 - 0.1 / math.sqrt(squares + 0.25) * x1
    squares += x2**2
    step_size = (1.0 - x2) / math.sqrt(squares + 0.25)
    self.assertAllClose(points, [x1, x2, x2 - step_size * x2], atol=1e-7)
    self.assertAllClose(rule.report(state)['step_size'], step_size, atol=1e-7)

  def test_first_step_size_takes_the_place_of_the_distance(self):
    rule = optimizers.build_dog(first_step_size=0.25, epsilon=0.0)
    points, _ = _run(rule, 2)
    x2 = 0.75 - 0.25 / math.sqrt(1.0 + 0.75**2) * 0.75
    self.assertAllClose(points, [0.75, x2])

  def test_average_weighs_later_iterates_more(self):
    rule = optimizers.build_dog(
        relative_distance=0.1, send='average', average_gamma=1.0
    )
    points, state = _run(rule, 3)
    average = rule.final_weights(state, tf.constant(points[-1], tf.float64))
    # Shares 1, 2/3 and 2/4: the iterates weigh 1/6, 2/6 and 3/6.
    self.assertAllClose(average, np.dot([1 / 6, 2 / 6, 3 / 6], points))

  def test_average_of_no_step_is_the_weights(self):
    rule = optimizers.build_dog(send='average')
    weights = tf.constant(5.0, tf.float64)
    self.assertAllEqual(
        rule.final_weights(rule.initialize(_SPEC), weights), weights
    )

  def test_average_of_a_weight_without_a_gradient_is_the_weight(self):
    rule = optimizers.build_dog(relative_distance=0.1, send='average')
    weights = (tf.constant([0.1]), tf.constant(2.0))
    state = rule.initialize((tf.TensorSpec([1]), tf.TensorSpec([])))
    for _ in range(4):
      state, weights = rule.next(state, weights, (None, weights[1]))
    average = rule.final_weights(state, weights)
    self.assertAllEqual(average[0], weights[0])

  def test_kept_state_has_the_anchor_and_not_the_average(self):
    rule = optimizers.build_dog(
        relative_distance=0.1, send='average', carry_state=True
    )
    _, state = _run(rule, 2)
    _, kept = rule.finish_round(state)
    self.assertAllClose(kept['initial_weights'], 1.0)
    state = rule.start_round(rule.initialize(_SPEC), {}, kept, tf.constant(1))
    points, state = _run(rule, 1, x=-3.0, state=state)
    # The distance from 1, where the client has begun, is 4.
    self.assertAllClose(state['distance'], 4.0)
    average = rule.final_weights(state, tf.constant(points[-1], tf.float64))
    self.assertAllClose(average, points[-1])


class DoWGTest(tf.test.TestCase):

  def test_three_steps_by_hand(self):
    rule = optimizers.build_dowg(epsilon=0.1, initial_squared_distance=0.04)
    points, state = _run(rule, 3)
    weighted, x, squared = 0.0, 1.0, 0.04
    for point in points:
      squared = max(squared, (x - 1.0) ** 2)
      weighted += squared * x**2
      step_size = squared / (math.sqrt(weighted) + 0.1)
      x -= step_size * x
      self.assertAllClose(point, x, atol=1e-7)
    self.assertAllClose(rule.report(state)['step_size'], step_size, atol=1e-7)

  def test_distance_starts_at_epsilon(self):
    points, _ = _run(optimizers.build_dowg(epsilon=0.01), 1)
    self.assertAllClose(points[0], 1.0 - 0.01 / (0.1 + 0.01))
