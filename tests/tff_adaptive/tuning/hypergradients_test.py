# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of hypergradients, against finite differences of the compiled round."""

import functools
import math
from unittest import mock

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tests.tff_adaptive.optimizers import rules_testing
from tff_adaptive import algorithms
from tff_adaptive import data
from tff_adaptive import optimizers
from tff_adaptive import runtime
from tff_adaptive import tuning
from tff_adaptive.client_works import loss_terms
from tff_adaptive.optimizers import schedules
from tff_adaptive.tuning import differentiation

# Prodigy's is without a bound by default, so it comes first.
_UNBOUNDED = dict(initial_distance=0.1, growth_rate=math.inf)
# With rate 1, the first step of DoG is as long as its first distance, so that
# the maximum of the two has a kink, and MoMo's bound of its steps does nothing.
_OTHER_RATES = dict(dog=1.2, dowg=1.2, momo=0.05, momo_star=0.05)
_CLIENT_RULES = {
    'prodigy': (optimizers.build_prodigy, _UNBOUNDED),
    'd_adaptation_adam_unbounded': (
        optimizers.build_d_adaptation_adam,
        _UNBOUNDED,
    ),
    **{
        name: (
            build,
            {**arguments, 'learning_rate': _OTHER_RATES[name]}
            if name in _OTHER_RATES
            else arguments,
        )
        for name, build, arguments, _ in rules_testing.RULES
        if name not in ('prodigy', 'mime', *rules_testing.SERVER_RULES)
        and not getattr(build(**arguments), 'initialize_kept', dict.copy)({})
    },
}

_UNIFORM = tff.learning.ClientWeighting.UNIFORM
_PARTS = {
    'client_learning_rate': 'client_work',
    'server_learning_rate': 'finalizer',
}
# Relative to the rate; the error of a difference goes with its square.
_STEP = 1e-3


def _cohorts(num_rounds):
  """Returns three clients of different sizes a round, one of them empty."""
  return [
      [
          testing.least_squares_dataset(size, np.float64, 2, seed=10 * t + size)
          for size in (9, 0, 6)
      ]
      for t in range(num_rounds)
  ]


def _batch():
  return next(iter(testing.least_squares_dataset(4, np.float64, 2, seed=99)))


def _loss(process, state, rates, cohorts, loss_fn, batch):
  """Returns the loss after rounds of the compiled runtime."""
  hparams = process.get_hparams(state)
  for part, rate in rates.items():
    hparams[part]['learning_rate'] = rate
  state = process.set_hparams(state, hparams)
  for cohort in cohorts:
    state = process.next(state, cohort).state
  return float(loss_fn(process.get_model_weights(state), batch))


def _difference(process, state, part, *arguments):
  """Returns the finite difference of the loss by the rate of a part."""
  rate = float(process.get_hparams(state)[part]['learning_rate'])
  ends = [np.float32(rate * (1.0 + sign * _STEP)) for sign in (-1, 1)]
  low, high = (_loss(process, state, {part: end}, *arguments) for end in ends)
  return (high - low) / (float(ends[1]) - float(ends[0]))


class HypergradientsTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    self.enter_context(runtime.CompiledContext(strict=True))

  def _assert_equals_differences(self, model, process, rates=tuple(_PARTS)):
    loss_fn = tuning.build_model_loss(model)
    state, cohorts = process.initialize(), _cohorts(2)
    found = tuning.hypergradient(process, loss_fn)(state, cohorts, _batch())
    arguments = (cohorts, loss_fn, _batch())
    self.assertAlmostEqual(
        found.loss, _loss(process, state, {}, *arguments), places=12
    )
    for name in rates:
      expected = _difference(process, state, _PARTS[name], *arguments)
      self.assertNotEqual(expected, 0.0)
      np.testing.assert_allclose(
          getattr(found, name), expected, rtol=1e-4, err_msg=name
      )
    return found

  @parameterized.named_parameters(
      ('fedavg', lambda: optimizers.build_sgd(0.05), optimizers.build_fedavg),
      (
          'fedadam',
          lambda: optimizers.build_sgd(0.05, momentum=0.9),
          lambda: optimizers.build_fedadam(0.1),
      ),
      (
          'fedavg_of_delta_sgd',
          lambda: optimizers.build_delta_sgd(0.05),
          lambda: optimizers.build_fedavg(0.9),
      ),
      (
          'roots_of_moments_that_are_zero_at_first',
          lambda: optimizers.build_adam(0.05),
          lambda: optimizers.build_fedyogi(0.1),
      ),
  )
  @pytest.mark.sample(1)
  def test_equals_finite_differences(self, client_optimizer, server_optimizer):
    model = testing.least_squares_model(np.float64, 2)
    process = algorithms.build_fed_opt(
        model, client_optimizer(), server_optimizer()
    )
    self._assert_equals_differences(model, process)

  @parameterized.named_parameters(*zip(_CLIENT_RULES, _CLIENT_RULES))
  @pytest.mark.sample(1)
  def test_every_client_rule(self, name):
    model = testing.least_squares_model(np.float64, 2)
    build, arguments = _CLIENT_RULES[name]
    rule = build(**arguments)
    process = algorithms.build_fed_opt(
        model, rule, optimizers.build_fedavg(0.9)
    )
    rates = list(_PARTS)
    if (
        'learning_rate'
        not in process.get_hparams(process.initialize())['client_work']
    ):
      rates.remove('client_learning_rate')
    self._assert_equals_differences(model, process, rates)

  @pytest.mark.slow
  def test_goes_through_schedules_loss_terms_and_clipping(self):
    model = testing.least_squares_model(np.float64, 2)
    process = algorithms.build_fed_opt(
        model,
        optimizers.build_sgd(0.05),
        optimizers.build_fedadam(0.1),
        client_weighting=_UNIFORM,
        loss_term=loss_terms.build_fedprox(0.5),
        client_schedule=schedules.build_table({0: 1.0, 1: 0.5}),
        clip_norm=0.5,
    )
    self._assert_equals_differences(model, process)

  @pytest.mark.slow
  def test_of_a_stock_process(self):
    model = testing.least_squares_model(np.float64, 2)
    process = tff.learning.algorithms.build_weighted_fed_avg(
        model,
        client_optimizer_fn=tff.learning.optimizers.build_sgdm(0.05),
        server_optimizer_fn=tff.learning.optimizers.build_sgdm(0.8),
    )
    found = self._assert_equals_differences(
        model, process, ['server_learning_rate']
    )
    # For functional models TFF keeps that of the clients out of the state.
    self.assertIsNone(found.client_learning_rate)

  @pytest.mark.slow
  def test_of_shuffled_datasets_that_are_read_twice(self):
    model = testing.least_squares_model(np.float32, 2)
    sgdm = tff.learning.optimizers.build_sgdm
    process = tff.learning.algorithms.build_weighted_mime_lite(
        model, sgdm(0.05, 0.5), sgdm(0.8)
    )

    def client(size):
      dataset = testing.least_squares_dataset(size, np.float32, 2, seed=size)
      return dataset.unbatch().shuffle(9, seed=2).batch(2)

    cohorts = [[client(9), client(0), client(6)]]
    batch = next(iter(client(4)))
    loss_fn = tuning.build_model_loss(model)
    state = process.initialize()
    found = tuning.hypergradient(process, loss_fn)(state, cohorts, batch)
    expected = _difference(process, state, 'finalizer', cohorts, loss_fn, batch)
    self.assertAlmostEqual(found.server_learning_rate, expected, places=3)

  @pytest.mark.slow
  def test_a_rule_without_a_rate_has_none(self):
    model = testing.least_squares_model(np.float64, 2)
    process = algorithms.build_fed_opt(
        model, optimizers.build_sgd(0.05), optimizers.build_fedexp()
    )
    found = self._assert_equals_differences(
        model, process, ['client_learning_rate']
    )
    self.assertIsNone(found.server_learning_rate)

  @pytest.mark.slow
  def test_same_dropout_as_in_the_round(self):
    model = testing.functional_model(dropout=0.5)
    process = algorithms.build_fed_opt(model, optimizers.build_sgd(0.5))
    examples = {
        'x': np.random.default_rng(1).normal(size=[8, 5]).astype(np.float32),
        'y': np.arange(8, dtype=np.int32) % 3,
    }
    source = data.PackedClientArrays.from_clients({'a': examples})
    cohort = data.Cohort(
        source, ['a'], round_num=7, seed=3, plan=data.BatchPlan(batch_size=4)
    )
    loss_fn, state = tuning.build_model_loss(model), process.initialize()
    find = tuning.hypergradient(process, loss_fn)
    found = find(state, [cohort], examples)
    self.assertAlmostEqual(
        found.loss,
        _loss(process, state, {}, [cohort], loss_fn, examples),
        places=5,
    )
    self.assertNotEqual(found.client_learning_rate, 0.0)

  @pytest.mark.slow
  def test_a_client_is_trained_once_more_for_its_gradient(self):
    model = testing.least_squares_model(np.float64, 2)
    process = algorithms.build_fed_opt(model, optimizers.build_sgd(0.05))
    build = differentiation.DifferentiableRound._trainings
    trained = []

    def build_counted(*arguments):
      def count(number, train, *broadcast):
        trained.append(number)
        return train(*broadcast)

      return [
          functools.partial(count, number, train)
          for number, train in enumerate(build(*arguments))
      ]

    find = tuning.hypergradient(process, tuning.build_model_loss(model))
    with mock.patch.object(
        differentiation.DifferentiableRound, '_trainings', build_counted
    ):
      find(process.initialize(), _cohorts(1), _batch())
    # Without a tape, and then one after the other with a tape each.
    self.assertEqual(trained, [0, 1, 2, 0, 1, 2])

  def test_a_variable_model_is_refused(self):
    with self.assertRaisesRegex(
        runtime.UnsupportedComputationError, 'FunctionalModel'
    ):
      tuning.build_model_loss(testing.variable_model_fn())
    process = algorithms.build_fed_opt(
        testing.variable_model_fn(), optimizers.build_sgd(0.1)
    )
    with self.assertRaisesRegex(
        runtime.UnsupportedComputationError, 'FunctionalModel'
    ):
      tuning.hypergradient(process, lambda weights: 0.0)

  def test_a_process_without_rates_is_refused(self):
    process = algorithms.build_fed_opt(
        testing.functional_model(),
        optimizers.build_sps(),
        optimizers.build_fedexp(),
    )
    with self.assertRaisesRegex(ValueError, 'no learning rate in its state'):
      tuning.hypergradient(process, lambda weights: 0.0)

  def test_integer_rates_are_refused(self):
    process = algorithms.build_fed_opt(
        testing.functional_model(),
        tff.learning.optimizers.build_sgdm(1),
    )
    with self.assertRaisesRegex(ValueError, 'client_work is an integer'):
      tuning.hypergradient(process, lambda weights: 0.0)

  def test_clients_that_keep_state_are_refused(self):
    process = algorithms.build_fed_opt(
        testing.functional_model(), optimizers.build_scaffold_sgd(4, 0.1)
    )
    with self.assertRaisesRegex(
        runtime.UnsupportedComputationError, 'clients keep state'
    ):
      tuning.hypergradient(process, lambda weights: 0.0)

  @parameterized.named_parameters(
      ('custom_gradient', tf.nn.silu, 'tf.custom_gradient'),
      (
          'no_second_derivative',
          lambda x: tf.nn.lrn(x[:, tf.newaxis, tf.newaxis])[:, 0, 0],
          'LRNGrad',
      ),
  )
  @pytest.mark.sample(1)
  def test_an_op_without_a_derivative_is_refused(self, op, message):
    keras_model = tf.keras.Sequential(
        [
            tf.keras.layers.InputLayer((testing.NUM_FEATURES,)),
            tf.keras.layers.Dense(testing.NUM_CLASSES),
            tf.keras.layers.Lambda(op),
        ]
    )
    model = tff.learning.models.functional_model_from_keras(
        keras_model,
        tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        testing.INPUT_SPEC,
    )
    process = algorithms.build_fed_opt(model, optimizers.build_sgd(0.1))
    with self.assertRaisesRegex(runtime.UnsupportedComputationError, message):
      find = tuning.hypergradient(
          process, lambda weights: tf.reduce_sum(weights.trainable[0])
      )
      find(process.initialize(), [testing.clients([4])])
