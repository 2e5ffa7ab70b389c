# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that clients use sequences as natively, in loops over rows."""

import collections

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive.runtime import equality_testing
from tests.tff_adaptive.runtime import sequence_testing
from tff_adaptive import runtime
from tff_adaptive.runtime.graphs import graph_functions

_ROWS = sequence_testing.ROWS
_digest = sequence_testing.digest
_over_clients = sequence_testing.over_clients
_weigh = sequence_testing.weigh
_Dataset = tf.data.Dataset


def _digested(use):
  """Returns a function of the digest of a dataset, if `use` returns one."""

  def run(dataset):
    result = use(dataset)
    return _digest(result) if isinstance(result, _Dataset) else result

  return run


@tf.function
def _plain(dataset):
  state = 0.0
  for element in dataset:
    state = 0.7 * state + _weigh(element)
  return state


@tf.function
def _break(dataset):
  state, size = 0.0, 0
  for element in dataset:
    size += 1
    if state > 20.0:
      break
    state = 0.7 * state + _weigh(element)
  return state + tf.cast(size, tf.float32)


@tf.function
def _continue(dataset):
  state = 0.0
  for element in dataset:
    if element[0] < 4.0:
      continue
    state = 0.7 * state + _weigh(element)
  return state


@tf.function
def _several_variables(dataset):
  size, parts, is_odd = 0, (0.0, tf.zeros([2], tf.float64)), False
  for element in dataset:
    size += tf.size(element)
    total = tf.reduce_sum(element)
    parts = (parts[0] + total, parts[1] + tf.cast(total, tf.float64))
    is_odd = not is_odd
  return (
      tf.cast(size, tf.float32)
      + parts[0]
      + tf.cast(parts[1][1], tf.float32) * (3.0 if is_odd else 1.0)
  )


@tf.function
def _growing_variable(dataset):
  found = tf.zeros([0])
  for element in dataset:
    tf.autograph.experimental.set_loop_options(
        shape_invariants=[(found, tf.TensorShape([None]))]
    )
    found = tf.concat([found, element], 0)
  return _weigh(found)


@tf.function
def _nested(dataset):
  state = 0.0
  for left in dataset:
    for right in dataset.take(2):
      state = 0.7 * state + _weigh(left) * tf.reduce_mean(right)
  return state


@tf.function
def _nested_until(dataset):
  state = 0.0
  for left in dataset:
    for right in dataset:
      if tf.reduce_sum(right) > tf.reduce_sum(left):
        break
      state = 0.7 * state + _weigh(right)
  return state


@tf.function
def _epochs(dataset):
  state = 0.0
  for epoch in tf.range(3):
    for element in dataset:
      state = 0.7 * state + _weigh(element) * tf.cast(epoch + 1, tf.float32)
  return state


@tf.function
def _enumerated(dataset):
  state = 0.0
  for number, element in enumerate(dataset):
    state = 0.7 * state + tf.cast(number, tf.float32) * _weigh(element)
    if number == 2:
      break
  return state


@tf.function
def _numbers(dataset):
  state = _digest(dataset)
  for number in _Dataset.range(9, 2, -3):
    state += tf.cast(number, tf.float32)
  return state


@tf.function
def _next(dataset):
  state, iterator = 0.0, iter(dataset)
  size = dataset.reduce(0, lambda n, _: n + 1)
  if size > 1:
    state += _weigh(next(iterator))
    state += 3.0 * _weigh(iterator.get_next())
  return state


def _assigned(dataset):
  variable = tf.Variable(1.0)

  @tf.function
  def run():
    variable.assign(1.0)
    for element in dataset:
      variable.assign(0.7 * variable + _weigh(element))
    return variable.read_value()

  return run()


@tf.function
def _prepared(dataset):
  return dataset.map(lambda x: 2.0 * x, num_parallel_calls=2).prefetch(3)


def _in_branch(dataset):
  size = _digest(dataset)
  return tf.cond(size > 10.0, lambda: _break(dataset), lambda: -size)


_IS_LATE, _IS_LARGE = lambda x: x[0] > 1.0, lambda x: x > 2.0
_DOUBLE, _DOUBLE_X = lambda x: 2.0 * x, lambda x, y: (2.0 * x, y)
_zip = _Dataset.zip
_AUTOGRAPH = {
    'break': _break,
    'continue': _continue,
    'several_variables': _several_variables,
    'growing_variable': _growing_variable,
    'nested': _nested,
    'nested_until': _nested_until,
    'epochs': _epochs,
    'enumerated': _enumerated,
    'numbers': _numbers,
    'next': _next,
    'variable': _assigned,
    'branch': _in_branch,
}
_ONE = lambda dataset: dataset.map(tf.reduce_sum)
_DERIVED = {
    'nothing': lambda d: tf.constant(1.0),
    'two_reductions': lambda d: d.reduce(
        _digest(d), lambda state, x: 0.7 * state * _weigh(x)
    ),
    'reduction_in_reduction': lambda d: d.reduce(
        0.0, lambda state, x: state + _weigh(x) * _digest(d)
    ),
    'map': lambda d: d.map(_DOUBLE),
    'prepared': lambda d: _plain(_prepared(d)),
    'filter': lambda d: d.filter(_IS_LATE),
    'take': lambda d: d.take(2),
    'take_all': lambda d: d.take(-1),
    'take_none': lambda d: d.take(0),
    'skip': lambda d: d.skip(2),
    'skip_all': lambda d: _digest(d.skip(-1)) + _digest(_ONE(d).skip(-1)),
    'skip_of_taken': lambda d: d.take(3).skip(1),
    'skip_of_enumerated': lambda d: d.enumerate(7).skip(1),
    'take_of_filtered': lambda d: d.filter(_IS_LATE).take(1),
    'repeat': lambda d: d.take(2).repeat(2),
    'repeat_none': lambda d: d.repeat(0),
    'repeat_filtered': lambda d: d.filter(_IS_LATE).repeat(3),
    'endless': lambda d: d.repeat().take(5),
    'endless_without_an_element': (
        lambda d: d.filter(lambda *_: tf.constant(False)).repeat().take(5)
    ),
    'scan': lambda d: d.scan(0.0, lambda s, x: (s + x[0], (s * x, s))),
    'take_while': lambda d: d.take_while(lambda x: x[0] < 6.0),
    'enumerate_filter': (
        lambda d: d.enumerate()
        .filter(lambda i, _: i % 2 == 0)
        .map(lambda _, x: x)
        .repeat(2)
    ),
    'zip': lambda d: _zip((d, _Dataset.range(3), d.skip(1))),
    'zip_filtered': lambda d: _zip((_Dataset.range(5), d.filter(_IS_LATE))),
    'range': lambda d: _digest(d) + _digest(_Dataset.range(2, 11, 3)),
}


@tf.function
def _epochs_of_batches(dataset):
  state = 0.0
  for _ in tf.range(3):
    for batch in dataset.unbatch().batch(3):
      state = 0.7 * state + _weigh(batch)
  return state


# Of sequences of batches.
_REBATCHED = {
    'unbatch': lambda d: d.unbatch(),
    'unbatch_mapped': lambda d: d.map(_DOUBLE).unbatch(),
    'unbatch_filtered': lambda d: d.filter(_IS_LATE).unbatch().take(7),
    'unbatch_skipped': (
        lambda d: d.unbatch().map(_DOUBLE).batch(3).skip(1).unbatch()
    ),
    'rebatch': lambda d: d.unbatch().batch(3),
    'rebatch_and_drop': lambda d: d.unbatch().batch(3, True),
    'rebatch_filtered': lambda d: d.unbatch().filter(_IS_LARGE).batch(2),
    'rebatch_and_drop_filtered': (
        lambda d: d.unbatch().filter(_IS_LARGE).batch(2, True).repeat(2)
    ),
    'batch_of_alike': (
        lambda d: d.filter(lambda x: tf.equal(tf.size(x), 4)).batch(2)
    ),
    'epochs_of_batches': _epochs_of_batches,
    'shuffled': lambda d: d.shuffle(10, seed=3),
    'rebatch_shuffled': lambda d: d.unbatch().shuffle(10, seed=3).batch(3),
    'shard': lambda d: d.shard(2, 1),
    'unbatch_and_shard': lambda d: d.unbatch().shard(3, 1).batch(2),
    'zip_batched': lambda d: _zip((d.unbatch().filter(_IS_LARGE).batch(2), d)),
    'cache': lambda d: d.map(_DOUBLE).cache().unbatch().batch(3).repeat(2),
}


@tf.function
def _loop_over_batches(dataset):
  state = 0.0
  for step, batch in enumerate(dataset.repeat(2).batch(5)):
    if step == 4:
      break
    state = 0.7 * state + _weigh(batch)
  return state


# Of sequences of rows.
_BATCHED = {
    'batch_and_drop': lambda d: d.batch(4, True),
    'parallel_batch': lambda d: d.batch(4, num_parallel_calls=2),
    'batch_and_repeat': lambda d: d.batch(4).repeat(2),
    'batch_of_repeated': lambda d: d.repeat(2).batch(4),
    'batch_of_endless': lambda d: d.take(5).repeat().batch(4).take(3),
    'batch_of_mapped': lambda d: d.map(_DOUBLE_X).batch(4).prefetch(2),
    'batch_of_filtered': (
        lambda d: d.filter(lambda x, y: y % 3 > 0).batch(4, True)
    ),
    'batch_of_part': lambda d: d.skip(1).take(7).skip(1).batch(4),
    'batch_of_skipped': lambda d: d.skip(-1).batch(4),
    'batch_of_batches': lambda d: d.batch(2, True).batch(3),
    'batch_of_shard': lambda d: d.shard(3, 2).batch(2),
    'batch_of_enumerated': lambda d: d.enumerate(-3).batch(4),
    'batch_of_zipped': (
        lambda d: _zip((_Dataset.range(20, 3, -2), d.repeat(2))).batch(4)
    ),
    'batch_of_scanned': (
        lambda d: d.scan(
            0.0, lambda s, row: (s + row[0][0], (s, row[1]))
        ).batch(4)
    ),
    'map_batches': (
        lambda d: d.batch(4)
        .map(lambda x, y: (tf.reduce_sum(x, 1), y))
        .unbatch()
    ),
    'options': lambda d: d.with_options(tf.data.Options()).cache().batch(4),
    'loop_over_batches': _loop_over_batches,
    'batch_in_branch': lambda d: tf.cond(
        d.reduce(0, lambda n, *_: n + 1) > 3,
        lambda: _digest(d.batch(2)),
        lambda: -1.0,
    ),
}


def _epochs_of_shuffled(dataset):
  """Reads a dataset three times, each time in another order."""
  total, batches = tf.constant(0.0), dataset.shuffle(20, seed=1).batch(4)
  for _ in range(3):
    with tf.control_dependencies([total]):
      total = 0.5 * total + _digest(batches)
  return total


@tf.function
def _two_iterations(dataset):
  shuffled = dataset.shuffle(20, seed=1)
  return _digest(_zip((shuffled, shuffled)))


# Of sequences of rows, which are shuffled as TensorFlow does.
_SHUFFLED = {
    'all': lambda d: d.shuffle(20, seed=1),
    'buffer': lambda d: d.shuffle(3, seed=1).batch(4),
    'one_order': (
        lambda d: d.shuffle(3, seed=1, reshuffle_each_iteration=False).repeat(2)
    ),
    'mapped': (
        lambda d: d.map(_DOUBLE_X)
        .shuffle(5, seed=2)
        .filter(lambda _, y: y > 2)
        .batch(4)
    ),
    'part': lambda d: d.take(7).skip(1).repeat(2).shuffle(5, seed=2).take(6),
    'batches': lambda d: d.batch(4).shuffle(3, seed=1).repeat(2),
    'full_batches': (
        lambda d: d.batch(2, True).skip(1).shuffle(3, seed=1).batch(2)
    ),
    'mapped_batches': (
        lambda d: d.shuffle(3, seed=2)
        .batch(4)
        .map(_DOUBLE_X)
        .shuffle(9, seed=1)
        .unbatch()
    ),
    'epochs_of_twice': (
        lambda d: d.shuffle(5, seed=2).batch(2).shuffle(4, seed=1).repeat(3)
    ),
    'enumerated': lambda d: d.enumerate().shuffle(5, seed=2).batch(2),
    'epochs': lambda d: d.shuffle(5, seed=2).repeat(2).batch(4),
    'epochs_of_batches': lambda d: d.shuffle(5, seed=2).batch(4).repeat(3),
    'reads': _epochs_of_shuffled,
    'two_iterations': _two_iterations,
    'zip': lambda d: _zip((d.shuffle(5, seed=2), _Dataset.range(6))).batch(2),
    'cached': lambda d: d.shuffle(5, seed=2).cache().repeat(3).batch(4),
    'mapped_and_cached': (
        lambda d: d.shuffle(5, seed=2).map(_DOUBLE_X).cache().repeat(3).take(20)
    ),
    'cached_then_shuffled': (
        lambda d: d.shuffle(5, seed=2)
        .cache()
        .shuffle(4, seed=1)
        .map(_DOUBLE_X)
        .repeat(2)
    ),
}
_SHUFFLED.update(
    (f'{name}_in_function', tf.function(_digested(_SHUFFLED[name])))
    for name in ('epochs_of_batches', 'epochs_of_twice', 'reads')
)


def _reads_of_repeated(dataset):
  batches = dataset.shuffle(20, seed=1).batch(3).repeat(2)
  total = _digest(batches)
  with tf.control_dependencies([total]):
    return 0.5 * total + _digest(batches)


def _shuffle_in_loop(dataset):
  add = lambda n, total: (n + 1, total + _digest(dataset.shuffle(3, seed=1)))
  return tf.while_loop(lambda n, _: n < 3, add, (0, 0.0))[1]


def _counting_cache(dataset):
  count = tf.Variable(0.0)
  return _digest(dataset.map(lambda x: x + count.assign_add(1.0)).cache())


def _clients():
  return [
      _Dataset.range(size).map(lambda x: tf.cast(x, tf.float32) + 0.5).batch(4)
      for size in (1, 9, 4, 0, 13)
  ]


_ROW = tff.SequenceType(
    (tff.TensorType(np.float32, [2]), tff.TensorType(np.int32))
)


def _clients_of_rows():
  return [
      _Dataset.range(size).map(
          lambda i: (
              tf.cast(tf.stack([i, 2 * i]), tf.float32) + 0.5,
              tf.cast(i, tf.int32),
          )
      )
      for size in (1, 9, 8, 0, 13)
  ]


def _together(uses):
  return lambda dataset: collections.OrderedDict(
      (name, _digested(use)(dataset)) for name, use in uses.items()
  )


@pytest.mark.usefixtures('native_runtime')
class LoopsTest(equality_testing.TestCase):

  @parameterized.named_parameters(
      ('autograph', _AUTOGRAPH), ('data', _DERIVED), ('batches', _REBATCHED)
  )
  @pytest.mark.sample(1)
  def test_uses(self, uses):
    self.assert_equals(_over_clients(_together(uses), _ROWS), _clients())

  @parameterized.named_parameters(
      ('batches', _BATCHED), ('shuffles', _SHUFFLED)
  )
  @pytest.mark.sample(1)
  def test_uses_of_rows(self, uses):
    self.assert_equals(_over_clients(_together(uses), _ROW), _clients_of_rows())

  @parameterized.parameters(1, 4)
  @pytest.mark.slow
  def test_uses_of_lists_with_clients_at_once(self, number):
    uses = _together({**_AUTOGRAPH, **_DERIVED, **_REBATCHED})
    computation = _over_clients(uses, _ROWS)
    lists = [sequence_testing.numbers(4, 4, 1), [], sequence_testing.numbers(3)]
    expected = computation(lists)
    with runtime.CompiledContext(
        num_parallel_clients=number, strict=True, seed=1
    ):
      self.assert_same(expected, computation(lists), 1e-6)

  def test_two_sequences_are_zipped(self):
    pair = tff.to_type(
        (_ROWS, tff.SequenceType((np.float32, tff.TensorType(np.int32, [2]))))
    )

    @tf.function
    def use(pair):
      state = 0.0
      for left, (right, numbers) in tf.data.Dataset.zip(tuple(pair)):
        state = 0.7 * state + _weigh(left) * right + _weigh(numbers)
      return state

    others = _Dataset.range(3).map(
        lambda i: (tf.cast(i, tf.float32), tf.cast(tf.stack([i, 2]), tf.int32))
    )
    clients = [(rows, others) for rows in _clients()]
    self.assert_equals(_over_clients(use, pair), clients)

  @parameterized.named_parameters(
      ('padding', lambda d: d.padded_batch(2), 'calls PaddedBatchDatasetV2'),
      ('a size', lambda d: d.cardinality(), 'it calls DatasetCardinality'),
      (
          'an iterator',
          tf.function(lambda d: _weigh(next(iter(d.repeat().take(2))))),
          'it calls TakeDataset and passes the result on',
      ),
      (
          'a zip of what is filtered',
          lambda d: _zip((d.filter(_IS_LATE), d.filter(_IS_LATE))),
          'it zips several datasets that drop elements',
      ),
      ('a cache in a file', lambda d: d.cache('file'), 'caches .* in a file'),
      (
          'a cache of parts',
          lambda d: d.shuffle(3).cache().take(2).repeat(2),
          'caches a shuffled dataset, which it may not read to the end',
      ),
      (
          'reads of a cache',
          lambda d: (lambda c: _digest(c) + _digest(c))(d.shuffle(3).cache()),
          'before it reads it again',
      ),
      ('a cache of effects', _counting_cache, 'whose functions have effects'),
      (
          'a shuffle of what is filtered',
          lambda d: d.filter(_IS_LATE).shuffle(3),
          'move `shuffle` before `filter`',
      ),
      (
          'a shuffle of endless rows',
          lambda d: d.repeat().shuffle(3).take(5),
          'shuffles what has to be read in order',
      ),
      ('reads of what is repeated', _reads_of_repeated, 'and reads it again'),
      ('a shuffle in a loop', _shuffle_in_loop, 'inside of a loop or a branch'),
      (
          'batches of sparse tensors',
          lambda d: d.map(tf.sparse.from_dense)
          .batch(2)
          .map(tf.sparse.reduce_sum),
          'batches datasets or sparse tensors',
      ),
  )
  def test_what_is_no_loop(self, use, reason):
    work = tff.tensorflow.computation(_digested(use), _ROWS)
    function = graph_functions.build_graph_function(work)
    self.assertRegex(function.needs_datasets, reason)


class RandomLoopsTest(tf.test.TestCase):

  def test_shuffles_have_the_law_of_the_buffer(self):
    def orders(dataset):
      shuffled = dataset.shuffle(2)
      # A number of base 3 has the order of a read as its digits.
      reads = [shuffled.reduce(0, lambda n, row: 3 * n + row) for _ in range(2)]
      return tf.one_hot(27 * reads[0] + reads[1], 27**2)

    clients = [list(np.arange(3, dtype=np.int32))] * 320
    with runtime.CompiledContext(strict=True, seed=1):
      counts = _over_clients(orders, tff.SequenceType(np.int32))(clients)
    # Of three elements, a buffer of two draws four orders, all equally often.
    order = [
        9 * a + 3 * b + c
        for a, b, c in ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0))
    ]
    pairs = np.add.outer(27 * np.array(order), order).ravel()
    self.assertEqual(counts[pairs].sum(), len(clients))
    mean = len(clients) / len(pairs)
    distance = np.sum((counts[pairs] - mean) ** 2 / mean)
    # The mean of chi-square plus six standard deviations.
    self.assertLessEqual(distance, 15 + 6 * 30**0.5)
