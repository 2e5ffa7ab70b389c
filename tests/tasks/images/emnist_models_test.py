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
_KERNELS = {
    'cnn_dropout': [(3, 3, 1, 32), (3, 3, 32, 64), (9216, 128), (128, 62)],
    'cnn': [(5, 5, 1, 32), (5, 5, 32, 64), (3136, 512), (512, 62)],
    '2nn': [(784, 200), (200, 200), (200, 62)],
}


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

  @parameterized.parameters(
      ('cnn_dropout', 1_206_590, 1_199_882),
      ('cnn', 1_690_046, 1_663_370),
      ('2nn', 209_662, 199_210),
  )
  def test_number_and_shapes_of_weights(self, model_id, all_classes, digits):
    model = emnist.EMNIST_CR.build_keras_model(model_id, seed=1)
    self.assertEqual(model.count_params(), all_classes)
    shapes = [weight.shape for weight in model.get_weights()]
    self.assertEqual(shapes[::2], _KERNELS[model_id])
    self.assertEqual(shapes[1::2], [shape[-1:] for shape in shapes[::2]])
    model = emnist.EMNIST_CR.build_keras_model(
        model_id, seed=1, only_digits=True
    )
    self.assertEqual(model.count_params(), digits)
    self.assertEqual(model.output_shape, (None, 10))

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

  @parameterized.parameters(*_IDS)
  def test_initial_weights_are_keras_defaults(self, model_id):
    weights = emnist.EMNIST_CR.build_keras_model(model_id, seed=2).get_weights()
    for kernel, bias in zip(weights[::2], weights[1::2]):
      np.testing.assert_array_equal(bias, np.zeros_like(bias))
      field = np.prod(kernel.shape[:-2])
      limit = np.sqrt(6 / (field * (kernel.shape[-2] + kernel.shape[-1])))
      self.assertBetween(np.abs(kernel).max(), 0.95 * limit, limit)
      np.testing.assert_allclose(kernel.std(), limit / np.sqrt(3), rtol=0.1)

  def test_seeds_and_layers_differ(self):
    first = emnist.EMNIST_CR.build_keras_model('2nn', seed=1).get_weights()[::2]
    other = emnist.EMNIST_CR.build_keras_model('2nn', seed=2).get_weights()[::2]
    for a, b in zip(first, other):
      self.assertTrue(np.all(a != b))
    scaled = [kernel.ravel()[:10] / np.abs(kernel).max() for kernel in first]
    self.assertGreater(np.abs(scaled[0] - scaled[1]).max(), 0.1)
    self.assertGreater(np.abs(scaled[1] - scaled[2]).max(), 0.1)

  def test_literal_weights_so_that_no_release_changes_a_run(self):
    weights = emnist.EMNIST_CR.build_keras_model('cnn_dropout', 1).get_weights()
    np.testing.assert_allclose(weights[0][0, 0, 0, 0], 0.07380237, rtol=1e-5)
    np.testing.assert_allclose(weights[6][0, 0], 0.17587596, rtol=1e-5)
