# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that datasets are read as TensorFlow's elements, and what again."""

import os
import random
import tempfile

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests import case_testing
from tests.tff_adaptive.runtime import sequence_testing
from tff_adaptive.data import random_streams
from tff_adaptive.runtime.datasets import dataset_graphs
from tff_adaptive.runtime.datasets import dataset_reads

_NUM_CHAINS = 25


def _rows(size=7):
  return tf.data.Dataset.range(size).map(lambda n: tf.cast(n, tf.float32) + 1)


def _centered(batch):
  """Depends on all rows of a batch."""
  return batch - tf.reduce_mean(batch)


def _noisy(row):
  return row + tf.random.uniform([], maxval=0.5)


def _draw_of(*keys):
  """Returns the streams of a round."""
  return lambda *place: random_streams.stream(1, 'shuffling', *keys, *place)


def _flipped(row):
  """Draws in a branch."""
  return tf.cond(tf.random.uniform([]) < 0.5, lambda: row, lambda: -row)


def _draw_nothing(x):
  """Draws a number without using it, so that it is called in each round."""
  return x + 0.0 * tf.random.uniform([])


class _Chain:
  """A pipeline of random ops.

  Attributes:
    dataset: The dataset.
    text: The ops in words.
  """

  def __init__(self, choices: random.Random):
    size = choices.choice([0, 1, 5, 7, 12])
    self.text = f'range({size})'
    self.dataset = tf.data.Dataset.range(size).map(
        lambda number: tf.cast(number, tf.float32) + 1.0
    )
    self._choices = choices
    self._is_batched = False
    ops = [self._number_op, self._number_op, self._map, self._batch]
    for _ in range(choices.randint(1, 6)):
      choices.choice(ops)()

  def _add(self, text, dataset):
    self.text, self.dataset = f'{self.text}.{text}', dataset

  def _number_op(self):
    number, seed = self._choices.choice([1, 2, 3, 8]), self._choices.randint(
        1, 5
    )
    reshuffles = self._choices.random() < 0.7
    text, op = self._choices.choice(
        [
            (f'repeat({number})', lambda d: d.repeat(number)),
            (f'take({number})', lambda d: d.take(number)),
            (f'skip({number})', lambda d: d.skip(number)),
            (f'shard({number})', lambda d: d.shard(number, 0)),
            ('cache()', lambda d: d.cache()),
            ('prefetch(2)', lambda d: d.prefetch(2)),
            (
                f'shuffle({number}, {seed}, {reshuffles})',
                lambda d: d.shuffle(number, seed, reshuffles),
            ),
        ]
    )
    self._add(text, op(self.dataset))

  def _map(self):
    ops = [('double', lambda x: 2.0 * x), ('draw', _draw_nothing)]
    if self._is_batched:
      ops.append(('center', _centered))
    elif self._choices.random() < 0.3:
      keep = lambda x: tf.math.floormod(x, 3.0) > 0.5
      self._add('filter', self.dataset.filter(keep))
      return
    text, fn = self._choices.choice(ops)
    self._add(text, self.dataset.map(fn))

  def _batch(self):
    size, drops = self._choices.choice([2, 3, 5]), self._choices.random() < 0.4
    if self._is_batched:
      self._add('unbatch()', self.dataset.unbatch())
    else:
      self._add(f'batch({size}, {drops})', self.dataset.batch(size, drops))
    self._is_batched = not self._is_batched


def _source(dataset):
  spec = tff.types.tensorflow_to_type(dataset.element_spec)
  source, _ = dataset_reads.of_dataset(dataset, tff.SequenceType(spec))
  return source


class RowsTest(sequence_testing.UnseededTestCase):

  def _draw(self, source, *keys):
    self.assertNotIsInstance(source, dataset_reads.FreshRows)
    (rows,) = source.draw(_draw_of(*keys))
    return sequence_testing.elements_of(rows)

  def _assert_reads(self, dataset, text=''):
    """Fails unless the dataset is read as TensorFlow's elements."""
    graph = dataset_graphs.DatasetGraph.of(dataset)
    fresh = graph.build(dataset.element_spec)
    expected = list(fresh.as_numpy_iterator())
    (rows,) = _source(dataset).draw(_draw_of())
    found = sequence_testing.elements_of(rows)
    self.assertLen(found, len(expected), text)
    for left, right in zip(expected, found):
      self.assertEqual(left.dtype, right.dtype, text)
      np.testing.assert_allclose(right, left, rtol=1e-6, err_msg=text)

  def _assert_reads_chains(self, seed, count):
    choices = random.Random(seed)
    for _ in range(count):
      chain = _Chain(choices)
      self._assert_reads(chain.dataset, chain.text)

  def test_random_pipelines(self):
    self._assert_reads_chains(0, _NUM_CHAINS)

  @pytest.mark.slow
  def test_many_random_pipelines(self):
    self._assert_reads_chains(1, 20 * _NUM_CHAINS)

  @case_testing.named(
      batches=lambda d: d.batch(3).map(_centered),
      whole_batches=lambda d: d.batch(3, drop_remainder=True).map(_centered),
      taken=lambda d: d.batch(3).map(_centered).take(2),
      repeated=lambda d: d.batch(3).map(_centered).repeat(2),
      shuffled_batches=lambda d: d.batch(2).map(_centered).shuffle(3, seed=5),
      two=lambda d: d.batch(3).map(_centered).map(lambda b: b * 2.0),
      two_of_whole_batches=lambda d: d.batch(3, True)
      .map(_centered)
      .map(_centered),
      scalars=lambda d: d.batch(3).map(tf.reduce_sum),
      scalars_in_batches=lambda d: d.batch(3).map(lambda b: b[:1] + b[-1:]),
      in_parallel=lambda d: d.batch(3).map(_centered, num_parallel_calls=2),
      no_rows=lambda d: d.take(0).batch(3).map(_centered),
  )
  def test_functions_of_batches_give_tensorflows_elements(self, change):
    dataset = change(_rows().shuffle(7, seed=3).repeat(2))
    self._assert_reads(dataset)
    self.assertNotIsInstance(_source(dataset), dataset_reads.FreshRows)

  def test_unseeded_shuffles_before_a_function_of_batches(self):
    source = _source(_rows().shuffle(7).batch(3).map(_centered))
    rounds = [self._draw(source, number) for number in (0, 1, 0)]
    self.assertAllEqual(np.concatenate(rounds[0]), np.concatenate(rounds[2]))
    self.assertNotAllEqual(np.concatenate(rounds[0]), np.concatenate(rounds[1]))
    for batch in rounds[0]:
      self.assertAllClose(batch.mean(), 0.0)

  @case_testing.named(
      plain=lambda d: d.map(_noisy).batch(3),
      then_mapped=lambda d: d.map(_noisy).batch(3).map(lambda b: b + 0.0),
      repeated=lambda d: d.map(_noisy).repeat(2),
      of_batches=lambda d: d.batch(3).map(_noisy),
  )
  def test_draws_differ_by_element_and_round(self, change):
    dataset = change(_rows())
    source = _source(dataset)
    expected = list(change(_rows().map(lambda r: r)).as_numpy_iterator())
    drawn = []
    for number in (0, 1, 0):
      found = self._draw(source, number)
      self.assertLen(found, len(expected))
      drawn.append(np.concatenate(list(map(np.atleast_1d, found))))
    self.assertAllEqual(drawn[0], drawn[2])
    noise = [one - np.round(one - 0.25) for one in drawn]
    self.assertAllInRange(noise, 0.0, 0.5)
    self.assertGreater(len(set(noise[0].tolist())), 2)
    self.assertNotAllClose(noise[0], noise[1])

  def test_law_of_draws(self):
    source = _source(_rows(2000).map(_flipped))
    found = np.sign(self._draw(source))
    # Of 2,000 fair coins.
    self.assertAllInRange(found.mean(), -5 / np.sqrt(2000), 5 / np.sqrt(2000))
    followed = np.mean(found[1:] * found[:-1])
    self.assertAllInRange(followed, -5 / np.sqrt(2000), 5 / np.sqrt(2000))

  def test_functions_that_read_a_clock_are_called_in_each_round(self):
    source = _source(
        _rows().map(lambda r: r + tf.cast(tf.timestamp(), tf.float32))
    )
    self.assertTrue(source.draws)
    self.assertLen(self._draw(source), 7)

  def test_checks_are_made_once(self):
    source = _source(
        _rows()
        .map(lambda r: tf.debugging.check_numerics(1.0 / (r - 1.0), 'row'))
        .ignore_errors()
    )
    self.assertLen(self._draw(source), 6)

  def test_clients_share_a_function(self):
    sources = [_source(_rows(n).map(lambda r: _flipped(r))) for n in (3, 4)]
    (first,), (second,) = (source.row_maps for source in sources)
    self.assertIs(first._function, second._function)

  @case_testing.named(
      cached=lambda d: d.map(_noisy).cache().repeat(2),
      filtered=lambda d: d.map(_noisy).filter(lambda row: row > 0.0),
      in_python=lambda d: d.map(lambda r: tf.py_function(abs, [r], r.dtype)),
      with_a_seed_that_goes_on=(
          lambda d: d.shuffle(7).map(
              lambda r: r + tf.random.uniform([], maxval=0.1, seed=1)
          )
      ),
      of_unknown_shape=(
          lambda d: d.map(
              lambda r: r + tf.random.uniform([tf.cast(r, tf.int32)])
          )
      ),
  )
  def test_others_are_read_in_each_round(self, change):
    source = _source(change(_rows()))
    self.assertIsInstance(source, dataset_reads.FreshRows)


_LINES = ['header', '1', '2', '3']
_lines = lambda: tf.data.Dataset.from_tensor_slices(_LINES)
_to_number = lambda line: tf.strings.to_number(line, tf.int64)
_is_number = lambda line: tf.not_equal(line, 'header')


class FailingFunctionsTest(sequence_testing.UnseededTestCase):

  @case_testing.named(
      skipped=lambda d: d.skip(1).map(_to_number),
      filtered=lambda d: d.filter(_is_number).map(_to_number),
      filtered_twice=(
          lambda d: d.filter(_is_number)
          .filter(lambda line: _to_number(line) > 0)
          .map(_to_number)
      ),
      batched=lambda d: d.skip(1).batch(2).map(_to_number),
      shuffled_before=lambda d: d.shuffle(4).filter(_is_number).map(_to_number),
      then_drawn=lambda d: d.skip(1).map(_to_number).map(_with_noise),
  )
  def test_are_not_called_for_rows_that_are_dropped(self, change):
    (rows,) = _source(change(_lines())).draw(_draw_of())
    found = np.concatenate(
        list(map(np.atleast_1d, sequence_testing.elements_of(rows)))
    )
    self.assertEqual(sorted(found.tolist()), [1, 2, 3])

  def test_fail_for_others(self):
    dataset = _lines().map(_to_number)
    with self.assertRaisesRegex(
        tf.errors.InvalidArgumentError, 'StringToNumber'
    ):
      _source(dataset)


def _counts(size=6):
  return tf.data.Dataset.range(size).map(lambda number: number + 1)


def _with_noise(number):
  return number + tf.random.uniform([], maxval=1, dtype=tf.int64)


class PrefixesTest(tf.test.TestCase, parameterized.TestCase):

  def _keep(self, dataset):
    """Returns the ops of the graph that is left, and its dataset."""
    graph = dataset_reads.keep_prefixes(dataset_graphs.DatasetGraph.of(dataset))
    return [node.op for node in graph.graph_def.node], graph.build(
        dataset.element_spec
    )

  def test_files_are_read_once(self):
    folder = self.enter_context(tempfile.TemporaryDirectory())
    path = os.path.join(folder, 'numbers')
    with open(path, 'w', encoding='utf-8') as file:
      file.write('1\n2\n3\n')
    dataset = tf.data.TextLineDataset(path).map(_to_number)
    ops, kept = self._keep(dataset.shuffle(3).map(_with_noise))
    os.remove(path)
    self.assertNotIn('TextLineDataset', ops)
    self.assertEqual(sorted(map(int, kept)), [1, 2, 3])

  def test_only_what_follows_a_draw_is_left(self):
    ops, kept = self._keep(
        _counts()
        .shuffle(6)
        .batch(2)
        .map(lambda batch: batch - tf.reduce_min(batch))
    )
    self.assertEqual(ops.count('MapDataset'), 1)
    self.assertIn('ShuffleDatasetV3', ops)
    found = [list(batch) for batch in kept.as_numpy_iterator()]
    self.assertLen(found, 3)
    self.assertEqual([min(batch) for batch in found], [0, 0, 0])

  def test_all_parts_of_a_dataset(self):
    parts = [_counts().shuffle(6), _counts(3)]
    dataset = tf.data.Dataset.sample_from_datasets(parts, [0.5, 0.5])
    ops, kept = self._keep(dataset)
    self.assertEqual(ops.count('TensorSliceDataset'), 2)
    self.assertEqual(sorted(map(int, kept)), [1, 1, 2, 2, 3, 3, 4, 5, 6])

  def test_structures_and_strings(self):
    dataset = tf.data.Dataset.from_tensor_slices({'x': [1, 2], 'y': ['a', 'b']})
    dataset = dataset.map(lambda row: {'x': -row['x'], 'y': row['y'] + '!'})
    graph = dataset_graphs.DatasetGraph.of(dataset.shuffle(2))
    kept = dataset_reads.keep_prefixes(graph).build(dataset.element_spec)
    found = sorted((int(row['x']), bytes(row['y'].numpy())) for row in kept)
    self.assertEqual(found, [(-2, b'b!'), (-1, b'a!')])

  @case_testing.named(
      several_shapes=(_counts().map(tf.range), 'MapDataset'),
      ragged=(_counts().ragged_batch(2), 'BatchDatasetV2'),
  )
  def test_elements_without_one_shape_are_made_anew(self, dataset, op):
    ops, kept = self._keep(dataset.shuffle(1))
    self.assertEqual(ops.count(op), 1)
    for expected, found in zip(dataset, kept, strict=True):
      self.assertAllEqual(expected, found)

  def test_what_is_too_large_stays(self):
    large = _counts(2).map(lambda number: tf.fill([2**23], number))
    ops, _ = self._keep(large.shuffle(2))
    # The numbers are kept, from which the rows are made.
    self.assertEqual(ops.count('MapDataset'), 1)
