# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `word_sequences`."""

from unittest import mock

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tasks.language import stackoverflow_data
from tasks.language import stackoverflow_files
from tasks.language import word_sequences
from tests.tasks import baseline_testing
from tests.tasks import data_testing
from tests.tasks.language import stackoverflow_testing

_WORDS = stackoverflow_testing.WORDS


def _baseline(words, sequence_length):
  """TFF's task with words of one's own."""
  with mock.patch.object(
      tff.simulation.datasets.stackoverflow,
      'get_synthetic_word_counts',
      lambda: dict.fromkeys(words, 1),
  ):
    return tff.simulation.baselines.stackoverflow.create_word_prediction_task(
        baseline_testing.SPEC,
        sequence_length=sequence_length,
        use_synthetic_data=True,
    )


class WordSequencesTest(parameterized.TestCase):

  def test_sentences_by_hand(self):
    to_sequences = word_sequences.WordSequences(['a', 'b'], 3)
    rows = to_sequences({'tokens': [b'a', b'b c a', b'a a a b', b'']})
    np.testing.assert_array_equal(
        rows['x'], [[4, 1, 5], [4, 2, 3], [4, 1, 1], [4, 3, 5]]
    )
    np.testing.assert_array_equal(
        rows['y'], [[1, 5, 0], [2, 3, 1], [1, 1, 1], [3, 5, 0]]
    )
    for array in rows.values():
      self.assertEqual(array.dtype, np.int32)

  @parameterized.parameters(4, 1)
  @pytest.mark.sample(1)
  def test_equals_the_preprocessing_of_tff(self, sequence_length):
    examples = stackoverflow_testing.examples()
    expected = baseline_testing.preprocess(
        _baseline(_WORDS, sequence_length),
        tf.data.Dataset.from_tensor_slices(examples),
    )
    rows = word_sequences.WordSequences(_WORDS, sequence_length)(examples)
    np.testing.assert_array_equal(rows['x'], expected[0])
    np.testing.assert_array_equal(rows['y'], expected[1])

  def test_no_sentence_gives_no_row(self):
    rows = word_sequences.WordSequences(_WORDS, 4)(
        stackoverflow_testing.examples([])
    )
    self.assertEqual(rows['x'].shape, (0, 4))

  def test_an_empty_vocabulary_raises(self):
    with self.assertRaisesRegex(ValueError, '`vocabulary` must have at least'):
      word_sequences.WordSequences([], 4)

  def test_real_data_equal_the_preprocessing_of_tff(self):
    folder = data_testing.SAMPLE
    words = stackoverflow_files.load_word_vocabulary(folder)
    to_sequences = word_sequences.WordSequences(words)
    clients = stackoverflow_files.load_stackoverflow(
        folder, 'heldout', stackoverflow_data.NextWords().published_spec()
    )
    _, heldout, _ = tff.simulation.datasets.stackoverflow.load_data(
        cache_dir=str(folder / 'tff')
    )
    self.assertEqual(list(clients.client_ids), heldout.client_ids)
    baseline = _baseline(words, 20)
    for client_id in clients.client_ids:
      rows = to_sequences(clients.examples(client_id))
      expected = baseline_testing.preprocess(
          baseline, heldout.create_tf_dataset_for_client(client_id)
      )
      np.testing.assert_array_equal(rows['x'], expected[0])
      np.testing.assert_array_equal(rows['y'], expected[1])
