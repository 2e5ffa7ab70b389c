# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Compares the rows of random pipelines with the elements of TensorFlow."""

import random

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive.runtime import sequence_testing
from tff_adaptive.data import random_streams
from tff_adaptive.runtime.datasets import dataset_graphs
from tff_adaptive.runtime.datasets import dataset_reads

_NUM_CHAINS = 25


def _draw_nothing(x):
  """Draws a number without using it, so that it is called in each round."""
  return x + 0.0 * tf.random.uniform([])


def _center(batch):
  return batch - tf.reduce_max(batch) / 2.0


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
      ops.append(('center', _center))
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


class RandomPipelinesTest(tf.test.TestCase):

  def setUp(self):
    super().setUp()
    # With the seed of TensorFlow's test cases, no draw differs.
    tf.random.set_seed(None)

  def test_rows_are_tensorflows_elements(self):
    self.assert_equal_elements(0, _NUM_CHAINS)

  @pytest.mark.slow
  def test_rows_of_many_are_tensorflows_elements(self):
    self.assert_equal_elements(1, 20 * _NUM_CHAINS)

  def assert_equal_elements(self, seed, count):
    choices = random.Random(seed)
    for _ in range(count):
      chain = _Chain(choices)
      spec = chain.dataset.element_spec
      fresh = dataset_graphs.DatasetGraph.of(chain.dataset).build(spec)
      expected = list(fresh.as_numpy_iterator())
      source, _ = dataset_reads.of_dataset(
          chain.dataset, tff.SequenceType(tff.types.tensorflow_to_type(spec))
      )
      streams = lambda *keys: random_streams.stream(1, 'shuffling', *keys)
      (rows,) = source.draw(streams)
      found = sequence_testing.elements_of(rows)
      self.assertLen(found, len(expected), chain.text)
      for left, right in zip(expected, found):
        self.assertEqual(left.dtype, right.dtype, chain.text)
        np.testing.assert_allclose(right, left, rtol=1e-6, err_msg=chain.text)
