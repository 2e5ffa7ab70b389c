# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that equal rounds of variable models have equal bits."""

import collections

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tests.tff_adaptive.runtime import compiled_testing
from tff_adaptive import algorithms
from tff_adaptive import evaluation
from tff_adaptive import optimizers
from tff_adaptive import runtime

_L = tf.keras.layers
_VECTORS, _IMAGES, _TOKENS, _SERIES = (6,), (6, 6, 2), (5,), (4, 3)


class _Derived(tf.keras.layers.Layer):
  """Multiplies by tensors that were computed in `build`."""

  def build(self, shape):
    width = shape[-1]
    self.log = self.add_weight(name='log', shape=[width], initializer='zeros')
    self.shift = self.add_weight(
        name='shift', shape=[width], initializer='ones', trainable=False
    )
    self.scale = tf.exp(self.log)
    self.doubled = 2.0 * self.shift
    self.constant = tf.constant([0.5] * width)

  def call(self, inputs):
    return (inputs - self.doubled) * self.scale * self.constant


class _WeightNormalized(tf.keras.layers.Layer):

  def build(self, shape):
    self.kernel = self.add_weight(name='kernel', shape=[shape[-1], 4])
    self.gain = self.add_weight(name='gain', shape=[4], initializer='ones')

  def call(self, inputs):
    return inputs @ tf.nn.l2_normalize(self.kernel, 0) * self.gain


def _stack(*layers):
  def build(inputs):
    for layer in layers:
      inputs = layer()(inputs)
    return inputs

  return build


def _self_attention(inputs):
  return _L.MultiHeadAttention(2, 3)(inputs, inputs)


def _shared(inputs):
  layer = _L.Dense(6, activation='tanh')
  return layer(layer(inputs))


def _two_branches(inputs):
  return _L.Concatenate()([_L.Dense(3)(inputs), _Derived()(inputs)])


# Layers that hold or derive tensors in all ways, and some that do not.
_ZOO = {
    'adapted_normalization': (_stack(_L.Normalization), _VECTORS),
    'linear': (_stack(), _VECTORS),
    'cnn': (_stack(lambda: _L.Conv2D(4, 3, activation='relu')), _IMAGES),
    'batch_normalization': (_stack(_L.BatchNormalization), _IMAGES),
    'normalization_by_constants': (
        _stack(lambda: _L.Normalization(mean=1.0, variance=4.0)),
        _VECTORS,
    ),
    'spectral_normalization': (
        _stack(lambda: _L.SpectralNormalization(_L.Dense(4))),
        _VECTORS,
    ),
    'weight_normalization': (_stack(_WeightNormalized), _VECTORS),
    'derived_and_normalized': (_stack(_L.Normalization, _Derived), _VECTORS),
    'derived_in_a_branch': (_two_branches, _VECTORS),
    'discretized': (
        _stack(
            lambda: _L.Discretization([-1.0, 0.0, 1.0]),
            lambda: _L.Embedding(4, 3),
        ),
        _VECTORS,
    ),
    'lstm': (
        _stack(lambda: _L.Embedding(20, 4), lambda: _L.LSTM(4)),
        _TOKENS,
    ),
    'attention': (_self_attention, _SERIES),
    'shared_layer': (_shared, _VECTORS),
    'derived': (_stack(_Derived), _VECTORS),
}


def _model_fn(build, shape):
  dtype = 'int32' if shape is _TOKENS else 'float32'

  def model_fn():
    tf.keras.utils.set_random_seed(1)
    inputs = tf.keras.Input(shape, dtype=dtype)
    outputs = _L.Dense(3)(_L.Flatten()(build(inputs)))
    return tff.learning.models.from_keras_model(
        tf.keras.Model(inputs, outputs),
        testing.loss(),
        collections.OrderedDict(
            x=tf.TensorSpec([None, *shape], dtype),
            y=tf.TensorSpec([None], tf.int32),
        ),
    )

  return model_fn


def _examples(shape):
  generator = np.random.default_rng(0)
  x = generator.normal(2.0, 3.0, size=[9, *shape]).astype(np.float32)
  if shape is _TOKENS:
    x = generator.integers(20, size=[9, *shape], dtype=np.int32)
  return collections.OrderedDict(
      x=x, y=generator.integers(3, size=9, dtype=np.int32)
  )


def _batches(examples):
  return [
      collections.OrderedDict(
          (name, array[start : start + 3]) for name, array in examples.items()
      )
      for start in range(0, 9, 3)
  ]


def _start(process):
  """Returns a state with weights that are not the initial ones."""
  state = process.initialize()
  weights = tf.nest.map_structure(
      lambda w: (w + 0.25).astype(w.dtype), process.get_model_weights(state)
  )
  return process.set_model_weights(state, weights), weights


class ModelZooTest(compiled_testing.TestCase):

  @parameterized.named_parameters(
      (name, *_ZOO[name]) for name in ('linear', 'cnn', 'lstm')
  )
  @pytest.mark.slow
  @pytest.mark.usefixtures('native_runtime')
  def test_a_step_is_that_of_the_native_runtime(self, build, shape):
    # Later steps drift, by the order in which threads sum.
    client = _batches(_examples(shape))[:1]
    process = algorithms.build_fed_opt(
        _model_fn(build, shape), optimizers.build_sgd(0.1)
    )
    state, _ = _start(process)
    expected = process.next(state, [client] * 2).state
    with compiled_testing.installed():
      found = process.next(state, [client] * 2).state
    self.assertAllClose(
        testing.trainable(found), testing.trainable(expected), 1e-5, 1e-5
    )

  @parameterized.named_parameters((name, *c) for name, c in _ZOO.items())
  @pytest.mark.filterwarnings('ignore:The model moves')
  @pytest.mark.sample(1)
  def test_equal_rounds_have_equal_bits(self, build, shape):
    model_fn, examples = _model_fn(build, shape), _examples(shape)
    batches = _batches(examples)
    process = algorithms.build_fed_opt(model_fn, optimizers.build_sgd(0.1))
    evaluate = evaluation.build_central_evaluation(model_fn, dict(examples))
    found = []
    for number in (1, 4):
      with runtime.CompiledContext(
          num_parallel_clients=number, strict=True, seed=1
      ):
        state, weights = _start(process)
        for _ in range(3):
          output = process.next(state, [batches] * 3)
          found.append(
              (
                  process.get_model_weights(output.state),
                  output.metrics['client_work'],
              )
          )
    evaluations = [evaluate(weights) for _ in range(3)]
    for other in found[1:3]:
      self.assert_same_bits(other, found[0])
    for other in found[4:]:
      self.assert_same_bits(other, found[3])
    self.assertAllClose(found[0], found[3], rtol=1e-5, atol=1e-6)
    self.assertEqual(evaluations, evaluations[:1] * 3)
