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
"""Ends processes with all that they have started."""

from collections.abc import Mapping
import contextlib
import ctypes
import os
import signal
import subprocess
import sys

_PARENT = 'TFF_ADAPTIVE_PARENT_PROCESS'
_PR_SET_PDEATHSIG = 1  # Of Linux's <sys/prctl.h>.


def ending_with_this() -> Mapping[str, str]:
  """Returns the environment of a process that is to end with this one.

  A process that is killed cannot end what it has started, so what is started
  asks for it, with `end_with_parent`.
  """
  return {**os.environ, _PARENT: str(os.getpid())}


def end_with_parent():
  """Makes this process end with the one that asked for it, if one did.

  It gets SIGTERM then. Linux alone can do this; elsewhere it goes on.
  """
  parent = os.environ.pop(_PARENT, None)
  if parent is None or sys.platform != 'linux':
    return
  ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
  if os.getppid() != int(parent):  # It ended before.
    os.kill(os.getpid(), signal.SIGTERM)


def kill_group(process: subprocess.Popen):
  """Ends what a process has started, and itself if it is alive.

  Args:
    process: A process that was started with a session of its own.
  """
  with contextlib.suppress(ProcessLookupError):
    os.killpg(process.pid, signal.SIGKILL)
  process.wait()
