# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `emnist_models`."""

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tasks import emnist
from tests.tasks.images import emnist_testing

_IDS = ('cnn_dropout', 'cnn', '2nn')


def _tff_model_fn(model_id, only_digits):
  """TFF's own model."""
  spec = tff.simulation.baselines.ClientSpec(num_epochs=1, batch_size=4)
  return tff.simulation.baselines.emnist.create_character_recognition_task(
      spec, model_id=model_id, only_digits=only_digits, use_synthetic_data=True
  ).model_fn


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
    theirs = _tff_model_fn(model_id, only_digits)()
    for variable, value in zip(theirs.trainable_variables, ours.get_weights()):
      variable.assign(value)
    raw = emnist_testing.examples(4, seed=2, num_classes=10)
    images = raw['pixels'][..., np.newaxis]
    output = theirs.forward_pass((images, raw['label']), training=False)
    probabilities, loss = _softmax_and_loss(ours(images), raw['label'])
    np.testing.assert_allclose(output.predictions, probabilities, atol=1e-6)
    self.assertAlmostEqual(float(output.loss), float(loss), places=5)
