# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of deferred signals."""

import os
import signal
import threading
from unittest import mock
import weakref

from absl.testing import parameterized
import pytest

from tff_adaptive.simulation import interruptions


class _Thing:
  """An object that a weak reference can refer to."""


class InterruptGuardTest(parameterized.TestCase):

  @parameterized.parameters(signal.SIGINT, signal.SIGTERM)
  def test_a_signal_is_raised_at_once_outside_shielded_blocks(self, number):
    before = signal.getsignal(number)
    done = []
    with self.assertRaises(KeyboardInterrupt):
      with interruptions.InterruptGuard():
        os.kill(os.getpid(), number)
        done.append('after the signal')
    self.assertEmpty(done)
    self.assertIs(signal.getsignal(number), before)

  def test_a_shielded_block_is_finished_first(self):
    done = []
    before = signal.getsignal(signal.SIGTERM)
    with self.assertRaises(KeyboardInterrupt):
      with interruptions.InterruptGuard() as guard:
        with guard.shielded():
          os.kill(os.getpid(), signal.SIGINT)
          done.append('inside')
        done.append('outside')
    self.assertEqual(done, ['inside'])
    self.assertIs(signal.getsignal(signal.SIGTERM), before)

  @pytest.mark.filterwarnings('ignore::pytest.PytestUnraisableExceptionWarning')
  def test_a_signal_that_python_drops_comes_after_the_next_block(self):
    done = []
    thing = _Thing()
    reference = weakref.ref(
        thing, lambda _: os.kill(os.getpid(), signal.SIGINT)
    )
    with self.assertRaises(KeyboardInterrupt):
      with interruptions.InterruptGuard() as guard:
        del thing
        done.append('after the signal')
        with guard.shielded():
          done.append('inside')
        done.append('outside')
    self.assertIsNone(reference())
    self.assertEqual(done, ['after the signal', 'inside'])

  def test_a_signal_can_be_dropped(self):
    with interruptions.InterruptGuard() as guard:
      with guard.shielded(raise_at_end=False):
        os.kill(os.getpid(), signal.SIGINT)
        was_within = True
      with guard.shielded():
        pass
      was_behind = True
    self.assertTrue(was_within and was_behind)

  def test_an_error_in_a_shielded_block_comes_first(self):
    with self.assertRaisesRegex(ValueError, 'a bug'):
      with interruptions.InterruptGuard() as guard:
        with guard.shielded():
          os.kill(os.getpid(), signal.SIGINT)
          raise ValueError('a bug')

  def test_a_handler_that_is_not_pythons_cannot_come_back(self):
    install = signal.signal
    for number in (signal.SIGINT, signal.SIGTERM):
      self.addCleanup(install, number, signal.getsignal(number))

    def install_over_another(number, handler):
      install(number, handler)  # Returns None, as for a handler of C code.

    with mock.patch.object(signal, 'signal', install_over_another):
      with interruptions.InterruptGuard():
        pass
    self.assertIs(signal.getsignal(signal.SIGTERM), signal.SIG_DFL)

  def test_does_nothing_in_other_threads(self):
    before = signal.getsignal(signal.SIGINT)
    seen = []

    def use():
      with interruptions.InterruptGuard() as guard:
        with guard.shielded():
          seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    self.assertEqual(seen, [before])
