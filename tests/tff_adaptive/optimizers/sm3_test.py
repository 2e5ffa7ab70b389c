# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of SM3."""

from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tests.tff_adaptive.optimizers import path_testing
from tff_adaptive import optimizers

_GRADIENTS = np.random.default_rng(0).normal(size=[4, 3, 2])


def _preconditioners(gradients, version):
  rows, columns = np.zeros(3), np.zeros(2)
  for g in gradients:
    if version == 'ii':
      nu = np.minimum(rows[:, None], columns) + g**2
      rows, columns = nu.max(1), nu.max(0)
    else:
      rows, columns = rows + (g**2).max(1), columns + (g**2).max(0)
      nu = np.minimum(rows[:, None], columns)
    yield nu


class SM3Test(tf.test.TestCase, parameterized.TestCase):

  @parameterized.product(version=['ii', 'i'], delay=[1, 2])
  def test_matrix_follows_the_formulas(self, version, delay):
    rule = optimizers.build_sm3(0.5, 0.125, version=version, delay=delay)
    points, _ = path_testing.follow(rule, _GRADIENTS)
    refreshed = list(_preconditioners(_GRADIENTS[::delay], version))
    x = np.zeros([3, 2])
    for k, (point, g) in enumerate(zip(points, _GRADIENTS)):
      x = x - 0.5 * g / (np.sqrt(refreshed[k // delay]) + 0.125)
      self.assertAllClose(point, x, atol=1e-7)

  @parameterized.parameters('ii', 'i')
  def test_vector_is_adagrad(self, version):
    gradients = _GRADIENTS[:, :, 0]
    points, expected = (
        path_testing.follow(rule, gradients)[0]
        for rule in (
            optimizers.build_sm3(0.5, 0.125, version=version),
            optimizers.build_adagrad(0.5, 0.125),
        )
    )
    self.assertAllClose(points, expected)

  def test_state_is_as_small_as_the_axes(self):
    state = optimizers.build_sm3().initialize(tf.TensorSpec([5, 4, 3]))
    sizes = [a.shape.num_elements() for a in state['accumulators'][0]]
    self.assertEqual(sizes, [5, 4, 3])
    self.assertNotIn('preconditioner', state)
