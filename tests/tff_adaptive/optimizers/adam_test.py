# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the server rule of FedAMS.

The literals come from the following plain loop, coordinate by coordinate, where
`d` is the mean change of a round:

```
for s, d in enumerate(changes, 1):
  m = b1 * m + (1 - b1) * d
  v = b2 * v + (1 - b2) * d**2
  vhat = max(vhat, v, eps if option == 1 else 0)
  c1, c2 = (1 - b1**s, 1 - b2**s) if bias_correction else (1, 1)
  x += lr * (m / c1) / (math.sqrt(vhat / c2) + (eps if option == 2 else 0))
```
"""

from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tests.tff_adaptive.optimizers import path_testing
from tff_adaptive import optimizers

_CHANGES = ((0.0, 0.1, -1.0), (0.0, 0.5, 0.2), (0.0, -0.3, 0.1))


def _run(optimizer, changes=_CHANGES, state=None):
  return path_testing.follow(optimizer, -np.array(changes), state=state)


class FedAMSTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.named_parameters(
      (
          'max_stabilization',
          {},
          [[0.0316228, -0.1], [0.1473536, -0.168973], [0.1865511, -0.2211955]],
      ),
      (
          'max_stabilization_with_bias_correction',
          dict(bias_correction=True),
          [[0.0316228, -0.1], [0.1175482, -0.1512097], [0.1424755, -0.1844201]],
      ),
      (
          'amsgrad',
          dict(option=2),
          [
              [0.0909091, -0.0990099],
              [0.2044134, -0.16731],
              [0.242957, -0.2190229],
          ],
      ),
      (
          'amsgrad_with_bias_correction',
          dict(option=2, bias_correction=True),
          [
              [0.0990099, -0.0999001],
              [0.1846982, -0.1510387],
              [0.2095529, -0.1841928],
          ],
      ),
  )
  def test_literal_numbers(self, arguments, expected):
    points, _ = _run(optimizers.build_fedams(0.1, **arguments))
    # Hyperparameters are float32.
    self.assertAllClose(points[:, 1:], expected, rtol=0, atol=1e-6)
    # The coordinate that never changes does not move, not even by 0 / 0.
    self.assertAllEqual(points[:, 0], [0.0, 0.0, 0.0])

  def test_epsilon_of_zero_divides_by_no_zero(self):
    points, _ = _run(optimizers.build_fedams(epsilon=0.0))
    self.assertAllEqual(points[:, 0], [0.0, 0.0, 0.0])
    self.assertAllClose(points[0, 1:], [1.0, -1.0], atol=1e-6)

  def test_without_average_none_is_held(self):
    state = optimizers.build_fedams(beta_1=0.0).initialize(
        tf.TensorSpec([2], tf.float32)
    )
    self.assertEqual(
        list(state),
        [
            'learning_rate',
            'beta_2',
            'epsilon',
            'num_steps',
            'preconditioner',
            'max_preconditioner',
        ],
    )
