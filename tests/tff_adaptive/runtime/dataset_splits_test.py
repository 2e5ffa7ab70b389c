# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests for `dataset_graphs` and `dataset_splits`."""

import itertools
from typing import Any, Optional

import numpy as np
import tensorflow as tf

from tests import case_testing
from tests.tff_adaptive.runtime import sequence_testing
from tff_adaptive.runtime.datasets import dataset_graphs
from tff_adaptive.runtime.datasets import dataset_splits
from tff_adaptive.runtime.datasets import element_orders

_TABLE = tf.lookup.StaticHashTable(
    tf.lookup.KeyValueTensorInitializer([b'a', b'b', b'c'], [1, 2, 3]), 0
)


_range = lambda size=9: tf.data.Dataset.range(size)


def _shuffled(buffer_size: int = 9, again: bool = True) -> tf.data.Dataset:
  return _range().shuffle(buffer_size, seed=1, reshuffle_each_iteration=again)


def _examples() -> tf.data.Dataset:
  x = np.arange(18, dtype=np.float32).reshape([9, 2])
  return tf.data.Dataset.from_tensor_slices({'x': x, 'y': np.arange(9)})


def _flatten(batch: Any) -> Any:
  return tf.reshape(batch['x'] * 2.0, [-1, 2]), tf.reshape(batch['y'], [-1, 1])


_center = lambda batch: batch - tf.reduce_mean(batch, axis=0)


def _add_noise(x: tf.Tensor, seed: Optional[int] = None) -> tf.Tensor:
  return x + tf.random.uniform([], maxval=99, dtype=tf.int64, seed=seed)


def _of_any_rank(n: tf.Tensor) -> tf.Tensor:
  rank = tf.reshape(n - n + 1, [1])
  return tf.reshape(n, tf.ones(rank, tf.int32))


def _text() -> tf.data.Dataset:
  dataset = tf.data.Dataset.from_tensors([b'abcabcabcab', b'cabcabcabca'])
  tokens = lambda text: _TABLE.lookup(tf.strings.bytes_split(text))
  dataset = dataset.unbatch().map(tokens).unbatch()
  return dataset.batch(3, drop_remainder=True)


class SplitTest(sequence_testing.UnseededTestCase):

  def _graph(self, dataset):
    graph = dataset_graphs.DatasetGraph.of(dataset)
    self.assertIsNotNone(graph)
    return graph

  def _elements(self, dataset):
    return [tf.nest.flatten(one) for one in dataset.as_numpy_iterator()]

  def assert_splits(self, dataset, num_ops):
    split = next(dataset_splits.splits(self._graph(dataset)))
    rows, ops = split.rows()
    self.assertLen(ops, num_ops)
    elements = self._elements(rows)
    if split.is_batched:
      elements = [list(row) for batch in elements for row in zip(*batch)]
    fresh = self._graph(dataset).build(dataset.element_spec)
    # Each iteration has other orders.
    iterations = element_orders.iterations(ops, len(elements))
    for numbers in itertools.islice(iterations, 3):
      found = [elements[number] for number in numbers.order]
      if split.is_batched:
        ends = np.cumsum(numbers.sizes)
        found = [
            list(map(np.stack, zip(*found[end - size : end])))
            for end, size in zip(ends, numbers.sizes)
        ]
      expected = self._elements(fresh)
      self.assertLen(found, len(expected))
      for one, other in zip(found, expected):
        for array, expected_array in zip(one, other):
          self.assertAllEqual(array, expected_array)

  @case_testing.named(
      source=(lambda _: _examples(), 0),
      batch=(lambda _: _examples().batch(4), 1),
      tutorial=(
          lambda _: _examples()
          .repeat(2)
          .shuffle(4, seed=1)
          .batch(4)
          .map(_flatten)
          .prefetch(2),
          3,
      ),
      filtered=(
          lambda d: d.map(lambda n: n * 2)
          .filter(lambda n: n > 5)
          .shuffle(3, seed=2)
          .batch(2, drop_remainder=True)
          .repeat(2),
          4,
      ),
      text=(
          lambda _: _text()
          .shuffle(4, seed=3)
          .batch(2, drop_remainder=True)
          .map(lambda tokens: (tokens[:, :-1], tokens[:, 1:])),
          2,
      ),
      padded=(
          lambda d: d.shuffle(9, seed=3).padded_batch(2).unbatch().batch(4),
          4,
      ),
      batches=(lambda d: d.batch(2).shuffle(9, seed=3).repeat(2), 3),
      cached=(lambda _: _shuffled().cache().repeat(2), 3),
      of_any_rank=(lambda d: d.map(_of_any_rank).shuffle(9, seed=1), 1),
      numbered=(lambda d: d.enumerate().shuffle(9, seed=1), 1),
      filtered_last=(lambda d: d.filter(lambda n: n > 3), 1),
      centered=(lambda d: d.batch(2).map(_center).shuffle(9, seed=1), 1),
      none=(lambda _: _range(0).shuffle(3, seed=1).batch(2), 2),
      part_of_endless=(
          lambda _: _range(3).repeat().shuffle(4, seed=1).take(8).batch(3),
          4,
      ),
      windows=(
          lambda d: d.window(3)
          .flat_map(lambda window: window.batch(2))
          .shuffle(4, seed=1),
          1,
      ),
      parallel=(
          lambda d: d.map(lambda n: n + 1, num_parallel_calls=2)
          .shuffle(4, seed=1)
          .batch(2, num_parallel_calls=2),
          2,
      ),
      all=(lambda d: d.take(-1), 1),
      skipped=(lambda d: d.skip(-1), 1),
      no_epoch=(lambda d: d.repeat(0).batch(2, True), 2),
      epochs=(lambda _: _shuffled(3).repeat(3).batch(5), 3),
      one_order=(lambda _: _shuffled(3, again=False).repeat(3), 2),
      one_epoch=(lambda _: _shuffled(9).shuffle(3, seed=1).repeat(1), 3),
      part_of_endless_epochs=(
          lambda _: _shuffled(3).repeat().skip(3).take(29),
          4,
      ),
      parts_of_epochs=(lambda _: _shuffled(4).take(5).repeat(4).shard(2, 1), 4),
      part_of_epochs=(lambda _: _shuffled().batch(3).repeat(2).take(6), 4),
      all_of_epochs=(lambda _: _shuffled().batch(3).repeat(2).take(7), 4),
      filtered_part=(lambda _: _shuffled(4).filter(lambda n: n > 2).take(3), 3),
      epochs_of_several_lengths=(
          lambda _: _shuffled()
          .take(5)
          .filter(lambda n: n % 3 != 0)
          .shuffle(9, seed=2)
          .repeat(4),
          5,
      ),
      epochs_of_epochs=(
          lambda _: _shuffled().prefetch(2).repeat(2).skip(1).repeat(2),
          4,
      ),
      shards=(lambda _: _shuffled().shard(2, 1).skip(1), 3),
      options=(lambda _: _shuffled().with_options(tf.data.Options()), 1),
  )
  def test_splits(self, build, num_ops):
    self.assert_splits(build(_range()), num_ops)

  @case_testing.named(
      batches_of_any_rank=lambda d: d.map(_of_any_rank)
      .shuffle(9, seed=1)
      .batch(2),
      part_of_a_cached_order=lambda _: _shuffled().cache().take(3).repeat(2),
      batched_twice=lambda _: _shuffled().batch(2, True).batch(2),
      mixed=(
          lambda _: tf.data.Dataset.sample_from_datasets(
              [_range(), _range(20)], seed=1
          )
      ),
      from_python=(
          lambda _: tf.data.Dataset.from_generator(
              lambda: iter([1, 2]), output_signature=tf.TensorSpec([], tf.int64)
          ).shuffle(2)
      ),
      padded_to_the_longest=(
          lambda d: d.map(lambda n: tf.zeros([n]))
          .shuffle(9, seed=1)
          .padded_batch(2)
      ),
  )
  def test_what_needs_a_pipeline(self, build):
    self.assertEmpty(list(dataset_splits.splits(self._graph(build(_range())))))

  @case_testing.named(
      drawn=(lambda d: d.map(_add_noise).batch(2), 1, 0),
      centered=(lambda d: d.shuffle(9).batch(2).map(_center), 0, 1),
      both=(lambda d: d.map(_add_noise).batch(2).map(_center), 1, 1),
  )
  def test_functions_of_what_was_chosen(self, build, num_rows, num_batches):
    found = next(dataset_splits.splits(self._graph(build(_range()))))
    self.assertLen(found.row_maps, num_rows)
    self.assertLen(found.batch_maps, num_batches)

  @case_testing.named(
      seeded=(lambda _: _shuffled(), False),
      unseeded=(lambda d: d.shuffle(9), True),
      drawn=(lambda d: d.map(_add_noise), True),
      drawn_with_seed=(lambda d: d.map(lambda n: _add_noise(n, seed=1)), False),
      mixed_with_seed=(
          lambda _: tf.data.Dataset.sample_from_datasets(
              [_range(), _range(20)], seed=1
          ),
          False,
      ),
      mixed=(
          lambda _: tf.data.Dataset.sample_from_datasets(
              [_range(), _range(20)]
          ),
          True,
      ),
      random=(lambda _: tf.data.Dataset.random().take(3), True),
      random_with_seed=(lambda _: tf.data.Dataset.random(1).take(3), False),
      variable=(
          lambda _: (lambda v: _range().map(lambda n: n + v))(
              tf.Variable(1, dtype=tf.int64)
          ),
          True,
      ),
      inner_noise=(
          lambda d: d.window(3).flat_map(lambda window: window.map(_add_noise)),
          True,
      ),
      table=(lambda _: _text(), False),
  )
  def test_fresh_datasets_differ(self, build, differs):
    dataset = build(_range())
    self.assertEqual(self._graph(dataset).differs, differs)
    reads = [
        str(self._elements(self._graph(dataset).build(dataset.element_spec)))
        for _ in range(3)
    ]
    if not differs:
      self.assertLen(set(reads), 1)
      # That somebody looks at the dataset changes nothing.
      next(iter(dataset))
      fresh = self._graph(dataset).build(dataset.element_spec)
      self.assertEqual(str(self._elements(fresh)), reads[0])

  @case_testing.named(
      shuffle=lambda d: d.shuffle(9).batch(2).map(_center),
      noise=lambda d: d.map(_add_noise),
      mixed=(
          lambda _: tf.data.Dataset.sample_from_datasets([_range(), _range(20)])
      ),
  )
  def test_seeds(self, build):
    for graph in self._assert_seeds(build(_range())):
      self.assertFalse(dataset_graphs.DatasetGraph(graph.graph_def).differs)

  def test_seeds_of_functions(self):
    dataset = _range().window(3)
    self._assert_seeds(dataset.flat_map(lambda window: window.shuffle(3)))
    seeded = dataset.flat_map(lambda window: window.shuffle(3, seed=1))
    graph = self._graph(seeded)
    found = [
        str(self._elements(one.build(seeded.element_spec)))
        for one in (graph, graph.seeded(np.random.default_rng(1)))
    ]
    self.assertEqual(*found)

  def _assert_seeds(self, dataset):
    """Fails unless draws follow a generator; returns the seeded graphs."""
    graphs = [
        self._graph(dataset).seeded(np.random.default_rng(seed))
        for seed in (1, 1, 2)
    ]
    reads = [
        str(self._elements(graph.build(dataset.element_spec)))
        for graph in graphs
    ]
    self.assertEqual(reads[0], reads[1])
    self.assertNotEqual(reads[0], reads[2])
    return graphs
