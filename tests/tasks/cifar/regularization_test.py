# Copyright 2026 The tff_adaptive Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""Tests of `regularization`."""

from absl.testing import absltest
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tasks import keras_classification
from tasks.cifar import regularization
from tff_adaptive.client_works import model_adapter

_SPEC = {
    'x': tf.TensorSpec([None, 3], tf.float32),
    'y': tf.TensorSpec([None], tf.int32),
}
_BATCH = {
    'x': np.array([[1.0, 2.0, 3.0], [0.0, 1.0, 0.0]], np.float32),
    'y': np.array([0, 1], np.int32),
}


def _keras_model():
  l2 = tf.keras.regularizers.L2
  return tf.keras.Sequential(
      [
          tf.keras.Input([3]),
          tf.keras.layers.Dense(4, kernel_initializer='ones'),
          tf.keras.layers.Dense(
              2,
              kernel_initializer=tf.keras.initializers.Constant(
                  [[1.0, 2.0]] * 4
              ),
              kernel_regularizer=l2(0.1),
              bias_initializer='ones',
              bias_regularizer=l2(0.01),
          ),
      ]
  )


def _evaluate(model):
  """Loss, gradients and metrics of one batch, of either kind of model."""
  adapter = model_adapter.build_model_adapter(model)
  with tf.Graph().as_default() as graph:
    local = adapter.build_local_model()
    weights = adapter.initial_weights()

    @tf.function
    def run():
      metrics = local.start(weights)
      evaluation = local.value_and_grad(tuple(weights.trainable), _BATCH)
      metrics = local.update_metrics(metrics, _BATCH, evaluation)
      metrics = local.report_metrics(metrics, tf.constant(True))
      return evaluation.loss, evaluation.gradients, metrics

    loss, gradients, metrics = run()
    result = (loss, gradients, adapter.finalize_metrics(metrics)['accuracy'])
    with tf.compat.v1.Session(graph=graph) as session:
      session.run(tf.compat.v1.global_variables_initializer())
      return session.run(result)


class RegularizationTest(absltest.TestCase):

  @pytest.mark.slow
  def test_loss_and_gradients_are_those_of_the_variable_model(self):
    keras_model = _keras_model()
    plain = keras_classification.to_functional_model(keras_model, _SPEC)
    model = regularization.add_penalties(plain, keras_model)
    loss, gradients, accuracy = _evaluate(model)
    plain_loss, plain_gradients, plain_accuracy = _evaluate(plain)
    # 0.1 * 4 * (1 + 4) + 0.01 * 2
    np.testing.assert_allclose(loss - plain_loss, 2.02, rtol=1e-5)
    np.testing.assert_array_equal(gradients[0], plain_gradients[0])
    np.testing.assert_allclose(
        gradients[2] - plain_gradients[2], [[0.2, 0.4]] * 4, rtol=1e-5
    )
    np.testing.assert_allclose(
        gradients[3] - plain_gradients[3], [0.02] * 2, rtol=1e-4
    )
    self.assertEqual(accuracy, plain_accuracy)

  def test_tff_has_the_same_loss_for_the_keras_model(self):
    keras_model = _keras_model()
    variable = tff.learning.models.from_keras_model(
        _keras_model(),
        loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        input_spec=_SPEC,
    )
    expected = variable.forward_pass(_BATCH).loss.numpy()
    model = regularization.add_penalties(
        keras_classification.to_functional_model(keras_model, _SPEC),
        keras_model,
    )
    np.testing.assert_allclose(_evaluate(model)[0], expected, rtol=1e-6)

  def test_a_model_without_penalties_stays_what_it_is(self):
    keras_model = tf.keras.Sequential(
        [tf.keras.Input([3]), tf.keras.layers.Dense(2)]
    )
    model = keras_classification.to_functional_model(keras_model, _SPEC)
    self.assertIs(regularization.add_penalties(model, keras_model), model)


if __name__ == '__main__':
  absltest.main()
