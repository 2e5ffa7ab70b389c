# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that the fast LSTM has the numbers of Keras'."""

import collections
import os
import tempfile
from typing import Any
from unittest import mock

from absl.testing import parameterized
import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive.runtime import compiled_testing
from tff_adaptive import algorithms
from tff_adaptive import layers
from tff_adaptive import optimizers
from tff_adaptive import runtime
from tff_adaptive.layers import keras_3
from tff_adaptive.layers import recurrence

# The layers, and Keras'.
_VERSIONS = {
    'keras_2': (layers, tf.keras.layers),
    'keras_3': (keras_3, keras.layers),
}
_UNITS, _SIZE, _TIME = 6, 3, 7
# Relative to the largest entry: rounding of sums in another order.
_TOLERANCE = {tf.float32: 1e-6, tf.float64: 1e-14}


def _inputs(batch_size: int, dtype: tf.DType = tf.float32) -> tf.Tensor:
  generator = np.random.default_rng(0)
  shape = [batch_size, _TIME, _SIZE]
  return tf.constant(generator.normal(size=shape), dtype)


def _build(layer_class: Any, dtype: tf.DType, **kwargs: Any) -> Any:
  """Returns a layer whose weights are all other than zero."""
  layer = layer_class(_UNITS, dtype=dtype.name, **kwargs)
  layer(tf.zeros([1, _TIME, _SIZE], dtype))
  generator = np.random.default_rng(1)
  layer.set_weights(
      [generator.normal(size=w.shape) for w in layer.get_weights()]
  )
  return layer


def _variable(weight: Any) -> tf.Variable:
  return weight if isinstance(weight, tf.Variable) else weight.value


def _weigh(outputs: tf.Tensor) -> tf.Tensor:
  places = tf.range(tf.size(outputs))
  factors = tf.sin(tf.cast(tf.reshape(places, outputs.shape), outputs.dtype))
  return factors * outputs


def _differentiate(layer: Any, inputs: tf.Tensor, **kwargs: Any) -> Any:
  """Returns all outputs of a layer, and the gradients of all that goes in."""

  @tf.function
  def run(inputs, states):
    with tf.GradientTape() as tape:
      tape.watch([inputs, *states])
      if states:
        kwargs['initial_state'] = states
      outputs = tf.nest.flatten(layer(inputs, **kwargs))
      # Every entry counts differently.
      loss = tf.add_n([tf.reduce_sum(_weigh(o)) for o in outputs])
    sources = [inputs, *states, *map(_variable, layer.trainable_weights)]
    return outputs, tape.gradient(loss, sources)

  return run(inputs, kwargs.pop('states', []))


class LSTMTest(tf.test.TestCase, parameterized.TestCase):

  def assert_same(self, found: Any, expected: Any, dtype: Any = tf.float32):
    found, expected = map(tf.nest.flatten, (found, expected))
    self.assertLen(found, len(expected))
    for f, e in zip(found, expected):
      scale = float(tf.reduce_max(tf.abs(e))) if tf.size(e) else 0.0
      self.assertAllClose(f, e, rtol=0, atol=_TOLERANCE[dtype] * scale)

  def assert_same_as_keras(
      self,
      inputs: tf.Tensor,
      layer_kwargs: Any,
      version: str = 'keras_2',
      **kwargs: Any,
  ):
    fast, slow = _VERSIONS[version]
    with mock.patch.object(recurrence, 'lstm', wraps=recurrence.lstm) as lstm:
      found = _differentiate(
          _build(fast.LSTM, inputs.dtype, **layer_kwargs), inputs, **kwargs
      )
    lstm.assert_called()
    expected = _differentiate(
        _build(slow.LSTM, inputs.dtype, **layer_kwargs),
        inputs,
        **kwargs,
    )
    self.assert_same(found, expected, inputs.dtype)

  @parameterized.product(
      return_sequences=[False, True],
      return_state=[False, True],
      dtype=[tf.float32, tf.float64],
      version=list(_VERSIONS),
  )
  @pytest.mark.sample(2)
  def test_outputs_and_gradients(
      self, return_sequences, return_state, dtype, version
  ):
    self.assert_same_as_keras(
        _inputs(4, dtype),
        dict(return_sequences=return_sequences, return_state=return_state),
        version,
    )

  @parameterized.parameters(*reversed(_VERSIONS))
  @pytest.mark.sample(1)
  def test_initial_state_of_one_example(self, version):
    states = [_inputs(1)[:, 0, :1] * np.ones(_UNITS, np.float32)] * 2
    self.assert_same_as_keras(
        _inputs(1),
        dict(return_sequences=True, return_state=True),
        version,
        states=states,
    )

  @parameterized.product(
      return_sequences=[False, True], version=list(_VERSIONS)
  )
  @pytest.mark.sample(1)
  def test_mask(self, return_sequences, version):
    # At the end, at the start, in the middle, everywhere and nowhere.
    mask = np.ones([5, _TIME], bool)
    mask[0, 4:] = mask[1, :3] = mask[2, 2:4] = mask[3] = False
    self.assert_same_as_keras(
        _inputs(5),
        dict(return_sequences=return_sequences, return_state=True),
        version,
        mask=tf.constant(mask),
    )

  @parameterized.parameters(*_VERSIONS)
  def test_mask_of_numbers(self, version):
    layer = _build(_VERSIONS[version][0].LSTM, tf.float32)
    mask = np.ones([2, _TIME], bool)
    mask[0, 4:] = False
    self.assertAllEqual(
        layer(_inputs(2), mask=mask.astype(np.int32)),
        layer(_inputs(2), mask=mask),
    )

  @parameterized.product(bidirectional=[False, True], version=list(_VERSIONS))
  def test_zeros_of_keras_at_masked_steps(self, bidirectional, version):
    mask = np.ones([3, _TIME], bool)
    mask[0, 4:] = mask[1, :3] = False
    inputs, found = _inputs(3), []
    fast, slow = _VERSIONS[version]
    for layer_class in (fast.LSTM, slow.LSTM):
      layer = _build(layer_class, tf.float32, return_sequences=True)
      options = {'mask': tf.constant(mask)}
      if bidirectional:
        both = slow.Bidirectional(layer)
        both.build(inputs.shape)
        both.set_weights(2 * layer.get_weights())
        layer = both
      else:
        options['initial_state'] = [tf.ones([3, _UNITS])] * 2
      found.append(layer(inputs, **options))
    self.assert_same(*found)

  @parameterized.product(
      kwargs=[
          dict(activation='relu'),
          dict(recurrent_activation='hard_sigmoid'),
          dict(use_bias=False),
          dict(go_backwards=True),
          dict(unroll=True),
      ],
      version=list(_VERSIONS),
  )
  @pytest.mark.sample(1)
  def test_others_are_keras(self, kwargs, version):
    fast, slow = _VERSIONS[version]
    with mock.patch.object(recurrence, 'lstm') as lstm:
      found, expected = (
          _differentiate(_build(cls, tf.float32, **kwargs), _inputs(4))
          for cls in (fast.LSTM, slow.LSTM)
      )
    lstm.assert_not_called()
    self.assert_same(found, expected)

  @parameterized.parameters(*_VERSIONS)
  def test_dropout_is_keras_while_training_only(self, version):
    layer = _build(_VERSIONS[version][0].LSTM, tf.float32, dropout=0.5)
    with mock.patch.object(recurrence, 'lstm', wraps=recurrence.lstm) as lstm:
      layer(_inputs(4), training=True)
      lstm.assert_not_called()
      layer(_inputs(4), training=False)
      lstm.assert_called_once()

  def test_xla_knows_the_number_of_steps(self):
    layer = _build(layers.LSTM, tf.float32)
    differentiate = tf.function(
        lambda inputs: tf.gradients(layer(inputs), layer.trainable_weights),
        jit_compile=True,
    )
    compiled = differentiate.experimental_get_compiler_ir(_inputs(4))
    program = compiled(stage='optimized_hlo')
    self.assertEqual(program.count(' while('), 2)
    self.assertEqual(program.count('known_trip_count'), 2)

  def test_weights_that_are_not_trained(self):
    layer = _build(layers.LSTM, tf.float32)
    layer.trainable = False
    expected = _build(tf.keras.layers.LSTM, tf.float32)
    self.assert_same(layer(_inputs(4)), expected(_inputs(4)))

  def test_configuration_and_weights_are_those_of_keras(self):
    layer = _build(layers.LSTM, tf.float32, return_sequences=True)
    keras = tf.keras.layers.LSTM.from_config(layer.get_config())
    keras(_inputs(1))
    self.assertEqual(
        [w.shape for w in keras.weights], [w.shape for w in layer.weights]
    )
    keras.set_weights(layer.get_weights())
    self.assert_same(layer(_inputs(2)), keras(_inputs(2)))


class FullSizeTest(tf.test.TestCase):
  """Two layers of 256 units over 80 steps, as texts are trained on."""

  @pytest.mark.slow
  def test_gradients_are_within_a_millionth(self):
    generator = np.random.default_rng(0)
    inputs = tf.constant(generator.normal(size=[4, 80, 8]), tf.float32)
    gradients = []
    for layer_class in (layers.LSTM, tf.keras.layers.LSTM):
      tf.keras.utils.set_random_seed(1)
      model = tf.keras.Sequential(
          [layer_class(256, return_sequences=True) for _ in range(2)]
      )
      with tf.GradientTape() as tape:
        tape.watch(inputs)
        loss = tf.reduce_mean(tf.square(model(inputs) - 0.5))
      sources = [inputs, *model.trainable_weights]
      gradients.append(tape.gradient(loss, sources))
    for found, expected in zip(*gradients):
      self.assertGreater(float(tf.reduce_max(tf.abs(expected))), 1e-6)
      self.assertAllClose(found, expected, rtol=0, atol=1e-6)


_VOCABULARY = 11


def _functional_model() -> tff.learning.models.FunctionalModel:
  """Returns a model of the next token."""

  def build():
    tf.keras.utils.set_random_seed(2)
    return tf.keras.Sequential(
        [
            tf.keras.layers.InputLayer([_TIME], dtype=tf.int32),
            tf.keras.layers.Embedding(_VOCABULARY, 4, mask_zero=True),
            layers.LSTM(_UNITS, return_sequences=True),
            layers.LSTM(_UNITS, return_sequences=True),
            tf.keras.layers.Dense(_VOCABULARY),
        ]
    )

  spec = tf.TensorSpec([None, _TIME], tf.int32)
  return tff.learning.models.functional_model_from_keras(
      build,
      tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
      collections.OrderedDict(x=spec, y=spec),
  )


def _client(num_examples: int) -> list[Any]:
  generator = np.random.default_rng(num_examples)
  tokens = generator.integers(
      0, _VOCABULARY, [num_examples, _TIME + 1], np.int32
  )
  return [
      collections.OrderedDict(x=tokens[i : i + 4, :-1], y=tokens[i : i + 4, 1:])
      for i in range(0, num_examples, 4)
  ]


@pytest.mark.usefixtures('native_runtime')
class RuntimesTest(tf.test.TestCase):

  @pytest.mark.slow
  @pytest.mark.filterwarnings('ignore:The mask of the layer')
  def test_trains_on_both_with_the_same_result(self):
    process = algorithms.build_fed_opt(
        _functional_model(),
        client_optimizer=optimizers.build_delta_sgd(),
        server_optimizer=optimizers.build_fedavg(),
    )
    clients = [_client(8), _client(3)]
    expected = compiled_testing.train(process, clients, clients)
    with runtime.CompiledContext(devices='CPU', strict=True):
      found = compiled_testing.train(process, clients, clients)
    for f, e in zip(found, expected):
      self.assertAllClose(f, e, rtol=0, atol=1e-5)


_NUM_WORDS, _NUM_OUTPUTS = 6, 4
# A word that occurs twice, padding, a word out of the vocabulary, no word.
_WORDS = np.array(
    [[3, 1, 3, 5], [2, -1, -1, -1], [0, 6, 9, -1], [-1, -1, -1, -1]], np.int32
)
_FREQUENCIES = np.array(
    [
        [0, 1 / 4, 0, 1 / 2, 0, 1 / 4],
        [0, 0, 1, 0, 0, 0],
        [1, 0, 0, 0, 0, 0],
        [0, 0, 0, 0, 0, 0],
    ],
    np.float32,
)


def _layers(version='keras_2', **kwargs):
  """Returns the layer and the dense one, with the same weights."""
  fast, slow = _VERSIONS[version]
  layer = fast.BagOfWordsDense(_NUM_OUTPUTS, _NUM_WORDS, **kwargs)
  dense = slow.Dense(_NUM_OUTPUTS, **kwargs)
  layer.build([None, 4])
  dense.build([None, _NUM_WORDS])
  generator = np.random.default_rng(0)
  weights = [generator.normal(size=w.shape) for w in dense.get_weights()]
  layer.set_weights(weights)
  dense.set_weights(weights)
  return layer, dense


class BagOfWordsDenseTest(tf.test.TestCase, parameterized.TestCase):

  def test_frequencies(self):
    found = layers.to_frequencies(_WORDS, _NUM_WORDS)
    self.assertAllClose(found, _FREQUENCIES)

  @parameterized.product(
      dtype=[np.int8, np.uint8, np.int16], version=list(_VERSIONS)
  )
  def test_ids_of_a_dtype_that_does_not_hold_their_number(self, dtype, version):
    words, size = np.array([[3, 100]], dtype), 40_000
    found = layers.to_frequencies(words, size)
    self.assertAllEqual(tf.where(found), [[0, 3], [0, 100]])
    fast, _ = _VERSIONS[version]
    layer = fast.BagOfWordsDense(1, size, kernel_initializer='ones')
    self.assertAllClose(layer(words), [[1.0]])

  @parameterized.product(use_bias=[False, True], version=list(_VERSIONS))
  def test_numbers_and_gradients_are_those_of_dense(self, use_bias, version):
    layer, dense = _layers(version, use_bias=use_bias)
    results = []
    for each, inputs in ((layer, _WORDS), (dense, _FREQUENCIES)):
      with tf.GradientTape() as tape:
        outputs = each(inputs)
        loss = tf.reduce_sum(tf.square(outputs))
      gradients = tape.gradient(
          loss, list(map(_variable, each.trainable_weights))
      )
      results.append([outputs, *map(tf.convert_to_tensor, gradients)])
    self.assertLen(results[0], 2 + use_bias)
    for found, expected in zip(*results):
      self.assertAllClose(found, expected, rtol=1e-6, atol=1e-6)

  @parameterized.parameters(*_VERSIONS)
  def test_gradient_has_the_rows_of_the_words_only(self, version):
    layer, _ = _layers(version)
    with tf.GradientTape() as tape:
      loss = tf.reduce_sum(layer(_WORDS))
    gradient = tape.gradient(loss, _variable(layer.kernel))
    self.assertIsInstance(gradient, tf.IndexedSlices)
    self.assertAllEqual(gradient.values.shape, [_WORDS.size, _NUM_OUTPUTS])


class SavedModelsTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.parameters((layers, tf.keras), (keras_3, keras))
  def test_are_loaded_without_custom_objects(self, fast, version):
    path = os.path.join(
        self.enter_context(tempfile.TemporaryDirectory()), 'model.keras'
    )
    for layer, inputs in (
        (fast.LSTM(_UNITS), _inputs(2)),
        (fast.BagOfWordsDense(_NUM_OUTPUTS, _NUM_WORDS), _WORDS),
    ):
      start = version.Input(inputs.shape[1:], dtype=inputs.dtype)
      model = version.Sequential([start, layer])
      model.save(path)
      loaded = version.models.load_model(path)
      self.assertIsInstance(loaded.layers[-1], type(layer))
      self.assertAllClose(loaded(inputs), model(inputs), 1e-6)

  @parameterized.parameters((layers, tf.keras), (keras_3, keras))
  def test_an_initial_state_is_loaded(self, fast, version):
    path = os.path.join(
        self.enter_context(tempfile.TemporaryDirectory()), 'model.keras'
    )
    start = version.Input([_TIME, _SIZE])
    _, *state = fast.LSTM(_UNITS, return_state=True)(start)
    output = fast.LSTM(_UNITS)(start, initial_state=state)
    model = version.Model(start, output)
    model.save(path)
    loaded = version.models.load_model(path)
    self.assertAllClose(loaded(_inputs(2)), model(_inputs(2)), 1e-6)
