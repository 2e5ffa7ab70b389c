# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the server rules of FedLi-LS and FedLi-LU.

Local training is one batch a client, the quadratic of which is given:

```
f_i(x) = scale_i / 2 * |x - center_i|^2
```
"""

from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tests.tff_adaptive.optimizers import reports_testing
from tff_adaptive import optimizers

_build = optimizers.build_line_search_step


def _step(rule, x, deltas):
  """Returns one step of a rule that sees no reports."""
  state = rule.initialize(tf.TensorSpec(np.shape(x), tf.float64))
  change = tf.constant(-np.mean(deltas, axis=0))
  return rule.next(state, tf.constant(x), change)[1].numpy()


class LineSearchStepTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.parameters(('unit', 1.0), (0.25, 0.25), (0, 0.0))
  def test_other_scales_are_fedavg(self, scale, rate):
    deltas, x = [[0.5, -2.0], [1.0, 3.0]], np.ones(2)
    self.assertAllEqual(
        _step(_build(scale), x, deltas),
        _step(optimizers.build_fedavg(rate), x, deltas),
    )

  @parameterized.parameters(tf.float16, tf.bfloat16, tf.float64)
  def test_keeps_the_dtype(self, dtype):
    step = reports_testing.step(
        _build(), [1.0, 2.0], [[2.0, 0.0]], step_sizes=[0.5], dtype=dtype
    )
    self.assertAllEqual(step.x, [2.0, 2.0])
    self.assertEqual(step.x.dtype, dtype.as_numpy_dtype)

  def test_largest_step_has_no_hyperparameters(self):
    rule = _build()
    state = rule.initialize(tf.TensorSpec([2], tf.float32))
    self.assertEmpty(rule.get_hparams(state))
    self.assertEqual(rule.set_hparams(state, {}), state)


_build_frank_wolfe = optimizers.build_frank_wolfe


def _frank_wolfe_step(rule, change, loss, x=None, **kwargs):
  """Returns a step of one client, with Delta = `change` and fbar = `loss`."""
  x = np.zeros(len(change)) if x is None else x
  return reports_testing.step(
      rule, x, [-np.asarray(change)], losses=[loss], **kwargs
  )


class FrankWolfeTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.named_parameters(
      ('small_loss', [1.0, 2.0], 0.5, 0.0999998),
      ('large_loss', [1.0, 2.0], 50.0, 1.0),
      ('negative_loss', [1.0, 2.0], -0.1, 0.0),
      ('no_change', [0.0, 0.0], 0.5, 1.0),
      ('no_change_zero_loss', [0.0, 0.0], 0.0, 0.0),
      ('no_change_negative_loss', [0.0, 0.0], -0.5, 0.0),
  )
  def test_gamma(self, change, loss, expected):
    step = _frank_wolfe_step(_build_frank_wolfe(), change, loss)
    self.assertAllClose(step.report['gamma'], expected, rtol=1e-6)
    self.assertAllClose(step.report['objective'], loss)
    self.assertAllClose(step.x, -expected * np.array(change), rtol=1e-6)

  def test_gamma_with_weight_decay(self):
    rule = _build_frank_wolfe(learning_rate=0.5, weight_decay=0.1)
    x = np.array([3.0, -1.0])
    step = _frank_wolfe_step(rule, [1.0, 2.0], 0.5, x)
    self.assertAllClose(step.report['gamma'], 0.17999928, rtol=1e-6)
    expected = x - 0.5 * (0.1 * x + 0.17999928 * np.array([1.0, 2.0]))
    self.assertAllClose(step.x, expected, rtol=1e-6)

  def test_preset_of_the_published_code(self):
    # From the formula:
    #   r = 1e-5 * x; z = 0.9 * z - 0.01 * (Delta + r)          (gamma is 1)
    #   x = x - 0.01 * (r + Delta) + 0.9 * z
    # So with Delta = -1 the server moves by .019, then by .0271 and .03439, and
    # in the long run by .1 of the mean change.
    rule = _build_frank_wolfe(0.01, weight_decay=1e-5, momentum=0.9)
    x, state = np.zeros(1), None
    points = [0.0]
    for _ in range(60):
      step = _frank_wolfe_step(rule, [-1.0], 1.0, x, state=state)
      x, state = step.x, step.state
      self.assertEqual(step.report['gamma'], 1.0)
      points.append(x[0])
    moves = np.diff(points)
    self.assertAllClose(moves[:3], [0.019, 0.0271, 0.03439], atol=1e-6)
    self.assertAllClose(moves[-1], 0.1, atol=2e-3)

  @parameterized.product(
      dtype=[tf.float16, tf.bfloat16, tf.float64], momentum=[0.0, 0.5]
  )
  def test_keeps_the_dtypes(self, dtype, momentum):
    rule = _build_frank_wolfe(0.5, 0.25, momentum)
    specs = {'a': tf.TensorSpec([2], dtype), 'b': tf.TensorSpec([], tf.float32)}
    weights = tf.nest.map_structure(lambda s: tf.ones(s.shape, s.dtype), specs)
    state = tf.nest.map_structure(tf.convert_to_tensor, rule.initialize(specs))
    new_state, moved = rule.next(
        state, weights, weights, reports={'mean_loss': tf.constant(9.0)}
    )
    tf.nest.map_structure(
        lambda old, new: self.assertEqual(
            (old.dtype, old.shape), (new.dtype, new.shape)
        ),
        (state, weights),
        (new_state, moved),
    )
    # 1 - .5 * (.25 + 1), and .5 * -.5 * 1.25 of the velocity.
    expected = 0.375 - 0.625 * momentum
    self.assertAllClose(moved, {'a': [expected] * 2, 'b': expected}, atol=1e-2)

  def test_without_momentum_nothing_is_held_of_it(self):
    rule = _build_frank_wolfe()
    state = rule.initialize(tf.TensorSpec([2], tf.float64))
    self.assertNotIn('momentum', rule.get_hparams(state))
    self.assertNotIn('velocity', state)
