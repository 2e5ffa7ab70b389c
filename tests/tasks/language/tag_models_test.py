# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the models for tags."""

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tasks import stackoverflow
from tasks.language import bags_of_words
from tasks.language import stackoverflow_data
from tasks.language import tag_models
from tests.tasks import baseline_testing
from tests.tasks.language import stackoverflow_testing

_DATASETS = tff.simulation.datasets.stackoverflow
_FORMS = {
    'words': bags_of_words.WordLists,
    'logistic': bags_of_words.WordFrequencies,
}


def _sizes():
  words = list(_DATASETS.get_synthetic_word_counts())
  tags = list(_DATASETS.get_synthetic_tag_counts())
  return words, tags


def _examples(model_id):
  """Returns texts of TFF's synthetic data, some without any known word."""
  source = _DATASETS.get_synthetic()
  parts = [
      list(
          source.create_tf_dataset_for_client(client_id)
          .batch(10)
          .as_numpy_iterator()
      )[0]
      for client_id in source.client_ids
  ]
  examples = {
      name: np.concatenate(
          [
              *(part[name] for part in parts),
              stackoverflow_testing.examples()[name],
          ]
      )
      for name in stackoverflow_data.Tags.features
  }
  return _FORMS[model_id](*_sizes())(examples)


class TagPredictionModelsTest(parameterized.TestCase):

  @parameterized.parameters('words', 'logistic')
  @pytest.mark.sample(1)
  def test_loss_gradients_and_metrics_are_those_of_tff(self, model_id):
    words, tags = _sizes()
    baseline = (
        tff.simulation.baselines.stackoverflow.create_tag_prediction_task(
            baseline_testing.SPEC, use_synthetic_data=True
        )
    )
    ours = stackoverflow.STACKOVERFLOW_LR.build_variable_model_fn(
        model_id, 1, vocab_size=len(words), tag_vocab_size=len(tags)
    )()
    generator = np.random.default_rng(0)
    weights = [
        generator.normal(size=shape).astype(np.float32)
        for shape in ((len(words), len(tags)), (len(tags),))
    ]
    dense, rows = _examples('logistic'), _examples(model_id)
    found = baseline_testing.evaluate(ours, rows['x'], rows['y'], weights)
    expected = baseline_testing.evaluate(
        baseline.model_fn(), dense['x'], dense['y'], weights
    )
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-5)
    for a, b in zip(found[1], expected[1], strict=True):
      np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
    self.assertCountEqual(found[2], expected[2])
    tf.nest.map_structure(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5),
        found[2],
        expected[2],
    )
    self.assertContainsSubset(['precision', 'recall_at_5'], found[2])

  def test_loss_is_the_sum_over_examples_of_the_mean_over_tags(self):
    labels = np.array([[1.0, 0.0], [0.0, 0.0], [1.0, 1.0]])
    predictions = np.array([[0.9, 0.2], [0.5, 0.5], [0.1, 0.6]])
    right = np.where(labels == 1, predictions, 1 - predictions)
    loss = tag_models.build_loss()(labels, predictions)
    self.assertAlmostEqual(
        float(loss), -np.log(right).mean(axis=1).sum(), places=4
    )

  def test_both_forms_start_with_the_same_weights(self):
    words, logistic = (
        stackoverflow.STACKOVERFLOW_LR.build_functional_model(
            model_id, 1, vocab_size=30, tag_vocab_size=8
        )
        for model_id in ('words', 'logistic')
    )
    for a, b in zip(
        words.initial_weights[0], logistic.initial_weights[0], strict=True
    ):
      np.testing.assert_array_equal(a, b)
    self.assertEqual(
        words.input_spec['x'], tf.TensorSpec([None, 1024], tf.int32)
    )
    self.assertEqual(
        logistic.input_spec['x'], tf.TensorSpec([None, 30], tf.float32)
    )

  @parameterized.parameters(
      ([[3, 1, -1, -1], [2, -1, -1, -1]], 2),
      ([[-1, -1], [-1, -1]], 0),
      ([[3, 1]], 2),
  )
  def test_lists_are_trimmed_to_the_longest_one(self, words, length):
    words = np.array(words, np.int32)
    found = tag_models.TrimWords()(words)
    np.testing.assert_array_equal(found, words[:, :length])
