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
"""Tests of where the compiled runtime computes."""

from typing import Any
from unittest import mock

from absl.testing import parameterized
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tests.tff_adaptive.runtime import compiled_testing
from tff_adaptive import runtime


def _round_function(context: runtime.CompiledContext, process: Any) -> Any:
  """The one function that was built for the rounds of a process."""
  program = context._programs[id(process.next)]
  (function,) = program._functions.values()
  return function


def _devices_of_calls(function: Any) -> set[str]:
  """Where a round's calls, which are the steps of its clients, are placed."""
  return {
      operation.device
      for operation in function.graph.get_operations()
      # What is in no loop happens at the server.
      if 'PartitionedCall' in operation.type and '/while/' in operation.name
  }


class DevicesTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.parameters(
      'CPU', 'cpu', 'cpu:0', 'CPU:0', '/device:CPU:0', [['CPU']]
  )
  def test_names_of_the_cpu(self, devices):
    context = runtime.create_compiled_context(devices=devices)
    self.assertEqual(context.device, 'CPU:0')

  @parameterized.parameters(
      'TPU', 'CPU:1', '/device:GPU:99', '', [[]], [['CPU', 'CPU']]
  )
  def test_unknown_devices(self, devices):
    with self.assertRaisesRegex(ValueError, "must name one of \\['CPU:0'"):
      runtime.create_compiled_context(devices=devices)

  def test_gpu_where_there_is_none(self):
    with mock.patch.object(tf.config, 'list_physical_devices', return_value=[]):
      with self.assertRaisesRegex(
          ValueError, "one of \\['CPU:0'\\].*found 'GPU'"
      ):
        runtime.create_compiled_context(devices='GPU')
      self.assertEqual(runtime.create_compiled_context().device, 'CPU:0')

  def test_clients_work_on_the_device(self):
    process = tff.learning.algorithms.build_fed_sgd(
        testing.functional_model(), tff.learning.optimizers.build_sgdm(0.1)
    )
    with compiled_testing.installed('loop'):
      compiled_testing.train(process, testing.clients([5, 9]))
    function = _round_function(compiled_testing.context('loop'), process)
    self.assertEqual(_devices_of_calls(function), {'/device:CPU:0'})


class GpuTest(tf.test.TestCase):

  def setUp(self):
    super().setUp()
    if not tf.config.list_physical_devices('GPU'):
      self.skipTest('TensorFlow sees no GPU on this machine.')

  @pytest.mark.slow
  def test_trains_there_with_the_same_result(self):
    # What a GPU makes of float32 by itself keeps three digits only.
    tensor_float = tf.config.experimental.tensor_float_32_execution_enabled()
    tf.config.experimental.enable_tensor_float_32_execution(False)
    self.addCleanup(
        tf.config.experimental.enable_tensor_float_32_execution, tensor_float
    )
    process = compiled_testing.image_process()
    clients = compiled_testing.image_clients([8, 3, 5])
    with runtime.compiled_context(devices='CPU', strict=True):
      expected = compiled_testing.train(process, clients)
    with runtime.compiled_context(devices='GPU', strict=True) as context:
      self.assertEqual(context.device, 'GPU:0')
      state = process.initialize()
      memory = tf.config.experimental.get_memory_info('GPU:0')
      tf.config.experimental.reset_memory_stats('GPU:0')
      found = process.next(state, clients).state
      peak = tf.config.experimental.get_memory_info('GPU:0')['peak']
      function = _round_function(context, process)
    self.assertAllClose(
        testing.trainable(found), expected, rtol=1e-3, atol=1e-3
    )
    self.assertEqual(_devices_of_calls(function), {'/device:GPU:0'})
    self.assertGreater(peak, memory['current'])

  def test_is_chosen_by_default(self):
    context = runtime.create_compiled_context()
    self.assertEqual(context.device, 'GPU:0')
    with self.assertRaisesRegex(ValueError, "'CPU:0', 'GPU:0'"):
      runtime.create_compiled_context(devices='GPU:99')


if __name__ == '__main__':
  tf.test.main()
