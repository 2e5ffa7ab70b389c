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
"""Building graphs leaves the switches of the process as they were."""

import threading

from absl.testing import parameterized
import tensorflow as tf

from tff_adaptive.runtime import graph_functions

_SPECS = [tf.TensorSpec([], tf.int32)]


def _count_to(number):
  return [tf.while_loop(lambda i: i < number, lambda i: [i + 1], [0])[0]]


class ControlFlowTest(tf.test.TestCase, parameterized.TestCase):

  def setUp(self):
    super().setUp()
    self.assertTrue(tf.compat.v1.control_flow_v2_enabled())
    self.addCleanup(tf.compat.v1.enable_control_flow_v2)

  def test_loops_are_of_tensorflow_1(self):
    count = graph_functions.build(_count_to, _SPECS)
    self.assertEqual(count(tf.constant(5))[0], 5)
    kinds = {operation.type for operation in count.graph.get_operations()}
    self.assertIn('NextIteration', kinds)

  @parameterized.parameters(True, False)
  def test_switch_is_as_it_was_also_after_an_error(self, is_enabled):
    if not is_enabled:
      tf.compat.v1.disable_control_flow_v2()

    def fail(number):
      del number  # Unused.
      self.assertFalse(tf.compat.v1.control_flow_v2_enabled())
      raise ZeroDivisionError

    graph_functions.build(_count_to, _SPECS)
    self.assertEqual(tf.compat.v1.control_flow_v2_enabled(), is_enabled)
    with self.assertRaises(ZeroDivisionError):
      graph_functions.build(fail, _SPECS)
    self.assertEqual(tf.compat.v1.control_flow_v2_enabled(), is_enabled)

  def test_threads_that_build_at_once_leave_it_on(self):
    barrier = threading.Barrier(4)
    found = []

    def build_often():
      barrier.wait()
      for _ in range(10):
        count = graph_functions.build(_count_to, _SPECS)
        found.append(int(count(tf.constant(3))[0]))

    threads = [threading.Thread(target=build_often) for _ in range(4)]
    for thread in threads:
      thread.start()
    for thread in threads:
      thread.join()
    self.assertEqual(found, [3] * 40)
    self.assertTrue(tf.compat.v1.control_flow_v2_enabled())

  def test_functions_of_other_threads_keep_their_loops(self):
    kinds = []

    def trace():
      counted = tf.function(lambda number: _count_to(number)[0])
      graph = counted.get_concrete_function(*_SPECS).graph
      kinds.extend(operation.type for operation in graph.get_operations())

    def build(number):
      thread = threading.Thread(target=trace)
      thread.start()
      thread.join()
      return [number]

    graph_functions.build(build, _SPECS)
    self.assertNotIn('NextIteration', kinds)
    self.assertTrue({'While', 'StatelessWhile'} & set(kinds))


if __name__ == '__main__':
  tf.test.main()
