# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that texts become the model inputs that TFF makes of them."""

import functools
import types
from unittest import mock

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tasks.language import bags_of_words
from tasks.language import shakespeare_data
from tasks.language import stackoverflow_data
from tasks.language import stackoverflow_files
from tasks.language import word_sequences
from tests.tasks import baseline_testing
from tests.tasks import data_testing
from tests.tasks.language import stackoverflow_testing
from tff_adaptive import layers

# Around the length of one row, of two, unknown characters, and nothing.
_SNIPPETS = [
    b'',
    b'Hark!',
    b'a' * 77,
    b'b' * 78,
    b'c' * 79,
    b'd' * 80,
    b'e' * 81,
    b'f' * 159,
    b'g' * 160,
    b'h' * 161,
    b'All of\nit\r\tin {one} ~line^',
    'Café 1600 €'.encode(),
    bytes(range(256)),
    shakespeare_data.CHARACTERS.encode(),
]


def _examples(snippets):
  array = np.empty(len(snippets), np.object_)
  array[:] = snippets
  return {'snippets': array}


@functools.cache
def _baseline(sequence_length):
  return tff.simulation.baselines.shakespeare.create_character_prediction_task(
      baseline_testing.SPEC,
      sequence_length=sequence_length,
      use_synthetic_data=True,
  )


class ShakespearePreprocessingTest(parameterized.TestCase):

  def test_a_snippet_by_hand(self):
    rows = shakespeare_data.to_sequences(
        _examples([b'hd~', b'l']), sequence_length=3
    )
    x = [[88, 2, 1], [89, 0, 0], [88, 3, 89]]
    y = [[2, 1, 87], [0, 0, 0], [3, 89, 0]]
    np.testing.assert_equal(rows, {'x': x, 'y': y})
    for array in rows.values():
      self.assertEqual(array.dtype, np.int32)

  def test_equals_the_preprocessing_of_tff(self):
    expected = baseline_testing.preprocess(
        _baseline(80), tf.data.Dataset.from_tensor_slices(_examples(_SNIPPETS))
    )
    rows = shakespeare_data.to_sequences(_examples(_SNIPPETS), 80)
    np.testing.assert_equal(rows, expected)

  def test_real_data_equal_the_preprocessing_of_tff(self):
    folder = data_testing.SAMPLE
    found = shakespeare_data.Shakespeare().load(None, folder, seed=0)
    train, test = found.train, found.test
    self.assertEqual(train.client_ids, test.client_ids)
    self.assertLen(train.client_ids, 13)
    self.assertEqual(train.total_examples, 202)
    tff_train, _ = tff.simulation.datasets.shakespeare.load_data(
        cache_dir=str(folder / 'tff')
    )
    self.assertEqual(list(train.client_ids), tff_train.client_ids)
    baseline = _baseline(80)
    for client_id in train.client_ids[::4]:
      rows = shakespeare_data.to_sequences(train.examples(client_id))
      expected = baseline_testing.preprocess(
          baseline, tff_train.create_tf_dataset_for_client(client_id)
      )
      np.testing.assert_equal(rows, expected)


_WORDS = stackoverflow_testing.WORDS


def _word_baseline(words, sequence_length):
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
    x = [[4, 1, 5], [4, 2, 3], [4, 1, 1], [4, 3, 5]]
    y = [[1, 5, 0], [2, 3, 1], [1, 1, 1], [3, 5, 0]]
    np.testing.assert_equal(rows, {'x': x, 'y': y})
    for array in rows.values():
      self.assertEqual(array.dtype, np.int32)

  @parameterized.parameters(4, 1)
  @pytest.mark.sample(1)
  def test_equals_the_preprocessing_of_tff(self, sequence_length):
    examples = stackoverflow_testing.examples()
    expected = baseline_testing.preprocess(
        _word_baseline(_WORDS, sequence_length),
        tf.data.Dataset.from_tensor_slices(examples),
    )
    rows = word_sequences.WordSequences(_WORDS, sequence_length)(examples)
    np.testing.assert_equal(rows, expected)

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
    baseline = _word_baseline(words, 20)
    for client_id in clients.client_ids:
      rows = to_sequences(clients.examples(client_id))
      expected = baseline_testing.preprocess(
          baseline, heldout.create_tf_dataset_for_client(client_id)
      )
      np.testing.assert_equal(rows, expected)


_TAGS = stackoverflow_testing.TAGS


def _tag_baseline(words, tags):
  """TFF's task with words and tags of one's own."""
  datasets = tff.simulation.datasets.stackoverflow
  with mock.patch.multiple(
      datasets,
      get_synthetic_word_counts=lambda: dict.fromkeys(words, 1),
      get_synthetic_tag_counts=lambda: dict.fromkeys(tags, 1),
  ):
    return tff.simulation.baselines.stackoverflow.create_tag_prediction_task(
        baseline_testing.SPEC, use_synthetic_data=True
    )


class BagsOfWordsTest(parameterized.TestCase):

  def _assert_equal(self, examples, dataset, words, tags):
    """Asserts that both forms have the numbers of TFF's baseline."""
    expected = baseline_testing.preprocess(_tag_baseline(words, tags), dataset)
    dense = bags_of_words.WordFrequencies(words, tags)(examples)
    np.testing.assert_equal(dense, expected)
    lists = bags_of_words.WordLists(words, tags)(examples)
    np.testing.assert_array_equal(lists['y'], expected['y'])
    np.testing.assert_allclose(
        layers.to_frequencies(lists['x'], len(words)),
        expected['x'],
        rtol=1e-6,
    )

  def test_equals_the_preprocessing_of_tff(self):
    examples = stackoverflow_testing.examples()
    self._assert_equal(
        examples, tf.data.Dataset.from_tensor_slices(examples), _WORDS, _TAGS
    )

  def test_examples_by_hand(self):
    examples = {
        'tokens': [b'b a x b', b'x', b'b'],
        'title': [b'a b', b'', b'b'],
        'tags': [b't|t|u', b'v', b'u'],
    }
    dense = bags_of_words.WordFrequencies(['a', 'b'], ['t', 'u'])
    np.testing.assert_allclose(
        dense(examples)['x'], [[0.4, 0.6], [0, 0], [0, 1]]
    )
    lists = bags_of_words.WordLists(['a', 'b'], ['t', 'u'], 4)
    # The fifth word does not count any more.
    np.testing.assert_array_equal(
        lists(examples)['x'], [[1, 0, 1, 0], [-1, -1, -1, -1], [1, 1, -1, -1]]
    )
    for form in (dense, lists):
      np.testing.assert_array_equal(
          form(examples)['y'], [[2, 1], [0, 0], [0, 1]]
      )

  @parameterized.parameters('logistic', 'words')
  def test_arrays_are_as_specified_also_without_examples(self, model_id):
    tags = stackoverflow_data.Tags()
    args = types.SimpleNamespace(
        model_id=model_id,
        vocabulary=_WORDS,
        tag_vocabulary=_TAGS,
        vocab_size=len(_WORDS),
        tag_vocab_size=len(_TAGS),
        max_words=16,
    )
    to_bags = tags.build_prepare(args, None, None)
    for places in ([], [0], range(10)):
      found = to_bags(stackoverflow_testing.examples(places))
      self.assertEqual(list(found), list(tags.element_spec(args)))
      for name, spec in tags.element_spec(args).items():
        self.assertEqual(found[name].dtype, spec.dtype.as_numpy_dtype)
        self.assertEqual(found[name].shape, (len(places), *spec.shape))

  @parameterized.named_parameters(
      ('words', dict(vocabulary=[]), '`vocabulary`'),
      ('tags', dict(tag_vocabulary=['a', 'a']), '`tag_vocabulary`'),
  )
  def test_bad_argument_raises(self, change, sentence):
    arguments = dict(vocabulary=_WORDS, tag_vocabulary=_TAGS, max_words=3)
    with self.assertRaisesRegex(ValueError, sentence):
      bags_of_words.WordLists(**{**arguments, **change})

  def test_real_data_equal_the_preprocessing_of_tff(self):
    folder = data_testing.SAMPLE
    words = stackoverflow_files.load_word_vocabulary(folder)
    tags = stackoverflow_files.load_tag_vocabulary(folder)
    clients = stackoverflow_files.load_stackoverflow(
        folder, 'heldout', stackoverflow_data.Tags().published_spec()
    )
    _, heldout, _ = tff.simulation.datasets.stackoverflow.load_data(
        cache_dir=str(folder / 'tff')
    )
    client_id = min(clients.client_ids, key=clients.num_examples)
    self._assert_equal(
        clients.examples(client_id),
        heldout.create_tf_dataset_for_client(client_id),
        words,
        tags,
    )
