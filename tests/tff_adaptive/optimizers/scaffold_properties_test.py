# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what holds for SCAFFOLD with any clients."""

import functools

import hypothesis
from hypothesis import strategies as st
import numpy as np
import pytest
import tensorflow as tf

from tests.tff_adaptive import property_testing
from tests.tff_adaptive.optimizers import path_testing
from tff_adaptive import optimizers

# Small against any curvature: nothing diverges.
_RATES = property_testing.positive(2.0**-8, 2.0**-5)
_CLIENTS = st.lists(property_testing.batch_sequences(3), min_size=1, max_size=3)


@functools.cache
def _builder(num_clients):
  return functools.partial(optimizers.build_scaffold_sgd, num_clients)


def _train(client, x, control, own, rate):
  """The end of a client's round and its new control."""
  path = path_testing.run(
      _builder(3),
      client,
      x,
      received=dict(control=control),
      kept=dict(control=own),
      round_num=1,
      learning_rate=rate,
  )
  np.testing.assert_allclose(
      path.sent['control'], path.kept['control'] - own, rtol=1e-9, atol=1e-9
  )
  return path.points[-1], path.kept['control']


def _descend(client, x, rate):
  return path_testing.run(
      optimizers.build_sgd, client, x, learning_rate=rate
  ).points


class ScaffoldPropertiesTest(tf.test.TestCase):

  @hypothesis.given(
      property_testing.batch_sequences(3), property_testing.STARTS, _RATES
  )
  def test_first_round_is_gradient_descent(self, client, x, rate):
    zero = np.zeros_like(x)
    end, own = _train(client, x, zero, zero, rate)
    points = _descend(client, x, rate)
    self.assertAllClose(end, points[-1], rtol=1e-9, atol=1e-9)
    gradients = [client.gradient(k, p) for k, p in enumerate(points[:-1])]
    self.assertAllClose(own, np.mean(gradients, axis=0), rtol=1e-6, atol=1e-6)

  @hypothesis.given(
      property_testing.batch_sequences(3),
      property_testing.STARTS,
      property_testing.vectors(),
      _RATES,
  )
  @pytest.mark.slow
  def test_equal_controls_correct_nothing(self, client, x, control, rate):
    # Those of a single client and of the server always are.
    end, _ = _train(client, x, control, control, rate)
    points = _descend(client, x, rate)
    self.assertAllClose(end, points[-1], rtol=1e-9, atol=1e-9)

  @hypothesis.given(
      property_testing.batch_sequences(1),
      property_testing.STARTS,
      property_testing.vectors(),
      property_testing.vectors(),
      _RATES,
  )
  def test_control_after_one_step_is_the_gradient_at_the_received_model(
      self, client, x, control, own, rate
  ):
    end, new = _train(client, x, control, own, rate)
    gradient = client.gradient(0, x)
    self.assertAllClose(new, gradient, rtol=1e-9, atol=1e-9)
    expected = x - rate * (gradient - own + control)
    self.assertAllClose(end, expected, rtol=1e-9, atol=1e-9)

  @hypothesis.given(_CLIENTS, property_testing.STARTS, _RATES)
  def test_control_of_the_server_is_the_mean_with_all_clients(
      self, clients, x, rate
  ):
    rule = _builder(len(clients))()
    control = np.zeros_like(x)
    own = [control] * len(clients)
    for _ in range(2):
      ends, new = zip(
          *(_train(c, x, control, o, rate) for c, o in zip(clients, own))
      )
      change = np.mean(np.subtract(new, own), axis=0)
      updated = rule.update_shared(
          {'control': tf.constant(control)},
          {'control': tf.constant(change)},
          tf.constant(len(clients), tf.int64),
      )
      x, own, control = np.mean(ends, 0), new, updated['control'].numpy()
      expected = np.mean(own, axis=0)
      self.assertAllClose(control, expected, rtol=1e-6, atol=1e-6)
