# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of tuning the learning rates by hypergradients."""

import functools
import math

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tff_adaptive import algorithms
from tff_adaptive import data
from tff_adaptive import optimizers
from tff_adaptive import privacy
from tff_adaptive import runtime
from tff_adaptive import tuning
from tff_adaptive.tuning import rate_tuning

_RATES = {'client_learning_rate': 0.1, 'server_learning_rate': 2.0}
_NAN = float('nan')


def _source():
  """Returns four clients of a problem that a linear classifier solves."""
  generator = np.random.default_rng(5)
  kernel = generator.normal(size=[testing.NUM_FEATURES, testing.NUM_CLASSES])
  clients = {}
  for name in 'abcd':
    x = generator.normal(size=[8, testing.NUM_FEATURES]).astype(np.float32)
    y = np.argmax(x @ kernel, axis=1).astype(np.int32)
    clients[name] = {'x': x, 'y': y}
  return clients


@functools.cache
def _process():
  return algorithms.build_fed_opt(
      testing.functional_model(),
      optimizers.build_sgd(0.01),
      optimizers.build_fedadam(0.01),
  )


class NextRatesTest(parameterized.TestCase):

  def test_a_step_has_its_length_in_the_logarithms(self):
    found = tuning.Hypergradient(1.0, 30.0, -2.0)
    moved = rate_tuning.next_rates(_RATES, found, 0.2)
    # The slopes by the logarithms are 3 and -4.
    self.assertAlmostEqual(
        moved['client_learning_rate'], 0.1 * math.exp(-0.2 * 0.6)
    )
    self.assertAlmostEqual(
        moved['server_learning_rate'], 2.0 * math.exp(0.2 * 0.8)
    )

  def test_one_rate_alone(self):
    found = tuning.Hypergradient(1.0, 30.0, None)
    rates = {'client_learning_rate': 0.1}
    moved = rate_tuning.next_rates(rates, found, 0.2)
    self.assertEqual(moved, {'client_learning_rate': 0.1 * math.exp(-0.2)})

  def test_rates_stay_without_a_direction(self):
    found = tuning.Hypergradient(1.0, 0.0, 0.0)
    self.assertEqual(rate_tuning.next_rates(_RATES, found, 0.2), _RATES)

  @parameterized.parameters((_NAN, 1.0), (1.0, math.inf))
  def test_derivatives_that_are_not_finite_are_told(self, client, server):
    found = tuning.Hypergradient(1.0, client, server)
    with pytest.warns(RuntimeWarning, match='client_learning_rate.*not finite'):
      moved = rate_tuning.next_rates(_RATES, found, 0.2)
    self.assertEqual(moved, _RATES)

  def test_rates_fall_where_the_loss_is_not_finite(self):
    found = tuning.Hypergradient(_NAN, _NAN, _NAN)
    moved = rate_tuning.next_rates(_RATES, found, 0.2)
    self.assertEqual(
        moved, {k: rate * math.exp(-0.2) for k, rate in _RATES.items()}
    )


class BuildRateTunerTest(tf.test.TestCase):

  def setUp(self):
    super().setUp()
    self.enter_context(runtime.CompiledContext(strict=True))
    self.model = testing.functional_model()
    self.process = _process()

  def _cohort_fn(self, clients):
    source = data.PackedClientArrays.from_clients(clients)
    plan = data.BatchPlan(batch_size=4)
    ids = list(clients)
    return lambda round_num: data.Cohort(
        source,
        [ids[round_num % 4], ids[(round_num + 1) % 4]],
        round_num=round_num,
        seed=2,
        plan=plan,
    )

  def _train(self, cohort_fn, num_rounds, tuner=None):
    state, losses = self.process.initialize(), []
    for round_num in range(num_rounds):
      if tuner is not None:
        state = tuner(state, round_num)
      output = self.process.next(state, cohort_fn(round_num))
      state = output.state
      losses.append(float(output.metrics['client_work']['clients']['loss']))
    return state, losses

  @pytest.mark.slow
  def test_rates_that_are_too_small_grow_and_the_loss_is_lower(self):
    cohort_fn = self._cohort_fn(_source())
    tuner = tuning.build_rate_tuner(
        self.process, self.model, cohort_fn, step_size=0.3
    )
    state, losses = self._train(cohort_fn, 12, tuner)
    rates = rate_tuning.read_rates(self.process, state)
    self.assertGreater(rates['server_learning_rate'], 0.1)
    _, untuned = self._train(cohort_fn, 12)
    self.assertLess(losses[-1], 0.8 * untuned[-1])

  @pytest.mark.slow
  def test_rates_move_every_few_rounds(self):
    cohort_fn = self._cohort_fn(_source())
    tuner = tuning.build_rate_tuner(
        self.process, self.model, cohort_fn, num_rounds=3
    )
    state = self.process.initialize()
    moved = [
        rate_tuning.read_rates(self.process, tuner(state, t))
        != {
            'client_learning_rate': np.float32(0.01),
            'server_learning_rate': np.float32(0.01),
        }
        for t in range(5)
    ]
    self.assertEqual(moved, [True, False, False, True, False])

  @pytest.mark.slow
  def test_examples_that_are_not_finite_do_not_count(self):
    clients = _source()
    tuners = []
    for extra in (None, np.nan):
      examples = dict(clients['b'])
      if extra is not None:
        bad = np.full([1, testing.NUM_FEATURES], extra, np.float32)
        examples['x'] = np.concatenate([examples['x'], bad])
        examples['y'] = np.append(examples['y'], np.int32(0))
      # Client b is in the loss alone: the round is that of c and d.
      cohort_fn = self._cohort_fn(
          {
              'c': clients['c'],
              'd': clients['d'],
              'b': examples,
              'e': clients['a'],
          }
      )
      pair = [cohort_fn(0), cohort_fn(2)]
      tuner = tuning.build_rate_tuner(
          self.process, self.model, pair.__getitem__
      )
      tuned = tuner(self.process.initialize(), 0)
      tuners.append(rate_tuning.read_rates(self.process, tuned))
    self.assertAllClose(tuners[0], tuners[1], rtol=1e-6)

  def test_private_processes_are_refused(self):
    process = algorithms.build_fed_opt(
        self.model,
        optimizers.build_sgd(0.1),
        client_weighting=tff.learning.ClientWeighting.UNIFORM,
        privacy=privacy.DifferentialPrivacy(
            noise_multiplier=1.0, clients_per_round=2
        ),
    )
    with self.assertRaisesRegex(ValueError, 'bypasses differential privacy'):
      tuning.build_rate_tuner(process, self.model, self._cohort_fn(_source()))
