# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of batch statistics as a payload; `zoo_test` has their numbers."""

import collections
import functools

from absl.testing import parameterized
import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive.runtime import compiled_testing
from tff_adaptive import algorithms
from tff_adaptive import client_works
from tff_adaptive import data
from tff_adaptive import evaluation
from tff_adaptive import models
from tff_adaptive import optimizers
from tff_adaptive import privacy

_SPEC = (tf.TensorSpec([None, 2]), tf.TensorSpec([None, 1]))
_UNIFORM = tff.learning.ClientWeighting.UNIFORM
_MOMENTUM = 0.9


@functools.cache
def _model(batch_statistics='aggregate', dtype='float32'):
  keras.utils.set_random_seed(1)
  model = keras.Sequential(
      [
          keras.Input([2]),
          keras.layers.BatchNormalization(momentum=_MOMENTUM, dtype=dtype),
          keras.layers.Dense(1),
      ]
  )
  return models.from_keras(
      model, 'mse', input_spec=_SPEC, batch_statistics=batch_statistics
  )


def _client(x):
  return [(np.array(x, np.float32), np.ones([len(x), 1], np.float32))]


def _sum_of_update(end):
  return tf.add_n(list(map(tf.reduce_sum, end.update)))


_CLIENTS = [_client([[0, 1], [4, 1]]), _client([[1, 3], [1, 5]])]


def _train(process, clients, num_rounds=1):
  state = process.initialize()
  with compiled_testing.installed():
    for _ in range(num_rounds):
      output = process.next(state, clients)
      state = output.state
  return process.get_model_weights(state), output.metrics


_TRAINED_BYTES, _MOVED_BYTES = 4 * (2 + 2 + 2 + 1), 4 * (2 + 2)


class BatchStatisticsTest(parameterized.TestCase):

  def assert_bytes(self, metrics, down, up):
    measured = metrics['client_work']['clients']
    self.assertEqual((measured['bytes_down'], measured['bytes_up']), (down, up))

  def test_privacy_needs_a_bound(self):
    build = functools.partial(
        algorithms.build_fed_opt,
        _model(),
        optimizers.build_sgd(0.1),
        client_weighting=_UNIFORM,
    )
    fixed = functools.partial(
        privacy.DifferentialPrivacy,
        noise_multiplier=0.0,
        clients_per_round=2,
        clip_norm=1.0,
    )
    with self.assertRaisesRegex(ValueError, "send .'batch_statistics'."):
      build(privacy=fixed())
    bounded = fixed(payload_clip_norms={'batch_statistics': 0.02})
    weights, _ = _train(build(privacy=bounded), _CLIENTS)
    change = np.concatenate(
        [weights.non_trainable[0], [0, 0]]
    ) - np.concatenate([[0, 0], weights.non_trainable[1] - 1])
    self.assertBetween(np.linalg.norm(change), 1e-3, 0.02 + 1e-6)
    with self.assertRaisesRegex(ValueError, "send .'batch_statistics'. in the"):
      build(
          model_aggregator=tff.learning.dp_aggregator(0.1, 2.0),
      )

  @pytest.mark.slow
  def test_own_aggregator(self):
    clipping = tff.aggregators.clipping_factory(
        0.001, tff.aggregators.UnweightedMeanFactory()
    )
    process = algorithms.build_fed_opt(
        _model(),
        optimizers.build_sgd(0.1),
        optimizers.build_fedadam(0.1),
        client_weighting=_UNIFORM,
        payload_aggregators={'batch_statistics': clipping},
    )
    weights, metrics = _train(process, _CLIENTS)
    self.assertLess(np.abs(weights.non_trainable[0]).max(), 0.001)
    self.assertIn('batch_statistics', metrics['aggregator'])
    each = 4 + _TRAINED_BYTES + _MOVED_BYTES
    self.assert_bytes(metrics, down=2 * each, up=2 * each)

  @pytest.mark.slow
  def test_noise_makes_no_negative_variance(self):
    noisy = privacy.DifferentialPrivacy(
        noise_multiplier=100.0,
        clients_per_round=2,
        payload_clip_norms={'batch_statistics': 1.0},
    )
    process = algorithms.build_fed_opt(
        _model(),
        optimizers.build_sgd(0.1),
        client_weighting=_UNIFORM,
        privacy=noisy,
    )
    weights, _ = _train(process, _CLIENTS, num_rounds=3)
    mean, variance = weights.non_trainable
    self.assertGreater(np.abs(mean).max(), 10.0)
    self.assertGreaterEqual(variance.min(), 0.0)

  @pytest.mark.slow
  def test_rejected_client_has_no_statistics(self):
    # The rule of the server reads a report, and moves the weights alone.
    process = algorithms.build_fed_opt(
        _model(), optimizers.build_sgd(0.1), optimizers.build_fedexp()
    )
    broken = _client([[np.nan, 0]])
    weights, metrics = _train(process, [_CLIENTS[0], broken, []])
    self.assertEqual(metrics['client_work']['clients']['num_rejected'], 2)
    np.testing.assert_allclose(
        weights.non_trainable,
        [[0.1 * 2, 0.1 * 1], [0.9 + 0.1 * 4, 0.9]],
        rtol=1e-6,
    )
    initial = process.get_model_weights(process.initialize())
    weights, metrics = _train(process, [broken])
    self.assertEqual(metrics['finalizer']['update_non_finite'], 1)
    np.testing.assert_array_equal(weights.non_trainable, initial.non_trainable)

  @parameterized.parameters('local', 'fedbn')
  def test_mime_has_no_own_statistics_in_its_survey(self, kind):
    with self.assertRaisesRegex(ValueError, 'batch statistics.*mimelite'):
      algorithms.build_fed_opt(_model(kind), optimizers.build_mime())

  @parameterized.parameters(
      (keras, 'moving_variance', 0.0),
      (keras, 'moving_covariance', -0.25),
      (tf.keras, 'moving_variance', 0.0),
      (tf.keras, 'moving_covariance', -0.25),
  )
  def test_only_variances_stay_above_zero(self, version, name, wanted):
    class Follow(version.layers.Layer):

      def build(self, shape):
        self.followed = self.add_weight(
            shape=(2,), initializer='zeros', trainable=False, name=name
        )

      def call(self, x, training=False):
        if training:
          self.followed.assign(0.5 * self.followed + 0.5 * x[0])
        return x

    keras_model = version.Sequential(
        [
            version.Input([2]),
            Follow(name='variance_of_inputs'),
            version.layers.Dense(1),
        ]
    )
    model = models.from_keras(
        keras_model, 'mse', input_spec=_SPEC, batch_statistics='aggregate'
    )
    process = algorithms.build_fed_opt(model, optimizers.build_sgd(0.1))
    weights, _ = _train(process, [_client([[-0.5, 1]])])
    np.testing.assert_array_equal(weights.non_trainable, [[wanted, 0.5]])

  @parameterized.parameters(('local', 2), ('fedbn', 3))
  @pytest.mark.sample(1)
  def test_statistics_that_clients_keep_are_received_alone(self, kind, kept):
    process = algorithms.build_fed_opt(_model(kind), optimizers.build_sgd(0.1))
    clients = [
        dict(data=batches, client_id=[str(i)], client_state=[])
        for i, batches in enumerate(_CLIENTS)
    ]
    _, metrics = _train(process, clients)
    self.assert_bytes(
        metrics,
        down=2 * (4 + _TRAINED_BYTES + kept * _MOVED_BYTES),
        up=2 * (4 + _TRAINED_BYTES),
    )

  def test_what_clients_keep_is_in_no_update_of_a_rule(self):
    model = _model('fedbn')
    ones = tuple(np.ones(w.shape, 'f') for w in model.initial_weights[0])
    statistics = (np.float32([0, 0]), np.float32([1, 1]))
    work = client_works.build_local_training_client_work(
        model,
        optimizers.build_fedspeed(2, learning_rate=0.0, rho=0.0),
        _UNIFORM,
        reports={'sum': optimizers.Report(_sum_of_update)},
    )
    kept = collections.OrderedDict(
        optimizer=collections.OrderedDict(dual=ones),
        batch_statistics=(*statistics, *ones[:2]),
    )
    client = dict(data=_CLIENTS[0], client_id=['a'], client_state=[kept])
    weights = tff.learning.models.ModelWeights(*model.initial_weights)
    with compiled_testing.installed():
      output = work.next(work.initialize(), [weights], [client])
    (sent,) = output.result
    # Of the dual, 1 everywhere, scale and shift are not sent.
    wanted = [0 * ones[0], 0 * ones[1], -ones[2], -ones[3]]
    for found, expected in zip(sent.update['change'], wanted):
      np.testing.assert_array_equal(found, expected)
    self.assertEqual(sent.update['reports']['sum'], -3.0)

  @parameterized.parameters('aggregate', 'local', 'fedbn')
  @pytest.mark.sample(1)
  def test_fine_tuning_moves_statistics(self, batch_statistics):
    arrays = {
        'x': np.array([[9, 1], [7, 5]], np.float32),
        'y': np.ones([2, 1], np.float32),
    }
    spec = {'x': tf.TensorSpec([2]), 'y': tf.TensorSpec([1])}
    named = models.from_keras(
        _model(batch_statistics).keras_model,
        'mse',
        input_spec={
            name: tf.TensorSpec([None, *s.shape]) for name, s in spec.items()
        },
        batch_statistics=batch_statistics,
    )
    clients = data.read_clients({'a': arrays}, spec)
    evaluate = evaluation.build_personalized_evaluation(
        named, clients, clients, optimizers.build_sgd(0.0), num_steps=100
    )
    weights = tff.learning.models.ModelWeights(*named.initial_weights)
    found = evaluate(weights)
    statistics = (np.float32([8, 3]), np.float32([1, 4]))
    kept = statistics
    if batch_statistics == 'fedbn':
      kept += (np.ones([2], np.float32), np.zeros([2], np.float32))
    moved = models.with_batch_statistics(named, weights, kept)
    wanted = evaluation.build_central_evaluation(named, arrays)(moved)
    self.assertAlmostEqual(
        found.after.values['loss'][0], wanted['loss'], places=1
    )
    self.assertNotAlmostEqual(
        found.before.values['loss'][0], wanted['loss'], places=1
    )
