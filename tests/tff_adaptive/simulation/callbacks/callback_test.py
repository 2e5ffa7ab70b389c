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
"""Tests of the interface of callbacks, with the example of its module."""

import doctest

from absl.testing import absltest

from tests.tff_adaptive.simulation import loop_testing
from tff_adaptive.simulation import callbacks
from tff_adaptive.simulation.callbacks import callback as callback_lib


class _LossProcess(loop_testing.Process):
  """The clients' losses are 1, 1/2, 1/3 and so on."""

  def next(self, state, cohort):
    output = super().next(state, cohort)
    clients = output.metrics['client_work']['clients']
    clients['loss'] = 1 / int(output.state['rounds'])
    return output


class _Constant(callbacks.Callback):
  """Measures one number in every round, and stops in one."""

  def __init__(self, name='constant', stop_in=None):
    self.calls = []
    self._name = name
    self._stop_in = stop_in

  def on_training_start(self, start):
    self.start = start

  def on_round_end(self, round_end):
    self.calls.append('end')
    self.seen = dict(round_end.metrics)
    return round_end.round_num == self._stop_in

  def measure(self, round_end):
    self.calls.append('measure')
    return {self._name: 7}


class CallbackTest(loop_testing.LoopTestCase):

  def test_the_example_runs(self):
    example = doctest.DocTestParser().get_doctest(
        callback_lib.__doc__,
        {'process': _LossProcess(), 'cohort_fn': lambda _: [1]},
        'callback',
        None,
        None,
    )
    self.assertNotEmpty(example.examples)
    messages = []
    runner = doctest.DocTestRunner()
    self.assertEqual(runner.run(example, out=messages.append).failed, 0)
    self.assertEmpty(messages)

  def test_what_is_measured_is_a_column(self):
    self.run_loop(callbacks=[_Constant()])
    rows = self.rows()
    self.assertEqual(
        rows[0],
        'round_num,clients/loss,clients/num,constant,evaluation/accuracy',
    )
    self.assertTrue(all(row.split(',')[3] == '7' for row in rows[1:]))

  def test_later_callbacks_see_what_earlier_ones_measured(self):
    first, second = _Constant('first'), _Constant('second')
    self.run_loop(total_rounds=1, callbacks=[first, second])
    self.assertNotIn('first', first.seen)
    self.assertEqual(second.seen['first'], 7)
    self.assertNotIn('second', second.seen)

  def test_a_stop_where_no_evaluation_was_due_is_measured_again(self):
    callback = _Constant(stop_in=2)
    self.run_loop(callbacks=[callback])
    self.assertEqual(callback.calls, ['end', 'measure'] * 2 + ['measure'])
    self.assertRegex(self.rows()[-1], r'^2,.*,7,0\.00')

  def test_a_name_can_be_measured_once(self):
    with self.assertRaisesRegex(ValueError, "_Constant measures 'constant'"):
      self.run_loop(callbacks=[_Constant(), _Constant()])

  def test_the_start_has_state_weights_and_evaluation(self):
    callback = _Constant()
    evaluated = []

    def evaluate(weights):
      evaluated.append(float(weights))
      return {'accuracy': float(weights)}

    self.run_loop(total_rounds=1, evaluate_fn=evaluate, callbacks=[callback])
    # Only what is asked for is evaluated, and once.
    self.assertLen(evaluated, 1)
    self.assertEqual(callback.start.state['rounds'], 0)
    self.assertEqual(callback.start.get_weights(), 0)
    self.assertEqual(callback.start.get_evaluation(), {'accuracy': 0.0})
    callback.start.get_evaluation()
    self.assertLen(evaluated, 2)

  def test_the_base_class_does_nothing(self):
    self.run_loop(callbacks=[callbacks.Callback()])
    self.run_loop('other')
    self.assertEqual(self.rows(), self.rows('other'))


if __name__ == '__main__':
  absltest.main()
