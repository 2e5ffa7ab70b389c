# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that AutoGraph converts the code of users, and that of no rule."""

import collections
from unittest import mock

from absl.testing import parameterized
import pytest
import tensorflow as tf
from tensorflow.python.autograph.impl import api
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tff_adaptive import algorithms
from tff_adaptive import optimizers
from tff_adaptive import runtime
from tff_adaptive.optimizers import vector_optimizer

_CLIENTS = testing.clients([6, 3])
_LARGE = 1e9


class _Branching(tff.learning.optimizers.Optimizer):
  """SGD, whose step is a branch of Python on a tensor."""

  def __init__(self, learning_rate):
    self._sgd = tff.learning.optimizers.build_sgdm(learning_rate)

  def initialize(self, specs):
    return self._sgd.initialize(specs)

  def next(self, state, weights, gradients):
    if tf.linalg.global_norm(tf.nest.flatten(gradients)) < _LARGE:
      gradients = tf.nest.map_structure(lambda g: 1.0 * g, gradients)
    else:
      gradients = tf.nest.map_structure(tf.zeros_like, gradients)
    return self._sgd.next(state, weights, gradients)


class _BranchingVector(vector_optimizer.VectorOptimizer):
  """SGD as a formula with a branch."""

  name = 'Branching'

  def step(self, state, x, g, hparams, extra):
    if state['num_steps'] < 1000:
      rate = hparams['learning_rate']
    else:
      rate = tf.zeros([])
    return {}, tf.nest.map_structure(lambda x, g: x - rate * g, x, g)


class _BranchingServer(optimizers.ServerOptimizer):
  """SGD of a server with a branch on the loss of the clients."""

  client_reports = optimizers.build_frank_wolfe().client_reports

  def initialize(self, specs):
    return collections.OrderedDict()

  def next(self, state, weights, gradients, *, reports):
    if reports['mean_loss'] < _LARGE:
      rate = 0.5
    else:
      rate = 0.0
    return state, tf.nest.map_structure(
        lambda w, g: w - rate * g, weights, gradients
    )


class _BranchingLayer(tf.keras.layers.Layer):
  """The identity, as a branch."""

  def call(self, inputs):
    if tf.reduce_sum(inputs) < _LARGE:
      return 1.0 * inputs
    else:
      return 0.0 * inputs


def _branching_term(weights, received, batch):
  del received, batch
  if tf.reduce_sum(tf.square(weights[0])) < _LARGE:
    penalty = 0.01 * tf.reduce_sum(tf.square(weights[0]))
  else:
    penalty = 0.0
  return penalty


def _plain_term(weights, received, batch):
  del received, batch
  return 0.01 * tf.reduce_sum(tf.square(weights[0]))


def _model(kind, layers):
  """Returns a linear classifier with more layers before it."""

  def keras_model():
    last = testing.keras_model().layers
    return tf.keras.Sequential(
        [tf.keras.layers.InputLayer((testing.NUM_FEATURES,)), *layers(), *last]
    )

  loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
  if kind == 'variable':
    return lambda: tff.learning.models.from_keras_model(
        keras_model(), loss, testing.INPUT_SPEC
    )
  return tff.learning.models.functional_model_from_keras(
      keras_model(), loss, testing.INPUT_SPEC
  )


def _train(model, client_optimizer, server_optimizer, loss_term):
  process = algorithms.build_fed_opt(
      model, client_optimizer, server_optimizer, loss_term=loss_term
  )
  with runtime.CompiledContext(devices='CPU', strict=True):
    output = process.next(process.initialize(), _CLIENTS)
  return testing.trainable(output.state)


class AutographTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.parameters(
      (
          'functional',
          _BranchingVector({'learning_rate': 0.1}),
          _BranchingServer(),
      ),
      ('variable', _Branching(0.1), _Branching(0.5)),
  )
  @pytest.mark.slow
  def test_code_of_users_branches_on_tensors(self, kind, client, server):
    found = _train(
        _model(kind, lambda: [_BranchingLayer()]),
        client,
        server,
        _branching_term,
    )
    expected = _train(
        _model(kind, lambda: []),
        optimizers.build_sgd(0.1),
        optimizers.build_sgd(0.5),
        _plain_term,
    )
    self.assertAllClose(found, expected, rtol=1e-6)

  def test_functions_of_the_package_stay_as_written(self):
    with mock.patch.object(
        api, '_convert_actual', side_effect=api._convert_actual
    ) as convert:
      algorithms.build_fed_opt(
          testing.functional_model(),
          optimizers.build_delta_sgd(),
          optimizers.build_adam(0.1),
      )
    converted = {
        call.args[0].__name__
        for call in convert.call_args_list
        if call.args[0].__module__.startswith('tff_adaptive.')
    }
    # A `tf.function` begins with these.
    self.assertEqual(
        converted,
        {'__call__', 'flat_fn', 'apply', 'find_scale', 'select_state'},
    )
