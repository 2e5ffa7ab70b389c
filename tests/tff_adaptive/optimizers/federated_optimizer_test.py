# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of optimizers whose state is carried from round to round."""

import collections
import inspect

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tests.tff_adaptive.optimizers import federated_testing
from tests.tff_adaptive.optimizers import rules_testing
from tests.tff_adaptive.runtime import compiled_testing
from tff_adaptive import algorithms
from tff_adaptive import optimizers
from tff_adaptive.optimizers import federated_optimizer

_SPECS = (tf.TensorSpec([2], tf.float32),)
_WEIGHTS = (tf.constant([3.0, 4.0]),)


class _Counter(tff.learning.optimizers.Optimizer):
  """An optimizer whose state is a number."""

  def initialize(self, specs):
    del specs  # Unused.
    return 0

  def next(self, state, weights, gradients):
    del gradients  # Unused.
    return state + 1, weights


def _value_and_grad(weights):
  (x,) = weights
  return tf.reduce_sum(x**4), (4.0 * x**3,)


def _step(rule, state, weights):
  value, gradients = _value_and_grad(weights)
  return rule.next(
      state, weights, gradients, value=value, value_and_grad_fn=_value_and_grad
  )


def _train(rule, num_steps, steps_per_round=None):
  """Returns the weights after steps, in one go or in rounds."""
  shared, kept = rule.initialize_shared(_SPECS), rule.initialize_kept(_SPECS)
  weights, state = _WEIGHTS, rule.initialize(_SPECS)
  for step in range(num_steps):
    if steps_per_round and step % steps_per_round == 0:
      state = rule.start_round(
          rule.initialize(_SPECS), shared, kept, tf.constant(step)
      )
    # As the training loop does: TFF's rules hold plain numbers at first.
    state = tf.nest.map_structure(tf.convert_to_tensor, state)
    state, weights = _step(rule, state, weights)
    shared, kept = rule.finish_round(state)
  return weights


# Rules whose clients keep something, with small steps.
_KEPT_RULES = {
    'adagrad_norm': dict(learning_rate=0.1),
    'd_adaptation_adam': dict(initial_distance=0.01),
    'd_adaptation_sgd': dict(initial_distance=0.01, momentum=0.5),
    'delta_sgd': dict(learning_rate=0.001),
    'dog': dict(relative_distance=0.01),
    'dowg': {},
    'mechanic_adam': dict(initial_scale=0.01, weight_decay=0.0),
    'mechanic_sgd': dict(initial_scale=0.01, weight_decay=0.0),
    'prodigy': dict(initial_distance=0.01),
}
# These set their weights from the received model, with a step that starts anew.
_START_ANEW = ('mechanic_adam', 'mechanic_sgd')


def _build_kept(name):
  build = getattr(optimizers, f'build_{name}')
  return build(**_KEPT_RULES[name], carry_state=True)


class CarriedOptimizerTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.parameters(
      lambda: optimizers.build_sgd(0.001, momentum=0.9),
      optimizers.build_adam,
      optimizers.build_yogi,
      lambda: optimizers.build_delta_sgd(0.001),
      lambda: optimizers.build_armijo(max_step_size=0.01),
      optimizers.build_sps_smooth,
      lambda: tff.learning.optimizers.build_adam(0.1),
      lambda: tff.learning.optimizers.build_adagrad(0.1),
  )
  def test_rounds_are_the_steps_of_one_run(self, build):
    rule = federated_optimizer.CarriedOptimizer(build())
    self.assertAllEqual(_train(rule, 6, steps_per_round=2), _train(rule, 6))

  def test_shares_the_state_without_hyperparameters(self):
    rule = federated_optimizer.CarriedOptimizer(optimizers.build_adam())
    shared = rule.initialize_shared(_SPECS)
    self.assertEqual(
        list(shared), ['num_steps', 'accumulator', 'preconditioner']
    )
    self.assertEqual(shared['num_steps'].dtype, tf.float64)
    state = rule.start_round(
        rule.initialize(_SPECS),
        {**shared, 'num_steps': tf.constant(7.0, tf.float64)},
        {},
        tf.constant(0),
    )
    self.assertEqual(state['num_steps'].dtype, tf.int32)
    self.assertEqual(state['num_steps'], 7)

  def test_hyperparameters_are_those_in_force(self):
    rule = federated_optimizer.CarriedOptimizer(
        optimizers.build_sgd(0.1, momentum=0.9)
    )
    state = rule.initialize(_SPECS)
    shared, kept = rule.finish_round(state)
    self.assertEmpty(kept)
    hparams = collections.OrderedDict(learning_rate=0.5, momentum=0.25)
    started = rule.start_round(
        rule.set_hparams(state, hparams), shared, {}, tf.constant(1)
    )
    self.assertEqual(rule.get_hparams(started), hparams)

  def test_infinite_hyperparameters_do_not_travel(self):
    rule = federated_optimizer.CarriedOptimizer(optimizers.build_sps())
    self.assertEqual(
        list(rule.initialize_shared(_SPECS)), ['num_steps', 'last_step_size']
    )

  @parameterized.parameters(
      (optimizers.build_adam, False), (optimizers.build_armijo, True)
  )
  def test_evaluates_again_where_the_optimizer_does(self, build, expected):
    rule = federated_optimizer.CarriedOptimizer(build())
    self.assertEqual(rule.evaluates_again, expected)

  def test_state_that_is_no_mapping_raises(self):
    with self.assertRaisesRegex(TypeError, 'mapping.*a int of Counter'):
      federated_optimizer.CarriedOptimizer(_Counter())


class KeptOptimizerTest(tf.test.TestCase, parameterized.TestCase):

  def test_every_rule_that_carries_its_state_is_tested(self):
    kept = {
        name
        for name, build in rules_testing.builders('client_optimizer').items()
        if 'carry_state' in inspect.signature(build).parameters
    }
    # FedCAda's test compares its kept moments with a loop.
    self.assertEqual(kept - {'fedcada_adam'}, set(_KEPT_RULES))

  @parameterized.parameters(
      name for name in _KEPT_RULES if name not in _START_ANEW
  )
  def test_rounds_of_one_client_are_the_steps_of_one_run(self, name):
    self.assertAllClose(
        _train(_build_kept(name), 6, steps_per_round=2),
        _train(_build_kept(name), 6),
        rtol=1e-6,
    )

  @parameterized.parameters(*_KEPT_RULES)
  def test_a_client_that_returns_leaves_the_received_model_where_it_is(
      self, name
  ):
    # Others move the second weight, for which this client has no slope.
    rule = _build_kept(name)

    def evaluate(weights):
      (x,) = weights
      return x[0], (tf.constant([1.0, 0.0]),)

    kept, received = rule.initialize_kept(_SPECS), _WEIGHTS
    for round_num in range(3):
      state = rule.start_round(
          rule.initialize(_SPECS), {}, kept, tf.constant(round_num)
      )
      weights = received
      for _ in range(2):
        value, gradients = evaluate(weights)
        state, weights = rule.next(
            state, weights, gradients, value=value, value_and_grad_fn=evaluate
        )
      self.assertEqual(weights[0][1], received[0][1])
      self.assertLess(weights[0][0], received[0][0])
      _, kept = rule.finish_round(state)
      received = (weights[0] + [0.0, 100.0],)


class _Keeps(optimizers.FederatedOptimizer):
  """A rule whose clients keep a number, or say so."""

  def __init__(self, declared, kept, hparams=()):
    self._declared, self._kept, self._hparams = declared, kept, hparams

  def initialize(self, specs):
    return collections.OrderedDict(a=tf.zeros([]))

  def initialize_kept(self, specs):
    return collections.OrderedDict(self._declared)

  def start_round(self, state, shared, kept, round_num):
    return state

  def next(self, state, weights, gradients, **unused_args):
    return state, weights

  def finish_round(self, state):
    return collections.OrderedDict(), collections.OrderedDict(self._kept)

  def get_hparams(self, state):
    return collections.OrderedDict(
        (name, state[name]) for name in self._hparams
    )


class MistakesTest(tf.test.TestCase, parameterized.TestCase):
  """Errors of rules of one's own, when the process is built."""

  @parameterized.parameters(
      ({}, {'a': 1.0}, r"keeps \{'a': \['float32.*\} by .*, but \{\} by"),
      ({'a': 1.0}, {}, r'keeps \{\} by'),
      ({'a': 1.0}, {'a': [1.0, 2.0]}, r"\['float32\(\)', 'float32\(\)'\]"),
  )
  def test_kept_parts_are_those_that_are_declared(
      self, declared, kept, message
  ):
    with self.assertRaisesRegex(ValueError, message):
      algorithms.build_fed_opt(
          testing.functional_model(), _Keeps(declared, kept)
      )

  def test_hyperparameters_are_numbers(self):
    with self.assertRaisesRegex(TypeError, '`get_hparams` of Keeps.*tensors'):
      algorithms.build_fed_opt(
          testing.functional_model(), _Keeps({}, {}, hparams=['a'])
      )

  def test_clients_that_keep_state_are_not_lists(self):
    process = algorithms.build_fed_opt(
        testing.functional_model(), optimizers.build_dog(carry_state=True)
    )
    with compiled_testing.installed():
      with self.assertRaisesRegex(TypeError, 'keep state: train it by .*store'):
        process.next(process.initialize(), testing.clients([4]))


class _Doubles(_Keeps):
  """A rule whose server doubles what it shares while that is small."""

  def initialize_shared(self, specs):
    return collections.OrderedDict(a=tf.ones([]))

  def finish_round(self, state):
    return collections.OrderedDict(a=tf.ones([])), collections.OrderedDict()

  def update_shared(self, shared, mean_sent, num_clients):
    a = shared['a']
    if a < 3.0:
      a = 2.0 * a
    return collections.OrderedDict(a=a)


class OwnRuleTest(tf.test.TestCase):

  def test_server_may_branch_on_what_it_shares(self):
    process = algorithms.build_fed_opt(
        testing.least_squares_model(np.float32, 1), _Doubles({}, {})
    )
    state_type = process.initialize.type_signature.result.member
    expected = tff.to_type(collections.OrderedDict(a=np.float32))
    self.assertEqual(state_type.client_work['shared'], expected)


class SharedMeanTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.named_parameters(
      ('fedcm', optimizers.build_fedcm, 'global_direction'),
      # Divided by the number of clients.
      ('fedhyper', optimizers.build_fedhyper_client_local, 'mean_change', 2),
      ('fedadamw', optimizers.build_fedadamw, 'mean_second_moment'),
      ('fedmuon', optimizers.build_fedmuon, 'momentum'),
      ('mimelite', optimizers.build_mimelite, 'momentum'),
  )
  @pytest.mark.sample(1)
  def test_weights_of_the_update_are_those_of_what_is_sent(
      self, build, name, divisor=1
  ):
    clients = [testing.client(12, 0), testing.client(4, 1)]
    process = algorithms.build_fed_opt(testing.functional_model(), build())
    with compiled_testing.installed():
      state = process.initialize()
      first, second, both = (
          federated_testing.flat(
              process.next(state, cohort).state.client_work['shared'][name]
          )
          for cohort in (clients[:1], clients[1:], clients)
      )
    self.assertAllClose(
        divisor * both, (3 * first + second) / 4, rtol=1e-5, atol=1e-7
    )
