# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of passes over a client's data."""

from absl.testing import parameterized
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.client_works import data_passes
from tff_adaptive.client_works import local_models

_EXAMPLES = np.array([3.0, -1.0, 2.0, 8.0, 5.0, 1.0], np.float32)


class _Model:
  """The loss x^2 / 2 - x b of an example b, as a sum or a mean of a batch."""

  def __init__(self, sums: bool):
    self._sums = sums

  def start(self, weights):
    del weights  # It has no metrics.

  def value_and_grad_again(self, trainable, batch, loss_term):
    del loss_term  # There is none.
    (x,), size = trainable, tf.size(batch, tf.int64)
    mean = tf.reduce_mean(tf.square(x) / 2.0 - x * batch)
    gradient = tf.reduce_mean(x - batch)
    loss = mean
    if self._sums:
      scale = tf.cast(size, tf.float32)
      loss, gradient = scale * mean, scale * gradient
    return local_models.Evaluation(loss, (gradient,), (), size, mean, loss)


def _loop(step, batches, initial):
  state = initial()
  for batch in batches:
    state = step(state, batch)
  return state


class DataSurveyTest(tf.test.TestCase, parameterized.TestCase):

  # The mean over batches of the sums is that of 6 examples over their number.
  @parameterized.parameters(
      (False, (6,), 1),
      (False, (5, 1), 1),
      (True, (6,), 1),
      (True, (4, 2), 2),
      (True, (5, 1), 2),
  )
  def test_mean_gradient_weighs_all_examples_alike(
      self, sums, sizes, num_batches
  ):
    x = np.float32(0.5)
    survey = data_passes.DataSurvey(
        _Model(sums),
        tff.learning.models.ModelWeights((tf.constant(x),), ()),
        _loop,
        np.split(_EXAMPLES, np.cumsum(sizes)[:-1]),
        loss_term=None,
        adjust=lambda weights, gradients: gradients,
    )
    expected = np.mean(x - _EXAMPLES)
    if sums:
      expected *= len(_EXAMPLES) / num_batches
    self.assertAllClose(survey.mean_gradient(), (expected,))
    self.assertEqual(survey.num_examples(), len(_EXAMPLES))
