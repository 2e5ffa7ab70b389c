# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the models for Shakespeare."""

import functools

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tasks import shakespeare
from tasks.language import shakespeare_data
from tests.tasks import baseline_testing

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
    for found, wanted in zip(model.initial_weights[0], weights, strict=True):
      np.testing.assert_array_equal(found, wanted)
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
