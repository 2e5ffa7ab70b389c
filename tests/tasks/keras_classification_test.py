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
"""Tests of Keras classifiers as TFF models."""

import collections
import enum

from absl.testing import absltest
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tasks import keras_classification

_SPEC = collections.OrderedDict(
    x=tf.TensorSpec([None, 2], tf.float32), y=tf.TensorSpec([None], tf.int32)
)


class _ModelID(enum.Enum):
  SMALL = 'small'
  LARGE = 'large'


def _keras_model():
  return tf.keras.Sequential(
      [
          tf.keras.layers.InputLayer((2,)),
          tf.keras.layers.Dense(3, kernel_initializer='ones'),
      ]
  )


class KerasClassificationTest(absltest.TestCase):

  def test_both_forms_have_the_keras_weights(self):
    functional = keras_classification.to_functional_model(_keras_model(), _SPEC)
    with tf.Graph().as_default():
      variable = keras_classification.to_variable_model_fn(
          _keras_model, _SPEC
      )()
      self.assertIsInstance(variable, tff.learning.models.VariableModel)
      shapes = [tuple(v.shape) for v in variable.trainable_variables]
    for weight, shape in zip(functional.initial_weights[0], shapes):
      self.assertEqual(weight.shape, shape)
    np.testing.assert_array_equal(
        functional.initial_weights[0][0], np.ones([2, 3])
    )
    self.assertEqual(functional.input_spec, _SPEC)

  def test_representations_are_what_goes_into_the_last_layer(self):
    model = tf.keras.Sequential(
        [
            tf.keras.layers.InputLayer((2,)),
            tf.keras.layers.Dense(4, activation='relu'),
            tf.keras.layers.Dropout(0.5),
            tf.keras.layers.Dense(3),
        ]
    )
    weights = tuple(model.get_weights())
    x = np.array([[1.0, -2.0], [0.5, 3.0]], np.float32)
    represent = keras_classification.to_representation_fn(model, _SPEC)
    batch = {'x': x, 'y': np.zeros([2], np.int32)}
    # TFF's functional form of a Keras model is for graphs alone.
    with tf.Graph().as_default() as graph:
      output = represent(tuple(map(tf.constant, weights)), batch)
      with tf.compat.v1.Session(graph=graph) as session:
        found = session.run(output)
    expected = np.maximum(x @ weights[0] + weights[1], 0.0)
    np.testing.assert_allclose(found, expected, rtol=1e-6)

  def test_logistic_regression_has_no_representations(self):
    self.assertIsNone(
        keras_classification.to_representation_fn(_keras_model(), _SPEC)
    )

  def test_model_ids_are_members_or_values(self):
    for given in (_ModelID.LARGE, 'large'):
      self.assertIs(
          keras_classification.to_model_id(_ModelID, given), _ModelID.LARGE
      )
    with self.assertRaisesRegex(ValueError, r"\['small', 'large'\].*'huge'"):
      keras_classification.to_model_id(_ModelID, 'huge')


if __name__ == '__main__':
  absltest.main()
