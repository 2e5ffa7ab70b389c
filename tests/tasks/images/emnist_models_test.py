# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `emnist_models`."""

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tasks import emnist
from tests.tasks import baseline_testing
from tests.tasks.images import emnist_testing

_IDS = ('cnn_dropout', 'cnn', '2nn')


def _tff_model_fn(task, **arguments):
  """TFF's own model."""
  spec = tff.simulation.baselines.ClientSpec(num_epochs=1, batch_size=4)
  create = getattr(tff.simulation.baselines.emnist, f'create_{task}_task')
  return create(spec, use_synthetic_data=True, **arguments).model_fn


def _softmax_and_loss(logits, labels):
  log_probabilities = tf.nn.log_softmax(logits).numpy()
  return (
      np.exp(log_probabilities),
      -log_probabilities[np.arange(len(labels)), labels].mean(),
  )


class EmnistModelsTest(parameterized.TestCase):

  def test_cnn_with_dropout_drops_pooled_values_and_units(self):
    model = emnist.EMNIST_CR.build_keras_model('cnn_dropout', seed=1)
    self.assertEqual(
        [
            (type(layer).__name__, layer.output.shape[1:], layer.rate)
            for layer in model.layers
            if hasattr(layer, 'rate')
        ],
        [('Dropout', (12, 12, 64), 0.25), ('Dropout', (128,), 0.5)],
    )

  @parameterized.product(model_id=_IDS, only_digits=(False, True))
  @pytest.mark.sample(3)
  def test_outputs_and_loss_are_those_of_tff(self, model_id, only_digits):
    ours = emnist.EMNIST_CR.build_keras_model(
        model_id, 3, only_digits=only_digits
    )
    theirs = _tff_model_fn(
        'character_recognition', model_id=model_id, only_digits=only_digits
    )()
    for variable, value in zip(theirs.trainable_variables, ours.get_weights()):
      variable.assign(value)
    raw = emnist_testing.examples(4, seed=2, num_classes=10)
    images = raw['pixels'][..., np.newaxis]
    output = theirs.forward_pass((images, raw['label']), training=False)
    probabilities, loss = _softmax_and_loss(ours(images), raw['label'])
    np.testing.assert_allclose(output.predictions, probabilities, atol=1e-6)
    self.assertAlmostEqual(float(output.loss), float(loss), places=5)


class AutoencoderTest(parameterized.TestCase):

  def test_outputs_loss_and_metrics_are_those_of_tff(self):
    weights = emnist.EMNIST_AE.build_keras_model(seed=3).get_weights()
    theirs = _tff_model_fn('autoencoder')()
    ours = emnist.EMNIST_AE.build_variable_model_fn(seed=3)()
    for variable, value in zip(theirs.trainable_variables, weights):
      variable.assign(value)
    x = emnist_testing.examples(4, seed=2)['pixels'].reshape(4, 784)
    output = ours.forward_pass({'x': x, 'y': x}, training=False)
    expected = theirs.forward_pass((x, x), training=False)
    np.testing.assert_allclose(
        output.predictions, expected.predictions, atol=1e-6
    )
    self.assertAlmostEqual(float(output.loss), float(expected.loss), places=6)
    found = ours.report_local_unfinalized_metrics()
    wanted = theirs.report_local_unfinalized_metrics()
    self.assertCountEqual(found, wanted)
    for name in ('mean_squared_error', 'mean_absolute_error'):
      np.testing.assert_allclose(found[name], wanted[name], rtol=1e-5)

  @pytest.mark.slow
  def test_functional_metrics_are_those_of_tff(self):
    model = emnist.EMNIST_AE.build_functional_model(seed=3)
    x = emnist_testing.examples(4, seed=2)['pixels'].reshape(4, 784)
    output, loss, metrics = baseline_testing.evaluate_functional(model, x, x)
    squared, absolute = np.mean((output - x) ** 2), np.mean(np.abs(output - x))
    np.testing.assert_allclose(loss, squared, rtol=1e-5)
    expected = {
        'loss': squared,
        'mean_squared_error': squared,
        'mean_absolute_error': absolute,
    }
    self.assertEqual(list(metrics), list(expected))
    np.testing.assert_allclose(
        list(metrics.values()), list(expected.values()), rtol=1e-5
    )
