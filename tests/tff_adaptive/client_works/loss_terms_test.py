# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of loss_terms."""

from absl.testing import parameterized
import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tests.tff_adaptive.optimizers import federated_testing
from tff_adaptive import algorithms
from tff_adaptive import client_works
from tff_adaptive import optimizers
from tff_adaptive import runtime
from tff_adaptive.client_works import loss_terms


class FedProxTest(tf.test.TestCase):

  def test_pulls_to_the_received_model(self):
    weights, received = tf.constant([1.0, -2.0]), tf.constant([0.5, 4.0])
    with tf.GradientTape() as tape:
      tape.watch(weights)
      value = client_works.build_fedprox(3.0)((weights,), (received,), None)
    self.assertAllClose(value, 1.5 * (0.25 + 36.0))
    gradient = tape.gradient(value, weights)
    self.assertAllClose(gradient, 3.0 * (weights - received))

  def test_squares_of_half_precision_are_summed_in_float32(self):
    term = client_works.build_fedprox(2.0)
    weights = (tf.ones([100_000], tf.float16),)
    received = (tf.zeros([100_000], tf.float16),)
    with tf.GradientTape() as tape:
      tape.watch(weights)
      value = term(weights, received, None)
    self.assertAllClose(value, 100_000.0)
    self.assertAllClose(tape.gradient(value, weights)[0][:2], [2.0, 2.0])

  def test_small_squares_of_half_precision_count(self):
    term = client_works.build_fedprox(2.0)
    weights = (tf.constant([1e-4], tf.float16),)
    self.assertAllClose(
        term(weights, (tf.zeros([1], tf.float16),), None), 1e-8, rtol=1e-2
    )

  def test_what_is_no_loss_term_is_named(self):
    loss_terms.check(None)
    loss_terms.check(client_works.build_fedprox(0.1))
    for value, message in (
        (client_works.build_fedprox, r'Call it: `build_fedprox\(...\)`'),
        (optimizers.build_sgd(0.1), 'must be a function of .* found SGD'),
    ):
      with self.assertRaisesRegex(TypeError, message):
        loss_terms.check(value)


_BATCH = np.random.default_rng(0).normal(size=[6, 4])


def _represent(weights, batch):
  return tf.tanh(tf.matmul(batch, weights[0]))


def _points(dtype=np.float64):
  generator = np.random.default_rng(1)
  return [
      (tf.constant(generator.normal(size=[4, 3]), dtype),) for _ in range(3)
  ]


def _cosine(a, b):
  return np.sum(a * b) / max(np.linalg.norm(a) * np.linalg.norm(b), 1e-8)


def _value_and_gradient(term, point, received, previous, batch=_BATCH):
  with tf.GradientTape() as tape:
    tape.watch(point)
    loss = term(point, received, batch, previous_model=previous)
  return loss, tape.gradient(loss, point)[0]


class MoonTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.parameters((1.0, 0.5), (3.0, 2.0))
  def test_equals_the_formula(self, mu, temperature):
    point, received, previous = _points()
    local, from_global, from_previous = (
        np.tanh(_BATCH @ p[0].numpy()) for p in (point, received, previous)
    )
    terms = []
    for z, z_global, z_previous in zip(local, from_global, from_previous):
      to_global = np.exp(_cosine(z, z_global) / temperature)
      to_previous = np.exp(_cosine(z, z_previous) / temperature)
      terms.append(-np.log(to_global / (to_global + to_previous)))
    term = client_works.build_moon(_represent, mu, temperature)
    loss, _ = _value_and_gradient(term, point, received, previous)
    self.assertAllClose(loss, mu * np.mean(terms), rtol=1e-12, atol=0.0)
    self.assertGreater(loss, 0.0)

  def test_received_and_previous_model_are_constants(self):
    point, received, previous = _points()
    term = client_works.build_moon(_represent)
    with tf.GradientTape() as tape:
      tape.watch((received, previous))
      loss = term(point, received, _BATCH, previous_model=previous)
    self.assertEqual(
        tape.gradient(loss, (received[0], previous[0])), (None,) * 2
    )

  @parameterized.product(
      dtype=[np.float32, np.float64],
      places=[(0, 1, 2), (1, 0, 2), (0, 2, 1), (1, 1, 1)],
  )
  def test_zero_representation_is_at_no_angle(self, dtype, places):
    points = _points(dtype)
    points[1] = (tf.zeros([4, 3], dtype),)
    term = client_works.build_moon(_represent)
    loss, gradient = _value_and_gradient(
        term, *(points[place] for place in places), _BATCH.astype(dtype)
    )
    self.assertTrue(np.isfinite(gradient).all())
    if places[0] == 1:
      self.assertAllClose(loss, np.log(2.0), rtol=1e-6)
    else:
      self.assertBetween(loss, 0.01, 3.0)

  def test_half_precision_is_raised_to_single(self):
    # The smallest product of norms, 1e-8, is 0 in half precision.
    zeros = (tf.zeros([4, 3], tf.float16),)
    term = client_works.build_moon(_represent)
    loss, _ = _value_and_gradient(
        term, zeros, *_points(np.float16)[1:], _BATCH.astype(np.float16)
    )
    self.assertAllClose(loss, np.log(2.0), rtol=1e-6)
    self.assertEqual(loss.dtype, tf.float32)

  def test_representations_may_have_more_axes(self):
    flat = client_works.build_moon(_represent)
    shaped = client_works.build_moon(
        lambda weights, batch: tf.reshape(
            _represent(weights, batch), [-1, 3, 1]
        )
    )
    point, received, previous = _points()
    self.assertAllEqual(
        *(
            term(point, received, _BATCH, previous_model=previous)
            for term in (flat, shaped)
        )
    )


def _keras_model():
  """Returns a classifier with a hidden layer."""

  def dense(size, activation, seed):
    initializer = tf.keras.initializers.GlorotUniform(seed=seed)
    return tf.keras.layers.Dense(
        size, activation=activation, kernel_initializer=initializer
    )

  return tf.keras.Sequential(
      [
          tf.keras.layers.InputLayer((testing.NUM_FEATURES,)),
          dense(4, 'tanh', seed=1),
          dense(testing.NUM_CLASSES, None, seed=2),
      ]
  )


def _model(kind):
  loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
  spec = testing.INPUT_SPEC
  if kind == 'functional':
    return tff.learning.models.functional_model_from_keras(
        _keras_model(), loss, spec
    )
  return lambda: tff.learning.models.from_keras_model(
      _keras_model(), loss=loss, input_spec=spec
  )


def _store(kind, client_optimizer, mu):
  """Returns a process with MOON, unless `mu` is `None`, and its clients."""
  term = None
  if mu is not None:
    represent = client_works.build_keras_representation(
        _keras_model(), testing.INPUT_SPEC
    )
    term = client_works.build_moon(represent, mu)
  return federated_testing.Store(
      algorithms.build_fed_opt(_model(kind), client_optimizer, loss_term=term)
  )


def _cohorts():
  first, second = testing.clients([10, 7])
  return [
      {'a': first},
      {'b': second},
      {'a': first, 'bad': testing.unhealthy_client()},
  ]


class MoonProcessTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.named_parameters(
      ('functional_sgd', 'functional', optimizers.build_sgd(0.1)),
      ('functional_delta', 'functional', optimizers.build_delta_sgd()),
      ('variable_delta', 'variable', optimizers.build_delta_sgd()),
  )
  @pytest.mark.slow
  def test_matters_from_the_second_participation_on(self, kind, optimizer):
    with runtime.CompiledContext(strict=True):
      plain, moon = stores = [_store(kind, optimizer, mu) for mu in (None, 1.0)]
      for round_num, cohort in enumerate(_cohorts()):
        losses = [
            store.next(cohort)['client_work']['clients']['loss']
            for store in stores
        ]
        weights = [testing.trainable(store.state) for store in stores]
        if round_num < 2:
          self.assertAllClose(*weights, atol=1e-6)
          self.assertAllClose(losses[1], losses[0] + np.log(2.0), rtol=1e-5)
          # With a single client the new model is the client's own.
          (client_id,) = cohort
          previous = moon.kept[client_id]['previous_model']
          self.assertAllClose(previous, tuple(weights[1]), atol=1e-6)
    self.assertNotAllClose(weights[0][0], weights[1][0], atol=1e-4)
    self.assertCountEqual(moon.kept, ['a', 'b'])
    self.assertEmpty(plain.kept)


_LAYERS = tf.keras.layers
_SPEC = (tf.TensorSpec([None, 2], tf.float32), tf.TensorSpec([None], tf.int32))
_EXAMPLES = (np.array([[1.0, -2.0], [0.5, 4.0]], np.float32), np.array([0, 1]))


def _sequential(*layers):
  return tf.keras.Sequential([_LAYERS.InputLayer((2,)), *layers])


def _run(fn, weights):
  """Evaluates a function of weights in a graph, as TFF's Keras models need it.

  It makes Keras refuse models from outside of the graph: call them before.
  """
  with tf.Graph().as_default():
    fetches = fn(tuple(map(tf.constant, weights)))
    with tf.compat.v1.Session() as session:
      return session.run(fetches)


def _represent_by(keras_model, layer=None):
  """Returns the representations of the batch at the model's own weights."""
  represent = client_works.build_keras_representation(keras_model, _SPEC, layer)
  weights = [v.numpy() for v in keras_model.trainable_variables]
  return _run(lambda w: represent(w, _EXAMPLES), weights)


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
    expected = part(_EXAMPLES[0])
    represented = _represent_by(model, layer)
    self.assertEqual(represented.shape, (2, width))
    self.assertAllClose(represented, expected, rtol=1e-6)

  def test_model_of_keras_3(self):
    model = keras.Sequential(
        [
            keras.Input([2]),
            keras.layers.Dense(3, name='first'),
            keras.layers.Dropout(0.5),
            keras.layers.Dense(1),
        ]
    )
    expected = model.get_layer('first')(_EXAMPLES[0])
    self.assertAllClose(_represent_by(model), expected, rtol=1e-6)

  def test_is_a_function_of_the_weights(self):
    model = _sequential(_LAYERS.Dense(3), _LAYERS.Dense(1))
    represent = client_works.build_keras_representation(model, _SPEC)
    kernel = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, -1.0]], np.float32)
    bias = np.array([0.5, 0.0, 0.0], np.float32)
    rest = [np.full([3, 1], np.nan, np.float32), np.zeros([1], np.float32)]

    def differentiate(weights):
      represented = represent(weights, _EXAMPLES)
      return represented, tf.gradients(represented, weights[:2])

    represented, gradients = _run(differentiate, [kernel, bias, *rest])
    self.assertAllClose(represented, _EXAMPLES[0] @ kernel + bias)
    self.assertAllClose(gradients[1], [2.0, 2.0, 2.0])

  def test_finds_its_weights_in_any_order_of_layers(self):
    # The branch that is left out comes first among the weights.
    inputs = tf.keras.Input((2,))
    other = _LAYERS.Dense(4)(inputs)
    features = _LAYERS.Dense(3, name='features')(inputs)
    outputs = _LAYERS.Dense(1)(_LAYERS.Concatenate()([other, features]))
    model = tf.keras.Model(inputs, outputs)
    part = tf.keras.Model(model.inputs, features)
    expected = part(_EXAMPLES[0])
    self.assertAllClose(_represent_by(model, 'features'), expected, rtol=1e-6)

  def test_is_that_of_a_model_in_use(self):
    model = _sequential(
        _LAYERS.Dense(3), _LAYERS.Dropout(0.5), _LAYERS.Dense(1)
    )
    represent = client_works.build_keras_representation(model, _SPEC)
    first, second = _run(
        lambda weights: [represent(weights, _EXAMPLES) for _ in range(2)],
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
          'not connected.*Input',
      ),
      (
          'nothing_trained',
          lambda: _sequential(_LAYERS.Flatten(), _LAYERS.Dense(1, name='top')),
          None,
          "no.*trainable weights.*later `layer`.*'top'",
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
    expected = model.get_layer('features')(_EXAMPLES[0])
    self.assertAllClose(_represent_by(model, 'features'), expected, rtol=1e-6)
