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
"""Tests of processes that end with the one that started them."""

import os
import signal
import subprocess
import sys
import time
import unittest

from absl.testing import absltest
import psutil

from experiments import process_groups

_CHILD = """
import os, sys, time
from experiments import process_groups
process_groups.end_with_parent()
assert not any('PARENT_PROCESS' in name for name in os.environ)
print(os.getpid(), flush=True)
time.sleep(100)
"""
_PARENT = f"""
import subprocess, sys
from experiments import process_groups
subprocess.Popen(
    [sys.executable, '-c', {_CHILD!r}], env=process_groups.ending_with_this()
).wait()
"""


def _is_running(process_id):
  try:
    return psutil.Process(process_id).status() != psutil.STATUS_ZOMBIE
  except psutil.NoSuchProcess:
    return False


@unittest.skipIf(sys.platform != 'linux', 'Linux alone ends such processes.')
class EndWithParentTest(absltest.TestCase):

  def test_a_killed_process_takes_its_child_along(self):
    parent = subprocess.Popen(
        [sys.executable, '-c', _PARENT], stdout=subprocess.PIPE, text=True
    )
    self.addCleanup(parent.stdout.close)
    child = int(parent.stdout.readline())
    os.kill(child, 0)  # It is there.
    parent.kill()
    parent.wait()
    # The child had the pipe, too: it ends with both.
    self.assertEqual(parent.stdout.read(), '')
    deadline = time.monotonic() + 10
    while _is_running(child) and time.monotonic() < deadline:
      time.sleep(0.01)
    self.assertFalse(_is_running(child))

  def test_a_process_whose_parent_has_ended_ends_at_once(self):
    environment = {**process_groups.ending_with_this()}
    (name,) = environment.keys() - os.environ.keys()
    environment[name] = str(2**30)
    child = subprocess.run(
        [sys.executable, '-c', _CHILD],
        env=environment,
        check=False,
        capture_output=True,
    )
    self.assertEqual(child.returncode, -signal.SIGTERM)
    self.assertEqual(child.stdout, b'')

  def test_others_go_on(self):
    process_groups.end_with_parent()


if __name__ == '__main__':
  absltest.main()
