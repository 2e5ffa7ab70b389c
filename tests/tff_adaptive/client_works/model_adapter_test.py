# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of model_adapter."""

import warnings

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tff_adaptive import algorithms
from tff_adaptive import evaluation
from tff_adaptive import optimizers
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
      ('keras_model', lambda: testing.keras_model(), 'by .*from_keras'),
      ('variable_model', lambda: testing.variable_model_fn()(), 'existing'),
      ('number', lambda: 3, 'FunctionalModel.*found.*int'),
      ('factory_of_keras', lambda: testing.keras_model, 'from_keras_model'),
  )
  def test_other_things_raise(self, make, message):
    with self.assertRaisesRegex(TypeError, message):
      model_adapter.build_model_adapter(make())


_LAYERS = tf.keras.layers


def _frozen(layer):
  layer.trainable = False
  return layer


def _model_fn(layer_fn):
  """Returns a factory of a classifier with a layer before the last one."""

  def build():
    keras_model = tf.keras.Sequential(
        [
            _LAYERS.InputLayer((testing.NUM_FEATURES,)),
            layer_fn(),
            _LAYERS.Dense(testing.NUM_CLASSES),
        ]
    )
    return tff.learning.models.from_keras_model(
        keras_model,
        loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        input_spec=testing.INPUT_SPEC,
    )

  return build


def _warnings_of(model_fn):
  """Returns what is warned of where a process is built."""
  with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter('always')
    algorithms.build_fed_opt(model_fn, optimizers.build_sgd(0.1))
  return [
      str(warning.message)
      for warning in caught
      if 'moves' in str(warning.message)
  ]


class PackWeightsTest(tf.test.TestCase):

  def test_other_things_than_the_weights_are_refused(self):
    adapter = model_adapter.build_model_adapter(testing.functional_model())
    process = algorithms.build_fed_opt(
        testing.functional_model(), optimizers.build_sgd()
    )
    shapes = r'\[\(5, 3\), \(3,\)\]'
    for weights, found in (
        (process, 'LearningProcess'),
        ([np.zeros([5, 3])], r'list with \[\(5, 3\)\]'),
        ([np.zeros([3]), np.zeros([5, 3])], 'list with'),
    ):
      with self.assertRaisesRegex(
          ValueError, f'have the shapes {shapes}, found a {found}'
      ):
        model_adapter.pack_weights(adapter.weights_spec, weights)


class LossTest(tf.test.TestCase, parameterized.TestCase):

  def test_a_loss_per_example_is_refused(self):
    model = tff.learning.models.functional_model_from_keras(
        testing.keras_model(),
        tf.keras.losses.SparseCategoricalCrossentropy(
            from_logits=True, reduction='none'
        ),
        testing.INPUT_SPEC,
    )
    sentence = 'loss must be one number per batch'
    with self.assertRaisesRegex(ValueError, sentence):
      algorithms.build_fed_opt(model, optimizers.build_sgd())
    with self.assertRaisesRegex(ValueError, sentence):
      evaluation.build_central_evaluation(model, testing.client(4, seed=0)[0])


class MovedVariablesTest(parameterized.TestCase):

  @pytest.mark.slow
  def test_batch_normalization_is_warned_of_once(self):
    model_fn = _model_fn(lambda: _LAYERS.BatchNormalization(name='norm'))
    self.assertEqual(
        _warnings_of(model_fn),
        [
            'The model moves `norm/moving_mean` and 1 more in training, but a '
            'process carries only trainable weights, so it is evaluated with '
            'the initial values: use `tf.keras.layers.GroupNormalization` '
            'instead of batch normalization.'
        ],
    )

  @parameterized.named_parameters(
      ('frozen', lambda: _frozen(_LAYERS.BatchNormalization())),
      ('constant', lambda: _frozen(_LAYERS.Dense(4))),
      ('group', lambda: _LAYERS.GroupNormalization(5)),
  )
  @pytest.mark.sample(1)
  def test_standing_still_is_not_warned_of(self, layer_fn):
    self.assertEmpty(_warnings_of(_model_fn(layer_fn)))
