# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `bags_of_words`."""

import types
from unittest import mock

from absl.testing import parameterized
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tasks.language import bags_of_words
from tasks.language import stackoverflow_data
from tasks.language import stackoverflow_files
from tests.tasks import baseline_testing
from tests.tasks import data_testing
from tests.tasks.language import stackoverflow_testing
from tff_adaptive import layers

_WORDS = stackoverflow_testing.WORDS
_TAGS = stackoverflow_testing.TAGS


def _baseline(words, tags):
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
    expected = baseline_testing.preprocess(_baseline(words, tags), dataset)
    dense = bags_of_words.WordFrequencies(words, tags)(examples)
    np.testing.assert_array_equal(dense['x'], expected[0])
    np.testing.assert_array_equal(dense['y'], expected[1])
    lists = bags_of_words.WordLists(words, tags)(examples)
    np.testing.assert_array_equal(lists['y'], expected[1])
    np.testing.assert_allclose(
        layers.to_frequencies(lists['x'], len(words)), expected[0], rtol=1e-6
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
