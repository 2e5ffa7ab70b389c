# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Start and end of the binaries: quiet libraries and one-sentence errors.

TensorFlow is not imported here.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
import contextlib
import os
import pathlib
import re
import select
import signal
import sys
import traceback
from typing import Any
import warnings

from absl import app
from absl import flags

from tasks import programs

_MAX_SUGGESTIONS = 3
# Names of flags in other programs, and the ends of the names here.
_SHORT_NAMES = {
    'lr': 'learning_rate',
    'num_rounds': 'rounds',
    'num_epochs': 'epochs',
}

_IS_MISSING = re.compile(
    r'flag --(\w+)=None: Flag --\w+ must have a value other than None'
)
# Ends of absl's errors about values, and what the values must be.
_WANTED = {
    r'invalid literal for int\(\) with base': 'an integer',
    r'could not convert string to float': 'a number',
    r'must be a number': 'a number',
    r'.*Non-boolean argument to boolean flag': 'true or false',
}


def describe(error: flags.Error, flag_values: flags.FlagValues) -> str:
  """Returns a sentence on an error in the flags, with advice.

  Args:
    error: The error from absl.
    flag_values: The flags.

  Returns:
    A sentence; the text of the error if there is no better one.
  """
  text = str(error)
  if isinstance(error, flags.UnrecognizedFlagError):
    return _describe_unknown(error, flag_values)
  missing = _IS_MISSING.findall(text)
  if missing:
    names = ' and '.join(f'--{name}' for name in missing)
    verb = 'is' if len(missing) == 1 else 'are'
    return f'{names} {verb} missing, see --help'
  for end, wanted in _WANTED.items():
    found = re.match(rf'flag --(\w+)=(.*): {end}', text, re.DOTALL)
    if found:
      name, value = found.groups()
      return f'--{name} must be {wanted}, found {value!r}'
  return text


def _describe_unknown(
    error: flags.UnrecognizedFlagError, flag_values: flags.FlagValues
) -> str:
  """Returns the error with the flags whose names end, or begin, like this."""
  text, _, of_absl = str(error).partition('. Did you mean: ')
  end = _SHORT_NAMES.get(error.flagname, error.flagname)
  names = [name for name in flag_values if name.endswith(f'_{end}')]
  unused = _flags_of_others(flag_values)
  nearest = sorted(
      (name for name in names if name not in unused),
      key=lambda name: (len(name), name),
  )
  # The suggestions of absl only share the beginning of the name.
  nearest = nearest or [
      name for name in re.findall(r'\w+', of_absl) if name not in unused
  ]
  if not nearest:
    return text
  *others, last = (f'--{name}' for name in nearest[:_MAX_SUGGESTIONS])
  choice = f'{", ".join(others)} or {last}' if others else last
  return f'{text}; did you mean {choice}?'


def _flags_of_others(flag_values: flags.FlagValues) -> set[str]:
  """Returns flags of tasks and rules other than those on the command line."""
  from experiments import registry  # pylint: disable=import-outside-toplevel

  of_given: set[str] = set()
  of_others: set[str] = set()
  for kind, rows in registry.ROWS.items():
    is_given = kind in flag_values and flag_values[kind].present
    for row in rows.values():
      is_other = is_given and row.name != flag_values[kind].value
      names = {row.flag_name(argument) for argument in row.arguments}
      (of_others if is_other else of_given).update(names)
  return of_others - of_given


_OUR_PACKAGES = ('experiments', 'tasks', 'tff_adaptive')
_EXIT_ENVIRONMENT = 1
_EXIT_USER = 2
_EXIT_INTERRUPTED = 130
# As for a program that was ended by SIGPIPE.
_EXIT_OUTPUT_CUT = 141


class UserError(Exception):
  """An error that the user can fix; the text is one sentence."""


class EnvironmentalError(Exception):
  """An error of the machine, such as of its disk; the text is one sentence."""


def _raised_by_us(error: BaseException) -> bool:
  """Returns whether our own code, not a library, raised an error."""
  frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
  module = frames[-1].f_globals.get('__name__', '')
  return module.partition('.')[0] in _OUR_PACKAGES


@contextlib.contextmanager
def errors_as(
    kind: type[Exception], *caught: type[BaseException]
) -> Iterator[None]:
  """Converts exceptions of a block to `UserError` or `EnvironmentalError`.

  A ValueError or TypeError is converted only if our own code raised it; if a
  library raised it, it is a bug and keeps its traceback.

  Args:
    kind: `UserError` or `EnvironmentalError`.
    *caught: The exceptions to convert.

  Yields:
    Nothing.

  Raises:
    UserError: If `kind` is `UserError` and one of `caught` was raised.
    EnvironmentalError: Likewise.
  """
  try:
    yield
  except caught as error:
    if isinstance(error, (TypeError, ValueError)) and not _raised_by_us(error):
      raise
    raise kind(str(error)) from error


@contextlib.contextmanager
def reporting(*caught: type[BaseException]) -> Iterator[None]:
  """Converts an OSError to an `EnvironmentalError`, others to a `UserError`.

  Args:
    *caught: The exceptions to convert to a `UserError`; see `errors_as`.

  Yields:
    Nothing.

  Raises:
    EnvironmentalError: If a file cannot be read or written.
    UserError: If one of `caught` was raised.
  """
  with errors_as(EnvironmentalError, OSError), errors_as(UserError, *caught):
    yield


def _sentence(error: BaseException) -> str:
  """Returns the line that reports an error to the user."""
  text = ' '.join(str(error).split())
  return f'error: {text}' if text.endswith(('.', '?')) else f'error: {text}.'


def _parse_flags(
    argv: Sequence[str], define_more: Callable[[Sequence[str]], Any]
) -> list[str]:
  """Parses flags; exits with 0 after `--help`, where absl exits with 1."""
  try:
    define_more(argv[1:])
    try:
      arguments = flags.FLAGS(list(argv))
    except SystemExit:
      sys.exit(0)
    except UnicodeDecodeError as error:
      raise flags.CantOpenFlagFileError(str(error)) from error
    except ValueError as error:  # Of absl, on '--noflag=value'.
      raise flags.Error(str(error)) from error
  except flags.CantOpenFlagFileError as error:
    reason = str(error).replace('ERROR:: Unable to open flagfile: ', '')
    _exit(
        _EXIT_USER,
        f'error: the --flagfile cannot be read ({reason}); give a text file '
        'with one flag per line.',
    )
  except flags.Error as error:
    sentence = describe(error, flags.FLAGS)
    _exit(_EXIT_USER, _sentence(flags.Error(sentence)))
  if len(arguments) > 1:
    _exit(
        _EXIT_USER,
        f'error: flags begin with --, found {" ".join(arguments[1:])!r}.',
    )
  return arguments


def _exit(code: int, sentence: str):
  print(sentence, file=sys.stderr)
  sys.exit(code)


def free_default_context():
  """Frees TFF's default context quietly, if TFF was imported.

  No TFF computation can run afterwards.
  """
  if 'tensorflow_federated' in sys.modules:
    from tff_adaptive.runtime import contexts  # pylint: disable=import-outside-toplevel

    contexts.free_default()


def _is_output_cut() -> bool:
  """Returns whether the reader of stdout has gone."""
  poll = select.poll()
  try:
    poll.register(sys.stdout.fileno(), 0)
  except OSError:  # It is not a file.
    return False
  return any(event & select.POLLERR for _, event in poll.poll(0))


@contextlib.contextmanager
def _quiet_if_output_is_cut() -> Iterator[None]:
  """Exits silently if the reader of stdout has gone, as after `| head`."""
  try:
    try:
      yield
    finally:
      sys.stdout.flush()
  except BrokenPipeError:
    if not _is_output_cut():
      raise
    # Python flushes once more at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(_EXIT_OUTPUT_CUT)


@_quiet_if_output_is_cut()
def run(
    main: Callable[[], Any],
    define_more: Callable[[Sequence[str]], Any] = lambda arguments: None,
):
  """Parses the flags and runs a binary.

  A `UserError` exits with one sentence and code 2, an `EnvironmentalError` with
  one sentence and code 1, Ctrl-C with one sentence and code 130, and a closed
  stdout with code 141. Everything else is a bug and keeps its traceback.

  Args:
    main: The main function without arguments, called after parsing the flags.
    define_more: Defines further flags, given the command line's arguments.
  """
  app.define_help_flags()
  # `--help` begins with this text.
  module = sys.modules['__main__']
  module.__doc__ = programs.localize(module.__doc__ or '')
  _parse_flags(sys.argv, define_more)
  # Not `app.run`: if TensorFlow is imported within it, it assumes eager mode
  # everywhere, and Flatten of Keras fails.
  try:
    main()
  except (UserError, flags.Error) as error:
    _exit(_EXIT_USER, _sentence(error))
  except EnvironmentalError as error:
    if isinstance(error.__cause__, BrokenPipeError) and _is_output_cut():
      raise error.__cause__
    _exit(_EXIT_ENVIRONMENT, _sentence(error))
  except KeyboardInterrupt as interrupt:
    _exit(
        _EXIT_INTERRUPTED,
        str(interrupt) or 'Interrupted; run the same command again.',
    )
  finally:
    free_default_context()


def given_flags(
    flag_values: flags.FlagValues, names: Iterable[str]
) -> dict[str, str]:
  """Returns flags that were given, as text by name: 'seed' and '--seed=0'."""
  return {
      name: flag_values[name].serialize()
      for name in names
      if flag_values[name].present
  }


def build_command(
    binary: str, arguments: Iterable[str], package: str = 'experiments'
) -> str:
  """Returns the line for a shell that runs one of the binaries."""
  return programs.to_command(f'{package}.{binary}', arguments)


def check_run(run: pathlib.Path):
  """Raises unless a folder contains a run, without reading its files.

  Args:
    run: The value of --run.

  Raises:
    UserError: If the folder has no hparams.json.
  """
  if not os.path.isfile(run / 'hparams.json'):
    raise UserError(
        f'--run={run} is not the folder of a run: it has no hparams.json'
    )


def kill_group(process: Any):
  """Ends what a process has started, and itself if it is alive.

  Args:
    process: A subprocess.Popen, or what has its pid, kill and wait; started
      with a session of its own, or about to begin one.
  """
  with contextlib.suppress(ProcessLookupError):
    os.killpg(process.pid, signal.SIGKILL)
  process.kill()
  process.wait()


def prepare_libraries():
  """Makes TensorFlow quiet and fast; must be called before its import.

  Environment variables that are already set are kept.
  """
  os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
  # Speeds up convolutions on CPUs where it is not TensorFlow's default.
  os.environ.setdefault('TF_ENABLE_ONEDNN_OPTS', '1')
  warnings.filterwarnings('ignore', message='pkg_resources is deprecated')
