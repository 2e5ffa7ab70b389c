# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the local training loop, in TensorFlow alone."""

import collections
import math

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tests.tff_adaptive.client_works import training_testing
from tff_adaptive import client_works
from tff_adaptive import optimizers
from tff_adaptive.client_works import local_training
from tff_adaptive.optimizers import optimizer as optimizer_lib


class _EvaluatesTwice(
    optimizer_lib.HparamsInState, optimizer_lib.ExtraArgsOptimizer
):
  """Evaluates each batch again at the same point and reports how it differs."""

  evaluates_again = True

  def __init__(self):
    super().__init__({'learning_rate': 0.1})

  def initialize(self, specs):
    del specs  # Unused.
    return collections.OrderedDict(
        learning_rate=0.1, gradient_gap=0.0, value_gap=0.0, norm=0.0
    )

  def next(self, state, weights, gradients, *, value, value_and_grad_fn):
    again, gradients_again = value_and_grad_fn(weights)
    gap = sum(
        tf.reduce_sum(tf.abs(a - b)) for a, b in zip(gradients, gradients_again)
    )
    state = collections.OrderedDict(
        state,
        gradient_gap=gap,
        value_gap=tf.abs(value - again),
        norm=tf.linalg.global_norm(gradients),
    )
    return state, weights

  def report(self, state):
    return collections.OrderedDict(
        (key, state[key]) for key in ('gradient_gap', 'value_gap', 'norm')
    )


class LocalTrainingTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.product(
      kind=['functional', 'variable'],
      loop=list(tff.learning.LoopImplementation),
  )
  @pytest.mark.sample(2)
  def test_sgd_equals_a_plain_loop(self, kind, loop):
    batches = testing.client(10, seed=0)
    result = training_testing.train(
        testing.either_model(kind),
        optimizers.build_sgd(0.5),
        batches,
        loop_implementation=loop,
        trace_steps=True,
    )
    update, losses = training_testing.plain_loop(batches, [0.5] * 3)
    self.assertAllClose(result.update, update, atol=1e-6)
    self.assertEqual(result.num_examples, 10)
    sums = result.statistics['sum']
    self.assertEqual(sums['num_steps'], 3)
    self.assertEqual(sums['num_gradient_evaluations'], 3)
    self.assertAllClose(
        sums['loss'], 4 * losses[0] + 4 * losses[1] + 2 * losses[2]
    )
    self.assertAllClose(sums['step_size'], 1.5)
    self.assertAllClose(result.statistics['max']['step_size'], 0.5)
    self.assertEqual(list(result.trace), ['loss', 'step_size'])
    self.assertAllClose(result.trace['loss'], losses)
    self.assertAllEqual(result.trace['step_size'], [0.5] * 3)

  @parameterized.parameters('functional', 'variable')
  def test_delta_sgd_counts_gradients_and_metrics_once(self, kind):
    batches = testing.client(10, seed=2)
    result = training_testing.train(
        testing.either_model(kind), optimizers.build_delta_sgd(), batches
    )
    sums = result.statistics['sum']
    self.assertEqual(sums['num_gradient_evaluations'], 5)
    # Keras' accuracy is (correct, seen): the second evaluation is not seen.
    self.assertEqual(result.metrics['accuracy'][1], 10.0)
    minimum = result.statistics['min']['step_size']
    maximum = result.statistics['max']['step_size']
    self.assertLessEqual(minimum, sums['step_size'] / 3)
    self.assertGreaterEqual(maximum, sums['step_size'] / 3)
    self.assertAllClose(minimum, 0.2)

  @parameterized.product(kind=['functional', 'variable'], dropout=[0.0, 0.5])
  @pytest.mark.sample(1)
  def test_evaluations_of_a_step_see_the_same_mask(self, kind, dropout):
    result = training_testing.train(
        testing.either_model(kind, dropout=dropout),
        _EvaluatesTwice(),
        [testing.client(8, seed=3, batch_size=8)[0]] * 4,
    )
    self.assertEqual(result.statistics['max']['gradient_gap'], 0.0)
    self.assertEqual(result.statistics['max']['value_gap'], 0.0)
    # The batch and the weights stay; only the masks differ from step to step.
    spread = result.statistics['max']['norm'] - result.statistics['min']['norm']
    if dropout:
      self.assertGreater(spread, 1e-3)
    else:
      self.assertEqual(spread, 0.0)

  @pytest.mark.slow
  def test_second_evaluation_leaves_batch_statistics_alone(self):
    batches = testing.client(8, seed=4)
    models = []

    def model_fn():
      models.append(testing.variable_model_fn(batch_norm=True)())
      return models[-1]

    moved = []
    for optimizer in (_EvaluatesTwice(), optimizers.build_sgd(0.0)):
      with self.assertWarnsRegex(UserWarning, 'GroupNormalization'):
        _, statistics = training_testing.train(
            model_fn,
            optimizer,
            batches,
            fetch_after=lambda: list(models[-1].non_trainable_variables),
        )
      moved.append(statistics)
    self.assertAllClose(moved[0], moved[1])
    self.assertNotAllClose(moved[0][0], np.zeros(testing.NUM_FEATURES))

  @parameterized.product(
      kind=['functional', 'variable'], client=['empty', 'not_finite']
  )
  @pytest.mark.sample(2)
  def test_unhealthy_client_sends_nothing(self, kind, client):
    batches = [] if client == 'empty' else testing.unhealthy_client()
    result = training_testing.train(
        testing.either_model(kind), optimizers.build_delta_sgd(), batches
    )
    for update in result.update:
      self.assertAllEqual(update, np.zeros_like(update))
    self.assertEqual(result.num_examples, 0)
    sums = dict(result.statistics['sum'])
    self.assertEqual(sums.pop('num_clients'), 1)
    self.assertAllEqual(list(sums.values()), [0] * len(sums))
    self.assertEqual(result.statistics['min']['step_size'], np.inf)
    self.assertEqual(result.statistics['max']['step_size'], -np.inf)
    self.assertAllEqual(result.metrics['accuracy'], [0.0, 0.0])

  def test_report_that_is_not_finite_makes_a_client_unhealthy(self):
    class Reports(_EvaluatesTwice):

      def report(self, state):
        return collections.OrderedDict(payload=state['norm'] / 0.0)

    result = training_testing.train(
        testing.functional_model(), Reports(), testing.client(4, seed=5)
    )
    self.assertEqual(result.num_examples, 0)
    self.assertEqual(result.statistics['sum']['payload'], 0.0)

  @parameterized.parameters('functional', 'variable')
  @pytest.mark.sample(1)
  def test_loss_term_pulls_back(self, kind):
    batches = testing.client(12, seed=6)
    norms, losses = [], []
    for term in (None, client_works.build_fedprox(3.0)):
      result = training_testing.train(
          testing.either_model(kind),
          optimizers.build_sgd(0.1),
          batches,
          loss_term=term,
      )
      norms.append(tf.linalg.global_norm(result.update).numpy())
      losses.append(result.statistics['sum']['loss'])
    self.assertLess(norms[1], 0.95 * norms[0])
    self.assertNotEqual(*losses)


class GradientOptionsTest(tf.test.TestCase, parameterized.TestCase):

  def test_off_by_default(self):
    given = (tf.constant([3.0]), None)
    options = local_training.GradientOptions()
    self.assertIs(options.apply((tf.ones([1]), tf.ones([1])), given), given)

  def test_clips_by_the_norm_over_all_tensors_then_decays(self):
    weights = (tf.constant([2.0]), tf.constant([10.0]), tf.constant(7.0))
    given = (tf.constant([3.0]), tf.constant([4.0]), None)
    options = local_training.GradientOptions(clip_norm=1.0, weight_decay=0.1)
    first, second, third = options.apply(weights, given)
    self.assertAllClose(first, [0.6 + 0.2])
    self.assertAllClose(second, [0.8 + 1.0])
    self.assertIsNone(third)

  @parameterized.parameters(0.0, 0.5)
  def test_small_gradients_are_not_scaled(self, size):
    (result,) = local_training.GradientOptions(clip_norm=1.0).apply(
        (tf.ones([1]),), (tf.constant([size]),)
    )
    self.assertAllClose(result, [size])

  def test_nan_stays_nan(self):
    (result,) = local_training.GradientOptions(clip_norm=1.0).apply(
        (tf.ones([2]),), (tf.constant([float('nan'), 1.0]),)
    )
    self.assertTrue(all(math.isnan(v) for v in result.numpy()))

  def test_indexed_slices_are_clipped(self):
    slices = tf.IndexedSlices(
        tf.constant([[6.0], [8.0]]), tf.constant([0, 2]), tf.constant([3, 1])
    )
    (result,) = local_training.GradientOptions(clip_norm=5.0).apply(
        (tf.zeros([3, 1]),), (slices,)
    )
    self.assertAllClose(result, [[3.0], [0.0], [4.0]])
