# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the stochastic Polyak step size.

The literals of the smooth variant come from the following plain loop:

```
def sps_smooth(batches, eta=.3, c=.5, gamma=2., n=3):
  for loss, squared_norm in batches:
    new = min(gamma ** (1 / n) * eta, loss / (c * squared_norm + 1e-8))
    eta = new or eta
    yield new
```
"""

import math

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf

from tests.tff_adaptive import testing
from tests.tff_adaptive.optimizers import federated_testing
from tests.tff_adaptive.optimizers import step_size_testing
from tff_adaptive.optimizers.client import sps

_BUILDERS = (sps.build_sps, sps.build_sps_max, sps.build_sps_smooth)


def _batch(loss, squared_norm):
  """Returns a batch of this loss and gradient, wherever the weights are."""
  gradient = tf.constant([0.0, math.sqrt(squared_norm)], tf.float64)
  return lambda _: (tf.constant(loss, tf.float64), gradient)


def _step_sizes(optimizer, *batches):
  """Returns step sizes on batches of (loss, squared gradient norm)."""
  losses = [_batch(*batch) for batch in batches]
  return step_size_testing.run(optimizer, losses, np.ones(2)).step_sizes


class SpsTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.named_parameters(
      # Loss, squared norm, largest step size; expected step size.
      ('uncapped', 1.0, 4.0, math.inf, 0.4999999975),
      ('capped', 1.0, 4.0, 0.1, 0.1),
      ('at_the_optimum', 0.0, 4.0, math.inf, 0.0),
      ('below_the_optimum', -0.2, 4.0, math.inf, 0.0),
      ('without_gradient', 1.0, 0.0, math.inf, 0.0),
      ('almost_without_gradient', 1.0, 0.9e-16, math.inf, 0.0),
      ('small_gradient', 2.3, 1e-12, 10.0, 10.0),
      ('small_gradient_uncapped', 2.3, 1e-12, math.inf, 2.3 / 1.00005e-8),
      ('twice_the_c', 1.0, 4.0, math.inf, 0.2499999994, 1.0),
  )
  def test_step_size_rule(
      self, loss, squared_norm, max_step_size, expected, c=0.5
  ):
    optimizer = sps.build_sps_max(max_step_size, c)
    step_sizes = _step_sizes(optimizer, (loss, squared_norm))
    self.assertAllClose(step_sizes, [expected], rtol=1e-7, atol=0.0)

  def test_loss_is_counted_from_the_optimal_value(self):
    optimizer = sps.build_sps(epsilon=0.0, optimal_value=-2.0)
    batches = ((1.0, 4.0), (-2.0, 4.0), (-2.1, 4.0))
    self.assertAllClose(_step_sizes(optimizer, *batches), [1.5, 0.0, 0.0])

  def test_smooth_variant_grows_by_gamma_an_epoch(self):
    optimizer = sps.build_sps_smooth(initial_step_size=0.3, batches_per_epoch=3)
    batches = ((9.0, 1.0), (9.0, 1.0), (9.0, 1.0), (1.0, 8.0), (9.0, 1.0))
    self.assertAllClose(
        _step_sizes(optimizer, *batches),
        [0.377976315, 0.476220316, 0.6, 0.249999999, 0.314980262],
        atol=1e-9,
    )

  @parameterized.named_parameters(
      ('first', [(0.0, 1.0), (9.0, 1.0)], [0.0, 0.4]),
      ('first_two', [(0.0, 1.0), (-1.0, 1.0), (9.0, 1.0)], [0.0, 0.0, 0.4]),
      ('later', [(9.0, 1.0), (0.0, 1.0), (9.0, 1.0)], [0.4, 0.0, 1.6]),
      ('no_gradient', [(9.0, 1.0), (9.0, 0.0), (9.0, 1.0)], [0.4, 0.0, 1.6]),
  )
  def test_zero_step_does_not_end_the_smooth_variant(self, batches, expected):
    optimizer = sps.build_sps_smooth(
        initial_step_size=0.1, batches_per_epoch=1, gamma=4.0
    )
    self.assertAllClose(_step_sizes(optimizer, *batches), expected, rtol=1e-9)

  def test_smooth_variant_knows_a_largest_step_and_an_optimal_value(self):
    optimizer = sps.build_sps_smooth(
        initial_step_size=0.1,
        batches_per_epoch=1,
        max_step_size=0.3,
        optimal_value=-1.0,
    )
    batches = ((0.0, 1.0), (0.0, 1.0), (0.0, 20.0))
    self.assertAllClose(_step_sizes(optimizer, *batches), [0.2, 0.3, 0.1])

  def test_initial_step_size_may_be_set_later(self):
    optimizer = sps.build_sps_smooth(batches_per_epoch=1)
    x = tf.zeros([1])
    state = step_size_testing.initialize(optimizer, x)
    hparams = optimizer.get_hparams(state)
    hparams['initial_step_size'] = tf.constant(0.25)
    state = optimizer.set_hparams(state, hparams)
    state, _ = optimizer.next(state, x, tf.ones([1]), value=tf.constant(9.0))
    self.assertAllClose(optimizer.report(state)['step_size'], 0.5)

  @parameterized.product(
      build=_BUILDERS,
      point=[
          ('nan_loss', math.nan, 1.0),
          ('nan_loss_without_gradient', math.nan, 0.0),
          ('infinite_loss', math.inf, 1.0),
          ('loss_of_minus_infinity', -math.inf, 1.0),
          ('nan_gradient', 1.0, math.nan),
          ('nan_gradient_at_the_optimum', 0.0, math.nan),
          ('infinite_gradient', 1.0, math.inf),
      ],
  )
  def test_points_that_are_not_finite_give_nan(self, build, point):
    self.assertAllEqual(_step_sizes(build(), point[1:]), [math.nan])

  @pytest.mark.slow
  def test_loss_term_is_part_of_the_loss(self):
    (output,) = federated_testing.run_process(
        sps.build_sps(),
        num_rounds=1,
        clients=testing.clients([4]),
        loss_term=lambda *_: tf.constant(10.0),
    )
    metrics = output.metrics['client_work']['clients']
    self.assertGreater(metrics['loss'], 10.0)
    # The step is loss / (c |g|^2), and the change of the one step is step |g|.
    gradient_norm = (
        output.metrics['finalizer']['update_norm'] / metrics['step_size_mean']
    )
    self.assertAllClose(
        metrics['step_size_mean'],
        metrics['loss'] / (0.5 * gradient_norm**2),
        rtol=1e-5,
    )
