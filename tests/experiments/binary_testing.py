# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs binaries as users do, for the tests of how these start and end."""

import contextlib
import io
import subprocess
import sys
from types import ModuleType
from typing import Any, Callable, Optional
from unittest import mock

from absl import flags
from absl.testing import flagsaver

from experiments import command_line
from tests import program_testing

# Arguments: the binary, modules that it must not import, and its own arguments.
_CODE = """
import runpy, sys
_, binary, forbidden, *arguments = sys.argv
sys.argv = [binary, *arguments]
try:
  runpy.run_module(f"experiments.{binary}", run_name="__main__")
finally:
  found = set(forbidden.split(",")).intersection(sys.modules)
  assert not found, found
"""


def run_quickly(
    binary: str, *arguments: str, forbidden: str = 'tensorflow'
) -> subprocess.CompletedProcess:
  """Runs a binary in a process of its own, to an end before any slow import.

  The output has a traceback if one of the forbidden modules, which commas
  separate, was imported.
  """
  return program_testing.run_command(
      sys.executable, '-c', _CODE, binary, forbidden, *arguments
  )


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
