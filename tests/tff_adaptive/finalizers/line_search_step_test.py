# Copyright 2026 The tff_adaptive Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""Tests of the server rule of FedLi-LS.

Local training is one batch a client, the quadratic of which is given:

```
f_i(x) = scale_i / 2 * |x - center_i|^2
```
"""

from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tests.tff_adaptive.finalizers import reports_testing
from tests.tff_adaptive.optimizers import step_size_testing
from tff_adaptive import finalizers
from tff_adaptive import optimizers

_build = finalizers.build_line_search_step


def _loss(client, x):
  """The loss of a client, a pair (scale, center); [size of x] each."""
  scale, center = client
  return 0.5 * np.sum(scale * (x - center) ** 2)


def _train(client, x, num_steps):
  """The change of a client, and its last step size."""
  scale, center = client
  # The quadratic around zero, at the distance from the center.
  loss_fn = step_size_testing.quadratic(tf.constant(scale))
  run = step_size_testing.run(
      optimizers.build_armijo(), [loss_fn] * num_steps, x - center
  )
  return (run.points[-1] - run.points[0]).numpy(), run.step_sizes[-1]


def _round(rule, clients, x, num_steps=1):
  """The weights of the server after a round, and those of each client."""
  trained = [_train(client, x, num_steps) for client in clients]
  deltas, step_sizes = zip(*trained)
  if isinstance(rule, finalizers.ReportsOptimizer):
    moved = reports_testing.step(rule, x, deltas, step_sizes=step_sizes).x
  else:
    moved = _step(rule, x, deltas)
  return moved, [x + delta for delta in deltas]


def _step(rule, x, deltas):
  """One step of a rule that sees no reports."""
  state = rule.initialize(tf.TensorSpec(np.shape(x), tf.float64))
  change = tf.constant(-np.mean(deltas, axis=0))
  return rule.next(state, tf.constant(x), change)[1].numpy()


class LineSearchStepTest(tf.test.TestCase, parameterized.TestCase):

  def test_reference_numbers(self):
    rule = _build('max')
    x, state = np.zeros(3), None
    for deltas, expected in (
        (
            [[0.0, 0.1014, -0.3597], [0.0, -0.0543, -0.1812]],
            [0.0, 0.0437325, -0.2205525],
        ),
        (
            [[0.0, 0.1653, 0.2379], [0.0, 0.1563, -0.3432]],
            [0.0, 0.1578675, -0.155715],
        ),
        (
            [[0.0, 0.0141, -0.0561], [0.0, 0.2607, 0.225]],
            [0.0, 0.2108925, -0.1457925],
        ),
    ):
      step = reports_testing.step(
          rule,
          x,
          deltas,
          weights=[0.75, 0.25],
          step_sizes=[0.3, 0.7],
          state=state,
      )
      x, state = step.x, step.state
      # Reports are float32.
      self.assertAllClose(x, expected, rtol=1e-6, atol=1e-12)
      self.assertAllClose(step.report, {'server_step_size': 0.7})

  @parameterized.parameters(('unit', 1.0), (0.25, 0.25), (0, 0.0))
  def test_other_scales_are_fedavg(self, scale, rate):
    deltas, x = [[0.5, -2.0], [1.0, 3.0]], np.ones(2)
    self.assertAllEqual(
        _step(_build(scale), x, deltas),
        _step(optimizers.build_fedavg(rate), x, deltas),
    )

  def test_loss_of_all_clients_together_may_rise(self):
    # Each line search succeeds, and both clients are convex.
    clients = [(np.array([10.0]), 1.0), (np.array([1.0]), -1.0)]

    def mean_loss(x):
      return np.mean([_loss(client, x) for client in clients])

    minimizer = np.array([9 / 11])
    moved, ends = _round(_build('unit'), clients, minimizer)
    self.assertAllClose(mean_loss(minimizer), 0.909, atol=5e-4)
    self.assertAllClose(mean_loss(moved), 2.487, atol=5e-4)
    for client, end in zip(clients, ends):
      self.assertLess(_loss(client, end), _loss(client, minimizer))

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

  @parameterized.parameters(
      ('largest', "'max', 'unit' or a number.*'largest'"),
      (-0.5, 'must be finite and not negative.*-0.5'),
  )
  def test_bad_scale_raises(self, scale, message):
    with self.assertRaisesRegex(ValueError, message):
      _build(scale)


if __name__ == '__main__':
  tf.test.main()
