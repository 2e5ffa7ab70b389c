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

from tests.tff_adaptive import error_testing
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

_PARTS = {
    'client_learning_rate': 'client_work',
    'server_learning_rate': 'finalizer',
}
_sgd, _sgdm = optimizers.build_sgd, tff.learning.optimizers.build_sgdm
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


def _of_rule(name):
  build, arguments = _CLIENT_RULES[name]
  return lambda model: algorithms.build_fed_opt(
      model, build(**arguments), optimizers.build_fedavg(0.9)
  )


def _of_rules(*rules, **options):
  return lambda model: algorithms.build_fed_opt(
      model, *(build() for build in rules), **options
  )


def _of_tff(model):
  return tff.learning.algorithms.build_weighted_fed_avg(
      model, _sgdm(0.05), _sgdm(0.8)
  )


# Builders of processes. The first and the last name are always run.
_PROCESSES = {
    **{name: _of_rule(name) for name in _CLIENT_RULES},
    'fedadam': _of_rules(
        lambda: _sgd(0.05, momentum=0.9), lambda: optimizers.build_fedadam(0.1)
    ),
    'zero_moments_at_first': _of_rules(
        lambda: optimizers.build_adam(0.05),
        lambda: optimizers.build_fedyogi(0.1),
    ),
    'schedules_loss_terms_and_clipping': _of_rules(
        lambda: _sgd(0.05),
        lambda: optimizers.build_fedadam(0.1),
        client_weighting=tff.learning.ClientWeighting.UNIFORM,
        loss_term=loss_terms.build_fedprox(0.5),
        client_schedule=schedules.build_table({0: 1.0, 1: 0.5}),
        clip_norm=0.5,
    ),
    # For functional models TFF keeps the clients' rate out of the state.
    'tff': _of_tff,
    'server_without_a_rate': _of_rules(
        lambda: _sgd(0.05), optimizers.build_fedexp
    ),
    'fedavg': _of_rules(lambda: _sgd(0.05), optimizers.build_fedavg),
}


class HypergradientsTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    self.enter_context(runtime.CompiledContext(strict=True))

  @parameterized.named_parameters(*_PROCESSES.items())
  @pytest.mark.sample(1)
  def test_equals_finite_differences(self, build):
    model = testing.least_squares_model(np.float64, 2)
    process, loss_fn = build(model), tuning.build_model_loss(model)
    state, cohorts = process.initialize(), _cohorts(2)
    found = tuning.hypergradient(process, loss_fn)(state, cohorts, _batch())
    arguments = (cohorts, loss_fn, _batch())
    self.assertAlmostEqual(
        found.loss, _loss(process, state, {}, *arguments), places=12
    )
    hparams = process.get_hparams(state)
    for name, part in _PARTS.items():
      if 'learning_rate' not in hparams[part]:
        self.assertIsNone(getattr(found, name))
        continue
      expected = _difference(process, state, part, *arguments)
      self.assertNotEqual(expected, 0.0)
      np.testing.assert_allclose(
          getattr(found, name), expected, rtol=1e-4, err_msg=name
      )

  def test_loss_is_a_mean_also_if_the_model_sums(self):
    model = tff.learning.models.functional_model_from_keras(
        testing.keras_model(),
        tf.keras.losses.SparseCategoricalCrossentropy(
            from_logits=True, reduction='sum'
        ),
        testing.INPUT_SPEC,
    )
    loss_fn = tuning.build_model_loss(model)
    weights = tff.learning.models.ModelWeights(*model.initial_weights)
    (one,) = testing.client(1, seed=1)
    eight = tf.nest.map_structure(lambda t: np.repeat(t, 8, axis=0), one)
    self.assertAlmostEqual(
        float(loss_fn(weights, eight)), float(loss_fn(weights, one)), places=5
    )

  def test_what_a_loss_holds_back_from_its_gradient_is_differentiated(self):
    @tf.function
    def predict(model_weights, x, training):
      del training  # Unused.
      (w,), _ = model_weights
      return x * w * tf.stop_gradient(w)

    # The gradient of the loss is w, and a step w -= a w.
    model = tff.learning.models.FunctionalModel(
        initial_weights=((np.array(3.0),), ()),
        predict_on_batch_fn=predict,
        loss_fn=lambda output, *_: tf.reduce_mean(output),
        input_spec=(tf.TensorSpec([None], tf.float64),) * 2,
    )
    process = algorithms.build_fed_opt(model, optimizers.build_sgd(0.25))
    find = tuning.hypergradient(process, lambda weights: weights.trainable[0])
    one = np.ones([1])
    found = find(process.initialize(), [[[(one, one)] * 2]])
    self.assertAlmostEqual(found.loss, 3.0 * (1.0 - 0.25) ** 2)
    self.assertAlmostEqual(
        found.client_learning_rate, 3.0 * -2.0 * (1.0 - 0.25)
    )

  @pytest.mark.slow
  def test_of_shuffled_datasets_that_are_read_twice(self):
    model = testing.least_squares_model(np.float32, 2)
    process = tff.learning.algorithms.build_weighted_mime_lite(
        model, _sgdm(0.05, 0.5), _sgdm(0.8)
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
    # Without a tape, and then one after the other with a tape each, but for the
    # one without examples.
    self.assertEqual(trained, [0, 1, 2, 0, 2])

  @pytest.mark.slow
  def test_clients_that_are_rejected_change_nothing(self):
    model = testing.least_squares_model(np.float64, 2)
    process = algorithms.build_fed_opt(
        model, optimizers.build_sgd(0.05), optimizers.build_fedadam(0.1)
    )
    find = tuning.hypergradient(process, tuning.build_model_loss(model))
    healthy = testing.least_squares_dataset(9, np.float64, 2, seed=1)
    bad = healthy.map(lambda x, y: (np.nan * x, y))
    state = process.initialize()
    expected = find(state, [[healthy]], _batch())
    self.assertTrue(np.all(np.isfinite(expected)))
    # The last rounds have no healthy client.
    found = find(state, [[healthy, bad], [], [bad]], _batch())
    np.testing.assert_allclose(found, expected, rtol=1e-12)

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


def _find(model, *rules):
  """Builds the hypergradient of a process."""
  process = algorithms.build_fed_opt(model(), *(rule() for rule in rules))
  return tuning.hypergradient(process, lambda weights: 0.0)


_model, _variables = testing.functional_model, testing.variable_model_fn
_unsupported = functools.partial(
    error_testing.row, runtime.UnsupportedComputationError
)
_value = error_testing.value_error
test_processes_are_refused = error_testing.refused(
    _unsupported('FunctionalModel', tuning.build_model_loss, _variables()),
    _unsupported('FunctionalModel', _find, _variables, lambda: _sgd(0.1)),
    _value(
        'no learning rate in its state',
        _find,
        *(_model, optimizers.build_sps, optimizers.build_fedexp),
    ),
    _value('client_work is an integer', _find, _model, lambda: _sgdm(1)),
    _unsupported(
        'clients keep state',
        _find,
        _model,
        lambda: optimizers.build_scaffold_sgd(4, 0.1),
    ),
)
