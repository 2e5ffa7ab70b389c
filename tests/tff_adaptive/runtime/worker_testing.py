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
"""Which processes of native runtimes there are, and whether one is alive."""

from typing import Optional

import psutil


def workers(pid: Optional[int] = None) -> set[psutil.Process]:
  """The native runtimes that a process has started, this one by default."""
  children = psutil.Process(pid).children(recursive=True)
  return {child for child in children if 'worker' in child.name()}


def is_alive(process: psutil.Process) -> bool:
  """Whether a process runs, and is not only waited for."""
  try:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
  except psutil.NoSuchProcess:
    return False
