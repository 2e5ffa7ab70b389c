# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of models of texts."""

import pathlib
import tempfile

from absl.testing import parameterized
import numpy as np
import pytest

from tasks import ag_news
from tests.tasks.texts import text_testing

_TOKENS = np.array([[2, 5, 9, 4, 1, 3, 0, 0], [2, 7, 3, 8, 8, 6, 9, 5]])


def _build(model_id='cnn', seed=1, **kwargs):
  return ag_news.AG_NEWS.build_keras_model(
      model_id, seed, **{'vocab_size': 11, 'max_length': 8, **kwargs}
  )


class TextModelsTest(parameterized.TestCase):

  def test_cnn_matches_a_plain_rendering(self):
    model = _build(seed=3)
    weights = model.get_weights()
    vectors = weights[0][_TOKENS]
    features = []
    for width, (kernel, bias) in zip(
        (3, 4, 5), zip(weights[1:7:2], weights[2:7:2])
    ):
      windows = np.lib.stride_tricks.sliding_window_view(vectors, width, 1)
      answers = np.einsum('btcw,wco->bto', windows, kernel) + bias
      features.append(np.maximum(answers, 0).max(axis=1))
    logits = np.concatenate(features, axis=-1) @ weights[7] + weights[8]
    np.testing.assert_allclose(model(_TOKENS), logits, atol=1e-5)

  def test_bag_of_words_is_the_mean_of_the_vectors_of_a_text(self):
    model = _build('bag_of_words', seed=3)
    vectors, kernel, bias = model.get_weights()
    # The first text has six words; what pads it has no vector.
    means = [vectors[text[text > 0] - 1].mean(axis=0) for text in _TOKENS]
    logits = np.array(means) @ kernel + bias
    np.testing.assert_allclose(model(_TOKENS), logits, atol=1e-6)
    permuted = model(_TOKENS[:, ::-1])
    np.testing.assert_allclose(permuted, logits, atol=1e-6)

  @pytest.mark.slow
  def test_head_of_distilbert_is_that_of_transformers(self):
    import transformers

    with tempfile.TemporaryDirectory() as folder:
      text_testing.write_pretrained(pathlib.Path(folder))
      model = _build('distilbert', pretrained_dir=folder)
      config = transformers.DistilBertConfig.from_pretrained(
          folder, num_labels=4
      )
    theirs = transformers.TFDistilBertForSequenceClassification(config)
    theirs(theirs.dummy_inputs)
    theirs.set_weights(model.get_weights())
    expected = theirs(_TOKENS, attention_mask=_TOKENS != 0).logits
    np.testing.assert_allclose(model(_TOKENS), expected, atol=1e-6)
    rates = [layer.rate for layer in model.layers if hasattr(layer, 'rate')]
    self.assertEqual(rates, [0.2])

  def test_pretrained_weights_come_from_the_folder_and_the_head_from_the_seed(
      self,
  ):
    with tempfile.TemporaryDirectory() as folder:
      original = text_testing.write_pretrained(pathlib.Path(folder))
      first, other = (
          _build('distilbert', seed, pretrained_dir=folder).get_weights()
          for seed in (1, 2)
      )
    given = original.distilbert.get_weights()
    for i, weight in enumerate(given):
      np.testing.assert_array_equal(first[i], weight)
      np.testing.assert_array_equal(other[i], weight)
    self.assertLen(first, len(given) + 4)
    for place in (-4, -2):
      self.assertTrue(np.all(first[place] != other[place]))

  def test_cnn_begins_within_its_limits(self):
    embedding, kernel, bias, *_ = _build(vocab_size=100).get_weights()
    self.assertBetween(np.abs(embedding).max(), 0.24, 0.25)
    limit = np.sqrt(6 / (3 * 64 + 3 * 64))
    self.assertBetween(np.abs(kernel).max(), 0.98 * limit, limit)
    np.testing.assert_array_equal(bias, 0.0)
