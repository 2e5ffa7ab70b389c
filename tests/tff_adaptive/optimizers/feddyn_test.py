# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of FedDyn and FedSpeed, by the rounds of a process."""

import collections
import functools

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tests.tff_adaptive.optimizers import federated_testing
from tests.tff_adaptive.runtime import compiled_testing
from tff_adaptive import algorithms
from tff_adaptive import optimizers

_UNIFORM = tff.learning.ClientWeighting.UNIFORM
_COHORTS = (('a', 'b'), ('c',), ('a', 'c'))


def _clients():
  return dict(zip('abc', testing.clients([4, 7, 3])))


def _build(optimizer, server=None, **options):
  options.setdefault('client_weighting', _UNIFORM)
  return algorithms.build_fed_opt(
      testing.functional_model(), optimizer, server, **options
  )


@functools.cache
def _feddyn():
  return _build(optimizers.build_feddyn(3, 0.1, 0.5))


@functools.cache
def _fedspeed():
  return _build(optimizers.build_fedspeed(3, 0.1))


def _model(store):
  weights = store.process.get_model_weights(store.state)
  return federated_testing.flat(weights.trainable)


def _run(process, cohorts=_COHORTS):
  """Returns the models before and after each round, and the store."""
  clients = _clients()
  with compiled_testing.installed():
    store = federated_testing.Store(process)
    models = [_model(store)]
    for cohort in cohorts:
      store.next({name: clients[name] for name in cohort})
      models.append(_model(store))
  return models, store


class _Fails(tff.learning.optimizers.Optimizer):
  """A server rule whose steps are not finite."""

  def initialize(self, specs):
    return collections.OrderedDict()

  def next(self, state, weights, gradients):
    return state, tf.nest.map_structure(lambda w: w / 0.0, weights)


class FedDynTest(tf.test.TestCase, parameterized.TestCase):

  def test_server_moves_by_the_change_and_the_mean_of_all_duals(self):
    models, store = _run(_feddyn())
    duals = {k: federated_testing.flat(v) for k, v in store.kept.items()}
    mean = sum(duals.values()) / 3
    self.assertAllClose(
        federated_testing.flat(store.state.finalizer['mean_dual']), mean
    )
    # After the first round the duals are the changes, which the server doubles
    # but for the share of the client that was not there.
    first, first_store = _run(_feddyn(), _COHORTS[:1])
    changes = [federated_testing.flat(v) for v in first_store.kept.values()]
    self.assertAllClose(first[1] - first[0], sum(changes) * (1 / 2 + 1 / 3))
    self.assertAllClose(first[1], models[1])

  @pytest.mark.slow
  def test_mean_of_all_duals_is_right_after_a_step_that_is_rejected(self):
    models, store = _run(_build(optimizers.build_feddyn(3), _Fails()))
    duals = [federated_testing.flat(v) for v in store.kept.values()]
    self.assertLen(duals, 3)
    self.assertAllEqual(models[-1], models[0])
    self.assertAllClose(
        federated_testing.flat(store.state.finalizer['mean_dual']),
        sum(duals) / 3,
    )
    self.assertNotAllClose(sum(duals), 0.0 * sum(duals))

  @pytest.mark.slow
  def test_any_server_rule_steps_along_the_corrected_change(self):
    full, _ = _run(_build(optimizers.build_feddyn(3)), _COHORTS[:1])
    half, store = _run(
        _build(optimizers.build_feddyn(3), optimizers.build_fedavg(0.5)),
        _COHORTS[:1],
    )
    self.assertAllClose(half[1] - half[0], 0.5 * (full[1] - full[0]))
    self.assertIn('learning_rate', store.state.finalizer)
    # These see reports of the clients, and report their own state.
    for server in (
        optimizers.build_fedexp(),
        optimizers.build_line_search_step('max'),
    ):
      _run(_build(optimizers.build_feddyn(3), server), _COHORTS[:1])

  @pytest.mark.slow
  def test_server_rule_still_scales_the_rate_of_clients(self):
    process = _build(
        optimizers.build_feddyn(3, 0.1, 0.5),
        optimizers.build_fedhyper_server_local(hyper_learning_rate=20.0),
    )
    with compiled_testing.installed():
      store = federated_testing.Store(process)
      for _ in range(3):
        scale = float(store.state.finalizer['scale'])
        metrics = store.next(_clients())
      clients = metrics['client_work']['clients']
    self.assertNotEqual(scale, 1.0)
    self.assertAllClose(clients['step_size_mean'], 0.1 * scale, rtol=1e-6)

  def test_alpha_is_scaled_by_the_examples_of_the_client(self):
    rule = optimizers.build_feddyn(3, 0.1, 0.5, mean_num_examples=7.0)
    specs = (tf.TensorSpec([2]),)
    state = rule.start_round(
        rule.initialize(specs),
        {'num_examples': tf.constant(4.0)},
        rule.initialize_kept(specs),
        0,
    )
    self.assertAllClose(state['alpha_scale'], 7 / 4)

  def test_step_that_it_corrects_needs_a_state_with_names(self):

    class Nameless(tff.learning.optimizers.Optimizer):

      def initialize(self, specs):
        return tf.zeros([])

      def next(self, state, weights, gradients):
        raise NotImplementedError

    with self.assertRaisesRegex(TypeError, 'mapping as state, .* of Nameless'):
      _build(optimizers.build_feddyn(3), Nameless())

  @pytest.mark.slow
  def test_alpha_scaled_by_examples_is_alpha_for_the_mean_client(self):
    scaled = optimizers.build_feddyn(3, 0.1, 0.5, mean_num_examples=7.0)
    models, _ = _run(_build(scaled), (('b',), ('b',)))
    expected, _ = _run(_feddyn(), (('b',), ('b',)))
    self.assertAllClose(models, expected)
    other, _ = _run(_build(scaled), (('a',), ('a',)))
    twice, _ = _run(
        _build(optimizers.build_feddyn(3, 0.1, 0.5 * 7 / 4)), (('a',), ('a',))
    )
    self.assertAllClose(other, twice, rtol=1e-5)


class FedSpeedTest(tf.test.TestCase, parameterized.TestCase):

  def test_participants_alone_correct_the_step(self):
    models, store = _run(_fedspeed(), (('a',),))
    # One client: its change and its dual, which is its change.
    self.assertAllClose(
        models[1] - models[0], 2 * federated_testing.flat(store.kept['a'])
    )

  @pytest.mark.slow
  def test_client_is_judged_by_its_change_without_the_dual(self):
    cohorts = (('a',), ('a',))
    models, store = _run(_fedspeed(), cohorts)
    _, first = _run(_fedspeed(), cohorts[:1])
    before, after = (
        federated_testing.flat(s.kept['a']) for s in (first, store)
    )
    changes = [np.linalg.norm(change) for change in (before, after - before)]
    sent = np.linalg.norm(models[2] - models[1])
    limit = 1.01 * max(changes)
    self.assertGreater(sent, limit)
    limited, _ = _run(
        _build(optimizers.build_fedspeed(3, 0.1), max_update_norm=limit),
        cohorts,
    )
    self.assertAllEqual(limited, models)

  def test_perturbed_gradient_is_mixed_with_the_other(self):
    x = federated_testing.START
    batch = federated_testing.CLIENTS[0][0]
    g = federated_testing.gradient(batch, x)
    perturbed = federated_testing.perturbed_gradient(batch, x, 0.5)
    rule = optimizers.build_fedspeed(3, 0.25, rho=0.5, alpha=0.75, epsilon=0.0)
    state = rule.initialize(tf.TensorSpec(x.shape, tf.float64))
    evaluate = federated_testing.to_batch(batch)
    _, moved = rule.next(
        state,
        tf.constant(x),
        g,
        value=tf.constant(1.0),
        value_and_grad_fn=evaluate,
    )
    self.assertAllClose(moved, x - 0.25 * (0.25 * g + 0.75 * perturbed))
