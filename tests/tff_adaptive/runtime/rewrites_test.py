# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of datasets that clients make of what they are given."""

import collections
import os
import tempfile

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tests.tff_adaptive.runtime import equality_testing
from tests.tff_adaptive.runtime import sequence_testing


def _source(preprocess):
  """Returns clients of 5 and 3 numbers, whose data are preprocessed."""
  numbers = {'five': np.arange(5.0), 'three': 7 + np.arange(3.0)}
  source = tff.simulation.datasets.TestClientData(
      {
          name: collections.OrderedDict(x=values.astype(np.float32))
          for name, values in numbers.items()
      }
  )
  return source.preprocess(
      lambda dataset: preprocess(dataset.map(lambda row: row['x']))
  )


def _digest(dataset):
  """Returns a number that tells the batches and their order."""
  return dataset.reduce(
      0.0, lambda total, batch: 2 * total + tf.reduce_sum(batch)
  )


def _digest_of(make):
  """Returns a computation that sums digests of what clients make."""
  return sequence_testing.over_made_datasets(make, _digest)


_digest_rows = tff.tensorflow.computation(_digest, sequence_testing.ROWS)


_IDS = ['five', 'three', 'five']


class MadeDatasetsTest(equality_testing.TestCase):

  def test_datasets_are_kept_and_shuffled_as_by_tff(self):
    source = _source(lambda d: d.shuffle(5, seed=3).repeat(2).batch(2))
    digest = _digest_of(source.dataset_computation)
    for _ in range(3):
      self.assert_equals(digest, _IDS)
    self.assertEqual(equality_testing.context().path_of(digest), 'cached')

  def test_a_file_that_changes_is_read_again(self):
    folder = self.enter_context(tempfile.TemporaryDirectory())
    paths = [os.path.join(folder, name) for name in 'ab']

    @tff.tensorflow.computation(np.int32)
    def open_file(number):
      lines = tf.data.TextLineDataset(tf.gather(paths, number))
      return lines.map(tf.strings.to_number).batch(2)

    digest = _digest_of(open_file)

    def write(name, text):
      with open(os.path.join(folder, name), 'w', encoding='utf-8') as file:
        file.write(text)

    write('a', '1\n2\n3\n')
    write('b', '4\n')
    with equality_testing.compiled():
      self.assertEqual(digest([0, 1]), 2 * (1 + 2) + 3 + 4)
      write('b', '4\n5\n6\n')
      self.assertEqual(digest([0, 1]), 2 * (1 + 2) + 3 + 2 * (4 + 5) + 6)

  def test_files_that_are_read_for_a_dataset_are_read_in_every_round(self):
    folder = self.enter_context(tempfile.TemporaryDirectory())

    @tff.tensorflow.computation(np.str_)
    def open_files(name):
      names = tf.io.matching_files(tf.strings.join([folder, '/', name, '*']))
      first = tf.strings.to_number(tf.io.read_file(names[0]))
      count = tf.cast(tf.size(names), tf.float32)
      return tf.data.Dataset.from_tensors([first, 100 * count])

    digest = _digest_of(open_files)
    with equality_testing.compiled():
      for number, text in enumerate('135'):
        for name in ('a0', f'a{number}'):
          with open(os.path.join(folder, name), 'w', encoding='utf-8') as file:
            file.write(text)
        self.assertEqual(digest(['a']), float(text) + 100 * (number + 1))

  def test_ids_are_used_beside_the_datasets(self):
    source = _source(lambda d: d.batch(2))
    length = tff.tensorflow.computation(
        lambda total, name: total
        + tf.cast(tf.strings.length(name), tf.float32),
        np.float32,
        np.str_,
    )

    @tff.federated_computation(testing.at_server(), testing.at_clients(np.str_))
    def digest(start, ids):
      datasets = tff.federated_map(source.dataset_computation, ids)
      digests = tff.federated_map(_digest_rows, datasets)
      both = tff.federated_map(length, (digests, ids))
      return start, tff.federated_sum(both)

    self.assert_equals(digest, 2.0, _IDS)

  def test_results_at_clients(self):
    source = _source(lambda d: d.batch(2))

    @tff.federated_computation(testing.at_clients(np.str_))
    def digests(ids):
      datasets = tff.federated_map(source.dataset_computation, ids)
      return tff.federated_map(_digest_rows, datasets)

    self.assert_equals(digests, _IDS)

  def test_functions_that_draw_are_called_in_every_round(self):
    @tff.tensorflow.computation(np.str_)
    def draw(name):
      del name
      return tf.data.Dataset.from_tensors(tf.random.uniform([2]))

    digest = _digest_of(draw)
    with equality_testing.pipelines(), equality_testing.compiled():
      found = {float(digest(_IDS)) for _ in range(3)}
    self.assertLen(found, 3)

  def test_unknown_client_is_named(self):
    digest = _digest_of(_source(lambda d: d.batch(2)).dataset_computation)
    with equality_testing.compiled():
      with self.assertRaisesRegex(ValueError, "dataset of 'four'.*No data"):
        digest(['five', 'four'])
