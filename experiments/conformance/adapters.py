# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Adapters, which replay runs in a framework: interface, commands, names."""

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

# The keys of a configuration that every adapter replays, or that do not affect
# training, since the cohorts define the participants and the rounds. An adapter
# skips a run that has any other key, unless it supports the key.
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


# Of a run of a command, in seconds.
DEFAULT_TIMEOUT = 600.0


class AdapterError(Exception):
  """An adapter failed; the text is one sentence without a final period."""


class UnsupportedError(Exception):
  """A framework does not support a run; the text says what it lacks."""


class GoldenRun(NamedTuple):
  """A run as given to an adapter, without its trajectory.

  Attributes:
    configuration: The entry `config` of the file: the names and
      hyperparameters of `client` and `server`, `weighting`, `batch_size`,
      `epochs`, and if needed `loss`, `schedule` and `decay_every`.
    problem: The entry of `problems`: `name`, the flat initial weights `x0`, and
      `clients`, each with its examples `X` and labels `y`.
    cohorts: The client indices of each round, in order.
  """

  configuration: Mapping[str, Any]
  problem: Mapping[str, Any]
  cohorts: Sequence[Sequence[int]]


class Adapter(Protocol):
  """The interface to a framework.

  Attributes:
    name: The name of the framework.
  """

  name: str

  def supports(self, configuration: Mapping[str, Any]) -> Optional[str]:
    """Returns the reason to skip a run, or `None` to replay it.

    A method that the framework offers by name must be replayed even if its
    formula differs, which the comparison is meant to show.

    Args:
      configuration: See `GoldenRun`.
    """

  def replay(self, run: GoldenRun) -> Sequence[Sequence[float]]:
    """Trains a run.

    Args:
      run: A supported run.

    Returns:
      The flat vector of the global model's weights after each round.

    Raises:
      UnsupportedError: If the run turns out to be unsupported.
      AdapterError: If there is no result, with the reason.
    """


_EXPECTED = (
    'one JSON object on stdout, {"iterates": [[...], ...]} or '
    '{"unsupported": "reason"}'
)
_SHOWN = 60


def _read_all(file: BinaryIO) -> str:
  file.seek(0)
  return file.read().decode(errors='replace')


def _run(
    arguments: Sequence[str], text: str, timeout: float
) -> subprocess.CompletedProcess:
  """Runs a command with a text on stdin; raises TimeoutExpired if it is late.

  Uses files instead of pipes: a child of the command may keep its stdout open
  after the command ended, and a pipe would then never end.
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
    return subprocess.CompletedProcess(
        arguments, code, _read_all(stdout), _read_all(stderr)
    )


def _last_line(text: str) -> str:
  return (text.strip().splitlines() or ['nothing on stderr'])[-1]


def _read_reply(text: str) -> Mapping[str, Any]:
  """Parses the JSON object that a command wrote."""
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
  """An adapter that runs a command.

  Args:
    command: The command, quoted as in a shell but run without one.
    timeout: The time limit of a run in seconds, above 0. Default 600.

  Raises:
    ValueError: If the command cannot be found.

  Example:

    >>> adapter = CommandAdapter('python my_adapter.py', timeout=60)
    >>> adapter.name
    'python my_adapter.py'
  """

  def __init__(self, command: str, timeout: float = DEFAULT_TIMEOUT):
    try:
      self._arguments = shlex.split(command)
    except ValueError as error:
      raise ValueError(
          f'the command {command!r} cannot be split into words ({error}); '
          'fix its quotes'
      ) from error
    if not self._arguments or shutil.which(self._arguments[0]) is None:
      raise ValueError(
          f'the command {command!r} does not begin with an executable program; '
          'give its path, or the name of a program on PATH'
      )
    self.name = command
    self._timeout = timeout

  def supports(self, configuration: Mapping[str, Any]) -> Optional[str]:
    del configuration  # The command's reply tells.
    return None

  def replay(self, run: GoldenRun) -> Sequence[Sequence[float]]:
    try:
      ended = _run(self._arguments, json.dumps(run._asdict()), self._timeout)
    except subprocess.TimeoutExpired as error:
      raise AdapterError(
          f'the command took more than {self._timeout:g} s; raise '
          '--adapter_timeout'
      ) from error
    if ended.returncode:
      raise AdapterError(
          f'the command exited with {ended.returncode}: '
          f'{_last_line(ended.stderr)}'
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

# Builders by name, imported when needed.
_BUILDERS = {
    'stock_tff': 'experiments.conformance.stock_tff:StockTff',
    'tff_adaptive': 'experiments.conformance.replay:Library',
}

HELP = (
    'The framework in which to replay the runs and compare the weights: '
    f'{", ".join(sorted(_BUILDERS))}; {_COMMAND} followed by a command that '
    'reads a run as JSON and writes the weights after each round; or '
    'module:attribute, a function that returns an Adapter.'
)


def is_command(value: Optional[str]) -> bool:
  """Returns whether an adapter is a command, which needs no runtime of TFF.

  Args:
    value: See `create_adapter`; may be `None`.
  """
  return value is not None and value.startswith(_COMMAND)


def create_adapter(value: str, timeout: float = DEFAULT_TIMEOUT) -> Adapter:
  """Creates the adapter that a flag names.

  Args:
    value: A name, `command:` followed by a command, or `module:attribute` of a
      function that returns an `Adapter`.
    timeout: The time limit in seconds for a run of a command. Default 600.

  Returns:
    The adapter.

  Raises:
    ValueError: If the adapter is unknown, cannot be imported or is no function.
  """
  if is_command(value):
    return CommandAdapter(value.removeprefix(_COMMAND), timeout)
  if value not in _BUILDERS and ':' not in value:
    raise ValueError(
        f'unknown adapter {value!r}; give one of {sorted(_BUILDERS)}, '
        "'command:...' or 'module:attribute'"
    )
  reference = _BUILDERS.get(value, value)
  try:
    build = registry.resolve(reference)
  except (AttributeError, ImportError) as error:
    raise ValueError(
        f'the adapter {value!r} cannot be imported ({error}); give '
        'module:attribute, from a folder on PYTHONPATH'
    ) from error
  if not callable(build):
    raise ValueError(
        f'the adapter {value!r} must be a function that returns an Adapter, '
        f'found {type(build).__name__}'
    )
  return build()
