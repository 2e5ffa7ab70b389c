# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of DistilBERT as a layer."""

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf

from tasks import data
from tasks import keras_forms
from tasks.texts import distilbert

_CONFIG = dict(
    vocab_size=11, n_layers=2, n_heads=2, dim=8, hidden_dim=12,
    max_position_embeddings=6,
)  # fmt: skip
_TOKENS = np.array([[2, 5, 9, 4, 0, 0], [2, 10, 1, 3, 7, 8]], np.int32)


def _build(seed=1, initial_weights=None):
  layer = distilbert.DistilBertEncoder(_CONFIG, seed, initial_weights)
  layer.build([None, 6])
  return layer


def _keras_model(seed=1):
  tokens = tf.keras.Input([6], dtype=tf.int32)
  features = distilbert.DistilBertEncoder(_CONFIG, seed)(tokens)
  return tf.keras.Model(tokens, tf.keras.layers.Dense(3)(features))


class DistilBertTest(parameterized.TestCase):

  def test_is_what_transformers_computes(self):
    import transformers

    layer = _build()
    theirs = transformers.TFDistilBertModel(
        transformers.DistilBertConfig(**_CONFIG)
    )
    theirs.build(None)
    theirs.distilbert.set_weights(layer.get_weights())
    expected = theirs(_TOKENS, attention_mask=_TOKENS != 0)[0][:, 0]
    np.testing.assert_allclose(layer(_TOKENS), expected, atol=1e-6)
    self.assertEqual(layer(_TOKENS).shape, (2, 8))

  def test_padding_changes_nothing(self):
    layer = _build()
    np.testing.assert_allclose(
        layer(_TOKENS[:1, :4]), layer(_TOKENS[:1]), atol=1e-6
    )
    self.assertNotAllClose(layer(_TOKENS[1:, :4]), layer(_TOKENS[1:]))

  def assertNotAllClose(self, left, right):
    self.assertGreater(np.abs(left - right).max(), 1e-4)

  def test_drops_in_training_alone(self):
    layer = _build()
    np.testing.assert_array_equal(layer(_TOKENS), layer(_TOKENS))
    self.assertNotAllClose(layer(_TOKENS, training=True), layer(_TOKENS))

  def test_initial_weights_are_those_of_the_architecture(self):
    for variable in _build().weights:
      value = variable.numpy()
      name = variable.name
      if 'gamma' in name:
        np.testing.assert_array_equal(value, 1.0)
      elif 'bias' in name or 'beta' in name:
        np.testing.assert_array_equal(value, 0.0)
      else:
        self.assertBetween(value.std(), 0.013, 0.022, name)
        self.assertLessEqual(np.abs(value).max(), 0.04, name)

  def test_seeds_differ_and_no_two_weights_share_numbers(self):
    first, again, other = _build(), _build(), _build(2)
    kernels = []
    for a, b, c in zip(
        first.get_weights(), again.get_weights(), other.get_weights()
    ):
      np.testing.assert_array_equal(a, b)
      if a.ndim == 2:
        self.assertTrue(np.all(a != c))
        kernels.append(a.ravel()[:8])
    for i, kernel in enumerate(kernels):
      for later in kernels[i + 1 :]:
        self.assertTrue(np.all(kernel != later))

  def test_literal_weights_so_that_no_release_changes_a_run(self):
    weights = _build().get_weights()
    np.testing.assert_allclose(weights[0][0, 0], 0.01313354, rtol=1e-5)
    np.testing.assert_allclose(weights[4][0, 0], -0.01855113, rtol=1e-5)

  def test_begins_with_given_weights(self):
    given = [weight + 1.0 for weight in _build().get_weights()]
    for weight, expected in zip(_build(1, given).get_weights(), given):
      np.testing.assert_array_equal(weight, expected)

  @pytest.mark.slow
  def test_begins_with_given_weights_in_graphs(self):
    given = [weight + 1.0 for weight in _build().get_weights()]
    with tf.Graph().as_default() as graph:
      variables = _build(1, given).weights
      with tf.compat.v1.Session(graph=graph) as session:
        session.run(tf.compat.v1.global_variables_initializer())
        for weight, expected in zip(session.run(variables), given):
          np.testing.assert_array_equal(weight, expected)

  def test_copies_keep_the_architecture_and_draw_nothing(self):
    layer = _build()
    copy = distilbert.DistilBertEncoder.from_config(layer.get_config())
    copy.build([None, 6])
    self.assertEqual(
        [v.shape for v in copy.weights], [v.shape for v in layer.weights]
    )
    np.testing.assert_array_equal(copy.get_weights()[0], 0.0)
    copy.set_weights(layer.get_weights())
    np.testing.assert_array_equal(copy(_TOKENS), layer(_TOKENS))

  @pytest.mark.slow
  def test_functional_form_computes_the_same_without_assertions(self):
    model = _keras_model()
    expected = model(_TOKENS).numpy()
    functional = keras_forms.KerasForms(
        lambda: model,
        data.spec(x=('int32', [6]), y=('int32', [])),
        keras_forms.build_softmax_loss,
        keras_forms.build_accuracy,
    ).functional
    with tf.Graph().as_default() as graph:
      output = functional.predict_on_batch(
          functional.initial_weights, _TOKENS, training=False
      )
      operations = {node.op for node in graph.as_graph_def().node}
      with tf.compat.v1.Session(graph=graph) as session:
        np.testing.assert_allclose(session.run(output), expected, atol=1e-6)
    self.assertNotIn('Assert', operations)
