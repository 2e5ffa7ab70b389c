# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the layers of language models."""

from absl.testing import absltest
import keras
import numpy as np
import tensorflow as tf

from tasks import seeded_layers
from tff_adaptive.layers import keras_3


def _kernel(name, task='shakespeare', seed=1):
  initializer = seeded_layers.SeededLayers(task, seed).glorot_uniform(name)
  return initializer([5, 7]).numpy()


class SeededLayersTest(absltest.TestCase):

  def test_seed_task_and_name_decide_the_weights(self):
    first = _kernel('logits')
    np.testing.assert_array_equal(first, _kernel('logits'))
    for other in (
        _kernel('dense'),
        _kernel('logits', task='stackoverflow_nwp'),
        _kernel('logits', seed=2),
    ):
      self.assertTrue(np.all(first != other))

  def test_weights_of_one_layer_share_no_numbers(self):
    layer = seeded_layers.SeededLayers('shakespeare', 1).lstm('lstm', 4)
    layer(tf.zeros([1, 1, 4]))
    kernel, recurrent_kernel, _ = layer.get_weights()
    self.assertTrue(np.all(kernel != recurrent_kernel))

  def test_layers_are_those_of_the_library_with_padding_skipped(self):
    maker = seeded_layers.SeededLayers('shakespeare', 1)
    embedding = maker.embedding('embedding', 5, 3)
    lstm = maker.lstm('lstm', 2, 'HeNormal')
    self.assertIsInstance(lstm, keras_3.LSTM)
    self.assertIsInstance(
        lstm.cell.kernel_initializer, keras.initializers.HeNormal
    )
    outputs = lstm(embedding(tf.constant([[1, 2, 0], [1, 2, 3]])))
    self.assertEqual(outputs.shape, (2, 3, 2))
    np.testing.assert_array_equal(outputs[0, 1], outputs[0, 2])
    self.assertTrue(np.all(outputs[1, 1] != outputs[1, 2]))
    self.assertEqual(maker.dense('logits', 6)(outputs).shape, (2, 3, 6))

  def test_bad_seed_raises(self):
    with self.assertRaisesRegex(ValueError, '`seed` must not be negative'):
      seeded_layers.SeededLayers('shakespeare', -1)
