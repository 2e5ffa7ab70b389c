# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs binaries as users do, for the tests of how these start and end."""

from collections.abc import Callable, Sequence
import contextlib
import io
import json
import sys
from types import ModuleType
from typing import Any, NamedTuple, Optional
from unittest import mock

from absl import flags
from absl.testing import flagsaver

from experiments import command_line
from tests import program_testing

# Runs command lines, each in a fork of one process that has imported a module.
_CODE = """
import contextlib, importlib, io, json, os, runpy, sys, traceback
importlib.import_module(sys.argv[1])
for module, *arguments in json.loads(sys.argv[2]):
  if os.fork():
    os.wait()
    continue
  sys.argv = [module, *arguments]
  out, err, code = io.StringIO(), io.StringIO(), 0
  with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
    try:
      runpy.run_module(module, run_name="__main__")
    except SystemExit as end:
      code = end.code or 0
    except BaseException:
      traceback.print_exc()
  slow = {"matplotlib", "numpy", "tensorflow"}.intersection(sys.modules)
  ended = code, out.getvalue(), err.getvalue(), sorted(slow)
  print(json.dumps(ended), flush=True)
  os._exit(0)
"""


class Ended(NamedTuple):
  """How a program ended.

  Attributes:
    code: The exit code; 0 after an exception, which is in `stderr`.
    stdout: The standard output.
    stderr: The standard error.
    slow_imports: Those of matplotlib, NumPy and TensorFlow that it imported.
  """

  code: int
  stdout: str
  stderr: str
  slow_imports: list[str]


def run_quickly(
    *commands: Sequence[str], preloaded: str = 'experiments.registry'
) -> list[Ended]:
  """Runs modules with arguments, as `python -m` does, to an early end.

  They run one after the other, in forks of a process that has a module loaded.
  """
  ended = program_testing.run_command(
      sys.executable, '-c', _CODE, preloaded, json.dumps(commands)
  )
  assert not ended.returncode, ended.stderr
  lines = ended.stdout.splitlines()
  assert len(lines) == len(commands), ended.stderr
  return [Ended(*json.loads(line)) for line in lines]


def parse(binary: ModuleType, *arguments: str) -> flags.FlagValues:
  """Returns the parsed flags of a binary."""
  values = flags.FlagValues()
  binary.define(values)
  values([binary.__name__, *map(str, arguments)])
  return values


def call(
    binary: ModuleType, *arguments: str, out: Optional[io.StringIO] = None
) -> str:
  """Runs a binary in this process; returns what is printed.

  `out` gets it also if the binary raises.
  """
  values = parse(binary, *arguments)
  out = out or io.StringIO()
  with contextlib.redirect_stdout(out):
    binary.main(values)
  return out.getvalue()


def run_here(main: Callable[[], None], *arguments: str) -> tuple[Any, str, str]:
  """Runs the main function of a binary, with absl's flags, in this process.

  Returns the exit code, the standard output and the standard error.
  """
  out, err = io.StringIO(), io.StringIO()
  code: Any = 0
  with (
      flagsaver.flagsaver(),
      mock.patch.object(sys, 'argv', ['run', *arguments]),
      contextlib.redirect_stdout(out),
      contextlib.redirect_stderr(err),
      # The process continues, and so do its other tests.
      mock.patch.object(command_line, 'free_default_context'),
  ):
    try:
      command_line.run(main)
    except SystemExit as end:
      code = end.code
  return code, out.getvalue(), err.getvalue()
