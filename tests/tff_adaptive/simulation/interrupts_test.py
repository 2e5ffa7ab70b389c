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
"""Tests of the guard against interrupts."""

import os
import signal
import threading
from unittest import mock
import weakref

from absl.testing import absltest
from absl.testing import parameterized
import pytest

from tff_adaptive.simulation import training_loop


class _Thing:
  """Something that a weak reference can be to."""


class InterruptGuardTest(parameterized.TestCase):

  @parameterized.parameters(signal.SIGINT, signal.SIGTERM)
  def test_a_signal_is_raised_at_once_outside_shielded_blocks(self, number):
    before = signal.getsignal(number)
    done = []
    with self.assertRaises(KeyboardInterrupt):
      with training_loop.InterruptGuard():
        os.kill(os.getpid(), number)
        done.append('after the signal')
    self.assertEmpty(done)
    self.assertIs(signal.getsignal(number), before)

  def test_a_shielded_block_is_finished_first(self):
    done = []
    before = signal.getsignal(signal.SIGTERM)
    with self.assertRaises(KeyboardInterrupt):
      with training_loop.InterruptGuard() as guard:
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
      with training_loop.InterruptGuard() as guard:
        del thing
        done.append('after the signal')
        with guard.shielded():
          done.append('inside')
        done.append('outside')
    self.assertIsNone(reference())
    self.assertEqual(done, ['after the signal', 'inside'])

  def test_a_signal_can_be_dropped(self):
    with training_loop.InterruptGuard() as guard:
      with guard.shielded(raise_at_end=False):
        os.kill(os.getpid(), signal.SIGINT)
        was_within = True
      with guard.shielded():
        pass
      was_behind = True
    self.assertTrue(was_within and was_behind)

  def test_an_error_in_a_shielded_block_comes_first(self):
    with self.assertRaisesRegex(ValueError, 'a bug'):
      with training_loop.InterruptGuard() as guard:
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
      with training_loop.InterruptGuard():
        pass
    self.assertIs(signal.getsignal(signal.SIGTERM), signal.SIG_DFL)

  def test_does_nothing_in_other_threads(self):
    before = signal.getsignal(signal.SIGINT)
    seen = []

    def use():
      with training_loop.InterruptGuard() as guard:
        with guard.shielded():
          seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    self.assertEqual(seen, [before])


if __name__ == '__main__':
  absltest.main()
