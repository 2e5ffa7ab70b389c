# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that computations that are not a round give the same as in TFF."""

import collections
from typing import Any
from unittest import mock
import warnings

from absl.testing import parameterized
import attrs
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tests.tff_adaptive.runtime import equality_testing
from tests.tff_adaptive.runtime import sequence_testing
from tff_adaptive import data
from tff_adaptive import runtime
from tff_adaptive.runtime import rounds

_Dict = collections.OrderedDict
_at_clients, _at_server = testing.at_clients, testing.at_server
_TABLE = tff.TensorType(np.float32, [3])
_NUMBERS = tff.SequenceType(np.float32)
_DATA = tff.SequenceType(tff.TensorType(np.float32, [None]))


@attrs.frozen
class _Output:
  total: Any
  each: Any


@tff.tensorflow.computation(np.float32)
def _double(value):
  return 2 * value


@tff.tensorflow.computation(np.float32, np.float32)
def _add(left, right):
  return left + right


@tff.tensorflow.computation(np.float32, np.float32)
def _divide(left, right):
  return left / right


@tff.tensorflow.computation(_TABLE, np.int32)
def _select(table, key):
  return tf.gather(table, key)


@tff.tensorflow.computation(_DATA, np.float32)
def _train(batches, start):
  """Returns a weight and a state, as a client's training does."""
  weight = batches.reduce(start, lambda w, b: 0.9 * w + tf.reduce_mean(b))
  return _Dict(weight=weight, count=batches.reduce(0, lambda n, b: n + 1))


@tff.tensorflow.computation(_NUMBERS)
def _preprocess(numbers):
  return numbers.map(lambda number: _Dict(b=3 * number, a=(number, 1)))


_CASES: dict[str, tuple[Any, tuple[Any, ...]]] = {}


def _case(*arguments: Any, **kwargs: Any) -> Any:
  """Adds a computation of these types, and its arguments, to the cases."""

  def add(fn):
    computation = tff.federated_computation(fn, *arguments)
    _CASES[fn.__name__.strip('_')] = (computation, kwargs.get('of', ()))
    return computation

  return add


@_case()
def _hello():
  return 'Hello, World!'


@_case()
def _constants():
  return _Dict(b=(1.5, True), a=[3, _Dict(c='text')])


@_case(np.float32, of=(2.0,))
def _calls(value):
  return _double(_double(value)), value


@_case(_at_server(), of=(2.0,))
def _value_at_the_server(value):
  return tff.federated_map(_double, value)


@_case(_at_server(), _at_server(_Dict(a=np.float32)), of=(2.0, _Dict(a=3.0)))
def _values_at_the_server(value, struct):
  total = tff.federated_map(_add, (value, struct.a))
  return _Output(total, tff.federated_zip([value, struct]))


@_case()
def _evaluations_at_the_server():
  one = tff.federated_eval(tff.tensorflow.computation(lambda: 1.0), tff.SERVER)
  two = tff.federated_value(2.0, tff.SERVER)
  return one, tff.federated_map(_add, (one, two))


@_case()
def _evaluation_at_the_clients():
  numbers = tff.federated_eval(
      tff.tensorflow.computation(lambda: 1.0), tff.CLIENTS
  )
  return _Dict(each=numbers, total=tff.federated_sum(numbers))


@_case()
def _values_at_the_clients():
  return tff.federated_value((1.5, 'text'), tff.CLIENTS)


@_case(_NUMBERS, of=([1.0, 2.0, 4.0],))
def _reduction_of_a_sequence(numbers):
  return tff.sequence_reduce(numbers, 1.0, _add)


@_case(_at_clients(_NUMBERS), of=([[1.0, 2.0], [], [4.0]],))
def _reductions_at_the_clients(numbers):
  total = tff.tensorflow.computation(
      lambda n: n.reduce(0.0, lambda x, y: x + y), _NUMBERS
  )
  return tff.federated_map(total, numbers)


@_case(_at_server(_NUMBERS), of=([1.0, 2.0, 4.0],))
def _sequence_at_the_server(numbers):
  return numbers


@_case(_at_server(_NUMBERS), of=([1.0, 2.0, 4.0],))
def _sequence_preprocessed_at_the_server(numbers):
  return tff.federated_map(_preprocess, numbers)


@_case(_at_clients(_NUMBERS), of=([[1.0, 2.0], [], [4.0]],))
def _sequences_preprocessed_at_the_clients(numbers):
  return tff.federated_map(_preprocess, numbers)


@_case(
    _at_clients(tff.TensorType(np.int32, [2])),
    _at_server(_TABLE),
    of=([[0, 2], [1, 1], [2, 1]], [1.0, 2.0, 3.0]),
)
def _selection(keys, table):
  limit = tff.federated_value(3, tff.SERVER)
  return tff.federated_select(keys, limit, table, _select)


@_case(
    _at_clients(tff.TensorType(np.int32, [2])),
    _at_server(_TABLE),
    of=([[0, 2], [1, 1]], [1.0, 2.0, 3.0]),
)
def _sum_of_selections(keys, table):
  limit = tff.federated_value(3, tff.SERVER)
  slices = tff.federated_select(keys, limit, table, _select)
  total = tff.tensorflow.computation(
      lambda s: s.reduce(0.0, lambda x, y: x + y), _NUMBERS
  )
  totals = tff.federated_map(total, slices)
  return totals, tff.federated_sum(totals)


@_case(_at_clients(), of=([1.0, 2.5],))
def _results_at_the_clients(values):
  return tff.federated_map(_double, values)


@_case(
    _at_server(),
    _at_clients(_DATA),
    _at_clients(),
    of=(
        1.0,
        [sequence_testing.numbers(3, 2), [], sequence_testing.numbers(4)],
        [0.5, 1.0, 2.0],
    ),
)
def _state_of_clients(model, batches, states):
  starts = tff.federated_map(_add, (tff.federated_broadcast(model), states))
  results = tff.federated_map(_train, (batches, starts))
  model = tff.federated_map(_add, (model, tff.federated_mean(results.weight)))
  return model, results


@_case(_at_clients(), of=([1.0, 2.5, 4.0],))
def _broadcast_of_an_aggregate(values):
  mean = tff.federated_broadcast(tff.federated_mean(values))
  return tff.federated_sum(tff.federated_map(_divide, (values, mean)))


@tff.tensorflow.computation(np.float32, np.float32)
def _weigh(value, median):
  return 1.0 / tf.maximum(tf.abs(value - median), 1e-3)


@_case(_at_clients(), of=([1.0, 2.5, 4.0, 40.0],))
def _weiszfeld(values):
  median = tff.federated_mean(values)
  for _ in range(3):
    everywhere = tff.federated_broadcast(median)
    weights = tff.federated_map(_weigh, (values, everywhere))
    median = tff.federated_mean(values, weights)
  return median


@_case(
    _at_server(),
    _at_clients(_DATA),
    of=(1.0, [sequence_testing.numbers(3, 2), sequence_testing.numbers(4)]),
)
def _two_rounds_in_one(model, batches):
  for _ in range(2):
    start = tff.federated_broadcast(model)
    results = tff.federated_map(_train, (batches, start))
    model = tff.federated_mean(results.weight)
  return _Output(model, tff.federated_sum(results.count))


@_case(_at_clients((np.float32, np.int32)), of=([(1.0, -2), (0.5, 7)],))
def _extremes_everywhere(values):
  low, high = tff.federated_min(values), tff.federated_max(values)
  return tff.federated_broadcast(low), high


@_case(
    _at_server(),
    _at_clients(),
    tff.FederatedType(np.float32, tff.CLIENTS, all_equal=True),
    _at_clients(_Dict(x=np.float32)),
    of=(1.0, [2.0, 3.0], 10.0, [_Dict(x=4.0), _Dict(x=5.0)]),
)
def _arguments_at_all_places(server, clients, equal, structs):
  both = tff.federated_map(_add, (clients, equal))
  return _Dict(
      both=both,
      zipped=tff.federated_zip(_Dict(b=both, a=structs)),
      total=tff.federated_map(_add, (tff.federated_sum(both), server)),
      equal=equal,
  )


@_case(_at_clients(), of=([2.0, 3.0],))
def _nested_computations(values):
  halve = tff.tensorflow.computation(lambda x: x / 2, np.float32)
  inner = tff.federated_computation(
      lambda v: tff.federated_map(halve, v), _at_clients()
  )
  outer = tff.federated_computation(
      lambda v: (inner(v), tff.federated_mean(inner(v))), _at_clients()
  )
  return outer(values)


@_case(_at_clients((np.float32, _Dict(x=np.str_))), of=([(2.0, _Dict(x='a'))],))
def _selections_and_swaps(values):
  swap = tff.federated_computation(
      lambda value: (value[1], value[0]), values.type_signature.member
  )
  return values[1].x, tff.federated_map(swap, values)


@_case(_at_clients(np.str_), of=(['some', 'text'],))
def _strings(texts):
  join = tff.tensorflow.computation(lambda t: t + '!', np.str_)
  return tff.federated_map(join, texts)


@_case(
    _at_clients(tff.TensorType(np.float32, [None])),
    of=([np.ones([2], np.float32), np.ones([5], np.float32)],),
)
def _tensors_that_differ_in_shape(values):
  total = tff.tensorflow.computation(
      lambda value: tf.reduce_sum(value), tff.TensorType(np.float32, [None])
  )
  return tff.federated_sum(tff.federated_map(total, values)), values


@_case(_at_clients(), of=([1.0, 2.0],))
def _own_aggregation(values):
  @tff.tensorflow.computation
  def zero():
    return _Dict(total=0.0, count=0)

  @tff.tensorflow.computation(zero.type_signature.result, np.float32)
  def accumulate(state, value):
    return _Dict(total=state['total'] + value, count=state['count'] + 1)

  @tff.tensorflow.computation(*[zero.type_signature.result] * 2)
  def merge(left, right):
    return tf.nest.map_structure(tf.add, left, right)

  @tff.tensorflow.computation(zero.type_signature.result)
  def report(state):
    return state['total'] / tf.cast(state['count'], tf.float32)

  mean = tff.federated_aggregate(values, zero(), accumulate, merge, report)
  return tff.federated_broadcast(mean), mean


def _read(value: Any) -> Any:
  """Returns a result with lists of elements in place of datasets."""
  if isinstance(value, tf.data.Dataset):
    return str(value.element_spec).encode(), list(value.as_numpy_iterator())
  if attrs.has(type(value)):
    return _Output(*map(_read, (value.total, value.each)))
  if isinstance(value, dict):
    return type(value)((name, _read(field)) for name, field in value.items())
  if isinstance(value, (list, tuple)):
    return type(value)(map(_read, value))
  return value


@pytest.fixture(scope='module')
def native():
  """TFF's runtime, with one client where the argument does not tell."""
  with runtime.NativeContext(default_num_clients=1):
    yield


@pytest.mark.usefixtures('native')
class StepsTest(equality_testing.TestCase):

  @parameterized.named_parameters(
      (name, *case) for name, case in _CASES.items()
  )
  def test_gives_what_tff_gives(self, computation, arguments):
    expected = _read(computation(*arguments))
    with equality_testing.compiled():
      for _ in range(2):
        self.assert_same(expected, _read(computation(*arguments)), 1e-6)


_reduce_doubled = tff.federated_computation(
    lambda numbers: tff.sequence_reduce(
        tff.sequence_map(_double, numbers), 1.0, _add
    ),
    _NUMBERS,
)


@tff.federated_computation(_at_clients(_NUMBERS))
def _sum_doubled(numbers):
  total = tff.federated_computation(
      lambda n: tff.sequence_sum(tff.sequence_map(_double, n)), _NUMBERS
  )
  totals = tff.federated_map(total, numbers)
  return totals, tff.federated_sum(totals)


@tff.federated_computation(np.float32, _at_clients())
def _add_everywhere(value, values):
  add = tff.federated_computation(lambda x: _add(x, value), np.float32)
  return tff.federated_map(add, values), tff.federated_sum(values)


class BeyondTffTest(equality_testing.TestCase):
  """Computations that TFF's runtime fails on."""

  def test_functions_of_sequences(self):
    with equality_testing.compiled():
      for _ in range(2):
        self.assertEqual(_reduce_doubled([1.0, 2.0]), 7.0)
        self.assertEqual(_reduce_doubled([]), 1.0)
        self.assertEqual(_sum_doubled([[1.0, 2.0], []]), ([6.0, 0.0], 6.0))

  def test_functions_that_read_a_value_from_outside(self):
    with equality_testing.compiled():
      for value in (1.0, 2.0):
        self.assertEqual(
            _add_everywhere(value, [2.0, 3.0]), ([2 + value, 3 + value], 5.0)
        )

  def test_results_of_no_clients(self):
    run, _ = _CASES['results_at_the_clients']
    with equality_testing.compiled():
      self.assertEqual(run([]), [])


def _count_rounds() -> Any:
  """Counts the graphs of rounds that are made in a `with` statement."""
  return mock.patch.object(rounds, 'CompiledRound', wraps=rounds.CompiledRound)


class ClientDataTest(equality_testing.TestCase):

  def _cohort(self, round_num: int = 0) -> data.Cohort:
    return equality_testing.cohort(round_num)

  def _build(self) -> Any:
    """Returns a computation that returns the clients' results."""
    spec = self._cohort()[0].element_spec
    data_type = tff.SequenceType(tff.types.tensorflow_to_type(spec))

    @tff.tensorflow.computation(data_type, np.float32)
    def work(batches, start):
      return batches.reduce(
          start, lambda total, batch: total + tf.reduce_sum(batch['x'])
      )

    @tff.federated_computation(_at_clients(data_type), _at_server())
    def run(clients, start):
      everywhere = tff.federated_broadcast(start)
      results = tff.federated_map(work, (clients, everywhere))
      again = tff.federated_broadcast(tff.federated_mean(results))
      return results, tff.federated_map(work, (clients, again))

    return run

  def test_cohorts_are_those_of_their_datasets(self):
    run = self._build()
    with equality_testing.compiled() as context:
      for round_num in (0, 1):
        cohort = self._cohort(round_num)
        found = run(cohort, 1.5)
        self.assert_same(run(list(cohort), 1.5), found, 1e-6)
      self.assertIsNone(context.plan_of(run).pipelines)
    sums = [
        sum(batch['x'].sum() for batch in dataset.as_numpy_iterator())
        for dataset in cohort
    ]
    self.assertAllClose(found[0], np.add(sums, 1.5), 1e-5)
    self.assertAllClose(found[1], np.add(sums, np.mean(found[0])), 1e-5)

  def test_work_on_datasets_is_one_graph(self):
    run = self._build()
    with runtime.CompiledContext(strict=True), _count_rounds() as made:
      for round_num in (0, 1):
        run(self._cohort(round_num), 1.5)
    # The first call asks whether the whole is a round, which it is not.
    self.assertEqual(made.call_count, 3)

  def test_pipelines_that_run_are_told_once(self):
    with runtime.CompiledContext() as context:
      with self.assertWarnsRegex(RuntimeWarning, 'pipeline runs in each'):
        self.assertLen(_take([[1.0, 2.0], [4.0]]), 2)
      self.assertIn('FlatMapDataset', context.plan_of(_take).pipelines)
      with warnings.catch_warnings():
        warnings.simplefilter('error')
        self.assertEqual(_take([[1.0, 2.0], [4.0]]), [1.0, 4.0])

  def test_pipelines_are_refused_by_a_strict_context(self):
    with equality_testing.compiled():
      with self.assertRaisesRegex(
          runtime.UnsupportedComputationError, 'FlatMapDataset'
      ):
        _take([[1.0, 2.0], [4.0]])


@tff.federated_computation(_at_clients(_NUMBERS))
def _take(numbers):
  first = tff.tensorflow.computation(
      lambda n: n.flat_map(tf.data.Dataset.from_tensors)
      .take(1)
      .reduce(0.0, lambda x, y: x + y),
      _NUMBERS,
  )
  return tff.federated_map(first, numbers)


def _draw() -> tf.Tensor:
  return tf.random.uniform([2])


def _build_draws() -> Any:
  """Returns a new computation that draws at all places, and twice."""
  number = tff.tensorflow.computation(lambda x: x + _draw(), np.float32)
  alone = tff.tensorflow.computation(_draw)

  @tff.federated_computation(_at_clients())
  def run(values):
    drawn = [tff.federated_map(number, values) for _ in range(2)]
    drawn.append(tff.federated_eval(alone, tff.CLIENTS))
    return drawn, tff.federated_eval(alone, tff.SERVER), alone()

  return run


def _rows(result: Any) -> np.ndarray:
  """Returns all draws of `_build_draws`."""
  at_clients, *others = result
  rows = [row for numbers in at_clients for row in numbers]
  return np.stack([*rows, *others])


class RandomNumbersTest(equality_testing.TestCase):

  def test_are_drawn_anew_and_repeat_with_the_seed(self):
    runs = []
    for seed in (7, 7, 8):
      with runtime.CompiledContext(strict=True, seed=seed):
        run = _build_draws()
        runs.append(np.concatenate([_rows(run([0.0] * 3)) for _ in range(2)]))
    seven, again, eight = runs
    self.assertAllEqual(seven, again)
    everything = np.concatenate([seven, eight])
    self.assertLen(everything, 4 * 11)
    self.assertLen(np.unique(everything.round(5), axis=0), len(everything))

  def test_follow_the_round_that_begins(self):
    with runtime.CompiledContext(strict=True) as context:
      run, found = _build_draws(), []
      for round_num in (1, 2, 1):
        context.begin_round(3, round_num)
        found.append(_rows(run([0.0] * 3)))
    self.assertAllEqual(found[0], found[2])
    self.assertNotAllClose(found[0], found[1])

  def test_of_a_client_follow_its_id(self):
    with runtime.CompiledContext(strict=True) as context:
      run, found = _build_draws(), []
      for ids in ('ab', 'cb'):
        context.begin_round(3, 1, ids)
        (first, *_), *_ = run([0.0, 0.0])
        found.append(first)
    self.assertAllEqual(found[0][1], found[1][1])
    self.assertNotAllClose(found[0][0], found[1][0])

  def test_of_elements_differ(self):
    noisy = tff.tensorflow.computation(
        lambda value: value + tf.random.uniform([]), np.float32
    )
    run = tff.federated_computation(
        lambda numbers: tff.sequence_map(noisy, numbers), _NUMBERS
    )
    with equality_testing.compiled():
      calls = [list(run([0.0, 0.0]).as_numpy_iterator()) for _ in range(2)]
    self.assertLen(np.unique(np.round(calls, 5)), 4)

  def test_without_clients_are_drawn_anew(self):
    run = tff.federated_computation(
        lambda: tff.federated_eval(
            tff.tensorflow.computation(_draw), tff.CLIENTS
        )
    )
    runs = []
    for _ in range(2):
      with runtime.CompiledContext(strict=True, seed=7, default_num_clients=2):
        runs.append(np.concatenate([run() for _ in range(2)]))
    self.assertAllEqual(*runs)
    self.assertLen(np.unique(runs[0].round(5), axis=0), 4)


class ErrorsTest(equality_testing.TestCase):

  @parameterized.named_parameters(
      ('no_list', 'results_at_the_clients', (3.0,), 'must be a list'),
      (
          'of_several_lengths',
          'state_of_clients',
          (1.0, [[], []], [1.0]),
          'the same number of clients, found 1 and 2',
      ),
      (
          'of_another_shape',
          'results_at_the_clients',
          ([1.0, [2.0, 3.0]],),
          'Expected a value of type float32, found one of shape',
      ),
      (
          'of_another_struct',
          'arguments_at_all_places',
          (1.0, [2.0], 10.0, [_Dict(y=4.0)]),
          'with different fields',
      ),
      (
          'no_sequence',
          'sequences_preprocessed_at_the_clients',
          ([1.0, 2.0],),
          'for each client, found float',
      ),
      (
          'elements_of_another_shape',
          'sequences_preprocessed_at_the_clients',
          ([[[1.0, 2.0]]],),
          'Expected elements of type float32',
      ),
      (
          'keys_that_are_not_there',
          'selection',
          ([[0, 3]], [1.0, 2.0, 3.0]),
          'less than `max_key`, 3, found 3',
      ),
  )
  def test_arguments_are_refused(self, name, arguments, message):
    computation, good = _CASES[name]
    with equality_testing.compiled():
      with self.assertRaisesRegex((TypeError, ValueError), message):
        computation(*arguments)
      # The context works as before.
      computation(*good)

  def test_failed_assertions_are_told(self):
    @tff.federated_computation(_at_clients(np.int32))
    def add_up(values):
      total = tff.federated_secure_sum_bitwidth(values, 4)
      return total, tff.federated_broadcast(total)

    with equality_testing.compiled(), warnings.catch_warnings():
      warnings.filterwarnings('ignore', 'Secure sums')
      self.assertEqual(add_up([1, 2]), (3, 3))
      with self.assertRaisesRegex(ValueError, 'in a step: .*than maximum'):
        add_up([1, 200])
