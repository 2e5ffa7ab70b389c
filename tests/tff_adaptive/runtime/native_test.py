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
"""Tests of the native runtime: above all, that nothing of it stays behind."""

import os
import pathlib
import signal
import subprocess
import sys
import time

from absl.testing import parameterized
import numpy as np
import psutil
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import runtime

_ROOT = pathlib.Path(__file__).parents[3]

# Starts a worker, says so, and then ends in the way that is asked for.
_PROGRAM = """
import os, signal, sys, time
import tensorflow_federated as tff
from tff_adaptive import runtime

# A shell starts what runs in its background with SIGINT ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
with runtime.native_context():
  one = tff.federated_computation(lambda: tff.federated_value(1, tff.SERVER))
  assert one() == 1
  print('running', flush=True)
  how = sys.argv[1]
  if how == 'exception':
    raise ValueError('as asked for')
  elif how == 'sys_exit':
    sys.exit(3)
  elif how == 'os_exit':
    os._exit(4)
  elif how != 'return':
    time.sleep(600)
"""


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


class NativeTest(tf.test.TestCase, parameterized.TestCase):

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

  @parameterized.parameters(
      'return', 'exception', 'sys_exit', 'os_exit', 'SIGINT', 'SIGKILL'
  )
  def test_no_worker_outlives_the_program(self, how):
    # Through a pipe, as in `python x.py | tail`: the pipe must close.
    with subprocess.Popen(
        [sys.executable, '-c', _PROGRAM, how],
        cwd=_ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, 'TF_CPP_MIN_LOG_LEVEL': '3'},
    ) as program:
      while 'running' not in program.stdout.readline():
        self.assertIsNone(program.poll())
      workers = _workers_of(program.pid)
      if how.startswith('SIG'):
        self.assertLen(workers, 1)
        program.send_signal(getattr(signal, how))
      output, _ = program.communicate(timeout=60)
    if how == 'exception':
      self.assertIn('as asked for', output)
    deadline = time.monotonic() + 30
    while any(_is_alive(worker) for worker in workers):
      self.assertLess(time.monotonic(), deadline, f'{workers} stayed.')
      time.sleep(0.05)


if __name__ == '__main__':
  tf.test.main()
