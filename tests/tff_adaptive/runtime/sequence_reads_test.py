# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of work that reads a sequence more than once, as TensorFlow does."""

import collections
from typing import Any

from absl.testing import parameterized
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive.runtime import equality_testing
from tests.tff_adaptive.runtime import sequence_testing
from tff_adaptive import runtime
from tff_adaptive.runtime.graphs import graph_functions
from tff_adaptive.runtime.sequences import sequence_reads

_NUMBERS = tff.SequenceType(np.float32)
_digest = sequence_testing.digest


def _shuffled(**kwargs: Any) -> tf.data.Dataset:
  dataset = tf.data.Dataset.range(9).map(_to_float)
  return dataset.shuffle(9, seed=1, **kwargs)


def _to_float(number):
  return tf.cast(number, tf.float32)


def _read_twice(read, dataset):
  first = read(dataset)
  # Without this, TensorFlow reads in any order.
  with tf.control_dependencies([first]):
    return first + 10.0 * read(dataset)


def _twice(dataset):
  return _read_twice(_digest, dataset)


def _in_functions(dataset):
  return _read_twice(tf.function(_digest), dataset)


def _in_loop(dataset):
  def add(number, total):
    with tf.control_dependencies([total]):
      return number + 1, 0.5 * total + _digest(dataset)

  return tf.while_loop(lambda number, _: number < 3, add, [0, 0.0])[1]


def _for_each_of(dataset):
  """Reads the dataset while it reads it."""
  return dataset.reduce(
      0.0, lambda total, number: 0.7 * total + number * _digest(dataset)
  )


def _in_branches(dataset):
  return tf.cond(
      tf.random.uniform([]) < 2.0,
      lambda: _digest(dataset),
      lambda: 10.0 * _digest(dataset),
  )


def _without_an_order(dataset):
  return _digest(dataset) + 10.0 * _digest(dataset)


def _after_a_part(dataset):
  first = _digest(dataset.take(3))
  with tf.control_dependencies([first]):
    return first + 10.0 * _digest(dataset)


def _three_times(dataset):
  count = tf.Variable(0.0)

  @tf.function
  def read():
    state = 0.0
    for number in dataset:
      count.assign(0.9 * count + number)
    for number in dataset.skip(1):
      state = 0.7 * state + number * count
    with tf.control_dependencies([state]):
      for number in dataset:
        state = 0.9 * state + number
    return state

  return read()


def _in_groups(dataset):
  dataset = dataset.group_by_window(
      lambda number: tf.cast(number, tf.int64) % 2,
      lambda _, group: group.shuffle(9, seed=2),
      window_size=9,
  )
  return dataset


class SequenceReadsTest(equality_testing.TestCase):

  @parameterized.named_parameters(
      ('two loops', _twice),
      ('a function called twice', _in_functions),
      ('three loops of a function', _three_times),
      ('two loops in a function', tf.function(_twice)),
  )
  def test_each_read_of_a_shuffled_dataset_has_its_order(self, work):
    run = sequence_testing.over_clients(work, _NUMBERS)
    self.assert_equals(
        run,
        [
            _shuffled(),
            _shuffled().repeat(2).take(12),
            tf.data.Dataset.range(7).map(_to_float),
            _shuffled().shuffle(4, seed=3),
            _shuffled().take(0),
            _in_groups(_shuffled()),
        ],
    )

  def test_each_read_of_shuffled_batches_has_its_order(self):
    run = sequence_testing.over_clients(_twice, sequence_testing.ROWS)
    self.assert_equals(
        run,
        [
            _shuffled().batch(4),
            _shuffled().batch(2).shuffle(3, seed=1),
            tf.data.Dataset.range(7).map(_to_float).batch(3),
            _shuffled().batch(4, drop_remainder=True).repeat(3),
        ],
    )

  def test_pipelines_run_where_the_elements_are_not_known(self):
    run = sequence_testing.over_clients(_twice, _NUMBERS)
    noisy = _shuffled().map(lambda x: x + tf.random.uniform([], seed=4))
    with equality_testing.pipelines():
      self.assert_equals(run, [noisy])

  def test_reads_of_an_unseeded_shuffle_are_independent(self):
    both = sequence_testing.over_clients(
        lambda dataset: tf.stack(
            [_digest(dataset), _digest(dataset.map(lambda x: x))]
        ),
        _NUMBERS,
    )
    tf.random.set_seed(None)  # That of TensorFlow's test case.
    dataset = tf.data.Dataset.range(9).map(_to_float).shuffle(9)
    with runtime.CompiledContext(strict=True, seed=1):
      rounds = [both([dataset]) for _ in range(3)]
    self.assertLen(set(np.ravel(rounds).tolist()), 6)

  @parameterized.named_parameters(
      ('loops without an order', _without_an_order, False),
      ('a loop after a part', _after_a_part, False),
      ('loops in order', _twice, True),
  )
  def test_which_order_is_read_is_known(self, work, is_ordered):
    computation = tff.tensorflow.computation(work, _NUMBERS)
    function = graph_functions.build_graph_function(computation)
    self.assertEqual(function.reread, {0: sequence_reads.Reread(2, is_ordered)})

  @parameterized.named_parameters(
      ('a loop of loops', _in_loop),
      ('a repeated dataset', lambda dataset: _digest(dataset.repeat(2))),
      (
          'a dataset repeated twice',
          lambda dataset: _digest(dataset.repeat(2).repeat(2)),
      ),
      ('a loop after a part', _after_a_part),
      ('loops over a cache', lambda dataset: _twice(dataset.cache())),
  )
  def test_pipelines_run_where_the_order_is_not_known(self, work):
    run = sequence_testing.over_clients(work, _NUMBERS)
    with equality_testing.pipelines():
      self.assert_equals(run, [_shuffled(), _shuffled().repeat(2)])

  @parameterized.named_parameters(
      ('two loops', _twice),
      ('a function called twice', _in_functions),
      ('a loop of loops', _in_loop),
      ('a loop in its own loop', _for_each_of),
      ('a repeated dataset', lambda dataset: _digest(dataset.repeat(2))),
  )
  def test_one_order_is_read_as_often_as_needed(self, work):
    run = sequence_testing.over_clients(work, _NUMBERS)
    self.assert_equals(
        run,
        [
            _shuffled(reshuffle_each_iteration=False),
            tf.data.Dataset.range(9).map(_to_float).repeat(2),
        ],
    )

  def test_cache_keeps_the_first_order(self):
    run = sequence_testing.over_clients(_twice, _NUMBERS)
    self.assert_equals(run, [_shuffled().cache(), _shuffled().cache()])

  @parameterized.named_parameters(
      ('branches', _in_branches),
      ('some elements', lambda dataset: _digest(dataset.skip(1).take(5))),
  )
  def test_what_reads_once(self, work):
    run = sequence_testing.over_clients(work, _NUMBERS)
    self.assert_equals(run, [_shuffled(), _shuffled()])

  def test_sequences_are_told_apart(self):
    run = sequence_testing.over_clients(
        lambda client: _digest(client['x']) + 10.0 * _twice(client['y']),
        collections.OrderedDict(x=_NUMBERS, y=_NUMBERS),
    )
    x, y = _shuffled(), _shuffled(reshuffle_each_iteration=False)
    self.assert_equals(
        run,
        [collections.OrderedDict(x=x, y=y), collections.OrderedDict(x=y, y=x)],
    )
