# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests for `keep_prefixes` of `dataset_reads`."""

import os
import tempfile

from absl.testing import parameterized
import tensorflow as tf

from tff_adaptive.runtime.datasets import dataset_graphs
from tff_adaptive.runtime.datasets import dataset_reads


def _numbers(size=6):
  return tf.data.Dataset.range(size).map(lambda number: number + 1)


def _with_noise(number):
  return number + tf.random.uniform([], maxval=1, dtype=tf.int64)


def _centered(batch):
  return batch - tf.reduce_min(batch)


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
    dataset = tf.data.TextLineDataset(path).map(
        lambda line: tf.strings.to_number(line, tf.int64)
    )
    ops, kept = self._keep(dataset.shuffle(3).map(_with_noise))
    os.remove(path)
    self.assertNotIn('TextLineDataset', ops)
    self.assertEqual(sorted(map(int, kept)), [1, 2, 3])

  def test_only_what_follows_a_draw_is_left(self):
    ops, kept = self._keep(_numbers().shuffle(6).batch(2).map(_centered))
    self.assertEqual(ops.count('MapDataset'), 1)
    self.assertIn('ShuffleDatasetV3', ops)
    found = [list(batch) for batch in kept.as_numpy_iterator()]
    self.assertLen(found, 3)
    self.assertEqual([min(batch) for batch in found], [0, 0, 0])

  def test_all_parts_of_a_dataset(self):
    parts = [_numbers().shuffle(6), _numbers(3)]
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

  @parameterized.named_parameters(
      ('several_shapes', _numbers().map(tf.range), 'MapDataset'),
      ('ragged', _numbers().ragged_batch(2), 'BatchDatasetV2'),
  )
  def test_elements_without_one_shape_are_made_anew(self, dataset, op):
    ops, kept = self._keep(dataset.shuffle(1))
    self.assertEqual(ops.count(op), 1)
    for expected, found in zip(dataset, kept, strict=True):
      self.assertAllEqual(expected, found)

  def test_what_is_too_large_stays(self):
    large = _numbers(2).map(lambda number: tf.fill([2**23], number))
    ops, _ = self._keep(large.shuffle(2))
    # The numbers are kept, from which the rows are made.
    self.assertEqual(ops.count('MapDataset'), 1)
