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
import hypothesis
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import property_testing
from tests.tff_adaptive.optimizers import path_testing
from tff_adaptive import optimizers

_START = (1.0, -2.0)
_GRADIENTS = ((1.0, -0.5), (2.0, 0.5), (-1.0, 0.25))
_ADAM = [[0.9, -1.9], [0.8034818, -1.9052632], [0.7614729, -1.9304066]]
_RULES = ('fedadagrad', 'fedadam', 'fedyogi')


def _build(name, *args, **kwargs):
  return getattr(optimizers, f'build_{name}')(*args, **kwargs)


def _run(optimizer, gradients=_GRADIENTS):
  return path_testing.follow(optimizer, gradients, _START)


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

  @parameterized.parameters(
      ('fedadam', tff.learning.optimizers.build_adam),
      ('fedyogi', tff.learning.optimizers.build_yogi),
  )
  def test_epsilon_hat_is_that_of_tff(self, name, build_theirs):
    shared = {'beta_1': 0.9, 'beta_2': 0.99, 'epsilon': 0.1}
    start = {} if name == 'fedadam' else {'initial_preconditioner_value': 0.0}
    corrected = dict(initial_second_moment=0.0, bias_correction=True)
    theirs, _ = _run(build_theirs(0.1, **shared, **start))
    ours, _ = _run(_build(name, 0.1, **shared, **corrected, epsilon_hat=True))
    kingma, _ = _run(_build(name, 0.1, **shared, **corrected))
    self.assertAllClose(ours, theirs, rtol=1e-6)
    self.assertNotAllClose(kingma, theirs, rtol=1e-2)

  def test_yogi_stands_still_where_the_accumulator_is_the_square(self):
    optimizer = optimizers.build_fedyogi(
        0.1, beta_1=0.0, initial_second_moment=0.25
    )
    _, states = _run(optimizer, [(0.5, 0.5)])
    self.assertAllEqual(states[0]['preconditioner'], [0.25, 0.25])

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


def _run_path(name, gradients, **arguments):
  """Steps; in the server rules' own terms the changes are `-gradients`."""
  return path_testing.run(
      getattr(optimizers, f'build_{name}'),
      property_testing.linear(gradients),
      **arguments,
  )


class AdaptivePropertiesTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.product(name=_RULES, second_moment_of=['update', 'momentum'])
  @hypothesis.given(
      property_testing.sequences(),
      property_testing.shares(),
      property_testing.positive(0.25, 4.0),
  )
  def test_scaling_changes_epsilon_and_start_leaves_the_weights(
      self, name, second_moment_of, changes, beta_1, scale
  ):
    paths = [
        _run_path(
            name,
            c * changes,
            learning_rate=0.25,
            beta_1=beta_1,
            epsilon=0.125 * c,
            initial_second_moment=0.5 * c**2,
            second_moment_of=second_moment_of,
        )
        for c in (1.0, scale)
    ]
    self.assertAllClose(paths[0].points, paths[1].points, rtol=1e-5, atol=1e-7)
