# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of generalized federated averaging, on TFF's native runtime."""

import collections
import functools

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tests.tff_adaptive.algorithms import fed_opt_testing
from tff_adaptive import algorithms
from tff_adaptive import optimizers

_UNIFORM = tff.learning.ClientWeighting.UNIFORM
_BY_EXAMPLES = tff.learning.ClientWeighting.NUM_EXAMPLES


@functools.cache
def _process(build, weighting, **options):
  return algorithms.build_fed_opt(
      testing.functional_model(), build(), client_weighting=weighting, **options
  )


@pytest.mark.usefixtures('native_runtime')
class FedOptTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.product(kind=['functional', 'variable'], momentum=[0.0, 0.9])
  @pytest.mark.sample(1)
  def test_equals_stock_weighted_fed_avg(self, kind, momentum):
    model = testing.either_model(kind)
    ours = algorithms.build_fed_opt(model, optimizers.build_sgd(0.1, momentum))
    stock = tff.learning.algorithms.build_weighted_fed_avg(
        model, tff.learning.optimizers.build_sgdm(0.1, momentum or None)
    )
    ours_state, stock_state = ours.initialize(), stock.initialize()
    for _ in range(3):
      ours_output = ours.next(ours_state, fed_opt_testing.clients())
      stock_output = stock.next(stock_state, fed_opt_testing.clients())
      ours_state, stock_state = ours_output.state, stock_output.state
      self.assertAllClose(
          testing.trainable(ours_state),
          testing.trainable(stock_state),
          rtol=0,
          atol=1e-7,
      )
      ours_train, stock_train = (
          output.metrics['client_work']['train']
          for output in (ours_output, stock_output)
      )
      self.assertEqual(list(ours_train), list(stock_train))
      self.assertAllClose(ours_train, stock_train)
    self.assertEqual(
        str(ours.next.type_signature.parameter[1]),
        str(stock.next.type_signature.parameter[1]),
    )

  def test_takes_what_tff_users_pass(self):
    process = _process(optimizers.build_sgd, _BY_EXAMPLES)
    datasets = [testing.dataset(10, seed=1), testing.dataset(7, seed=2)]
    for w, v in zip(
        fed_opt_testing.train(process, datasets), fed_opt_testing.train(process)
    ):
      self.assertAllEqual(w, v)

  def test_takes_functional_models_with_named_weights_and_pairs(self):
    @tf.function
    def predict(weights, x, training):
      del training  # Unused.
      return tf.linalg.matvec(x, weights[0]['w']) + weights[0]['b']

    def loss(output, label, sample_weight=None):
      del sample_weight  # Unused.
      return tf.reduce_mean(tf.square(output - label))

    model = tff.learning.models.FunctionalModel(
        initial_weights=(
            collections.OrderedDict(
                w=np.zeros([2], np.float32), b=np.float32(0.0)
            ),
            (),
        ),
        predict_on_batch_fn=predict,
        loss_fn=loss,
        input_spec=(
            tf.TensorSpec([None, 2], tf.float32),
            tf.TensorSpec([None], tf.float32),
        ),
    )
    process = algorithms.build_fed_opt(model, optimizers.build_sgd(0.5))
    batch = (np.array([[1.0, 0.0]], np.float32), np.array([1.0], np.float32))
    weights = process.get_model_weights(
        fed_opt_testing.run_round(process, [[batch]]).state
    )
    self.assertAllClose(weights.trainable['w'], [1.0, 0.0])
    self.assertAllClose(weights.trainable['b'], 1.0)

  @parameterized.named_parameters(
      ('uniform', _UNIFORM, 0.5), ('by_examples', _BY_EXAMPLES, 10 / 17)
  )
  def test_weighting(self, weighting, first_share):
    process = _process(optimizers.build_sgd, weighting)
    first, second = (
        fed_opt_testing.change(process, [c]) for c in fed_opt_testing.clients()
    )
    self.assertAllClose(
        fed_opt_testing.change(process),
        first_share * first + (1 - first_share) * second,
        atol=1e-6,
    )

  def test_hparams_and_weights_accessors(self):
    process = _process(optimizers.build_delta_sgd, _BY_EXAMPLES)
    state = process.initialize()
    hparams = process.get_hparams(state)
    self.assertAllClose(
        hparams['client_work'],
        dict(learning_rate=0.2, theta=1.0, gamma=2.0, delta=0.1),
    )
    self.assertAllClose(hparams['finalizer'], dict(learning_rate=1.0))
    hparams['client_work']['learning_rate'] = 0.05
    hparams['finalizer']['learning_rate'] = 0.0
    changed = process.set_hparams(state, hparams)
    output = process.next(changed, fed_opt_testing.clients())
    self.assertAllClose(
        output.metrics['client_work']['clients']['step_size_min'], 0.05
    )
    weights = process.get_model_weights(output.state)
    self.assertAllEqual(weights.trainable[0], testing.trainable(state)[0])
    doubled = tff.learning.models.ModelWeights(
        tuple(2.0 * w for w in weights.trainable), weights.non_trainable
    )
    replaced = process.set_model_weights(state, doubled)
    self.assertAllEqual(testing.trainable(replaced)[0], doubled.trainable[0])

  @parameterized.parameters('functional', 'variable')
  @pytest.mark.slow
  def test_clipping_and_weight_decay_reach_the_optimizer(self, kind):
    def change(**options):
      process = algorithms.build_fed_opt(
          testing.either_model(kind), optimizers.build_sgd(1.0), **options
      )
      start = testing.trainable(process.initialize())
      output = fed_opt_testing.run_round(process, [testing.client(4, seed=1)])
      return start, [
          new - old for new, old in zip(testing.trainable(output.state), start)
      ]

    start, plain = change()
    _, clipped = change(clip_norm=0.01)
    self.assertAllClose(tf.linalg.global_norm(clipped), 0.01, rtol=1e-4)
    _, decayed = change(weight_decay=0.5)
    for w, p, d in zip(start, plain, decayed):
      self.assertAllClose(d, p - 0.5 * w, atol=1e-6)

  def test_measures_bytes_and_evaluations(self):
    process = _process(optimizers.build_delta_sgd, _BY_EXAMPLES)
    output = fed_opt_testing.run_round(process)
    measured = output.metrics['client_work']['clients']
    num_weights = testing.NUM_FEATURES * testing.NUM_CLASSES + 3
    # Down: the weights and four hyperparameters; up: the change, its weight.
    self.assertEqual(measured['bytes_down'], 2 * 4 * (num_weights + 4))
    self.assertEqual(measured['bytes_up'], 2 * 4 * (num_weights + 1))
    self.assertEqual(measured['num_steps'], 3 + 2)
    self.assertEqual(measured['num_gradient_evaluations'], 5 + 3)
