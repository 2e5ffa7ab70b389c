# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of functional models with layers whose ops have effects.

TFF clones the Keras model in each call, and Keras calls the layers of the clone
on placeholders that nothing feeds.
"""

import collections

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tff_adaptive import algorithms
from tff_adaptive import optimizers
from tff_adaptive import runtime

_LAYERS = tf.keras.layers
_WORDS = np.array([['a', 'b'], ['c', 'other']])
_NUMBERS = np.float32([[1.0, 2.0], [3.0, 4.0]])


class _Assert(tf.keras.layers.Layer):

  def call(self, inputs):
    tf.debugging.assert_less(tf.reduce_max(inputs), 100.0)
    return inputs


class _Python(tf.keras.layers.Layer):

  def call(self, inputs):
    outputs = tf.py_function(lambda x: 2.0 * x, [inputs], tf.float32)
    outputs.set_shape(inputs.shape)
    return outputs


def _normal():
  return tf.keras.initializers.RandomNormal(seed=1)


def _embed(*layers):
  return [*layers, _LAYERS.Embedding(6, 3, embeddings_initializer=_normal())]


_CASES = {
    'assertion': (lambda: [_Assert()], _NUMBERS),
    'string_lookup': (
        lambda: _embed(_LAYERS.StringLookup(vocabulary=['a', 'b', 'c'])),
        _WORDS,
    ),
    'integer_lookup': (
        lambda: _embed(_LAYERS.IntegerLookup(vocabulary=[3, 5, 7])),
        np.int64([[3, 5], [9, 7]]),
    ),
    'category_encoding': (
        lambda: [_LAYERS.CategoryEncoding(5, 'multi_hot')],
        np.int64([[3, 2], [1, 4]]),
    ),
    'random_crop': (
        lambda: [_LAYERS.RandomCrop(4, 4)],
        np.ones([2, 6, 6, 1], np.float32),
    ),
    'text_vectorization': (
        lambda: _embed(
            _LAYERS.TextVectorization(
                vocabulary=['a', 'b', 'c'], output_sequence_length=4
            )
        ),
        np.array([['a b'], ['c other a']]),
    ),
}


def _dtype(features):
  return tf.string if features.dtype.kind == 'U' else features.dtype


def _builder(build_layers, features):
  def build():
    return tf.keras.Sequential(
        [
            tf.keras.Input(features.shape[1:], dtype=_dtype(features)),
            *build_layers(),
            _LAYERS.Flatten(),
            _LAYERS.Dense(3, kernel_initializer=_normal()),
        ]
    )

  return build


def _losses(build_layers, features, kind, optimizer=None):
  """Returns the losses of two equal rounds."""
  build = _builder(build_layers, features)
  spec = collections.OrderedDict(
      x=tf.TensorSpec([None, *features.shape[1:]], _dtype(features)),
      y=tf.TensorSpec([None], tf.int32),
  )
  if kind == 'functional':
    model = tff.learning.models.functional_model_from_keras(
        build, testing.loss(), spec
    )
  else:
    model = lambda: tff.learning.models.from_keras_model(
        build(), testing.loss(), spec
    )
  process = algorithms.build_fed_opt(
      model, optimizer or optimizers.build_sgd(0.1)
  )
  client = [collections.OrderedDict(x=features, y=np.int32([0, 1]))]
  with runtime.CompiledContext(strict=True, seed=1):
    state = process.initialize()
    metrics = [process.next(state, [client]).metrics for _ in range(2)]
  return [m['client_work']['clients']['loss'] for m in metrics]


class UnfedOpsTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.named_parameters((name, *c) for name, c in _CASES.items())
  @pytest.mark.sample(1)
  def test_both_kinds_of_models_have_the_loss_of_keras(self, layers, features):
    scores = _builder(layers, features)()(tf.constant(features))
    expected = [testing.loss()(np.int32([0, 1]), scores)] * 2
    for kind in ('functional', 'variable'):
      self.assertAllClose(_losses(layers, features, kind), expected, rtol=1e-5)

  @pytest.mark.slow
  def test_random_layers_with_an_optimizer_that_evaluates_batches_twice(self):
    layers = lambda: [
        _LAYERS.RandomCrop(4, 4),
        _LAYERS.RandomRotation(0.1),
        _LAYERS.Dropout(0.5),
    ]
    features = np.ones([2, 6, 6, 1], np.float32)
    losses = _losses(
        layers, features, 'functional', optimizers.build_delta_sgd()
    )
    self.assertTrue(np.all(np.isfinite(losses)))
    # The draws of the second round are others.
    self.assertNotAllClose(losses[0], losses[1])

  def test_python_is_refused_by_its_op(self):
    with self.assertRaisesRegex(ValueError, 'EagerPyFunc.*TensorFlow ops'):
      _losses(lambda: [_Python()], _NUMBERS, 'functional')
