# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the adaptive rules, on clients and on the server.

The literals come from the following plain loop, on two coordinates:

```
for s, g in enumerate(gradients, 1):
  m = b1 * m + (1 - b1) * g
  q = (m if second_moment_of == 'momentum' else g) ** 2
  v = {'adagrad': v + q, 'adam': b2 * v + (1 - b2) * q,
       'yogi': v - (1 - b2) * q * sign(v - q)}[rule]
  c1, c2 = (1 - b1**s, 1 - b2**s) if bias_correction else (1, 1)
  x -= lr * (m / c1) / (math.sqrt(v / c2) + eps)
```
"""

from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tff_adaptive import optimizers

_START = (1.0, -2.0)
_GRADIENTS = ((1.0, -0.5), (2.0, 0.5), (-1.0, 0.25))
_ADAM = [[0.9, -1.9], [0.8034818, -1.9052632], [0.7614729, -1.9304066]]
_RULES = ('fedadagrad', 'fedadam', 'fedyogi')


def _build(name, *args, **kwargs):
  return getattr(optimizers, f'build_{name}')(*args, **kwargs)


def _run(optimizer, gradients=_GRADIENTS, start=_START):
  weights = tf.constant(start, tf.float64)
  state = optimizer.initialize(tf.TensorSpec(weights.shape, weights.dtype))
  points, states = [], []
  for gradient in gradients:
    state, weights = optimizer.next(
        state, weights, tf.constant(gradient, tf.float64)
    )
    points.append(weights.numpy())
    states.append(state)
  return np.array(points), states


class AdaptiveTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.named_parameters(
      ('adam', optimizers.build_adam(0.1), _ADAM),
      (
          'adagrad',
          optimizers.build_adagrad(0.1),
          [[0.9, -1.9], [0.8105573, -1.9707107], [0.8513821, -2.004044]],
      ),
      (
          'yogi',
          optimizers.build_yogi(0.1),
          [
              [0.6936142, -1.7031404],
              [0.2892512, -1.7245234],
              [0.0840671, -1.8437724],
          ],
      ),
      (
          'fedadagrad',
          optimizers.build_fedadagrad(0.1),
          [
              [0.9001, -1.9001998],
              [0.8106972, -1.9708105],
              [0.8515054, -2.0040995],
          ],
      ),
      (
          'fedadam',
          optimizers.build_fedadam(0.1),
          [
              [0.900995, -1.9019798],
              [0.771753, -1.9089688],
              [0.7059649, -1.9480383],
          ],
      ),
      (
          'fedadam_second_moment_of_momentum',
          optimizers.build_fedadam(0.1, second_moment_of='momentum'),
          [
              [0.0949717, -1.1800643],
              [-0.8205653, -1.2620709],
              [-1.2739883, -1.6916558],
          ],
      ),
      (
          'fedadam_of_pytorch',
          optimizers.build_fedadam(
              0.1,
              0.9,
              0.999,
              1e-8,
              initial_second_moment=0.0,
              bias_correction=True,
          ),
          _ADAM,
      ),
      (
          'fedyogi',
          optimizers.build_fedyogi(0.1),
          [
              [0.900995, -1.90198],
              [0.7718818, -1.9089518],
              [0.7064216, -1.9477642],
          ],
      ),
      (
          'fedyogi_from_above',
          optimizers.build_fedyogi(0.1, initial_second_moment=4.0),
          [
              [0.9949962, -1.9975005],
              [0.9805575, -1.9977505],
              [0.9725316, -1.9992258],
          ],
      ),
  )
  def test_literal_numbers(self, optimizer, expected):
    # Hyperparameters are float32: 1 - 0.999 has five digits.
    self.assertAllClose(_run(optimizer)[0], expected, rtol=0, atol=1e-5)

  def test_adam_equals_keras(self):
    keras = tf.keras.optimizers.Adam(0.1, epsilon=1e-9)
    variable = tf.Variable(_START)
    points, _ = _run(optimizers.build_adam(0.1, epsilon=1e-9))
    for gradient, point in zip(_GRADIENTS, points):
      keras.apply_gradients([(tf.constant(gradient), variable)])
      self.assertAllClose(variable, point, atol=1e-5)

  def test_adagrad_accumulates_from_zero(self):
    _, states = _run(optimizers.build_adagrad(0.1))
    self.assertAllClose(
        [state['preconditioner'] for state in states],
        [[1.0, 0.25], [5.0, 0.5], [6.0, 0.5625]],
    )

  def test_yogi_stands_still_where_the_accumulator_is_the_square(self):
    optimizer = optimizers.build_fedyogi(
        0.1, beta_1=0.0, initial_second_moment=0.25
    )
    _, states = _run(optimizer, [(0.5, 0.5)])
    self.assertAllEqual(states[0]['preconditioner'], [0.25, 0.25])

  def test_initial_second_moment_is_the_square_of_epsilon(self):
    for name in _RULES:
      state = _build(name, epsilon=0.5).initialize(
          tf.TensorSpec([2], tf.float32)
      )
      self.assertAllClose(state['preconditioner'], [0.25, 0.25])

  def test_without_average_none_is_held(self):
    state = optimizers.build_fedadagrad().initialize(
        tf.TensorSpec([2], tf.float32)
    )
    self.assertNotIn('accumulator', state)

  def test_bfloat16_averages_although_its_shares_round_to_one(self):
    optimizer = optimizers.build_adam(0.5)
    weights = tf.constant([1.0], tf.bfloat16)
    state = optimizer.initialize(tf.TensorSpec([1], tf.bfloat16))
    state, weights = optimizer.next(state, weights, tf.ones([1], tf.bfloat16))
    self.assertAllClose(tf.cast(weights, tf.float32), [0.5], atol=0.01)
    # Then 200 steps without a gradient: v decays by 0.999 each.
    before = state['preconditioner']
    for _ in range(200):
      state, weights = optimizer.next(
          state, weights, tf.zeros([1], tf.bfloat16)
      )
    self.assertAllClose(
        state['preconditioner'] / before, [0.999**200], rtol=1e-3
    )

  @parameterized.named_parameters(
      ('beta_1', dict(beta_1=1.0), 'beta_1.*1.0'),
      ('beta_2', dict(beta_2=-0.1), 'beta_2.*-0.1'),
      ('epsilon', dict(epsilon=-1.0), 'epsilon.*-1.0'),
      (
          'initial',
          dict(initial_second_moment=-1.0),
          'initial_second_moment.*-1.0',
      ),
      ('moment', dict(second_moment_of='x'), "second_moment_of.*'x'"),
  )
  def test_bad_argument_raises_by_name(self, arguments, message):
    with self.assertRaisesRegex(ValueError, f'FedAdam `{message}'):
      optimizers.build_fedadam(**arguments)
