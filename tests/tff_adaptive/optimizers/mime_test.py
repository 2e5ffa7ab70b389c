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

  @pytest.mark.slow
  def test_momentum_is_of_the_gradients_at_the_received_model(self):
    # One batch of all examples: a step of SGD with rate 1 is the gradient.
    clients = testing.clients([1, 1])
    outputs = federated_testing.run_process(
        optimizers.build_mimelite(0.5, momentum=0.75), 2, clients
    )
    sgd = federated_testing.run_process(optimizers.build_sgd(1.0), 1, clients)
    update = sgd[0].metrics['finalizer']['update_norm']
    shared = outputs[0].state.client_work['shared']['momentum']
    self.assertAllClose(
        np.linalg.norm(federated_testing.flat(shared)), 0.25 * update
    )
    # The first change is a quarter of the gradient, times the rate.
    found = outputs[0].metrics['finalizer']['update_norm']
    self.assertAllClose(found, 0.5 * 0.25 * update, rtol=1e-5)

  @pytest.mark.usefixtures('native_runtime')
  def test_costs_of_both_exchanges(self):
    mimelite, mime = (
        federated_testing.run_natively(build(0.5), 1)[0].metrics['client_work'][
            'clients'
        ]
        for build in (optimizers.build_mimelite, optimizers.build_mime)
    )
    for clients, gradients_per_step in ((mimelite, 2), (mime, 3)):
      self.assertEqual(
          clients['num_gradient_evaluations'],
          gradients_per_step * clients['num_steps'],
      )
    model = 2 * 4 * 3 * (testing.NUM_FEATURES + 1)  # Of two clients.
    for name, more in (('bytes_up', model + 2 * 4), ('bytes_down', model)):
      self.assertEqual(mime[name] - mimelite[name], more, name)

  @pytest.mark.slow
  def test_without_momentum_it_is_sgd(self):
    found = federated_testing.run_process(optimizers.build_mimelite(0.5, 0.0))
    expected = federated_testing.run_process(optimizers.build_sgd(0.5))
    for f, e in zip(found, expected):
      tf.nest.map_structure(
          self.assertAllClose,
          f.state.global_model_weights.trainable,
          e.state.global_model_weights.trainable,
      )

  @pytest.mark.usefixtures('native_runtime')
  def test_mime_exchanges_twice_which_is_run_step_by_step(self):
    process = algorithms.build_fed_opt(
        testing.functional_model(), optimizers.build_mime(0.5, momentum=0.5)
    )
    clients = testing.clients([2, 5])
    expected = process.next(process.initialize(), clients)
    with runtime.CompiledContext(strict=True) as context:
      found = process.next(process.initialize(), clients)
      self.assertEqual(context.path_of(process.next), 'steps')
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
