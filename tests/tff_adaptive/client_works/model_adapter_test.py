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
"""Tests of the common view of models."""

from absl.testing import parameterized
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tff_adaptive.client_works import model_adapter


class ModelAdapterTest(tf.test.TestCase, parameterized.TestCase):

  def _evaluate(self, kind, batch):
    adapter = model_adapter.build_model_adapter(testing.either_model(kind))
    with tf.Graph().as_default():
      local = adapter.build_local_model()
      weights = adapter.initial_weights()

      @tf.function
      def evaluate():
        local.start(weights)
        trainable = tuple(2.0 * w for w in weights.trainable)
        return tuple(local.value_and_grad(trainable, batch))

      result = evaluate()
      with tf.compat.v1.Session() as session:
        session.run(tf.compat.v1.global_variables_initializer())
        return session.run(result)

  def test_both_kinds_have_the_same_weights_and_evaluation(self):
    batch = testing.client(4, seed=0)[0]
    functional = self._evaluate('functional', batch)
    variable = self._evaluate('variable', batch)
    self.assertAllClose(functional, variable)
    self.assertEqual(functional[3], 4)
    self.assertLen(functional[1], 2)

  def test_variable_models_are_made_few_times(self):
    made = []

    def model_fn():
      made.append(1)
      return testing.variable_model_fn()()

    adapter = model_adapter.build_model_adapter(model_fn)
    self.assertLen(made, 1)
    adapter.build_local_model()
    self.assertLen(made, 2)

  def test_non_trainable_weights_are_received(self):
    adapter = model_adapter.build_model_adapter(
        testing.variable_model_fn(batch_norm=True)
    )
    local = adapter.build_local_model()
    weights = adapter.initial_weights()
    moved = tff.learning.models.ModelWeights(
        weights.trainable, [w + 3.0 for w in weights.non_trainable]
    )
    local.start(moved)
    batch = tf.nest.map_structure(
        tf.convert_to_tensor, testing.client(4, seed=0)[0]
    )
    trainable = tuple(tf.convert_to_tensor(w) for w in weights.trainable)
    shifted = local.forward(trainable, batch, training=False).loss
    local.start(weights)
    self.assertNotAllClose(
        shifted, local.forward(trainable, batch, training=False).loss
    )

  @parameterized.named_parameters(
      ('keras_model', lambda: testing.keras_model(), 'exists already'),
      ('variable_model', lambda: testing.variable_model_fn()(), 'exists'),
      ('number', lambda: 3, 'FunctionalModel.*found.*int'),
      ('factory_of_keras', lambda: testing.keras_model, 'from_keras_model'),
  )
  def test_other_things_raise(self, make, message):
    with self.assertRaisesRegex(TypeError, message):
      model_adapter.build_model_adapter(make())


if __name__ == '__main__':
  tf.test.main()
