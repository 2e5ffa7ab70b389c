# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of Schedule-Free SGD and AdamW."""

import math

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf

from tests.tff_adaptive import testing
from tests.tff_adaptive.optimizers import federated_testing
from tff_adaptive import algorithms
from tff_adaptive import optimizers
from tff_adaptive import runtime

_SPEC = tf.TensorSpec([2], tf.float64)
_SCALE = np.array([1.0, 3.0])
_START = np.array([2.0, -1.0])


def _run(rule, num_steps=5):
  """Returns the points y, the weights to send after each, and the state."""
  state, y = rule.initialize(_SPEC), tf.constant(_START)
  points, sent = [], []
  for _ in range(num_steps):
    state, y = rule.next(state, y, _SCALE * y)
    points.append(y.numpy())
    sent.append(rule.final_weights(state, y).numpy())
  return np.array(points), np.array(sent), state


def _plain(
    rate, beta, warmup, r, power, decay, num_steps=5, adam=None, in_weight=False
):
  z = x = y = _START
  v, total, largest = np.zeros(2), 0.0, 0.0
  for k in range(num_steps):
    g, step = _SCALE * y, rate * (min(1.0, (k + 1) / warmup) if warmup else 1.0)
    if adam:
      v = adam * v + (1 - adam) * g**2
      root = math.sqrt(1 - adam ** (k + 1))
      if in_weight:
        step, root = step * root, 1.0
      g = g / (np.sqrt(v) / root + 1e-8)
    z = z - step * (g + decay * y)
    largest = max(largest, step)
    weight = (k + 1) ** r * largest**power
    total += weight
    x = (1 - weight / total) * x + weight / total * z
    y = beta * x + (1 - beta) * z
    yield y, x


class ScheduleFreeTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.parameters(
      (0.25, 0.9, 0, 0.0, 2.0, 0.0), (0.25, 0.5, 3, 1.0, 0.5, 0.125)
  )
  def test_sgd_follows_the_formulas(self, *numbers):
    points, sent, _ = _run(optimizers.build_schedule_free_sgd(*numbers))
    expected, averages = zip(*_plain(*numbers))
    self.assertAllClose(points, expected, atol=1e-6)
    self.assertAllClose(sent, averages, atol=1e-6)

  @parameterized.parameters(False, True)
  def test_adamw_follows_the_formulas(self, in_weight):
    rule = optimizers.build_schedule_free_adamw(
        0.25,
        beta_2=0.75,
        warmup_steps=2,
        weight_decay=0.125,
        bias_correction_in_weight=in_weight,
    )
    points, sent, _ = _run(rule)
    expected, averages = zip(
        *_plain(0.25, 0.9, 2, 0.0, 2.0, 0.125, adam=0.75, in_weight=in_weight)
    )
    self.assertAllClose(points, expected, atol=1e-6)
    self.assertAllClose(sent, averages, atol=1e-6)

  def test_without_a_gradient_weight_decay_moves_nothing(self):
    rule = optimizers.build_schedule_free_sgd(0.25, weight_decay=0.5)
    weights = (tf.constant([1.0 / 3.0]), tf.constant(2.0))
    state = rule.initialize((tf.TensorSpec([1]), tf.TensorSpec([])))
    y = weights
    for _ in range(4):
      state, y = rule.next(state, y, (None, y[1]))
    self.assertAllEqual(rule.final_weights(state, y)[0], weights[0])

  def test_rounds_count_alike_whatever_their_rate(self):
    rule = optimizers.build_fed_schedule_free()
    state, y = rule.initialize(tf.TensorSpec([])), tf.constant(0.0)
    for rate in (0.1, 1.0):
      state = rule.set_hparams(state, {'learning_rate': rate})
      state, y = rule.next(state, y, tf.constant(-1.0))
    # The mean of 0.1 and 1.1.
    self.assertAllClose(rule.final_weights(state, y), 0.6)

  @pytest.mark.slow
  def test_as_a_server_rule_it_averages_over_rounds(self):
    rule = optimizers.build_schedule_free_sgd()
    process, plain = (
        algorithms.build_fed_opt(
            testing.functional_model(), optimizers.build_sgd(0.1), server
        )
        for server in (rule, None)
    )
    clients = testing.clients([10, 7])
    with runtime.CompiledContext(strict=True):
      state, begun = process.initialize(), plain.initialize()
      y = z = x = federated_testing.flat(testing.trainable(state))
      for k in range(4):
        weights = process.get_model_weights(state)
        average = rule.final_weights(state.finalizer, weights.trainable)
        self.assertAllClose(federated_testing.flat(weights.trainable), y)
        self.assertAllClose(federated_testing.flat(average), x)
        begun = plain.set_model_weights(begun, weights)
        end = plain.next(begun, clients).state
        z = z + federated_testing.flat(testing.trainable(end)) - y
        x = x + (z - x) / (k + 1)
        y = 0.9 * x + 0.1 * z
        state = process.next(state, clients).state
