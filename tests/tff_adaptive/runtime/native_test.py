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
"""Tests of the native runtime; `processes_test` has how its programs end."""

import gc
import os
import sys
from unittest import mock

from absl.testing import parameterized
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive.runtime import worker_testing
from tff_adaptive import data
from tff_adaptive import runtime
from tff_adaptive.runtime import native


class NativeTest(tf.test.TestCase, parameterized.TestCase):

  def test_computes_and_ends_its_worker(self):
    @tff.federated_computation(tff.FederatedType(np.int32, tff.CLIENTS))
    def add_up(values):
      return tff.federated_sum(values)

    before = worker_testing.workers()
    with runtime.native_context():
      self.assertEqual(add_up([1, 2, 3]), 6)
      started = worker_testing.workers() - before
      self.assertLen(started, 1)
    self.assertFalse(any(worker_testing.is_alive(worker) for worker in started))

  def test_worker_that_ends_at_its_start_is_not_waited_for(self):
    with mock.patch.object(native, '_worker_binary', lambda: sys.executable):
      with self.assertRaisesRegex(
          RuntimeError, r'ended at its start(.|\n)*unknown option --port'
      ):
        runtime.create_native_context()

  def test_takes_cohorts_in_any_position(self):
    source = data.PackedClientArrays.from_clients(
        {name: {'x': np.float32([size])} for name, size in (('a', 1), ('b', 2))}
    )
    cohort = data.Cohort(source, ['a', 'b'], 0, 1, data.BatchPlan(1))

    @tff.tensorflow.computation(
        tff.SequenceType(tff.types.tensorflow_to_type(cohort[0].element_spec))
    )
    def add_up(batches):
      return batches.reduce(0.0, lambda x, batch: x + tf.reduce_sum(batch['x']))

    clients_type = tff.FederatedType(
        add_up.type_signature.parameter, tff.CLIENTS
    )

    @tff.federated_computation(clients_type)
    def add_up_clients(clients):
      return tff.federated_sum(tff.federated_map(add_up, clients))

    @tff.federated_computation(
        tff.FederatedType(np.float32, tff.SERVER), clients_type
    )
    def pass_on(state, clients):
      return state, add_up_clients(clients)

    with runtime.native_context():
      self.assertEqual(add_up_clients(cohort), 3.0)
      self.assertEqual(pass_on(5.0, cohort)[1], 3.0)
      self.assertEqual(pass_on(5.0, clients=cohort)[1], 3.0)

  @parameterized.parameters('native', 'fallback')
  def test_no_descriptor_or_file_stays_open(self, kind):
    @tff.federated_computation(tff.FederatedType(np.float32, tff.CLIENTS))
    def pass_on(values):
      return values

    def run():
      if kind == 'native':
        with runtime.native_context():
          pass_on([1.0])
      else:
        with runtime.compiled_context(), self.assertWarns(RuntimeWarning):
          pass_on([1.0])

    run()
    gc.collect()
    before = len(os.listdir('/proc/self/fd'))
    for _ in range(5):
      run()
    # What other tests left may go or come, but not one in each run.
    self.assertLess(len(os.listdir('/proc/self/fd')), before + 5)

  def test_context_before_is_back(self):
    before = tff.framework.get_context_stack().current
    with runtime.native_context() as context:
      self.assertIs(tff.framework.get_context_stack().current, context)
    self.assertIs(tff.framework.get_context_stack().current, before)


if __name__ == '__main__':
  tf.test.main()
