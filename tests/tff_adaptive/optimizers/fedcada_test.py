# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of FedCAda's client rule.

The literals of the correction come from

```
power = beta ** t
{'option1': 1 + power, 'option2': 1 + power ** 2, 'option3': 1 + sin(power),
 'option4': 1 + sqrt(power), 'none': 1, 'adam': 1 - power}
```
"""

from absl.testing import parameterized
import hypothesis
from hypothesis import strategies as st
import numpy as np
import pytest
import tensorflow as tf

from tests.tff_adaptive import property_testing
from tests.tff_adaptive import testing
from tests.tff_adaptive.optimizers import federated_testing
from tests.tff_adaptive.optimizers import path_testing
from tff_adaptive import algorithms
from tff_adaptive import optimizers
from tff_adaptive import runtime
from tff_adaptive.optimizers.client import fedcada


def _correction(option, beta, t):
  return fedcada.correction(option, np.float64(beta), t).numpy()


def _plain_rounds(cohorts, option, time, carry_state, rate=0.1, eps=1e-8):
  """FedCAda in numpy; yields the model and the moments after every round."""
  rate, eps, beta_1, beta_2 = federated_testing.single(rate, eps, 0.9, 0.99)
  x = federated_testing.START
  shared = (np.zeros(2), np.zeros(2), 0.0)
  own = {}
  for round_num, cohort in enumerate(cohorts, start=1):
    results = {}
    for i in cohort:
      y, (m, v, n) = x, own.get(i, shared) if carry_state else shared
      for k, batch in enumerate(federated_testing.CLIENTS[i], start=1):
        g = federated_testing.gradient(batch, y)
        m = beta_1 * m + (1 - beta_1) * g
        v = beta_2 * v + (1 - beta_2) * g**2
        t = {'round': round_num, 'local_step': k, 'global_step': n + k}[time]
        c1, c2 = (_correction(option, beta, t) for beta in (beta_1, beta_2))
        y = y - rate * (m / c1) / (np.sqrt(v / c2) + eps)
      results[i] = (y, (m, v, n + k))
    x = np.mean([y for y, _ in results.values()], axis=0)
    if carry_state:
      own.update({i: moments for i, (_, moments) in results.items()})
    else:
      sent = [moments for _, moments in results.values()]
      shared = tuple(np.mean(part, axis=0) for part in zip(*sent))
    yield x, dict(own) if carry_state else shared


def _cohort(ids):
  return {i: federated_testing.COHORT[i] for i in ids}


class CorrectionTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.parameters(
      ('none', 0.9, 1, 1.0),
      ('none', 0.99, 200, 1.0),
      ('adam', 0.9, 1, 0.1),
      ('adam', 0.99, 1, 0.01),
      ('adam', 0.9, 7, 0.5217031),
      ('adam', 0.99, 200, 0.86602032514),
      ('option1', 0.9, 1, 1.9),
      ('option1', 0.99, 1, 1.99),
      ('option1', 0.9, 7, 1.4782969),
      ('option1', 0.99, 200, 1.1339796749),
      ('option2', 0.9, 1, 1.81),
      ('option2', 0.99, 1, 1.9801),
      ('option2', 0.9, 7, 1.2287679245),
      ('option2', 0.99, 200, 1.0179505533),
      ('option3', 0.9, 1, 1.7833269096),
      ('option3', 0.99, 1, 1.8360259786),
      ('option3', 0.9, 7, 1.4602678655),
      ('option3', 0.99, 200, 1.1335791996),
      ('option4', 0.9, 1, 1.9486832981),
      ('option4', 0.99, 1, 1.9949874371),
      ('option4', 0.9, 7, 1.6915901243),
      ('option4', 0.99, 200, 1.3660323413),
  )
  def test_literals(self, option, beta, t, expected):
    self.assertAllClose(_correction(option, beta, t), expected, atol=1e-9)

  @parameterized.parameters('option1', 'option2', 'option3', 'option4')
  @hypothesis.given(
      property_testing.positive(0.125, 1.0 - 2.0**-10), st.integers(1, 6)
  )
  def test_options_are_above_one_and_fade_to_one(self, option, beta, t):
    values = [_correction(option, beta, time) for time in (t, t + 1, 10**5)]
    self.assertBetween(values[0], 1.0 + 1e-12, 2.0)
    self.assertLess(values[1], values[0])
    self.assertAllClose(values[2], 1.0, atol=1e-12)

  @parameterized.named_parameters(
      ('usual', 0.9, 0.742, 1.274, 37), ('small', 0.1, 1.282, 1.402, 3)
  )
  def test_steps_are_smaller_at_first_or_never(
      self, beta_1, first, largest, when
  ):
    factors = np.array(
        [
            np.sqrt(_correction('option1', 0.99, t))
            / _correction('option1', beta_1, t)
            for t in range(1, 201)
        ]
    )
    self.assertAllClose(factors[0], first, atol=5e-4)
    self.assertAllClose(np.max(factors), largest, atol=5e-4)
    self.assertEqual(np.argmax(factors) + 1, when)
    above = np.flatnonzero(factors > 1.0) + 1
    self.assertEqual(above[0], 10 if beta_1 == 0.9 else 1)
    self.assertAllEqual(np.diff(above), np.ones(len(above) - 1))


class FedCAdaTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.product(option=list(fedcada.CORRECTIONS), time=fedcada.TIMES)
  def test_rounds_equal_a_plain_loop(self, option, time):
    rounds = federated_testing.Rounds(
        optimizers.build_fedcada_adam(0.1, option=option, time=time)
    )
    cohorts = [(0, 1)] * 3
    for x, moments in _plain_rounds(cohorts, option, time, carry_state=False):
      rounds.next(_cohort((0, 1)))
      self.assertAllClose(rounds.x, x, **federated_testing.EXACT)
      self.assertLen(rounds.shared, 3 if time == 'global_step' else 2)
      for held, expected in zip(rounds.shared.values(), moments):
        self.assertAllClose(held, expected, **federated_testing.EXACT)

  @parameterized.parameters(*fedcada.TIMES)
  def test_carried_moments_stay_with_their_client(self, time):
    cohorts = [(0,), (1,), (0, 1), (0,)]
    rounds = federated_testing.Rounds(
        optimizers.build_fedcada_adam(0.1, time=time, carry_state=True)
    )
    self.assertEmpty(rounds.shared)
    expected_rounds = _plain_rounds(cohorts, 'option1', time, carry_state=True)
    for cohort, (x, own) in zip(cohorts, expected_rounds):
      rounds.next(_cohort(cohort))
      self.assertAllClose(rounds.x, x, **federated_testing.EXACT)
      self.assertEqual(rounds.kept.keys(), own.keys())
      for i, kept in rounds.kept.items():
        for held, expected in zip(kept.values(), own[i]):
          self.assertAllClose(held, expected, **federated_testing.EXACT)

  @parameterized.product(option=list(fedcada.CORRECTIONS), epsilon=[0.0, 1e-8])
  def test_zero_gradients_do_not_move(self, option, epsilon):
    gradients = np.zeros([4, property_testing.SIZE])
    path = path_testing.run(
        optimizers.build_fedcada_adam,
        property_testing.linear(gradients),
        epsilon=epsilon,
        option=option,
    )
    self.assertAllEqual(path.points, np.zeros_like(path.points))
    for moment in path.sent.values():
      self.assertAllEqual(moment, gradients[0])

  def test_negative_second_moment_and_steps_count_as_zero(self):
    runs = []
    for noise in (0.0, -1.0):
      rounds = federated_testing.Rounds(
          optimizers.build_fedcada_adam(time='global_step')
      )
      rounds.shared['second_moment'] += tf.constant([noise, 0.5], tf.float64)
      rounds.shared['num_steps'] += noise
      rounds.next(_cohort((0, 1)))
      runs.append((rounds.x, rounds.shared))
    self.assertAllClose(*runs, **federated_testing.EXACT)
    self.assertAllGreaterEqual(runs[1][1]['second_moment'], 0.0)

  def test_moments_of_half_precision_are_single(self):
    optimizer = optimizers.build_fedcada_adam()
    shared = optimizer.initialize_shared(tf.TensorSpec([2], tf.float16))
    self.assertEqual(shared['second_moment'].dtype, tf.float32)


class FedCAdaProcessTest(tf.test.TestCase):

  @pytest.mark.slow
  def test_carried_state_passes_through_the_process(self):
    with runtime.CompiledContext(strict=True):
      store = federated_testing.Store(
          algorithms.build_fed_opt(
              testing.functional_model(),
              optimizers.build_fedcada_adam(0.05, carry_state=True),
          )
      )
      first, second = testing.clients([10, 7])
      metrics = store.next({'first': first, 'second': second})
      self.assertEmpty(store.state.client_work['shared'])
      kept = dict(store.kept)
      self.assertCountEqual(kept, ['first', 'second'])
      store.next({'second': second, 'bad': testing.unhealthy_client()})
    self.assertCountEqual(store.kept, ['first', 'second'])
    self.assertIs(store.kept['first'], kept['first'])
    moments = [k['second']['optimizer'] for k in (kept, store.kept)]
    self.assertNotAllClose(
        *(m['second_moment'][0] for m in moments), rtol=1e-3, atol=0.0
    )
    self.assertEqual(metrics['client_work']['clients']['num_clients'], 2)
    self.assertEqual(store.state.client_work['round_num'], 2)
