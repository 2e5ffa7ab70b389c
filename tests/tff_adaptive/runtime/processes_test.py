# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that no process of a runtime stays behind, however a program ends."""

import os
import pathlib
import signal
import subprocess
import sys
import time

from absl.testing import parameterized
import psutil
import pytest
import tensorflow as tf

from tests.tff_adaptive.runtime import worker_testing

_ROOT = pathlib.Path(__file__).parents[3]

# Computes with a runtime, says so, waits to be told to end, and ends in the way
# that is asked for.
_PROGRAM = """
import contextlib, os, signal, sys, warnings
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff
from tff_adaptive import runtime

# A shell starts what runs in its background with SIGINT ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
kind, how = sys.argv[1:]
clients = tff.FederatedType(np.int32, tff.CLIENTS)
add_up = tff.federated_computation(tff.federated_sum, clients)

# It keeps a state, so that the compiled runtime hands it on.
@tff.tensorflow.computation(np.int32)
def enqueue(number):
  queue = tf.queue.FIFOQueue(10, [tf.int32], [[]])
  with tf.control_dependencies([queue.enqueue(number)]):
    return queue.size()

with contextlib.ExitStack() as stack:
  if kind == 'native':
    stack.enter_context(runtime.NativeContext())
  else:
    # Nothing closes it.
    runtime.CompiledContext().install()
  assert add_up([1, 2]) == 3
  if kind == 'fallback':
    warnings.simplefilter('ignore')
    assert enqueue(7) == 1
  print('running', flush=True)
  sys.stdin.readline()
  if how == 'exception':
    raise ValueError('as asked for')
  elif how == 'sys_exit':
    sys.exit(3)
  elif how == 'os_exit':
    os._exit(4)
"""

# The ways to end, and the codes that the program has then.
_ENDS = {
    'return': 0,
    'exception': 1,
    'sys_exit': 3,
    'os_exit': 4,
    'SIGINT': -signal.SIGINT,
    'SIGKILL': -signal.SIGKILL,
}
_NUM_WORKERS = {'compiled': 0, 'native': 1, 'fallback': 1}

# Each end with a runtime that is closed by a block, by nothing, or that has no
# worker; and the death without last words of all of them.
_CASES = tuple(
    (f'{how}_{kind}', kind, how)
    for i, kind in enumerate(_NUM_WORKERS)
    for j, how in enumerate(_ENDS)
    if (i + j) % 2 or how == 'SIGKILL'
)


class ProcessesTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.named_parameters(*_CASES)
  @pytest.mark.slow
  def test_none_outlives_the_program(self, kind, how):
    # Through pipes, as in `python x.py | tail`: they must close.
    with subprocess.Popen(
        [sys.executable, '-W', 'ignore', '-c', _PROGRAM, kind, how],
        cwd=_ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, 'TF_CPP_MIN_LOG_LEVEL': '3'},
    ) as program:
      self.addCleanup(program.kill)
      self.assertEqual(program.stdout.readline(), 'running\n')
      children = psutil.Process(program.pid).children(recursive=True)
      self.assertLen(worker_testing.workers(program.pid), _NUM_WORKERS[kind])
      if how.startswith('SIG'):
        program.send_signal(getattr(signal, how))
        told = None
      else:
        told = '\n'
      # It returns when all who could write into the pipes have closed them.
      output, errors = program.communicate(told, timeout=60)
    if kind == 'compiled':
      self.assertEmpty(children)
    self.assertEqual(output, '')
    self.assertEqual(program.returncode, _ENDS[how], errors)
    if how == 'exception':
      self.assertIn('as asked for', errors)
    elif how != 'SIGINT':
      self.assertNotIn('Traceback', errors)
      self.assertNotIn('Exception ignored', errors)
    deadline = time.monotonic() + 30
    while any(map(worker_testing.is_alive, children)):
      self.assertLess(time.monotonic(), deadline, f'{children} stayed.')
      time.sleep(0.05)

  def _run_to_the_end(self, program: str) -> subprocess.CompletedProcess:
    result = subprocess.run(
        [sys.executable, '-c', program],
        cwd=_ROOT,
        env=dict(os.environ, TF_CPP_MIN_LOG_LEVEL='3', PYTHONWARNINGS='ignore'),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    self.assertEqual(result.returncode, 0, result.stderr)
    return result

  @parameterized.parameters('CompiledContext().install()', 'CompiledContext()')
  @pytest.mark.slow
  def test_tffs_worker_that_ignores_sigint_is_not_waited_for(self, call):
    result = self._run_to_the_end(f"""
import signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
import numpy as np
import tensorflow_federated as tff
from tff_adaptive import runtime
double = tff.tensorflow.computation(lambda x: 2 * x, np.int32)
assert double(1) == 2
runtime.{call}
print(double(2), flush=True)
""")
    self.assertEqual(result.stdout.splitlines()[-1], '4')

  @pytest.mark.slow
  def test_the_default_is_set_beside_many_datasets(self):
    # Python's `gc.get_referrers` once crashed here.
    result = self._run_to_the_end("""
import tensorflow as tf
from tff_adaptive import runtime
datasets = [
    tf.data.Dataset.range(40).shuffle(40, seed=1).batch(10) for _ in range(30)
]
runtime.CompiledContext().install()
print('set', flush=True)
""")
    self.assertEqual(result.stdout.splitlines()[-1], 'set')

  @pytest.mark.slow
  def test_a_worker_of_a_context_that_is_held_elsewhere_stays(self):
    result = self._run_to_the_end("""
import signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
import numpy as np
import psutil
import tensorflow_federated as tff
from tff_adaptive import runtime
double = tff.tensorflow.computation(lambda x: 2 * x, np.int32)
context = tff.backends.native.create_sync_local_cpp_execution_context()
tff.framework.set_default_context(context)
assert double(1) == 2
runtime.CompiledContext().install()
assert double(2) == 4
with tff.framework.get_context_stack().install(context):
  print(double(3), flush=True)
# TFF would wait for it.
for worker in psutil.Process().children():
  worker.kill()
""")
    self.assertIn('6', result.stdout.splitlines())

  @parameterized.parameters('CompiledContext', 'NativeContext')
  @pytest.mark.slow
  def test_tff_says_nothing_at_the_end_of_a_program(self, function):
    result = self._run_to_the_end(f"""
import numpy as np
import tensorflow_federated as tff
from tff_adaptive import runtime
with runtime.{function}():
  print(tff.tensorflow.computation(lambda x: 2 * x, np.int32)(2))
""")
    self.assertEqual((result.stdout, result.stderr), ('4\n', ''))
