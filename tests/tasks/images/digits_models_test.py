# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `digits_models`."""

from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tasks import digits

_IDS = ('cnn', 'logistic')


def _variables_in_graph(model_id, seed):
  """Returns the initial weights of the form that TFF builds inside a graph."""
  with tf.Graph().as_default() as graph:
    model = digits.build_variable_model_fn(model_id, seed)()
    with tf.compat.v1.Session(graph=graph) as session:
      session.run(tf.compat.v1.global_variables_initializer())
      return session.run(list(model.trainable_variables))


class DigitsModelsTest(parameterized.TestCase):

  @parameterized.parameters(('cnn', 23946), ('logistic', 650))
  def test_number_of_weights_and_shape_of_logits(self, model_id, num_weights):
    model = digits.build_keras_model(model_id, seed=1)
    self.assertEqual(model.count_params(), num_weights)
    self.assertEqual(model(np.zeros([3, 8, 8, 1], np.float32)).shape, (3, 10))

  @parameterized.parameters(*_IDS)
  def test_seeds_differ_and_no_two_kernels_share_numbers(self, model_id):
    first = digits.build_keras_model(model_id, seed=1).get_weights()
    other = digits.build_keras_model(model_id, seed=2).get_weights()
    kernels = [weight for weight in first if weight.ndim > 1]
    self.assertTrue(all(np.any(a != b) for a, b in zip(first[::2], other[::2])))
    scaled = [kernel.ravel()[:90] / np.abs(kernel).max() for kernel in kernels]
    for i, kernel in enumerate(scaled):
      for later in scaled[i + 1 :]:
        self.assertLess(abs(np.corrcoef(kernel, later)[0, 1]), 0.5)

  def test_literal_weights_so_that_no_release_changes_a_run(self):
    kernel = digits.build_keras_model('logistic', 1).get_weights()[0]
    np.testing.assert_allclose(kernel[0, 0], 0.020834327, rtol=1e-6)


def _batch_output(predictions, loss):
  # Here, so that importing the module stays quick.
  import tensorflow_federated as tff  # pylint: disable=g-import-not-at-top

  return tff.learning.models.BatchOutput(
      loss=loss, predictions=predictions, num_examples=4
  )
