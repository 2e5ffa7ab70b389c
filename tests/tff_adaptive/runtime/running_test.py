# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of rounds in forks, and of Ctrl-C in long rounds."""

import collections
import importlib
import os
import signal
import threading
import time
from unittest import mock

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive.runtime import compiled_testing
from tests.tff_adaptive.runtime import sequence_testing
from tff_adaptive import data
from tff_adaptive import runtime
from tff_adaptive.runtime import running
from tff_adaptive.simulation import interruptions
from tff_adaptive.tuning import differentiation


def _build_slow_sum() -> tff.framework.ConcreteComputation:
  """Returns a new computation of clients that count up to their number."""

  def count(number):
    return tf.while_loop(
        lambda i: i < number, lambda i: [i + 1], [tf.zeros([], tf.int64)]
    )[0]

  return sequence_testing.over_clients(count, np.int64)


# Hours.
_ENDLESS = [10**12, 10**12]


def _interrupt_soon() -> None:
  """Sends SIGINT to this process."""

  def send():
    time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGINT)

  threading.Thread(target=send, daemon=True).start()


class InterruptsTest(compiled_testing.TestCase):

  def setUp(self):
    super().setUp()
    # A program that a shell starts in the background ignores SIGINT.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    self.addCleanup(signal.signal, signal.SIGINT, handler)

  def test_a_long_round_ends_at_once_and_later_ones_are_right(self):
    count = _build_slow_sum()
    with runtime.CompiledContext(strict=True):
      for _ in range(2):
        _interrupt_soon()
        with self.assertRaises(KeyboardInterrupt):
          count(_ENDLESS)
        self.assertEqual(count([3, 4]), 7)
        # The next round is expected to be as short.
        running_threads = threading.active_count()
        count([3, 4])
        self.assertEqual(threading.active_count(), running_threads)
        time.sleep(0.1)
        self._expect_long(count)

  def _expect_long(self, count):
    context = tff.framework.get_context_stack().current
    context._programs[id(count)]._run._expects_long = True

  def test_a_signal_that_is_deferred_does_not_cancel(self):
    count = _build_slow_sum()
    with (
        runtime.CompiledContext(strict=True),
        self.assertRaises(KeyboardInterrupt),
    ):
      with interruptions.InterruptGuard() as guard:
        with guard.shielded():
          _interrupt_soon()
          found = [count([10**6])]
          while not guard._pending:
            time.sleep(0.01)
            found.append(count([10**5]))
    self.assertEqual(found[0], 10**6)

  def test_errors_pass(self):
    runner = running.Runner()

    def fail():
      raise ValueError('said')

    # It would cancel calls of other threads, too.
    manager = running.cancellation.CancellationManager
    with mock.patch.object(manager, 'start_cancel') as cancel:
      for _ in range(2):  # Long, then short.
        with self.assertRaisesRegex(ValueError, 'said'):
          runner(fail)
    cancel.assert_not_called()

  def test_short_calls_start_no_thread(self):
    runner, found = running.Runner(), []
    for _ in range(3):
      runner(lambda: found.append(threading.current_thread()))
    first, *others = found
    self.assertIsNot(first, threading.main_thread())
    self.assertEqual(others, [threading.main_thread()] * 2)


class ForksTest(compiled_testing.TestCase):

  def test_a_child_of_a_process_that_ran_tensorflow_is_refused(self):
    add_up = compiled_testing.build_sum()
    with runtime.CompiledContext():
      self.assertEqual(add_up([1.0, 2.0]), 3.0)
      reading, writing = os.pipe()
      child = os.fork()
      if not child:
        try:
          add_up([1.0, 2.0])
        except BaseException as error:  # pylint: disable=broad-exception-caught
          os.write(writing, f'{type(error).__name__}: {error}'.encode())
        finally:
          os._exit(0)
      os.close(writing)
      with os.fdopen(reading) as said:
        text = said.read()
      os.waitpid(child, 0)
    self.assertStartsWith(text, 'RuntimeError: This process was forked from')
    self.assertIn("multiprocessing.get_context('spawn')", text)

  def test_only_a_fork_after_tensorflow_started_counts(self):
    for context, expected in (
        (None, False),
        (mock.Mock(_initialized=False), False),
        (mock.Mock(_initialized=True), True),
    ):
      with (
          mock.patch.object(running, '_was_forked_late', False),
          mock.patch.object(
              running.eager_context, 'context_safe', lambda found=context: found
          ),
      ):
        running._note_fork()
        self.assertEqual(running._was_forked_late, expected)


class OutsideTest(tf.test.TestCase):

  def test_a_cohort_outside_of_a_context_is_told_of_it(self):
    count = sequence_testing.over_elements(
        lambda _: 1.0,
        collections.OrderedDict(x=tff.TensorType(np.float32, [None])),
    )
    source = data.PackedClientArrays({'x': np.ones(3, np.float32)}, [0, 3], 'a')
    cohort = data.Cohort(source, 'a', 0, 0, data.BatchPlan(2))
    # The kind of context that TFF begins with; no worker starts.
    context = tff.backends.native.create_sync_local_cpp_execution_context()
    with tff.framework.get_context_stack().install(context):
      with self.assertRaisesRegex(TypeError, 'call `.*CompiledContext'):
        count(cohort)

  def test_modules_may_be_loaded_again(self):
    importlib.reload(differentiation)
    self.assertAlmostEqual(
        differentiation._sqrt_gradient(
            mock.Mock(outputs=[tf.constant(0.0)]), tf.constant(1.0)
        ).numpy(),
        0.0,
    )
