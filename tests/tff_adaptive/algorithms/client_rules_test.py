# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what every client rule works with: models, dtypes and schedules."""

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf

from tests.tff_adaptive import testing
from tests.tff_adaptive.algorithms import client_rules_testing
from tests.tff_adaptive.optimizers import federated_testing
from tests.tff_adaptive.runtime import compiled_testing
from tff_adaptive.optimizers import schedules

# Clients come and go, and the last one has no examples.
_ROUNDS = (('a', 'b'), ('b', 'empty'), ('a',))
_CLIENTS = dict(zip(('a', 'b', 'empty'), testing.clients([10, 7, 0])))


def _least_squares(dtype):
  clients = {
      name: list(testing.least_squares_dataset(n, dtype, 2, seed=n))
      for name, n in (('a', 10), ('b', 7))
  }
  return testing.least_squares_model(dtype, 2), {**clients, 'empty': []}


def _train(name, model, clients, num_rounds=len(_ROUNDS), **options):
  """Returns the process after rounds, and the weights before and after."""
  with client_rules_testing.context(name):
    store = federated_testing.Store(
        client_rules_testing.build(name, model, **options)
    )
    weights = [testing.trainable(store.state)]
    for client_ids in _ROUNDS[:num_rounds]:
      store.next({i: clients[i] for i in client_ids})
      weights.append(testing.trainable(store.state))
  return store, weights


def _has_rate(name):
  rule = client_rules_testing.build_optimizer(name)
  hparams = rule.get_hparams(rule.initialize(tf.TensorSpec([])))
  return 'learning_rate' in hparams


class ClientRulesTest(compiled_testing.TestCase):

  @parameterized.parameters(*client_rules_testing.NAMES)
  @pytest.mark.slow
  def test_model_forms_agree(self, name):
    (start, *_, functional), (*_, variable) = (
        _train(
            name,
            testing.either_model(kind),
            _CLIENTS,
            clip_norm=0.5,
            weight_decay=0.01,
        )[1]
        for kind in ('functional', 'variable')
    )
    self.assertNotAllClose(start[0], functional[0], rtol=0, atol=1e-6)
    for w, v in zip(functional, variable):
      self.assertAllClose(w, v, rtol=1e-5, atol=1e-6)

  @parameterized.parameters(*client_rules_testing.NAMES)
  @pytest.mark.slow
  def test_states_of_float64_models_are_float64(self, name):
    (_, single), (store, double) = (
        _train(name, *_least_squares(dtype), num_rounds=1)
        for dtype in (np.float32, np.float64)
    )
    self.assertNotAllClose(double[0][0], double[1][0], rtol=0, atol=1e-6)
    for w, v in zip(single[1], double[1]):
      self.assertEqual(v.dtype, np.float64)
      self.assertAllClose(w, v, rtol=1e-3, atol=1e-4)
    held = [store.state.client_work.get('shared', {}), *store.kept.values()]
    for leaf in map(np.asarray, tf.nest.flatten(held)):
      self.assertTrue(leaf.dtype != np.float32 or leaf.ndim == 0, leaf)

  @parameterized.parameters(*client_rules_testing.NAMES)
  @pytest.mark.slow
  def test_schedule_scales_the_rate_or_is_refused(self, name):
    options = dict(client_schedule=schedules.build_table({0: 1.0, 1: 0.0}))
    if not _has_rate(name):
      with self.assertRaisesRegex(ValueError, 'no learning rate to scale'):
        _train(name, testing.functional_model(), _CLIENTS, **options)
      return
    store, (start, first, *later) = _train(
        name, testing.functional_model(), _CLIENTS, **options
    )
    self.assertNotAllClose(start[0], first[0], rtol=0, atol=1e-6)
    steps, tolerance = [0.0, 0.0], 0.0
    if name in ('feddyn', 'fedspeed'):
      # The server moves by duals of all clients, or of the participants.
      a, b = (store.kept[i]['optimizer']['dual'][0] for i in ('a', 'b'))
      steps = [(a + b) / len(_CLIENTS)] * 2 if name == 'feddyn' else [b, a]
      tolerance = 1e-6
    for before, after, step in zip([first, *later], later, steps, strict=False):
      self.assertAllClose(after[0], before[0] + step, rtol=0, atol=tolerance)
