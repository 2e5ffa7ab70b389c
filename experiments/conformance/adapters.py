# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""What computes the runs of a file: the interface, a program, their names."""

from collections.abc import Mapping, Sequence
import contextlib
import json
import shlex
import shutil
import subprocess
import tempfile
from typing import Any, BinaryIO, NamedTuple, Optional, Protocol

from experiments import command_line
from experiments import registry

# The keys of a configuration that every adapter replays, or that say nothing of
# how a run is trained: its cohorts say who takes part, and for how many rounds.
# Another key asks for something else; an adapter leaves the run out unless it
# has that.
COMMON_KEYS = (
    'name',
    'problem',
    'client',
    'server',
    'weighting',
    'batch_size',
    'epochs',
    'rounds',
    'participants',
)


class AdapterError(Exception):
  """An adapter did not do its part; the text is one sentence without a dot."""


class UnsupportedError(Exception):
  """A framework does not claim a run; the text says what it lacks."""


class GoldenRun(NamedTuple):
  """What an adapter is told of a run: everything but how it ends.

  Attributes:
    configuration: The entry `config` of the file: the names and
      hyperparameters of `client` and `server`, `weighting`, `batch_size`,
      `epochs`, and where they apply `loss`, `schedule` and `decay_every`.
    problem: The entry of `problems`: `name`, the flat initial weights `x0`, and
      `clients`, each with its examples `X` and labels `y`.
    cohorts: For each round, the indices of its clients, in their order.
  """

  configuration: Mapping[str, Any]
  problem: Mapping[str, Any]
  cohorts: Sequence[Sequence[int]]


class Adapter(Protocol):
  """A framework, seen from a file of reference numbers.

  Attributes:
    name: What the framework is called.
  """

  name: str

  def supports(self, configuration: Mapping[str, Any]) -> Optional[str]:
    """Returns why a run is left out, or `None` if it is to be replayed.

    What a framework offers under the name of the method is to be replayed, also
    where its formula is another: that is what the comparison is for.

    Args:
      configuration: See `GoldenRun`.
    """

  def replay(self, run: GoldenRun) -> Sequence[Sequence[float]]:
    """Trains a run.

    Args:
      run: A run that is supported.

    Returns:
      The flat vector of the global model's weights after each round.

    Raises:
      UnsupportedError: If it turns out only now that the run is to be left out.
      AdapterError: If there is no result, with the reason.
    """


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
      command_line.kill_group(process)
    return _Ended(code, _read_all(stdout), _read_all(stderr))


def _last_line(text: str) -> str:
  return (text.strip().splitlines() or ['nothing on stderr'])[-1]


def _read_reply(text: str) -> Mapping[str, Any]:
  """The object that a command wrote; raises unless it is one."""
  try:
    reply = json.loads(text)
  except ValueError as error:
    raise AdapterError(
        f'found {text[:_SHOWN]!r} on stdout, expected {_EXPECTED}'
    ) from error
  if not isinstance(reply, dict) or not {'iterates', 'unsupported'} & set(
      reply
  ):
    raise AdapterError(
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

  def replay(self, run: GoldenRun) -> Sequence[Sequence[float]]:
    try:
      ended = _run(self._arguments, json.dumps(run._asdict()), self._timeout)
    except subprocess.TimeoutExpired as error:
      raise AdapterError(
          f'the command took more than {self._timeout:g} s; give it more with '
          '--adapter_timeout'
      ) from error
    if ended.code:
      raise AdapterError(
          f'the command ended with {ended.code}: {_last_line(ended.stderr)}'
      )
    reply = _read_reply(ended.stdout)
    if 'unsupported' in reply:
      raise UnsupportedError(str(reply['unsupported']))
    if not isinstance(reply['iterates'], list):
      raise AdapterError(
          f'found iterates {json.dumps(reply["iterates"])[:_SHOWN]}, expected '
          'a list: the weights after each round'
      )
    return reply['iterates']


_COMMAND = 'command:'

# Name to the builder, which is imported when it is asked for.
_BUILDERS = {
    'stock_tff': 'experiments.conformance.stock_tff:StockTff',
    'tff_adaptive': 'experiments.conformance.replay:Library',
}

HELP = (
    'Replays the runs in another framework and compares the weights: '
    f'{", ".join(sorted(_BUILDERS))}; {_COMMAND} and a command that reads a '
    'run as JSON and writes the weights after each round; or module:attribute, '
    'a function that returns an Adapter.'
)


def is_command(value: Optional[str]) -> bool:
  """Whether an adapter is a command, which needs no runtime of TFF.

  Args:
    value: See `create_adapter`; `None` is no adapter.

  Returns:
    Whether it begins with `command:`.
  """
  return value is not None and value.startswith(_COMMAND)


def create_adapter(value: str, timeout: float = 600.0) -> Adapter:
  """Creates the adapter that a flag asks for.

  Args:
    value: A name, `command:` and a command, or `module:attribute`, where what
      returns an `Adapter` is found.
    timeout: How many seconds a run of a command may take. Default 600.

  Returns:
    The adapter.

  Raises:
    ValueError: If there is no such adapter.
  """
  if is_command(value):
    command = value[len(_COMMAND) :]
    return CommandAdapter(command, timeout)
  if value not in _BUILDERS and ':' not in value:
    raise ValueError(
        f'unknown adapter {value!r}; the known ones are {sorted(_BUILDERS)}, '
        "'command:...' and 'module:attribute'"
    )
  reference = _BUILDERS.get(value, value)
  try:
    build = registry.resolve(reference)
  except (AttributeError, ImportError) as error:
    raise ValueError(
        f'the adapter {value!r} cannot be imported ({error}); give '
        'module:attribute, from a folder that is on PYTHONPATH'
    ) from error
  return build()
