# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the models of language tasks."""

import functools

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tasks import shakespeare
from tasks import stackoverflow
from tasks.language import bags_of_words
from tasks.language import models
from tasks.language import shakespeare_data
from tasks.language import stackoverflow_data
from tasks.language import tag_models
from tasks.language import token_metrics
from tasks.language import word_sequences
from tests.tasks import baseline_testing
from tests.tasks.language import stackoverflow_testing

_LENGTH = 6


def _keras_model(model_id, seed=1):
  # Not cached: Keras gives up models once TFF has built others in a graph.
  return shakespeare.SHAKESPEARE.build_keras_model(
      model_id, seed, sequence_length=_LENGTH
  )


@functools.cache
def _weights(model_id, seed=1):
  return _keras_model(model_id, seed).get_weights()


@functools.cache
def _rows():
  snippets = np.array([b'Hark!', b'', b'To be, or not to be'], np.object_)
  return shakespeare_data.to_sequences(
      {'snippets': snippets}, sequence_length=_LENGTH
  )


def _stock_model(num_lstms):
  """Returns the model of stock layers, as TFF builds it."""
  return tf.keras.Sequential(
      [
          tf.keras.layers.InputLayer([_LENGTH], dtype=tf.int32),
          tf.keras.layers.Embedding(90, 8, mask_zero=True),
          *(
              tf.keras.layers.LSTM(256, return_sequences=True)
              for _ in range(num_lstms)
          ),
          tf.keras.layers.Dense(90),
      ]
  )


class ShakespeareModelsTest(parameterized.TestCase):

  @parameterized.parameters(('small_lstm', 1), ('lstm', 2))
  @pytest.mark.sample(1)
  def test_outputs_are_those_of_stock_layers(self, model_id, num_lstms):
    model, stock = _keras_model(model_id), _stock_model(num_lstms)
    stock.set_weights(_weights(model_id))
    x = _rows()['x']
    self.assertTrue(np.any(x == 0))
    np.testing.assert_allclose(model(x), stock(x), rtol=1e-4, atol=1e-6)

  @pytest.mark.slow
  def test_loss_gradients_and_metrics_are_those_of_tff(self):
    baseline = (
        tff.simulation.baselines.shakespeare.create_character_prediction_task(
            baseline_testing.SPEC,
            sequence_length=_LENGTH,
            use_synthetic_data=True,
        )
    )
    weights = _weights('lstm')
    rows = _rows()
    ours = shakespeare.SHAKESPEARE.build_variable_model_fn(
        'lstm', 1, sequence_length=_LENGTH
    )()
    found, expected = (
        baseline_testing.evaluate(model, rows['x'], rows['y'], weights)
        for model in (ours, baseline.model_fn())
    )
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-5)
    for a, b in zip(found[1], expected[1], strict=True):
      np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-6)
    self.assertCountEqual(found[2], expected[2])
    tf.nest.map_structure(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6),
        baseline_testing.as_means(found[2]),
        baseline_testing.as_means(expected[2]),
    )
    self.assertEqual(found[2]['num_tokens'], [np.sum(rows['y'] != 0)])

  def test_functional_form_has_the_same_loss_and_metrics(self):
    rows = _rows()
    logits = np.asarray(_keras_model('small_lstm')(rows['x']), np.float64)
    model = shakespeare.SHAKESPEARE.build_functional_model(
        'small_lstm', 1, sequence_length=_LENGTH
    )
    weights = _weights('small_lstm')
    np.testing.assert_equal(list(model.initial_weights[0]), weights)
    output, loss, metrics = baseline_testing.evaluate_functional(
        model, rows['x'], rows['y'], True
    )
    np.testing.assert_allclose(output, logits, rtol=1e-4, atol=1e-6)
    # Padding counts in the loss, and does not in the metrics.
    chosen = np.take_along_axis(logits, rows['y'][..., np.newaxis], axis=2)
    losses = np.log(np.exp(logits).sum(axis=2)) - chosen[..., 0]
    np.testing.assert_allclose(loss, losses.mean(), rtol=1e-5)
    is_token = rows['y'] != 0
    is_right = (logits.argmax(axis=2) == rows['y'])[is_token]
    self.assertEqual(list(metrics), ['loss', 'num_tokens', 'accuracy'])
    self.assertEqual(metrics['num_tokens'], is_token.sum())
    np.testing.assert_allclose(metrics['accuracy'], is_right.mean(), rtol=1e-6)

  def test_distributions_are_those_of_tff(self):
    weights = _weights('lstm')
    self.assertBetween(np.abs(weights[0]).max(), 0.045, 0.05)
    # He's: a variance of 2 / fan_in.
    for kernel in (weights[1], weights[4]):
      np.testing.assert_allclose(
          kernel.std(), np.sqrt(2 / kernel.shape[0]), rtol=0.03
      )
    for kernel in (weights[2], weights[5]):
      np.testing.assert_allclose(kernel @ kernel.T, np.eye(256), atol=1e-4)
    for bias in (weights[3], weights[6]):
      np.testing.assert_array_equal(bias, np.repeat([0, 1, 0, 0], 256))
    limit = np.sqrt(6 / (256 + 90))
    self.assertBetween(np.abs(weights[7]).max(), 0.95 * limit, limit)
    self.assertFalse(weights[8].any())


_NUM_WORDS = 5
_ACCURACIES = [
    'accuracy',
    'accuracy_without_padding',
    'accuracy_without_out_of_vocab',
    'accuracy_without_out_of_vocab_or_end_of_sentence',
]


def _word_model(seed=1, num_words=len(stackoverflow_testing.WORDS)):
  # Not cached: Keras gives up models once TFF has built others in a graph.
  return stackoverflow.STACKOVERFLOW_NWP.build_keras_model(
      'lstm', seed, vocab_size=num_words, sequence_length=_NUM_WORDS
  )


@functools.cache
def _word_weights(seed=1):
  return _word_model(seed).get_weights()


def _word_rows(words=stackoverflow_testing.WORDS):
  return word_sequences.WordSequences(words, _NUM_WORDS)(
      stackoverflow_testing.examples()
  )


def _metrics(vocab_size):
  built = models.build_next_word_metrics(vocab_size)
  return {metric.name: metric for metric in built}


class WordPredictionModelsTest(parameterized.TestCase):

  @pytest.mark.slow
  def test_loss_gradients_and_metrics_are_those_of_tff(self):
    datasets = tff.simulation.datasets.stackoverflow
    words = list(datasets.get_synthetic_word_counts())
    baseline = (
        tff.simulation.baselines.stackoverflow.create_word_prediction_task(
            baseline_testing.SPEC,
            sequence_length=_NUM_WORDS,
            use_synthetic_data=True,
        )
    )
    build = stackoverflow.STACKOVERFLOW_NWP.build_variable_model_fn
    ours = build('lstm', 1, vocab_size=len(words), sequence_length=_NUM_WORDS)()
    weights = _word_model(num_words=len(words)).get_weights()
    rows = _word_rows(words)
    found, expected = (
        baseline_testing.evaluate(model, rows['x'], rows['y'], weights)
        for model in (ours, baseline.model_fn())
    )
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-5)
    for a, b in zip(found[1], expected[1], strict=True):
      np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-6)
    means = baseline_testing.as_means(found[2])
    for name, value in baseline_testing.as_means(expected[2]).items():
      # TFF's name means something else, see `build_next_word_metrics`.
      name = {'accuracy': 'accuracy_without_padding'}.get(name, name)
      np.testing.assert_allclose(means[name], value, rtol=1e-5)

  def test_metrics_leave_out_what_they_say(self):
    # Three words: 4 is any other, 6 the end.
    labels = np.array([[1, 4, 2, 6, 0, 0], [3, 4, 4, 1, 1, 2]])
    chosen = np.array([[1, 4, 2, 1, 0, 0], [1, 4, 1, 1, 2, 2]])
    metrics = _metrics(3)
    self.assertEqual(list(metrics), ['num_tokens', *_ACCURACIES])
    for metric in metrics.values():
      metric.update_state(labels, tf.one_hot(chosen, 7))
    values = {name: metric.result().numpy() for name, metric in metrics.items()}
    self.assertEqual(values['num_tokens'], 10)
    for name, wanted in zip(_ACCURACIES, (4 / 6, 6 / 10, 4 / 7, 4 / 6)):
      self.assertAlmostEqual(values[name], wanted, places=6)

  def test_functional_form_has_the_same_weights_and_metrics(self):
    model = stackoverflow.STACKOVERFLOW_NWP.build_functional_model(
        'lstm',
        1,
        vocab_size=len(stackoverflow_testing.WORDS),
        sequence_length=_NUM_WORDS,
    )
    np.testing.assert_equal(list(model.initial_weights[0]), _word_weights())
    with tf.Graph().as_default():
      metrics = model.finalize_metrics(model.initialize_metrics_state())
    self.assertEqual(list(metrics), ['loss', 'num_tokens', *_ACCURACIES])

  def test_seed_alone_decides_the_weights(self):
    first, other = _word_weights(), _word_weights(seed=2)
    np.testing.assert_equal(_word_model().get_weights(), first)
    for i in (0, 1, 2, 4, 6):
      self.assertGreater(np.mean(first[i] != other[i]), 0.99)
    limit = np.sqrt(6 / (96 + 2680))
    self.assertBetween(np.abs(first[1]).max(), 0.95 * limit, limit)
    np.testing.assert_allclose(
        first[2][:9] @ first[2].T, np.eye(9, 670), atol=1e-4
    )


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
    np.testing.assert_equal(
        words.initial_weights[0], logistic.initial_weights[0]
    )
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


_LABELS = np.array([[3, 1, 0, 0], [2, 2, 1, 0]])
_CHOSEN = np.array([[3, 2, 0, 0], [2, 1, 1, 3]])


class TokenMetricsTest(absltest.TestCase):

  def _value(self, metric, **kwargs):
    metric.update_state(_LABELS, tf.one_hot(_CHOSEN, 4), **kwargs)
    return metric.result().numpy()

  def test_tokens_are_counted_without_masked_ones(self):
    for masked, wanted in (((), 8), ([0], 5), ([0, 1], 3)):
      metric = token_metrics.NumTokensCounter(masked)
      self.assertEqual(metric.name, 'num_tokens')
      self.assertEqual(self._value(metric), wanted)
      # Another batch is added, and a reset begins anew.
      self.assertEqual(self._value(metric), 2 * wanted)
      metric.reset_state()
      self.assertEqual(metric.result(), 0)
      self.assertEqual(metric.result().dtype, tf.int64)

  def test_accuracy_is_without_masked_labels(self):
    for masked, wanted in (((), 5 / 8), ([0], 3 / 5), ([0, 2], 2 / 3)):
      metric = token_metrics.MaskedCategoricalAccuracy(masked)
      self.assertEqual(metric.name, 'accuracy')
      self.assertAlmostEqual(self._value(metric), wanted, places=6)

  def test_weights_of_labels_count(self):
    weights = np.array([[1, 0, 1, 1], [1, 1, 0, 1]])
    self.assertEqual(
        self._value(token_metrics.NumTokensCounter([0]), sample_weight=weights),
        3,
    )
    accuracy = token_metrics.MaskedCategoricalAccuracy([0])
    self.assertAlmostEqual(
        self._value(accuracy, sample_weight=weights), 2 / 3, places=6
    )

  def test_nothing_but_masked_labels(self):
    metric = token_metrics.MaskedCategoricalAccuracy([0])
    metric.update_state([[0, 0]], tf.one_hot([[0, 1]], 4))
    self.assertEqual(metric.result(), 0.0)

  def test_configuration_makes_the_same_metric(self):
    for metric in (
        token_metrics.NumTokensCounter([0, 2], name='tokens'),
        token_metrics.MaskedCategoricalAccuracy([0, 2], name='known'),
    ):
      again = type(metric).from_config(metric.get_config())
      self.assertEqual(again.name, metric.name)
      self.assertEqual(self._value(again), self._value(metric))
