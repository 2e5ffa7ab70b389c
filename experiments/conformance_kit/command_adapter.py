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
"""An adapter in a process of its own, for frameworks of other environments.

The command is started once a run. It reads a JSON object from stdin, with the
fields of `GoldenRun`, and writes one to stdout: `{"iterates": [[...], ...]}`,
the flat weights after each round, or `{"unsupported": "reason"}`. It has a
session of its own, of which nothing is left once it has ended or is late.
"""

from collections.abc import Mapping, Sequence
import contextlib
import json
import shlex
import shutil
import subprocess
import tempfile
from typing import Any, BinaryIO, NamedTuple, Optional

from experiments import process_groups
from experiments.conformance_kit import adapters

_EXPECTED = (
    'one JSON object on stdout, {"iterates": [[...], ...]} or '
    '{"unsupported": "reason"}'
)
_SHOWN = 60


class _Ended(NamedTuple):
  """What a command left: its exit code, and what it wrote."""

  code: int
  stdout: str
  stderr: str


def _read_all(file: BinaryIO) -> str:
  file.seek(0)
  return file.read().decode(errors='replace')


def _run(arguments: Sequence[str], text: str, timeout: float) -> _Ended:
  """Runs a command with a text on stdin; raises TimeoutExpired if it is late.

  Files take the place of pipes: what a command has started may keep its stdout
  open after its end, and the end of a pipe would never come.
  """
  with contextlib.ExitStack() as stack:
    stdin, stdout, stderr = (
        stack.enter_context(tempfile.TemporaryFile()) for _ in range(3)
    )
    stdin.write(text.encode())
    stdin.seek(0)
    process = subprocess.Popen(
        arguments,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        start_new_session=True,
    )
    try:
      code = process.wait(timeout)
    finally:
      process_groups.kill_group(process)
    return _Ended(code, _read_all(stdout), _read_all(stderr))


def _last_line(text: str) -> str:
  return (text.strip().splitlines() or ['nothing on stderr'])[-1]


def _read_reply(text: str) -> Mapping[str, Any]:
  """The object that a command wrote; raises unless it is one."""
  try:
    reply = json.loads(text)
  except ValueError as error:
    raise adapters.AdapterError(
        f'found {text[:_SHOWN]!r} on stdout, expected {_EXPECTED}'
    ) from error
  if not isinstance(reply, dict) or not {'iterates', 'unsupported'} & set(
      reply
  ):
    raise adapters.AdapterError(
        f'found {json.dumps(reply)[:_SHOWN]}, expected {_EXPECTED}'
    )
  return reply


class CommandAdapter:
  """Replays runs by a command.

  Args:
    command: The command, in a shell's words, but run without a shell.
    timeout: How many seconds a run may take, above 0. Default 600.

  Raises:
    ValueError: If the command cannot be found.

  Example:

    >>> adapter = CommandAdapter('python my_adapter.py', timeout=60)
    >>> adapter.name
    'python my_adapter.py'
  """

  def __init__(self, command: str, timeout: float = 600.0):
    try:
      self._arguments = shlex.split(command)
    except ValueError as error:
      raise ValueError(
          f'the command {command!r} cannot be split into words ({error}); '
          'mend its quotes'
      ) from error
    if not self._arguments or shutil.which(self._arguments[0]) is None:
      raise ValueError(
          f'the command {command!r} begins with no program that can be run; '
          'give its path, or one that is on PATH'
      )
    self.name = command
    self._timeout = timeout

  def supports(self, configuration: Mapping[str, Any]) -> Optional[str]:
    del configuration  # The command's reply says it.
    return None

  def replay(self, run: adapters.GoldenRun) -> Sequence[Sequence[float]]:
    try:
      ended = _run(self._arguments, json.dumps(run._asdict()), self._timeout)
    except subprocess.TimeoutExpired as error:
      raise adapters.AdapterError(
          f'the command took more than {self._timeout:g} s; give it more with '
          '--adapter_timeout'
      ) from error
    if ended.code:
      raise adapters.AdapterError(
          f'the command ended with {ended.code}: {_last_line(ended.stderr)}'
      )
    reply = _read_reply(ended.stdout)
    if 'unsupported' in reply:
      raise adapters.UnsupportedError(str(reply['unsupported']))
    if not isinstance(reply['iterates'], list):
      raise adapters.AdapterError(
          f'found iterates {json.dumps(reply["iterates"])[:_SHOWN]}, expected '
          'a list: the weights after each round'
      )
    return reply['iterates']
