# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of datasets with functions that are called in each round."""

from absl.testing import parameterized
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive.runtime import sequence_testing
from tff_adaptive.data import random_streams
from tff_adaptive.runtime.datasets import dataset_reads


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


class ElementMapsTest(tf.test.TestCase, parameterized.TestCase):

  def setUp(self):
    super().setUp()
    # With the seed of TensorFlow's test cases, no draw differs.
    tf.random.set_seed(None)

  def _source(self, dataset):
    spec = tff.types.tensorflow_to_type(dataset.element_spec)
    source, _ = dataset_reads.of_dataset(dataset, tff.SequenceType(spec))
    return source

  def _draw(self, source, *keys):
    self.assertNotIsInstance(source, dataset_reads.FreshRows)
    (rows,) = source.draw(_draw_of(*keys))
    return sequence_testing.elements_of(rows)

  @parameterized.named_parameters(
      ('batches', lambda d: d.batch(3).map(_centered)),
      (
          'whole_batches',
          lambda d: d.batch(3, drop_remainder=True).map(_centered),
      ),
      ('taken', lambda d: d.batch(3).map(_centered).take(2)),
      ('repeated', lambda d: d.batch(3).map(_centered).repeat(2)),
      (
          'shuffled_batches',
          lambda d: d.batch(2).map(_centered).shuffle(3, seed=5),
      ),
      ('two', lambda d: d.batch(3).map(_centered).map(lambda b: b * 2.0)),
      (
          'two_of_whole_batches',
          lambda d: d.batch(3, True).map(_centered).map(_centered),
      ),
      ('scalars', lambda d: d.batch(3).map(tf.reduce_sum)),
      (
          'scalars_in_batches',
          lambda d: d.batch(3).map(lambda b: b[:1] + b[-1:]),
      ),
      (
          'in_parallel',
          lambda d: d.batch(3).map(_centered, num_parallel_calls=2),
      ),
      ('no_rows', lambda d: d.take(0).batch(3).map(_centered)),
  )
  def test_functions_of_batches_give_tensorflows_elements(self, change):
    dataset = change(_rows().shuffle(7, seed=3).repeat(2))
    expected = list(dataset.as_numpy_iterator())
    found = self._draw(self._source(dataset))
    self.assertLen(found, len(expected))
    for left, right in zip(expected, found):
      np.testing.assert_allclose(right, left, rtol=1e-6)

  def test_unseeded_shuffles_before_a_function_of_batches(self):
    source = self._source(_rows().shuffle(7).batch(3).map(_centered))
    rounds = [self._draw(source, number) for number in (0, 1, 0)]
    self.assertAllEqual(np.concatenate(rounds[0]), np.concatenate(rounds[2]))
    self.assertNotAllEqual(np.concatenate(rounds[0]), np.concatenate(rounds[1]))
    for batch in rounds[0]:
      self.assertAllClose(batch.mean(), 0.0)

  @parameterized.named_parameters(
      ('plain', lambda d: d.map(_noisy).batch(3)),
      ('then_mapped', lambda d: d.map(_noisy).batch(3).map(lambda b: b + 0.0)),
      ('repeated', lambda d: d.map(_noisy).repeat(2)),
      ('of_batches', lambda d: d.batch(3).map(_noisy)),
  )
  def test_draws_differ_by_element_and_round(self, change):
    dataset = change(_rows())
    source = self._source(dataset)
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
    source = self._source(_rows(2000).map(_flipped))
    found = np.sign(self._draw(source))
    # Of 2,000 fair coins.
    self.assertAllInRange(found.mean(), -5 / np.sqrt(2000), 5 / np.sqrt(2000))
    followed = np.mean(found[1:] * found[:-1])
    self.assertAllInRange(followed, -5 / np.sqrt(2000), 5 / np.sqrt(2000))

  def test_functions_that_read_a_clock_are_called_in_each_round(self):
    source = self._source(
        _rows().map(lambda r: r + tf.cast(tf.timestamp(), tf.float32))
    )
    self.assertTrue(source.draws)
    self.assertLen(self._draw(source), 7)

  def test_clients_share_a_function(self):
    sources = [
        self._source(_rows(n).map(lambda r: _flipped(r))) for n in (3, 4)
    ]
    (first,), (second,) = (source.row_maps for source in sources)
    self.assertIs(first._function, second._function)

  @parameterized.named_parameters(
      ('cached', lambda d: d.map(_noisy).cache().repeat(2)),
      ('filtered', lambda d: d.map(_noisy).filter(lambda row: row > 0.0)),
      (
          'in_python',
          lambda d: d.map(lambda r: tf.py_function(abs, [r], r.dtype)),
      ),
      (
          'with_a_seed_that_goes_on',
          lambda d: d.shuffle(7).map(
              lambda r: r + tf.random.uniform([], maxval=0.1, seed=1)
          ),
      ),
      (
          'of_unknown_shape',
          lambda d: d.map(
              lambda r: r + tf.random.uniform([tf.cast(r, tf.int32)])
          ),
      ),
  )
  def test_others_are_read_in_each_round(self, change):
    source = self._source(change(_rows()))
    self.assertIsInstance(source, dataset_reads.FreshRows)
