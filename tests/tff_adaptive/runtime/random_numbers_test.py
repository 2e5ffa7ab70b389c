# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that the compiled runtime's random numbers follow the seed."""

from typing import Any

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive.runtime import compiled_testing
from tests.tff_adaptive.runtime import dropout_testing
from tests.tff_adaptive.runtime import sequence_testing
from tff_adaptive import data
from tff_adaptive import runtime


def _cohort_of_ones(
    seed: int, round_num: int, client_ids: str, num_steps: int = 2
) -> data.Cohort:
  """Returns clients of one example a batch; a letter is an id."""
  source = data.PackedClientArrays.from_clients(
      {client_id: dropout_testing.ones(num_steps) for client_id in 'abcd'}
  )
  plan = data.BatchPlan(1, shuffle=False)
  return data.Cohort(source, client_ids, round_num, seed, plan)


def _build_noise() -> tff.framework.ConcreteComputation:
  """Returns a new computation that adds up the clients' draws."""
  return sequence_testing.over_clients(
      lambda value: value + tf.random.uniform([8]), np.float32
  )


def _build_draw() -> tff.framework.ConcreteComputation:
  """Returns a new computation without clients that draws numbers."""
  return tff.tensorflow.computation(lambda: tf.random.normal([8]))


class CallsWithoutClientsTest(compiled_testing.TestCase):

  def test_draw_anew_in_each_call_and_repeat_with_the_seed(self):
    runs = []
    for seed in (7, 7, 8):
      with runtime.CompiledContext(strict=True, seed=seed):
        # Two computations, one of which TFF calls the state's initialization.
        draws = [_build_draw(), _build_initialization()]
        runs.append([draw() for _ in range(3) for draw in draws])
    seven, again, eight = runs
    self.assert_same_bits(seven, again)
    everything = np.stack([*seven, *eight])
    self.assertLen(np.unique(everything.round(5), axis=0), len(everything))

  def test_do_not_depend_on_calls_that_draw_nothing(self):
    draw = _build_draw()
    double = tff.tensorflow.computation(lambda x: 2.0 * x, np.float32)
    runs = []
    for num_others in (0, 2):
      with runtime.CompiledContext(strict=True, seed=7):
        found = []
        for _ in range(2):
          for _ in range(num_others):
            double(1.0)
          found.append(draw())
        runs.append(found)
    self.assert_same_bits(*runs)

  def test_after_a_cohort_are_those_of_a_resumed_run(self):
    process = dropout_testing.build_process('functional')
    draw = _build_draw()

    def train(first, last):
      found = []
      with runtime.CompiledContext(strict=True):
        state = process.initialize()
        for round_num in range(first, last):
          cohort = _cohort_of_ones(3, round_num, 'ab')
          state = process.next(state, cohort).state
          found += [draw(), draw()]
      return found

    whole = train(0, 3)
    self.assertLen(np.unique(np.stack(whole).round(5), axis=0), 6)
    self.assert_same_bits(train(2, 3), whole[4:])

  def test_of_a_round_that_is_named_again_are_the_same(self):
    draw, noise = _build_draw(), _build_noise()
    with runtime.CompiledContext(strict=True) as context:
      found = []
      for _ in range(2):
        context.begin_round(1, 2)
        found.append([draw(), noise([0.0]), draw()])
    self.assert_same_bits(*found)
    self.assertNotAllClose(found[0][0], found[0][2])


def _build_initialization() -> tff.framework.ConcreteComputation:
  """Returns a new computation that draws a state at the server."""

  @tff.federated_computation
  def initialize():
    return tff.federated_eval(_build_draw(), tff.SERVER)

  return initialize


class RandomNumbersTest(compiled_testing.TestCase):

  def _masks(self, clients: Any, kind: str = 'functional') -> np.ndarray:
    (weights,) = compiled_testing.train(
        dropout_testing.build_process(kind), clients
    )
    return weights.reshape([-1])

  @parameterized.parameters('functional', 'variable')
  @pytest.mark.sample(1)
  def test_depend_on_seed_round_and_client_alone(self, kind):
    # Neither on the plan nor on the seed of the context.
    with compiled_testing.installed():
      first = self._masks(_cohort_of_ones(1, 0, 'ab'), kind)
      others = {
          'seed': self._masks(_cohort_of_ones(2, 0, 'ab'), kind),
          'round': self._masks(_cohort_of_ones(1, 1, 'ab'), kind),
          'clients': self._masks(_cohort_of_ones(1, 0, 'ac'), kind),
      }
    with runtime.CompiledContext(strict=True, seed=5, num_parallel_clients=1):
      again = self._masks(_cohort_of_ones(1, 0, 'ab'), kind)
    self.assertAllEqual(first, again)
    for name, other in others.items():
      self.assertNotAllEqual(first, other, name)

  @parameterized.parameters('functional', 'variable')
  @pytest.mark.sample(1)
  def test_of_a_client_do_not_depend_on_the_others(self, kind):
    with compiled_testing.installed():
      alone = [self._masks(_cohort_of_ones(1, 0, c), kind) for c in 'abc']
      for client_ids in ('abc', 'cab', 'ca'):
        # The mean over clients tells each of them: masks are whole numbers.
        masks = [alone['abc'.index(client_id)] for client_id in client_ids]
        together = self._masks(_cohort_of_ones(1, 0, client_ids), kind)
        self.assertAllClose(together, np.mean(masks, axis=0), atol=1e-6)

  @parameterized.parameters('functional', 'variable')
  @pytest.mark.sample(1)
  def test_of_two_steps_are_not_the_same(self, kind):
    with compiled_testing.installed():
      once = self._masks(_cohort_of_ones(1, 0, 'a', num_steps=1), kind)
      twice = self._masks(_cohort_of_ones(1, 0, 'a', num_steps=2), kind)
    self.assertCountEqual(np.unique(once), [0, 2])
    # Two equal masks would add up to 0 and 4 alone.
    self.assertCountEqual(np.unique(twice), [0, 2, 4])
    # The first step is the same, however many follow.
    self.assertAllInSet(twice - once, [0.0, 2.0])

  def test_of_begin_round_are_those_of_a_cohort(self):
    cohort = _cohort_of_ones(3, 4, 'dbd')
    batches = [cohort.batches(place) for place in range(len(cohort))]
    with runtime.CompiledContext(
        strict=True, num_parallel_clients=1
    ) as context:
      expected = self._masks(cohort)
      for clients in (list(cohort), batches):
        context.begin_round(3, 4, ['d', 'b', 'd'])
        self.assertAllEqual(self._masks(clients), expected)
      # The seed and round of a cohort take precedence.
      context.begin_round(9, 9, ['a', 'b', 'c'])
      self.assertAllEqual(self._masks(cohort), expected)
      self.assertNotAllEqual(self._masks(batches), expected)

  def test_of_begin_round_without_ids_depend_on_places(self):
    draw = _build_noise()
    with runtime.CompiledContext(strict=True) as context:
      found = []
      for clients in ([0.0], [0.0], [0.0, 0.0]):
        context.begin_round(1, 0)
        found.append(draw(clients))
      one, again, two = found
      context.begin_round(1, 0, ['a'])
      by_id = draw([0.0])
    self.assertAllEqual(one, again)
    # With the data of the second client, which differ.
    self.assertAllInRange(two - one, 0.0, 1.0)
    self.assertNotAllClose(two - one, one)
    self.assertNotAllEqual(by_id, one)

  def test_begin_round_serves_one_round_and_later_ones_count_on(self):
    draw = _build_noise()
    runs = []
    with runtime.CompiledContext(strict=True) as context:
      for _ in range(2):
        context.begin_round(1, 0, ['a', 'b'])
        runs.append([draw([0.0, 0.0]) for _ in range(3)])
      # No later round has the numbers of one that is named.
      for round_num in range(1, 4):
        context.begin_round(1, round_num, ['a', 'b'])
        runs[1].append(draw([0.0, 0.0]))
    first, again = runs
    self.assert_same_bits(first, again[:3])
    self._assert_all_differ(again)

  def _assert_all_differ(self, draws):
    for place, numbers in enumerate(draws):
      for other in draws[:place]:
        self.assertNotAllClose(numbers, other)

  def test_a_round_that_fails_leaves_those_of_later_ones(self):
    draw, initialize = _build_noise(), _build_draw()
    runs = []
    for fails in (False, True):
      with runtime.CompiledContext(strict=True, seed=3) as context:
        found = []
        for tell in (lambda: None, lambda: context.begin_round(5, 2)):
          tell()
          for _ in range(2):
            if fails:
              with self.assertRaises(TypeError):
                draw([0.0, 'not a number'])
            found += [initialize(), draw([0.0, 0.0])]
        runs.append(found)
    self.assert_same_bits(*runs)

  def test_without_begin_round_differ_and_repeat_with_the_seed(self):
    draw = _build_noise()
    runs = []
    for seed in (7, 7, 8, None, None):
      with runtime.CompiledContext(strict=True, seed=seed):
        runs.append([draw([0.0, 0.0]) for _ in range(3)])
    seven, again, *others = runs
    self.assert_same_bits(seven, again)
    self._assert_all_differ(
        [*seven, *(numbers for run in others for numbers in run)]
    )

  def test_wrong_number_of_ids(self):
    draw = _build_noise()
    with runtime.CompiledContext(strict=True) as context:
      context.begin_round(1, 0, ['a', 'b'])
      with self.assertRaisesRegex(ValueError, '2 client ids, .* 1 clients'):
        draw([0.0])
      # Where nothing is drawn, ids do not matter.
      add_up = sequence_testing.over_clients(lambda value: value, np.float32)
      self.assertEqual(add_up([1.0, 2.0, 4.0]), 7.0)

  @parameterized.parameters(
      (-1, 0, ValueError),
      (0, -1, ValueError),
      (1.5, 0, TypeError),
      (0, '1', TypeError),
      (None, 0, TypeError),
      (True, 0, TypeError),
  )
  def test_numbers_that_are_no_seed(self, seed, round_num, error):
    name = 'round_num' if seed == 0 else 'seed'
    with self.assertRaisesRegex(error, f'`{name}` must'):
      compiled_testing.context().begin_round(seed, round_num)

  @parameterized.parameters((-1, ValueError), (1.5, TypeError))
  def test_context_with_what_is_no_seed(self, seed, error):
    with self.assertRaisesRegex(error, '`seed` must'):
      runtime.CompiledContext(seed=seed)
