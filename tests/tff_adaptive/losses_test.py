# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the losses that Keras does not have."""

from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tff_adaptive import losses

_LABELS = np.array([1, 0, 2, 1])
_SCORES = np.array(
    [[0.5, 1.0, 0.0], [3.0, 1.0, 1.5], [0.0, 2.0, -1.0], [1.0, 1.0, 1.0]]
)


class MulticlassHingeTest(tf.test.TestCase, parameterized.TestCase):

  def test_equals_the_formula_and_is_never_negative(self):
    generator = np.random.default_rng(1)
    scores = generator.normal(scale=2.0, size=[50, 4])
    labels = generator.integers(0, 4, 50)
    expected = []
    for s, y in zip(scores, labels):
      expected.append(max(s[k] + (k != y) for k in range(4)) - s[y])
    loss = losses.MulticlassHinge(reduction=tf.keras.losses.Reduction.NONE)
    found = loss(labels, scores)
    self.assertAllClose(found, expected)
    self.assertEqual(np.min(found), 0.0)
    self.assertAllClose(
        losses.MulticlassHinge()(labels, scores), np.mean(expected)
    )

  @parameterized.parameters(tf.float16, tf.float32, tf.float64)
  def test_is_of_the_dtype_of_the_scores(self, dtype):
    loss = losses.MulticlassHinge()(_LABELS, tf.cast(_SCORES, dtype))
    self.assertEqual(loss.dtype, dtype)
    self.assertAllClose(loss, 5.5 / 4)

  @parameterized.parameters(tf.float16, tf.float32)
  def test_is_zero_beyond_the_margin_at_any_precision(self, dtype):
    generator = np.random.default_rng(0)
    scores = generator.normal(scale=0.1, size=[100, 3])
    scores[:, 1:] -= 2.0
    loss = losses.MulticlassHinge(reduction=tf.keras.losses.Reduction.NONE)
    found = loss(np.zeros([100]), tf.cast(scores, dtype))
    self.assertAllEqual(found, np.zeros([100]))

  def test_labels_may_be_a_column_of_any_dtype(self):
    loss = losses.MulticlassHinge()
    expected = loss(_LABELS, _SCORES)
    for labels in (_LABELS[:, np.newaxis], _LABELS.astype(np.float32)):
      self.assertEqual(loss(labels, _SCORES), expected)

  def test_sequences_have_a_loss_for_each_place(self):
    scores = np.stack([_SCORES, 2.0 * _SCORES])
    labels = np.stack([_LABELS, _LABELS])
    loss = losses.MulticlassHinge(reduction=tf.keras.losses.Reduction.NONE)
    expected = [[0.5, 0.0, 4.0, 1.0], [0.0, 0.0, 7.0, 1.0]]
    self.assertAllClose(loss(labels, scores), expected)
    self.assertAllClose(loss(labels[..., np.newaxis], scores), expected)

  def test_a_label_that_is_no_class_has_no_loss(self):
    loss = losses.MulticlassHinge(reduction=tf.keras.losses.Reduction.NONE)
    found = loss(np.array([-1, 0, 3, 1]), _SCORES)
    self.assertAllEqual(np.isnan(found), [True, False, True, False])

  def test_a_class_that_is_left_out_is_no_rival(self):
    scores = tf.constant([[1.0, -np.inf, 3.0]])
    with tf.GradientTape() as tape:
      tape.watch(scores)
      loss = losses.MulticlassHinge()([0], scores)
    self.assertAllClose(loss, 3.0)
    self.assertAllClose(tape.gradient(loss, scores), [[-1.0, 0.0, 1.0]])

  def test_gradient_pushes_the_worst_rival_down_and_the_label_up(self):
    scores = tf.constant(_SCORES)
    with tf.GradientTape() as tape:
      tape.watch(scores)
      loss = losses.MulticlassHinge()(_LABELS[:3], scores[:3])
    self.assertAllClose(
        tape.gradient(loss, scores),
        np.array([[1, -1, 0], [0, 0, 0], [0, 1, -1], [0, 0, 0]]) / 3,
    )

  def test_comes_back_from_its_configuration(self):
    loss = losses.MulticlassHinge(name='other')
    again = losses.MulticlassHinge.from_config(loss.get_config())
    self.assertEqual(again.name, 'other')
    self.assertEqual(again(_LABELS, _SCORES), loss(_LABELS, _SCORES))
