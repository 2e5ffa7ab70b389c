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

import os

import numpy as np
import psutil
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import runtime


def _workers_of(pid):
  try:
    children = psutil.Process(pid).children(recursive=True)
  except psutil.NoSuchProcess:
    return []
  return [child for child in children if 'worker' in child.name()]


def _is_alive(process):
  try:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
  except psutil.NoSuchProcess:
    return False


class NativeTest(tf.test.TestCase):

  def test_computes_and_ends_its_worker(self):
    @tff.federated_computation(tff.FederatedType(np.int32, tff.CLIENTS))
    def add_up(values):
      return tff.federated_sum(values)

    before = set(_workers_of(os.getpid()))
    with runtime.native_context():
      self.assertEqual(add_up([1, 2, 3]), 6)
      started = set(_workers_of(os.getpid())) - before
      self.assertLen(started, 1)
    self.assertFalse(any(_is_alive(worker) for worker in started))

  def test_context_before_is_back(self):
    before = tff.framework.get_context_stack().current
    with runtime.native_context() as context:
      self.assertIs(tff.framework.get_context_stack().current, context)
    self.assertIs(tff.framework.get_context_stack().current, before)


if __name__ == '__main__':
  tf.test.main()
