# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that gathered rows give the numbers of a dense layer."""

import collections
import os
import tempfile

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tff_adaptive import algorithms
from tff_adaptive import layers
from tff_adaptive import optimizers
from tff_adaptive import runtime

_VOCABULARY, _UNITS = 6, 4
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


def _layers(**kwargs):
  """The layer and the dense one, with the same weights."""
  layer = layers.BagOfWordsDense(_UNITS, _VOCABULARY, **kwargs)
  dense = tf.keras.layers.Dense(_UNITS, **kwargs)
  layer.build([None, 4])
  dense.build([None, _VOCABULARY])
  generator = np.random.default_rng(0)
  weights = [generator.normal(size=w.shape) for w in dense.get_weights()]
  layer.set_weights(weights)
  dense.set_weights(weights)
  return layer, dense


class BagOfWordsDenseTest(tf.test.TestCase, parameterized.TestCase):

  def test_frequencies(self):
    found = layers.to_frequencies(_WORDS, _VOCABULARY)
    self.assertAllClose(found, _FREQUENCIES)

  @parameterized.parameters(False, True)
  def test_numbers_and_gradients_are_those_of_dense(self, use_bias):
    layer, dense = _layers(use_bias=use_bias)
    results = []
    for each, inputs in ((layer, _WORDS), (dense, _FREQUENCIES)):
      with tf.GradientTape() as tape:
        outputs = each(inputs)
        loss = tf.reduce_sum(tf.square(outputs))
      gradients = tape.gradient(loss, each.trainable_weights)
      results.append([outputs, *map(tf.convert_to_tensor, gradients)])
    self.assertLen(results[0], 2 + use_bias)
    for found, expected in zip(*results):
      self.assertAllClose(found, expected, rtol=1e-6, atol=1e-6)

  def test_gradient_has_the_rows_of_the_words_only(self):
    layer, _ = _layers()
    with tf.GradientTape() as tape:
      loss = tf.reduce_sum(layer(_WORDS))
    gradient = tape.gradient(loss, layer.kernel)
    self.assertIsInstance(gradient, tf.IndexedSlices)
    self.assertAllEqual(gradient.values.shape, [_WORDS.size, _UNITS])

  def test_output_shape(self):
    layer, _ = _layers()
    self.assertEqual(layer.compute_output_shape([None, 9]), [None, _UNITS])

  def test_is_made_again_from_its_configuration(self):
    layer, _ = _layers(use_bias=False)
    again = layers.BagOfWordsDense.from_config(layer.get_config())
    again.build([None, 4])
    again.set_weights(layer.get_weights())
    self.assertAllEqual(again(_WORDS), layer(_WORDS))

  def test_saved_model_is_loaded_without_custom_objects(self):
    model = tf.keras.Sequential(
        [
            tf.keras.Input([4], dtype=tf.int32),
            layers.BagOfWordsDense(_UNITS, _VOCABULARY),
        ]
    )
    folder = self.enter_context(tempfile.TemporaryDirectory())
    path = os.path.join(folder, 'model.keras')
    model.save(path)
    loaded = tf.keras.models.load_model(path)
    self.assertAllEqual(loaded(_WORDS), model(_WORDS))

  def test_frequencies_are_refused(self):
    with self.assertRaisesRegex(
        TypeError, 'found float32; for frequencies use .*Dense'
    ):
      _layers()[0](_FREQUENCIES)

  @parameterized.parameters(
      (dict(units=0, vocabulary_size=5), '`units` must be positive, found 0'),
      (dict(units=3, vocabulary_size=-1), '`vocabulary_size`.*found -1'),
  )
  def test_impossible_sizes(self, sizes, message):
    with self.assertRaisesRegex(ValueError, message):
      layers.BagOfWordsDense(**sizes)

  @pytest.mark.slow
  def test_trains_as_a_dense_layer(self):
    labels = np.eye(_UNITS, dtype=np.float32)
    trained = []
    for each, inputs in zip(_layers(), (_WORDS, _FREQUENCIES)):
      spec = collections.OrderedDict(
          x=tf.TensorSpec([None, *inputs.shape[1:]], inputs.dtype),
          y=tf.TensorSpec([None, _UNITS], tf.float32),
      )
      model = tff.learning.models.functional_model_from_keras(
          tf.keras.Sequential(
              [tf.keras.Input(inputs.shape[1:], dtype=inputs.dtype), each]
          ),
          tf.keras.losses.BinaryCrossentropy(from_logits=True),
          spec,
      )
      process = algorithms.build_fed_opt(
          model,
          client_optimizer=optimizers.build_sgd(0.5),
          server_optimizer=optimizers.build_fedavg(),
      )
      batch = collections.OrderedDict(x=inputs, y=labels)
      with runtime.compiled_context(devices='CPU', strict=True):
        state = process.initialize()
        for _ in range(2):
          state = process.next(state, [[batch, batch], [batch]]).state
      trained.append(testing.trainable(state))
    for found, expected in zip(*trained):
      self.assertAllClose(found, expected, rtol=1e-5, atol=1e-6)
