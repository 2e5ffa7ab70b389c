# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of steps: computations that are not a round.

`equality_computations_test` has most of their results.
"""

from typing import Any
from unittest import mock
import warnings

from absl.testing import parameterized
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tests.tff_adaptive.runtime import computations_testing
from tests.tff_adaptive.runtime import equality_testing
from tff_adaptive import data
from tff_adaptive import runtime
from tff_adaptive.runtime import rounds
from tff_adaptive.runtime.steps import steps

_at_clients, _at_server = testing.at_clients, testing.at_server
_tf_computation = tff.tensorflow.computation
_NUMBERS = tff.SequenceType(np.float32)
_reduce_doubled = tff.federated_computation(
    lambda numbers: tff.sequence_reduce(
        tff.sequence_map(computations_testing.double, numbers),
        1.0,
        computations_testing.add,
    ),
    _NUMBERS,
)


@tff.federated_computation(_at_clients(_NUMBERS))
def _sum_doubled(numbers):
  total = tff.federated_computation(
      lambda n: tff.sequence_sum(
          tff.sequence_map(computations_testing.double, n)
      ),
      _NUMBERS,
  )
  totals = tff.federated_map(total, numbers)
  return totals, tff.federated_sum(totals)


@tff.federated_computation(np.float32, _at_clients())
def _add_everywhere(value, values):
  add = tff.federated_computation(
      lambda x: computations_testing.add(x, value), np.float32
  )
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
    run = computations_testing.CASES['results_at_the_clients'].computation
    with equality_testing.compiled():
      self.assertEqual(run([]), [])


def _map_at_clients(fn: Any, member_type: Any = np.float32) -> Any:
  """Returns a computation that returns the clients' results."""
  work = _tf_computation(fn, member_type)
  return tff.federated_computation(
      lambda values: tff.federated_map(work, values), _at_clients(member_type)
  )


_take = _map_at_clients(
    lambda n: n.flat_map(tf.data.Dataset.from_tensors)
    .take(1)
    .reduce(0.0, tf.add),
    _NUMBERS,
)


class ClientDataTest(equality_testing.TestCase):

  def _cohort(self, round_num: int = 0) -> data.Cohort:
    return equality_testing.cohort(round_num)

  def _build(self) -> Any:
    """Returns a computation that returns the clients' results."""
    spec = self._cohort()[0].element_spec
    data_type = tff.SequenceType(tff.types.tensorflow_to_type(spec))

    @_tf_computation(data_type, np.float32)
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
    counted = mock.patch.object(
        rounds, 'CompiledRound', wraps=rounds.CompiledRound
    )
    with runtime.CompiledContext(strict=True), counted as made:
      for round_num in (0, 1):
        run(self._cohort(round_num), 1.5)
    self.assertEqual(made.call_count, 2)

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


@_tf_computation(np.float32)
def _with_noise(value):
  return value + tf.random.normal([])


@tff.federated_computation(_at_clients())
def _noise(values):
  noisy = [tff.federated_map(_with_noise, values) for _ in range(2)]
  mean = tff.federated_map(_with_noise, tff.federated_mean(noisy[0]))
  return noisy, tff.federated_map(_with_noise, mean)


@tff.federated_computation
def _noise_alone():
  draw = _tf_computation(lambda: tf.random.normal([4]))
  values = tff.federated_eval(draw, tff.CLIENTS)
  return tff.federated_min(values), values


@tff.federated_computation(_at_clients(tff.TensorType(np.int32, [2])))
def _noisy_selection(keys):
  limit = tff.federated_value(3, tff.SERVER)
  pick = _tf_computation(
      lambda value, key: value
      + tf.cast(key, tf.float32)
      + tf.random.normal([]),
      (np.float32, np.int32),
  )
  start = tff.federated_value(1.0, tff.SERVER)
  numbers = tff.federated_select(keys, limit, start, pick)
  total = _tf_computation(lambda n: n.reduce(0.0, tf.add), _NUMBERS)
  return tff.federated_map(total, numbers)


class StepGraphsTest(equality_testing.TestCase):

  @parameterized.named_parameters(
      ('noise', _noise, [1.0, 2.5, 4.0]),
      ('noise_alone', _noise_alone),
      ('noisy_selection', _noisy_selection, [[0, 2], [2, 1]]),
  )
  def test_draws_have_the_bits_of_single_steps(self, computation, *arguments):
    one_by_one = mock.patch.object(
        steps.StepGraph, '__call__', return_value=None
    )
    found = {}
    for path in ('compiled', 'steps'):
      with runtime.CompiledContext(
          strict=True, seed=3, default_num_clients=3
      ) as context:
        if path == 'steps':
          self.enter_context(one_by_one)
        found[path] = [computation(*arguments) for _ in range(2)]
        self.assertEqual(context.path_of(computation), path)
    self.assert_same(found['compiled'], found['steps'], 0)

  def test_results_without_a_value(self):
    with equality_testing.compiled():
      self.assertEqual(
          _map_at_clients(lambda _: (), np.float32)([1.0, 2.0]), [(), ()]
      )

  def test_shapes_that_differ_run_in_steps(self):
    run = _map_at_clients(
        lambda value: tf.reduce_sum(value), tff.TensorType(np.float32, [None])
    )
    given = {
        'compiled': ([[1.0, 2.0], [4.0, 8.0]], [3.0, 12.0]),
        'steps': ([[1.0, 2.0], [4.0]], [3.0, 4.0]),
    }
    with equality_testing.compiled() as context:
      for _ in range(2):
        for path, (values, expected) in given.items():
          self.assertEqual(run([np.float32(v) for v in values]), expected)
          self.assertEqual(context.path_of(run), path)

  @parameterized.named_parameters(
      ('floats', np.float32, [1.0, np.float32(2)], [2.0, 4.0]),
      ('integers_for_floats', np.float32, [np.int64(1), 3], [2.0, 6.0]),
      ('integers', np.int32, [np.int64(1), 3], [2, 6]),
  )
  def test_values_of_all_kinds_are_taken(self, dtype, values, expected):
    run = _map_at_clients(lambda value: 2 * value, dtype)
    with equality_testing.compiled():
      self.assertEqual(run(values), expected)
