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
"""Tests of the representations of Keras models."""

from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tff_adaptive import client_works

_LAYERS = tf.keras.layers
_SPEC = (
    tf.TensorSpec([None, 2], tf.float32),
    tf.TensorSpec([None], tf.int32),
)
_BATCH = (np.array([[1.0, -2.0], [0.5, 4.0]], np.float32), np.array([0, 1]))


def _sequential(*layers):
  return tf.keras.Sequential([_LAYERS.InputLayer((2,)), *layers])


def _run(fn, weights):
  """What a function of weights gives in a graph, as TFF's Keras models want it.

  It makes Keras refuse models from outside of the graph: call them before.
  """
  with tf.Graph().as_default():
    fetches = fn(tuple(map(tf.constant, weights)))
    with tf.compat.v1.Session() as session:
      return session.run(fetches)


def _represent(keras_model, layer=None):
  """The representations of the batch at the model's own weights."""
  represent = client_works.build_keras_representation(keras_model, _SPEC, layer)
  weights = [v.numpy() for v in keras_model.trainable_variables]
  return _run(lambda w: represent(w, _BATCH), weights)


class KerasRepresentationTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.parameters((None, 5), ('first', 3), ('middle', 3), ('last', 1))
  def test_equals_the_layer_of_the_model(self, layer, width):
    model = _sequential(
        _LAYERS.Dense(3, name='first'),
        _LAYERS.ReLU(name='middle'),
        _LAYERS.Dense(5, name='features'),
        _LAYERS.Dense(1, name='last'),
    )
    part = tf.keras.Model(
        model.inputs, model.get_layer(layer or 'features').output
    )
    expected = part(_BATCH[0])
    represented = _represent(model, layer)
    self.assertEqual(represented.shape, (2, width))
    self.assertAllClose(represented, expected, rtol=1e-6)

  def test_is_a_function_of_the_weights(self):
    model = _sequential(_LAYERS.Dense(3), _LAYERS.Dense(1))
    represent = client_works.build_keras_representation(model, _SPEC)
    kernel = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, -1.0]], np.float32)
    bias = np.array([0.5, 0.0, 0.0], np.float32)
    rest = [np.full([3, 1], np.nan, np.float32), np.zeros([1], np.float32)]

    def differentiate(weights):
      represented = represent(weights, _BATCH)
      return represented, tf.gradients(represented, weights[:2])

    represented, gradients = _run(differentiate, [kernel, bias, *rest])
    self.assertAllClose(represented, _BATCH[0] @ kernel + bias)
    self.assertAllClose(gradients[1], [2.0, 2.0, 2.0])

  def test_finds_its_weights_in_any_order_of_layers(self):
    # The branch that is left out comes first among the weights.
    inputs = tf.keras.Input((2,))
    other = _LAYERS.Dense(4)(inputs)
    features = _LAYERS.Dense(3, name='features')(inputs)
    outputs = _LAYERS.Dense(1)(_LAYERS.Concatenate()([other, features]))
    model = tf.keras.Model(inputs, outputs)
    part = tf.keras.Model(model.inputs, features)
    expected = part(_BATCH[0])
    self.assertAllClose(_represent(model, 'features'), expected, rtol=1e-6)

  def test_is_that_of_a_model_in_use(self):
    model = _sequential(
        _LAYERS.Dense(3), _LAYERS.Dropout(0.5), _LAYERS.Dense(1)
    )
    represent = client_works.build_keras_representation(model, _SPEC)
    first, second = _run(
        lambda weights: [represent(weights, _BATCH) for _ in range(2)],
        [np.ones(v.shape, np.float32) for v in model.trainable_variables],
    )
    self.assertAllEqual(first, second)
    # Dropout would have set some to zero and doubled the others.
    self.assertAllClose(first, [[0.0] * 3, [5.5] * 3])

  @parameterized.named_parameters(
      (
          'not_connected',
          lambda: tf.keras.Sequential([_LAYERS.Dense(3), _LAYERS.Dense(1)]),
          None,
          'not connected.*InputLayer',
      ),
      (
          'nothing_trained',
          lambda: _sequential(_LAYERS.Flatten(), _LAYERS.Dense(1, name='top')),
          None,
          "no.*trained weight.*later `layer`.*'top'",
      ),
      (
          'batch_normalization',
          lambda: _sequential(
              _LAYERS.Dense(3), _LAYERS.BatchNormalization(), _LAYERS.Dense(1)
          ),
          None,
          'batch_normalization.*earlier layer',
      ),
      (
          'unknown_layer',
          lambda: _sequential(_LAYERS.Dense(3), _LAYERS.Dense(1)),
          'features',
          'features',
      ),
  )
  def test_model_that_does_not_fit_raises(self, build, layer, message):
    with self.assertRaisesRegex(ValueError, f'(?i){message}'):
      client_works.build_keras_representation(build(), _SPEC, layer)

  def test_layers_after_the_representation_may_be_normalized(self):
    model = _sequential(
        _LAYERS.Dense(3, name='features'),
        _LAYERS.BatchNormalization(),
        _LAYERS.Dense(1),
    )
    expected = model.get_layer('features')(_BATCH[0])
    self.assertAllClose(_represent(model, 'features'), expected, rtol=1e-6)


if __name__ == '__main__':
  tf.test.main()
