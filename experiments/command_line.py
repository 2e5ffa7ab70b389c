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
"""How the binaries start and end: quiet libraries, one-sentence errors.

No TensorFlow is imported here.
"""

from collections.abc import Callable, Iterator, Sequence
import contextlib
import os
import pathlib
import select
import sys
import traceback
from typing import Any
import warnings

from absl import app
from absl import flags

from experiments import flag_errors
from experiments import process_groups
from tff_adaptive import _stack

_OUR_PACKAGES = ('experiments', 'tasks', 'tff_adaptive')
_EXIT_ENVIRONMENT = 1
_EXIT_USER = 2
_EXIT_INTERRUPTED = 130
# As of a program that the signal SIGPIPE has ended.
_EXIT_OUTPUT_CUT = 141


class UserError(Exception):
  """Something that the user can mend; its text is one sentence."""


class EnvironmentalError(Exception):
  """Something that the machine refused; its text is one sentence."""


def _raised_by_us(error: BaseException) -> bool:
  """Returns whether our own code raised an error, and no library of it."""
  frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
  module = frames[-1].f_globals.get('__name__', '')
  return module.partition('.')[0] in _OUR_PACKAGES


@contextlib.contextmanager
def errors_as(
    kind: type[Exception], *caught: type[BaseException]
) -> Iterator[None]:
  """Turns exceptions of a block into one of the two kinds of this module.

  A ValueError or TypeError is turned only where our own code raised it: one
  that comes out of a library tells of a bug, and keeps its traceback.

  Args:
    kind: `UserError` or `EnvironmentalError`.
    *caught: The exceptions to turn; others pass.

  Yields:
    Nothing.

  Raises:
    UserError: If `kind` is that and one of `caught` was raised.
    EnvironmentalError: If `kind` is that and one of `caught` was raised.
  """
  try:
    yield
  except caught as error:
    if isinstance(error, (TypeError, ValueError)) and not _raised_by_us(error):
      raise
    raise kind(str(error)) from error


def _sentence(error: BaseException) -> str:
  """Returns the line that tells the user about an error."""
  text = ' '.join(str(error).split())
  return f'error: {text}' if text.endswith(('.', '?')) else f'error: {text}.'


def _parse_flags(argv: Sequence[str]) -> list[str]:
  """Parses flags; absl ends `--help` with 1, but help is no failure."""
  try:
    arguments = flags.FLAGS(list(argv))
  except flags.CantOpenFlagFileError as error:
    reason = str(error).replace('ERROR:: Unable to open flagfile: ', '')
    _exit(
        _EXIT_USER,
        f'error: the --flagfile cannot be read ({reason}); it is a text file '
        'with one flag a line.',
    )
  except flags.Error as error:
    sentence = flag_errors.describe(error, flags.FLAGS)
    _exit(_EXIT_USER, _sentence(flags.Error(sentence)))
  except SystemExit:
    sys.exit(0)
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
  """Frees TFF's default context, if TFF was imported, and keeps it silent.

  No TFF computation can run afterwards.
  """
  if 'tensorflow_federated' in sys.modules:
    from tff_adaptive.runtime import default_context  # pylint: disable=import-outside-toplevel

    default_context.free()


def _is_output_cut() -> bool:
  """Returns whether nobody reads what is printed any more."""
  poll = select.poll()
  try:
    poll.register(sys.stdout.fileno(), 0)
  except OSError:  # It is no file.
    return False
  return any(event & select.POLLERR for _, event in poll.poll(0))


@contextlib.contextmanager
def _quiet_if_output_is_cut() -> Iterator[None]:
  """Ends without a word where nobody reads what is printed, as after `head`."""
  try:
    try:
      yield
    finally:
      sys.stdout.flush()
  except BrokenPipeError:
    if not _is_output_cut():
      raise
    # Python flushes once more at its end.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(_EXIT_OUTPUT_CUT)


@_quiet_if_output_is_cut()
def run(main: Callable[[], Any]):
  """Parses the flags and runs a binary.

  Errors of the user end with one sentence and code 2, those of the machine with
  one sentence and code 1, Ctrl-C with one sentence and code 130, output that
  nobody reads any more with code 141. Everything else is a bug and keeps its
  traceback.

  Args:
    main: Takes nothing; flags are parsed when it is called.
  """
  process_groups.end_with_parent()
  app.define_help_flags()
  _parse_flags(sys.argv)
  # Not `app.run`: TensorFlow, imported after that has begun, takes eager mode
  # for granted everywhere, and Keras' Flatten fails.
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
        str(interrupt) or 'Interrupted; run the same command again to go on.',
    )
  finally:
    free_default_context()


def check_run(run: pathlib.Path):
  """Raises unless a folder is that of a run; its files are looked into later.

  Args:
    run: The value of --run.

  Raises:
    UserError: If it has no hparams.json.
  """
  if not (run / 'hparams.json').is_file():
    raise UserError(
        f'--run={run} is not the folder of a run: it has no hparams.json'
    )


def prepare_libraries():
  """Makes TensorFlow silent and fast; call it before its import.

  What the environment says already stays.
  """
  _stack.install()
  os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
  # Faster convolutions, also on the CPUs where it is not TensorFlow's default.
  os.environ.setdefault('TF_ENABLE_ONEDNN_OPTS', '1')
  warnings.filterwarnings('ignore', message='pkg_resources is deprecated')
