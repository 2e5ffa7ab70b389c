# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of derived_tensors: tensors that a layer computes in `build`."""

from absl.testing import parameterized
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tff_adaptive.client_works import derived_tensors
from tff_adaptive.client_works import model_adapter

_LAYERS = tf.keras.layers


class _Scale(tf.keras.layers.Layer):
  """Multiplies by the exponential of a weight."""

  def __init__(self, derive, in_build, **kwargs):
    super().__init__(**kwargs)
    self._derive, self._in_build = derive, in_build

  def build(self, shape):
    self.log = self.add_weight(name='log', shape=shape[1:], initializer='zeros')
    if self._in_build:
      self.scale = self._derive(self.log)

  def call(self, inputs):
    if not self._in_build:
      return inputs * self._derive(self.log)
    return inputs * self.scale


@tf.function
def _exp(weight):
  return tf.exp(weight)


def _gathered(weight):
  # An op of its own, whose gradient is sparse.
  return tf.exp(tf.gather(weight, tf.range(testing.NUM_FEATURES)[::-1]))


def _moved(weight):
  return tf.identity(weight.assign_add(tf.ones_like(weight)))


def _with_scale(derive, in_build=True):
  return lambda: _Scale(derive, in_build, name='own')


def _model_fn(build_layer):
  initializer = tf.keras.initializers.GlorotUniform(seed=1)
  return lambda: tff.learning.models.from_keras_model(
      tf.keras.Sequential(
          [
              _LAYERS.InputLayer((testing.NUM_FEATURES,)),
              build_layer(),
              _LAYERS.Dense(
                  testing.NUM_CLASSES, kernel_initializer=initializer
              ),
          ]
      ),
      testing.loss(),
      testing.INPUT_SPEC,
  )


def _start(spec):
  """Returns weights that are not the initial ones: 0.3, 0.4, ..."""
  numbers = tf.range(spec.shape.num_elements(), dtype=tf.float32)
  return tf.cast(tf.reshape(0.3 + 0.1 * numbers, spec.shape), spec.dtype)


def _evaluate(model_fn):
  """Returns loss and gradients at weights that are not the initial ones."""
  adapter = model_adapter.build_model_adapter(model_fn)
  batch = testing.client(4, seed=0)[0]
  with tf.Graph().as_default():
    local = adapter.build_local_model()
    weights = tf.nest.map_structure(_start, adapter.weights_spec)

    @tf.function
    def evaluate():
      local.start(weights)
      trained = local.value_and_grad(weights.trainable, batch)
      gradients = list(map(tf.convert_to_tensor, trained.gradients))
      # At other weights, the tensors are others.
      doubled = [2.0 * weight for weight in weights.trainable]
      return trained.loss, gradients, local.evaluate(doubled, batch).loss

    result = evaluate()
    with tf.compat.v1.Session() as session:
      session.run(tf.compat.v1.global_variables_initializer())
      return session.run(result)


class DerivedTensorsTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.named_parameters(
      ('of_an_op', tf.exp),
      ('of_a_read', lambda weight: weight.read_value()),
      ('of_a_gather', _gathered),
  )
  def test_derived_in_build_is_as_derived_in_call(self, derive):
    loss, gradients, other_loss = _evaluate(_model_fn(_with_scale(derive)))
    in_call = _evaluate(_model_fn(_with_scale(derive, in_build=False)))
    self.assertAllClose((loss, other_loss), (in_call[0], in_call[2]), rtol=1e-6)
    for gradient, expected in zip(gradients, in_call[1]):
      self.assertAllClose(gradient, expected, rtol=1e-5, atol=1e-7)
      self.assertNotAllClose(gradient, np.zeros(expected.shape))

  def test_normalization_subtracts_the_received_mean(self):
    loss, (gradient, _), _ = _evaluate(_model_fn(_LAYERS.Normalization))
    batch = testing.client(4, seed=0)[0]
    mean = variance = 0.3 + 0.1 * np.arange(testing.NUM_FEATURES)
    inputs = (batch['x'] - mean) / np.sqrt(variance)
    kernel = 0.3 + 0.1 * np.arange(testing.NUM_FEATURES * testing.NUM_CLASSES)
    scores = inputs @ kernel.reshape([-1, testing.NUM_CLASSES])
    scores += 0.3 + 0.1 * np.arange(testing.NUM_CLASSES)
    errors = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    picked = errors[np.arange(4), batch['y']]
    self.assertAllClose(loss, -np.log(picked).mean(), rtol=1e-5)
    errors[np.arange(4), batch['y']] -= 1.0
    self.assertAllClose(gradient, inputs.T @ errors / 4, rtol=1e-4, atol=1e-6)

  @parameterized.named_parameters(
      ('dense', lambda: _LAYERS.Dense(3), False),
      ('batch_normalization', _LAYERS.BatchNormalization, False),
      (
          'constant_statistics',
          lambda: _LAYERS.Normalization(mean=1.0, variance=2.0),
          False,
      ),
      ('normalization', _LAYERS.Normalization, True),
      ('own', _with_scale(tf.exp), True),
      ('in_call', _with_scale(tf.exp, in_build=False), False),
  )
  def test_exist(self, build_layer, expected):
    with tf.Graph().as_default():
      model = _model_fn(build_layer)()
      self.assertEqual(derived_tensors.exist(model), expected)

  @parameterized.named_parameters(
      ('assignment', _moved, 'AssignAddVariableOp'),
      (
          'branch',
          lambda w: tf.cond(tf.reduce_sum(w) > 1.0, lambda: 3.0 * w, lambda: w),
          'If',
      ),
      ('function', _exp, 'StatefulPartitionedCall'),
  )
  def test_other_ops_are_refused_by_the_layer(self, derive, op):
    with self.assertRaisesRegex(ValueError, f"layer 'own'.*{op}.*in `call`"):
      _evaluate(_model_fn(_with_scale(derive)))
