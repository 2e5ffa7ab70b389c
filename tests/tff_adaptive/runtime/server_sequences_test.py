# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of sequences that are not at clients, which are read as rows."""

import contextlib
from typing import Any
from unittest import mock

from absl.testing import parameterized
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tests.tff_adaptive.runtime import equality_testing
from tests.tff_adaptive.runtime import sequence_testing
from tff_adaptive import runtime
from tff_adaptive.runtime.datasets import client_tensors
from tff_adaptive.runtime.datasets import dataset_reads
from tff_adaptive.runtime.datasets import dataset_rows
from tff_adaptive.runtime.datasets import elements

_ROWS = sequence_testing.ROWS
_NUMBERS = tff.SequenceType(np.float32)
_at_server, _at_clients = testing.at_server, testing.at_clients

_digest = tff.tensorflow.computation(sequence_testing.digest, _ROWS)


@tff.tensorflow.computation(_ROWS, np.float32)
def _digest_from(dataset, start):
  return start + sequence_testing.digest(dataset)


@tff.tensorflow.computation(np.float32, np.float32)
def _mix(total, number):
  return 0.7 * total + number


@tff.tensorflow.computation(np.float32, np.float32)
def _mix_noise(total, number):
  return 0.7 * total + number * tf.random.uniform([])


@tff.tensorflow.computation(_NUMBERS)
def _sum_noise(numbers):
  return numbers.reduce(
      0.0, lambda total, number: 0.7 * total + number * tf.random.uniform([])
  )


def _reduction(step: Any) -> Any:
  return tff.federated_computation(
      lambda numbers: tff.sequence_reduce(numbers, 0.0, step), _NUMBERS
  )


def _at_a_server(work: Any) -> Any:
  place = _at_server(work.type_signature.parameter)
  return tff.federated_computation(
      lambda value: tff.federated_map(work, value), place
  )


@tff.federated_computation(_at_server(_ROWS), _at_clients())
def _beside_clients(dataset, values):
  total = tff.federated_sum(values)
  mean = tff.federated_broadcast(tff.federated_mean(values))
  return (
      tff.federated_map(_digest_from, (dataset, total)),
      tff.federated_map(_mix, (values, mean)),
  )


@tff.federated_computation(
    tff.FederatedType(_ROWS, tff.CLIENTS, all_equal=True), _at_clients()
)
def _the_same_at_all_clients(dataset, values):
  return tff.federated_map(_digest_from, (dataset, values))


def _dataset() -> tf.data.Dataset:
  numbers = np.arange(20, dtype=np.float32) + 0.5
  return tf.data.Dataset.from_tensor_slices(numbers).batch(3)


def _shuffled(**options: Any) -> tf.data.Dataset:
  numbers = np.arange(20, dtype=np.float32)
  return tf.data.Dataset.from_tensor_slices(numbers).shuffle(20, **options)


def _as_datasets() -> contextlib.AbstractContextManager:
  """Reads no sequence as rows."""
  return mock.patch.object(
      client_tensors, 'pack_one', side_effect=dataset_rows.NotRowsError
  )


_CASES = (
    ('function', _digest, ()),
    ('function_of_more', _digest_from, (1.5,)),
    ('at_the_server', _at_a_server(_digest), ()),
    ('beside_clients', _beside_clients, ([1.0, 2.5],)),
    ('the_same_at_all_clients', _the_same_at_all_clients, ([1.0, 2.5],)),
)


class ServerSequencesTest(equality_testing.TestCase):

  @parameterized.named_parameters(*_CASES)
  def test_give_what_datasets_give(self, computation, others):
    batches = list(_dataset().as_numpy_iterator())
    for path, value in (
        ('cached', _dataset()),
        ('compiled', batches),
        ('compiled', []),
    ):
      with equality_testing.compiled() as context:
        found = [computation(value, *others) for _ in range(2)]
        self.assertEqual(context.path_of(computation), path)
      with runtime.CompiledContext(strict=True), _as_datasets():
        expected = computation(value, *others)
      # A pipeline may add in another order.
      for result in found:
        self.assertAllClose(result, expected, 1e-6)

  def test_datasets_are_read_once(self):
    dataset = _dataset()
    read = mock.patch.object(
        dataset_reads, 'of_dataset', wraps=dataset_reads.of_dataset
    )
    with runtime.CompiledContext(strict=True) as context, read as counted:
      for computation in (_digest, _at_a_server(_digest)):
        for _ in range(2):
          computation(dataset)
          self.assertEqual(context.path_of(computation), 'cached')
      self.assertGreater(context.num_cache_bytes, 0)
    counted.assert_called_once()

  @parameterized.named_parameters(
      ('function', _digest),
      ('at_the_server', _at_a_server(_digest)),
  )
  def test_path_tells_what_runs(self, computation):
    generated = tf.data.Dataset.from_generator(
        lambda: _dataset().as_numpy_iterator(),
        output_signature=tf.TensorSpec([None], tf.float32),
    )
    given = {'cached': _dataset(), 'threads': generated, 'compiled': [[1.0]]}
    with equality_testing.compiled() as context:
      found = [computation(value) for value in given.values()]
      for path, value in given.items():
        computation(value)
        self.assertEqual(context.path_of(computation), path)
    self.assertAllClose(found[0], found[1], 1e-6)

  @parameterized.named_parameters(
      ('function_of_tensorflow', _sum_noise),
      ('reduction', _reduction(_mix_noise)),
  )
  def test_random_numbers_are_those_with_datasets(self, computation):
    numbers, found = [1.0, 2.0, 4.0], []
    for reading in (contextlib.nullcontext(), _as_datasets()):
      with runtime.CompiledContext(strict=True, seed=3), reading:
        found.append([computation(numbers) for _ in range(2)])
    self.assertEqual(*found)
    self.assertNotEqual(*found[0])

  def test_work_that_needs_datasets_gets_them(self):
    work = tff.tensorflow.computation(
        lambda numbers: numbers.flat_map(tf.data.Dataset.from_tensors).reduce(
            0.0, tf.add
        ),
        _NUMBERS,
    )
    for computation in (work, _at_a_server(work)):
      with equality_testing.compiled() as context:
        for _ in range(2):
          self.assertEqual(computation([1.0, 2.0, 4.0, 8.0]), 15.0)
        self.assertEqual(context.path_of(computation), 'threads')

  def test_endless_datasets_may_be_read_in_part(self):
    work = tff.tensorflow.computation(
        lambda numbers: numbers.take(3).reduce(0.0, tf.add), _NUMBERS
    )
    dataset = tf.data.Dataset.from_tensors(np.float32(2)).repeat()
    for computation in (work, _at_a_server(work)):
      with equality_testing.compiled():
        self.assertEqual(computation(dataset), 6.0)

  def test_sequences_of_no_rows_are_datasets(self):
    kind = tff.SequenceType(tff.TensorType(np.float32, [None, None]))
    work = tff.tensorflow.computation(sequence_testing.digest, kind)
    value = [np.ones([1, 2]), np.ones([2, 1])]
    with equality_testing.compiled() as context:
      found = work(value)
      self.assertEqual(context.path_of(work), 'threads')
      self.assertAllClose(
          found, sum(0.7 ** (1 - i) * (3.1 if i < 2 else 0) for i in range(2))
      )

  def test_errors_are_those_with_datasets(self):
    for computation in (_digest, _at_a_server(_digest)):
      with equality_testing.compiled():
        with self.assertRaisesRegex(TypeError, 'found float'):
          computation(1.5)
        with self.assertRaisesRegex(TypeError, 'found an array of type'):
          computation([['text']])
        with self.assertRaisesRegex(TypeError, 'found .*int32'):
          computation(tf.data.Dataset.range(3, output_type=tf.int32).batch(2))


class OrdersTest(equality_testing.TestCase):

  def setUp(self):
    super().setUp()
    tf.random.set_seed(None)  # The test case's seed would be that of shuffles.

    def order(dataset):
      return dataset.reduce(
          tf.zeros([0]), lambda done, one: tf.concat([done, [one]], 0)
      )

    self._order = tff.tensorflow.computation(order, _NUMBERS)
    self._computations = (self._order, _at_a_server(self._order))

  def test_seeded_shuffles_are_those_of_tensorflow(self):
    dataset = _shuffled(seed=7)
    expected = list(_shuffled(seed=7).as_numpy_iterator())
    for computation in self._computations:
      with equality_testing.compiled() as context:
        for _ in range(2):
          self.assertAllEqual(computation(dataset), expected)
        self.assertEqual(context.path_of(computation), 'cached')

  def test_datasets_that_run_take_a_thread_unless_they_share_work(self):
    def size(dataset):
      generator = np.random.default_rng(0)
      found = elements.as_dataset_to_run(dataset, _NUMBERS, generator)
      return found.options().threading.private_threadpool_size

    options = tf.data.Options()
    options.threading.private_threadpool_size = 3
    # TensorFlow joins a shuffle with a `repeat` right after it.
    self.assertIsNone(size(_shuffled()))
    dataset = _shuffled().prefetch(1)
    self.assertEqual(size(dataset), 1)
    self.assertEqual(size([1.0, 2.0]), 1)
    self.assertIsNone(size(dataset.map(tf.abs, num_parallel_calls=2)))
    self.assertEqual(size(dataset.with_options(options)), 3)

  def test_two_reads_of_a_call_have_orders_of_their_own(self):
    @tff.tensorflow.computation(_NUMBERS)
    def twice(numbers):
      def read():
        return numbers.reduce(0.0, lambda done, one: 0.5 * done + one)

      return read(), read()

    @tff.federated_computation(_at_server(_NUMBERS))
    def by_two_functions(numbers):
      return [tff.federated_map(self._order, numbers) for _ in range(2)]

    for computation in (twice, _at_a_server(twice), by_two_functions):
      with equality_testing.compiled():
        self.assertNotAllEqual(*computation(_shuffled()))
        self.assertAllEqual(*computation(_shuffled(seed=2).cache()))

  def test_reading_changes_no_other_random_numbers(self):
    draw = tff.tensorflow.computation(lambda: tf.random.uniform([2]))
    found = []
    for num_reads in (0, 2):
      with runtime.CompiledContext(strict=True, seed=7):
        for _ in range(num_reads):
          self._order(_shuffled())
        found.append(draw())
    self.assertAllEqual(*found)
