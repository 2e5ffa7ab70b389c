# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the models for the next word."""

import functools

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tasks import stackoverflow
from tasks.language import models
from tasks.language import word_sequences
from tests.tasks import baseline_testing
from tests.tasks.language import stackoverflow_testing

_LENGTH = 5
_ACCURACIES = [
    'accuracy',
    'accuracy_without_padding',
    'accuracy_without_out_of_vocab',
    'accuracy_without_out_of_vocab_or_end_of_sentence',
]


def _keras_model(seed=1, num_words=len(stackoverflow_testing.WORDS)):
  # Not cached: Keras gives up models once TFF has built others in a graph.
  return stackoverflow.STACKOVERFLOW_NWP.build_keras_model(
      'lstm', seed, vocab_size=num_words, sequence_length=_LENGTH
  )


@functools.cache
def _weights(seed=1):
  return _keras_model(seed).get_weights()


def _rows(words=stackoverflow_testing.WORDS):
  return word_sequences.WordSequences(words, _LENGTH)(
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
            sequence_length=_LENGTH,
            use_synthetic_data=True,
        )
    )
    build = stackoverflow.STACKOVERFLOW_NWP.build_variable_model_fn
    ours = build('lstm', 1, vocab_size=len(words), sequence_length=_LENGTH)()
    weights = _keras_model(num_words=len(words)).get_weights()
    rows = _rows(words)
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
        sequence_length=_LENGTH,
    )
    for found, wanted in zip(model.initial_weights[0], _weights(), strict=True):
      np.testing.assert_array_equal(found, wanted)
    with tf.Graph().as_default():
      metrics = model.finalize_metrics(model.initialize_metrics_state())
    self.assertEqual(list(metrics), ['loss', 'num_tokens', *_ACCURACIES])

  def test_seed_alone_decides_the_weights(self):
    first, other = _weights(), _weights(seed=2)
    for weight, same in zip(first, _keras_model().get_weights(), strict=True):
      np.testing.assert_array_equal(weight, same)
    for i in (0, 1, 2, 4, 6):
      self.assertGreater(np.mean(first[i] != other[i]), 0.99)
    limit = np.sqrt(6 / (96 + 2680))
    self.assertBetween(np.abs(first[1]).max(), 0.95 * limit, limit)
    np.testing.assert_allclose(
        first[2][:9] @ first[2].T, np.eye(9, 670), atol=1e-4
    )
