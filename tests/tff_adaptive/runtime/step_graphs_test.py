# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that steps over clients' tensors are one graph, with the same bits."""

import contextlib
from typing import Any
from unittest import mock

from absl.testing import parameterized
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tests.tff_adaptive.runtime import equality_testing
from tff_adaptive import runtime
from tff_adaptive.runtime import running
from tff_adaptive.runtime.steps import steps

_at_clients, _at_server = testing.at_clients, testing.at_server
_VECTOR = tff.TensorType(np.float32, [4])
_KEYS = tff.TensorType(np.int32, [2])
_ROWS = tff.SequenceType(tff.TensorType(np.float32, [4]))
_VALUES = list(np.random.default_rng(0).normal(size=[5, 4]).astype(np.float32))
_KEPT = [np.asarray([n, (n + 2) % 3], np.int32) for n in (0, 2, 1)]
_TABLE = np.arange(12, dtype=np.float32).reshape([3, 4])


@tff.tensorflow.computation(_VECTOR, _VECTOR)
def _nearness(value, median):
  return 1.0 / tf.maximum(tf.norm(value - median), 1e-6)


@tff.tensorflow.computation(_VECTOR)
def _with_noise(value):
  return value + tf.random.normal([4])


@tff.tensorflow.computation(tff.TensorType(np.float32, [3, 4]), np.int32)
def _pick(table, key):
  return 2 * tf.gather(table, key)


@tff.tensorflow.computation(tff.TensorType(np.float32, [3, 4]), np.int32)
def _pick_noisily(table, key):
  return tf.gather(table, key) + tf.random.normal([4])


@tff.tensorflow.computation(_ROWS, _KEYS)
def _digest(rows, keys):
  factor = tf.cast(keys[0] + 1, tf.float32)
  return factor * rows.reduce(tf.zeros([4]), lambda done, r: 0.5 * done + r)


@tff.tensorflow.computation(_ROWS, _KEYS)
def _digest_of_dataset(rows, keys):
  del keys
  copies = rows.flat_map(tf.data.Dataset.from_tensors)
  return copies.reduce(tf.zeros([4]), lambda done, r: 0.5 * done + r)


@tff.federated_computation(_at_clients(_VECTOR))
def _median(values):
  median = tff.federated_mean(values)
  for _ in range(3):
    everywhere = tff.federated_broadcast(median)
    weights = tff.federated_map(_nearness, (values, everywhere))
    median = tff.federated_mean(values, weight=weights)
  return median, weights


@tff.federated_computation(_at_clients(_VECTOR))
def _noise(values):
  noisy = [tff.federated_map(_with_noise, values) for _ in range(2)]
  mean = tff.federated_map(_with_noise, tff.federated_mean(noisy[0]))
  return noisy, tff.federated_map(_with_noise, mean)


@tff.federated_computation
def _noise_alone():
  draw = tff.tensorflow.computation(lambda: tf.random.normal([4]))
  values = tff.federated_eval(draw, tff.CLIENTS)
  return tff.federated_min(values), values


def _selection(pick: Any, work: Any) -> Any:
  @tff.federated_computation(
      _at_clients(_KEYS), _at_server(tff.TensorType(np.float32, [3, 4]))
  )
  def select(keys, table):
    limit = tff.federated_value(3, tff.SERVER)
    rows = tff.federated_select(keys, limit, table, pick)
    found = tff.federated_map(work, (rows, keys))
    return found, tff.federated_sum(found)

  return select


@tff.federated_computation(_at_server(), _at_clients(np.str_), _at_clients())
def _all_kinds(start, names, values):
  greet = tff.tensorflow.computation(lambda name: name + '!', np.str_)
  larger = tff.tensorflow.computation(
      lambda left, right: (left + right, left > right), np.float32, np.float32
  )
  everywhere = tff.federated_broadcast(start)
  sums, flags = tff.federated_map(larger, (values, everywhere))
  return (
      tff.federated_map(greet, names),
      flags,
      everywhere,
      tff.federated_zip((sums, names)),
      tff.federated_max(sums),
      'text',
  )


_CASES: tuple[tuple[str, Any, tuple[Any, ...]], ...] = (
    ('median', _median, (_VALUES,)),
    ('noise', _noise, (_VALUES,)),
    ('noise_alone', _noise_alone, ()),
    ('selection', _selection(_pick, _digest), (_KEPT, _TABLE)),
    ('noisy_selection', _selection(_pick_noisily, _digest), (_KEPT, _TABLE)),
    (
        'selection_as_datasets',
        _selection(_pick, _digest_of_dataset),
        (_KEPT, _TABLE),
    ),
    ('all_kinds', _all_kinds, (1.5, ['a', 'b'], [1.0, 2.5])),
)


def _one_by_one() -> contextlib.AbstractContextManager:
  """Runs steps one by one."""
  return mock.patch.object(steps.StepGraph, '__call__', return_value=None)


class StepGraphsTest(equality_testing.TestCase):

  @parameterized.named_parameters(*_CASES)
  def test_gives_the_bits_of_single_steps(self, computation, arguments):
    found, paths = [], []
    for way in (contextlib.nullcontext(), _one_by_one()):
      context = runtime.CompiledContext(
          strict=True, seed=3, default_num_clients=3
      )
      with context as entered, way:
        found.append([computation(*arguments) for _ in range(2)])
        paths.append(entered.path_of(computation))
    self.assertEqual(paths, ['compiled', 'steps'])
    for left, right in zip(*found):
      tf.nest.map_structure(np.testing.assert_array_equal, left, right)

  @parameterized.named_parameters(*_CASES)
  def test_calls_one_graph(self, computation, arguments):
    with runtime.CompiledContext(strict=True):
      computation(*arguments)
      with mock.patch.object(
          running.Runner,
          '__call__',
          autospec=True,
          side_effect=running.Runner.__call__,
      ) as calls:
        computation(*arguments)
    self.assertEqual(calls.call_count, 1)

  def test_shapes_that_differ_run_in_steps(self):
    kind = tff.TensorType(np.float32, [None])
    total = tff.tensorflow.computation(lambda value: tf.reduce_sum(value), kind)
    run = tff.federated_computation(
        lambda values: tff.federated_map(total, values), _at_clients(kind)
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
      ('too_large', [[0, 2], [3, 1]], 'found 3'),
      ('negative', [[0, -1], [1, 1]], 'found -1'),
  )
  def test_keys_that_are_not_there_are_refused(self, keys, message):
    echo = tff.tensorflow.computation(
        lambda table, key: tf.fill([4], tf.cast(key, tf.float32) + table[0, 0]),
        tff.TensorType(np.float32, [3, 4]),
        np.int32,
    )
    run = _selection(echo, _digest)
    with equality_testing.compiled() as context:
      with self.assertRaisesRegex(ValueError, message):
        run([np.int32(key) for key in keys], _TABLE)
      run(_KEPT, _TABLE)
      self.assertEqual(context.path_of(run), 'compiled')

  @parameterized.named_parameters(
      ('floats', np.float32, [1.0, np.float32(2)], [2.0, 4.0]),
      ('integers_for_floats', np.float32, [np.int64(1), 3], [2.0, 6.0]),
      ('integers', np.int32, [np.int64(1), 3], [2, 6]),
  )
  def test_values_of_all_kinds_are_taken(self, dtype, values, expected):
    double = tff.tensorflow.computation(lambda value: 2 * value, dtype)
    run = tff.federated_computation(
        lambda value: tff.federated_map(double, value), _at_clients(dtype)
    )
    with equality_testing.compiled():
      self.assertEqual(run(values), expected)

  def test_values_that_do_not_fit_are_refused(self):
    double = tff.tensorflow.computation(lambda value: 2 * value, np.int32)
    run = tff.federated_computation(
        lambda value: tff.federated_map(double, value), _at_clients(np.int32)
    )
    with equality_testing.compiled():
      with self.assertRaisesRegex(TypeError, 'found an array of type float'):
        run([np.float32(1.5), np.float32(2)])
      with self.assertRaisesRegex(TypeError, 'found one of shape'):
        run(list(np.ones([2, 3], np.int32)))
