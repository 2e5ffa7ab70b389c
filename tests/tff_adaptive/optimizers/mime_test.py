# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of Mime and MimeLite."""

import numpy as np
import pytest
import tensorflow as tf

from tests.tff_adaptive import testing
from tests.tff_adaptive.optimizers import federated_testing
from tff_adaptive import algorithms
from tff_adaptive import optimizers
from tff_adaptive import runtime


class MimeTest(tf.test.TestCase):

  @pytest.mark.usefixtures('native_runtime')
  @pytest.mark.slow
  def test_mime_exchanges_twice_which_is_run_step_by_step(self):
    mimelite, mime = (
        algorithms.build_fed_opt(testing.functional_model(), build(0.5))
        for build in (optimizers.build_mimelite, optimizers.build_mime)
    )
    clients = testing.clients([10, 7])
    lite, expected = (
        process.next(process.initialize(), clients)
        for process in (mimelite, mime)
    )
    costs = [o.metrics['client_work']['clients'] for o in (lite, expected)]
    for measured, gradients_per_step in zip(costs, (2, 3)):
      self.assertEqual(
          measured['num_gradient_evaluations'],
          gradients_per_step * measured['num_steps'],
      )
    model = 2 * 4 * 3 * (testing.NUM_FEATURES + 1)  # Of two clients.
    for name, more in (('bytes_up', model + 2 * 4), ('bytes_down', model)):
      self.assertEqual(costs[1][name] - costs[0][name], more, name)
    with runtime.CompiledContext(strict=True) as context:
      found = mime.next(mime.initialize(), clients)
      self.assertEqual(context.path_of(mime.next), 'steps')
    self.assertAllClose(
        testing.trainable(expected.state), testing.trainable(found.state)
    )

  def test_mime_corrects_by_the_mean_gradient_of_the_round(self):
    rule = optimizers.build_mime(0.25, momentum=0.5)
    batch = federated_testing.CLIENTS[0][0]
    x = federated_testing.START
    state = rule.initialize(tf.TensorSpec(x.shape, tf.float64))
    momentum, mean = np.array([1.0, 2.0]), np.array([-1.0, 0.5])
    shared = dict(momentum=tf.constant(momentum))
    shared['received_gradient'] = tf.constant(mean)
    state = rule.start_round(state, shared, {}, 0)
    evaluate = federated_testing.to_batch(batch)
    y = tf.constant(x)
    for _ in range(2):
      before = y.numpy()
      value, g = evaluate(y)
      state, y = rule.next(state, y, g, value=value, value_and_grad_fn=evaluate)
      u = federated_testing.gradient(batch, before)
      u = u - federated_testing.gradient(batch, x) + mean
      self.assertAllClose(y, before - 0.25 * (0.5 * u + 0.5 * momentum))
    sent, _ = rule.finish_round(state)
    self.assertAllClose(sent['momentum'], mean)
