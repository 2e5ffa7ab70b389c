# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that the compiled runtime's random numbers follow the seed."""

import functools
from typing import Any

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import error_testing
from tests.tff_adaptive import testing
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


_NUMBERS = tff.SequenceType(np.float32)


def _uniform(size: int = 8) -> tf.Tensor:
  return tf.random.uniform([size])


def _build_noise() -> tff.framework.ConcreteComputation:
  """Returns a new computation that adds up the clients' draws."""
  return sequence_testing.over_clients(
      lambda value: value + _uniform(), np.float32
  )


def _build_draw() -> tff.framework.ConcreteComputation:
  """Returns a new computation without clients that draws numbers."""
  return tff.tensorflow.computation(lambda: tf.random.normal([8]))


def _build_two_draws() -> tff.framework.ConcreteComputation:
  return tff.tensorflow.computation(
      lambda: [tf.random.normal([8]) for _ in range(2)]
  )


def _build_initialization() -> tff.framework.ConcreteComputation:
  """Returns a new computation that draws a state at the server."""
  return tff.federated_computation(
      lambda: tff.federated_eval(_build_draw(), tff.SERVER)
  )


def _build_loops() -> tff.framework.ConcreteComputation:
  """Returns a computation of clients that draw in each of two turns."""

  def draw(numbers):
    return numbers.reduce(
        tf.zeros([0]), lambda found, _: tf.concat([found, _uniform(1)], 0)
    )

  return sequence_testing.over_clients(
      lambda numbers: tf.reshape(draw(numbers)[:2], [2, 1]), _NUMBERS
  )


def _build_steps() -> tff.framework.ConcreteComputation:
  """Returns a computation that draws at all places, and twice."""
  add = tff.tensorflow.computation(lambda x: x + _uniform(), np.float32)
  alone = tff.tensorflow.computation(lambda: _uniform())

  @tff.federated_computation(testing.at_clients())
  def run(values):
    drawn = [tff.federated_map(add, values) for _ in range(2)]
    drawn.append(tff.federated_eval(alone, tff.CLIENTS))
    return drawn, tff.federated_eval(alone, tff.SERVER), alone()

  return run


def _build_draws_of_clients() -> tff.framework.ConcreteComputation:
  draw = tff.tensorflow.computation(lambda: _uniform())
  return tff.federated_computation(
      lambda: tff.federated_eval(draw, tff.CLIENTS)
  )


def _build_steps_of_elements() -> tff.framework.ConcreteComputation:
  """Returns a computation that adds a draw to each element of a sequence."""
  add = tff.tensorflow.computation(lambda x: x + _uniform(1), np.float32)
  return tff.federated_computation(
      lambda numbers: tff.sequence_map(add, numbers), _NUMBERS
  )


def _order(numbers: tf.data.Dataset) -> tf.Tensor:
  add = lambda done, one: tf.concat([done, [one]], 0)
  return tf.ensure_shape(numbers.reduce(tf.zeros([0]), add), [20])


def _build_order(change: Any = lambda numbers: numbers, place: Any = None):
  """Returns a computation of the order of a sequence's numbers."""
  work = lambda numbers: _order(change(numbers))
  if place is tff.CLIENTS:
    return sequence_testing.over_clients(work, _NUMBERS)
  order = tff.tensorflow.computation(work, _NUMBERS)
  if place is None:
    return order
  return tff.federated_computation(
      lambda numbers: tff.federated_map(order, numbers),
      testing.at_server(_NUMBERS),
  )


@tf.function
def _order_in_a_function(numbers: tf.data.Dataset) -> tf.Tensor:
  return _order(_shuffle(numbers))


@tf.function
def _order_in_a_loop(numbers: tf.data.Dataset) -> tf.Tensor:
  order = tf.zeros([20])
  for _ in tf.range(2):
    order = 20 * order + _order(_shuffle(numbers))
  return order


def _order_of_samples(numbers: tf.data.Dataset) -> tf.Tensor:
  halves = [numbers.take(10), numbers.skip(10)]
  return _order(tf.data.Dataset.sample_from_datasets(halves, [0.5, 0.5]))


def _build_orders_of_clients():
  """Returns a computation of the clients' orders, whose size is not known."""
  order = tff.tensorflow.computation(
      lambda numbers: tf.boolean_mask(_order(numbers), tf.fill([20], True)),
      _NUMBERS,
  )
  return tff.federated_computation(
      lambda numbers: tff.federated_map(order, numbers),
      testing.at_clients(_NUMBERS),
  )


def _build_orders_beside_a_dataset_of_the_server():
  order = tff.tensorflow.computation(
      lambda numbers, other: _order(numbers) + other.reduce(0.0, tf.add),
      _NUMBERS,
      _NUMBERS,
  )
  return tff.federated_computation(
      lambda numbers, other: tff.federated_map(
          order, (numbers, tff.federated_broadcast(other))
      ),
      testing.at_clients(_NUMBERS),
      testing.at_server(_NUMBERS),
  )


def _as_pipeline(numbers: tf.data.Dataset) -> tf.data.Dataset:
  """Returns the same, so that a pipeline runs."""
  return numbers.flat_map(tf.data.Dataset.from_tensors)


def _shuffle(numbers: tf.data.Dataset) -> tf.data.Dataset:
  return numbers.shuffle(20)


def _range() -> tf.data.Dataset:
  return tf.data.Dataset.from_tensor_slices(np.arange(20, dtype=np.float32))


def _build_made_datasets() -> tff.framework.ConcreteComputation:
  """Returns a computation of clients that shuffle datasets of their ids."""
  make = tff.tensorflow.computation(lambda _: _shuffle(_range()), np.str_)
  order = tff.tensorflow.computation(_order, _NUMBERS)

  @tff.federated_computation(testing.at_clients(np.str_))
  def run(ids):
    orders = tff.federated_map(order, tff.federated_map(make, ids))
    return tff.federated_sum(orders)

  return run


_partial = functools.partial
# Computations that draw, with a function that returns their arguments.
_DRAWING = (
    ('call', _build_two_draws, lambda: ()),
    ('initialization', _build_initialization, lambda: ()),
    ('round', _build_noise, lambda: ([0.0, 0.0],)),
    ('loops', _build_loops, lambda: ([[0.0] * 2, [0.0] * 3],)),
    ('steps', _build_steps, lambda: ([0.0] * 3,)),
    ('steps_of_clients_alone', _build_draws_of_clients, lambda: ()),
    ('steps_of_elements', _build_steps_of_elements, lambda: ([0.0, 0.0],)),
    *(
        (f'{name}_{place}', _partial(_build_order, change, place), arguments)
        for place in (None, tff.SERVER)
        for name, change, arguments in (
            ('shuffle_in_work', _shuffle, lambda: (list(range(20)),)),
            ('shuffle', lambda numbers: numbers, lambda: (_shuffle(_range()),)),
            ('pipeline', _as_pipeline, lambda: (_shuffle(_range()),)),
        )
    ),
    (
        'shuffle_in_work_of_clients',
        _partial(_build_order, _shuffle, tff.CLIENTS),
        lambda: ([list(range(20))] * 2,),
    ),
    *(
        (
            f'{work.__name__}_of_clients',
            _partial(sequence_testing.over_clients, work, _NUMBERS),
            lambda: ([list(range(20))] * 2,),
            work is _order_in_a_function,
        )
        for work in (_order_in_a_function, _order_in_a_loop, _order_of_samples)
    ),
    (
        'shuffle_of_clients',
        _partial(_build_order, place=tff.CLIENTS),
        lambda: ([_shuffle(_range())] * 2,),
    ),
    (
        'shuffle_of_clients_one_by_one',
        _build_orders_of_clients,
        lambda: ([_shuffle(_range())] * 2,),
        False,
    ),
    (
        'shuffle_of_clients_beside_a_dataset_of_the_server',
        _build_orders_beside_a_dataset_of_the_server,
        lambda: ([_shuffle(_range())] * 2, [1.0]),
        False,
    ),
    ('made_datasets', _build_made_datasets, lambda: (['a', 'b'],)),
)


def _rows(result: Any) -> np.ndarray:
  """Returns all vectors of a result that were drawn."""
  if isinstance(result, tf.data.Dataset):
    result = list(result.as_numpy_iterator())
  rows = np.stack(tf.nest.flatten(result))
  return rows.reshape([-1, rows.shape[-1]])


class DrawsTest(compiled_testing.TestCase):

  @parameterized.named_parameters(*_DRAWING)
  @pytest.mark.filterwarnings("ignore:Each client's")
  def test_are_new_in_each_call_and_follow_seed_and_round(
      self, build, args, strict=True
  ):
    tf.random.set_seed(None)  # The test case's seed would be that of shuffles.
    computation, arguments = build(), args()
    draw = lambda: _rows(computation(*arguments))
    by_seed, by_round = [], []
    for seed in (7, 7, 8):
      with runtime.CompiledContext(
          strict=strict, seed=seed, default_num_clients=2
      ) as context:
        by_seed.append(np.concatenate([draw() for _ in range(3)]))
        for round_num in (1, 2, 1):
          context.begin_round(3, round_num)
          by_round.append(draw())
    self.assert_same_bits(by_seed[0], by_seed[1])
    one, two = by_round[:2]
    self.assert_same_bits(by_round, [one, two, one] * 3)
    rows = np.concatenate([by_seed[0], by_seed[2], one, two]).round(5)
    self.assertLen(np.unique(rows, axis=0), len(rows))


class GlobalSeedTest(compiled_testing.TestCase):

  def test_fixes_the_numbers_of_datasets_that_are_made_after_it(self):
    # As docs/guide/reproducibility.md says.
    tf.random.set_seed(None)

    def make():
      return [
          _shuffle(_range()),
          _range().map(lambda x: x + _uniform(1)[0]),
      ]

    before = make()
    tf.random.set_seed(1)
    after = make()
    order = _build_order(place=tff.CLIENTS)

    def is_new(dataset):
      with runtime.CompiledContext(strict=True) as context:
        rounds = []
        for round_num in range(2):
          context.begin_round(3, round_num)
          rounds.append(order([dataset]))
      return not np.array_equal(*rounds)

    self.assertEqual(list(map(is_new, before)), [True, True])
    self.assertEqual(list(map(is_new, after)), [False, False])


class CallsWithoutClientsTest(compiled_testing.TestCase):

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
    cohort = _cohort_of_ones(3, 0, 'a')
    spec = tff.types.tensorflow_to_type(cohort[0].element_spec)
    noise = sequence_testing.over_clients(
        lambda batches: batches.reduce(0.0, lambda x, _: x + _uniform(1)[0]),
        tff.SequenceType(spec),
    )
    draw = _build_draw()

    def run(first, last):
      found = []
      with runtime.CompiledContext(strict=True):
        for round_num in range(first, last):
          noise(_cohort_of_ones(3, round_num, 'ab'))
          found += [draw(), draw()]
      return found

    whole = run(0, 3)
    self.assertLen(np.unique(np.stack(whole).round(5), axis=0), 6)
    self.assert_same_bits(run(2, 3), whole[4:])


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

  @parameterized.parameters(True, False)
  def test_of_a_cohort_beside_other_values(self, is_one_graph):
    cohort = _cohort_of_ones(3, 4, 'ab')
    batches = tff.SequenceType(
        tff.types.tensorflow_to_type(cohort[0].element_spec)
    )

    @tff.tensorflow.computation(batches, np.float32)
    def draw(dataset, factor):
      return dataset.reduce(0.0, lambda x, _: x + factor * _uniform(1)[0])

    @tff.federated_computation(
        testing.at_clients(batches), testing.at_clients()
    )
    def add_up(datasets, factors):
      drawn = tff.federated_map(draw, (datasets, factors))
      total = tff.federated_sum(drawn)
      return total if is_one_graph else (total, drawn)

    found = []
    for seed in (1, 2):
      with runtime.CompiledContext(strict=True, seed=seed):
        found += [add_up(cohort, [1.0, 2.0]) for _ in range(2)]
    self.assertLen(set(map(str, found)), 1)

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

  def test_contexts_without_a_seed_differ(self):
    draw, found = _build_noise(), []
    for _ in range(2):
      with runtime.CompiledContext(strict=True):
        found.append(draw([0.0, 0.0]))
    self.assertNotAllClose(*found)

  def test_wrong_number_of_ids(self):
    draw = _build_noise()
    with runtime.CompiledContext(strict=True) as context:
      context.begin_round(1, 0, ['a', 'b'])
      with self.assertRaisesRegex(ValueError, '2 client ids, .* 1 clients'):
        draw([0.0])
      # Where nothing is drawn, ids do not matter.
      add_up = sequence_testing.over_clients(lambda value: value, np.float32)
      self.assertEqual(add_up([1.0, 2.0, 4.0]), 7.0)


def _begin_round(seed: Any = 0, round_num: Any = 0) -> None:
  compiled_testing.context().begin_round(seed, round_num)


test_numbers_that_are_no_seed_are_refused = error_testing.refused(
    *error_testing.bad_values(_begin_round, seed=-1, round_num=-1),
    *error_testing.bad_types(_begin_round, seed=1.5, round_num='1'),
    *error_testing.bad_types(_begin_round, seed=None),
    *error_testing.bad_types(_begin_round, seed=True),
)
