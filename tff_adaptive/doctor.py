# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks whether this environment can run `tff_adaptive`, and how to fix it.

Run it as `python -m tff_adaptive.doctor`. It needs only the standard library,
so that it works where TensorFlow or TFF is missing or broken.
"""

import argparse
from collections.abc import Sequence
import importlib
from importlib import metadata
import os
import platform
import shutil
import sys
from typing import Optional
import warnings

from tff_adaptive import _compile_cache
from tff_adaptive import _stack

# The needs of `make demo`, with a margin.
_NEEDED_MEMORY_GIB = 2.0
_NEEDED_DISK_GIB = 1.0

_IN_ORDER = 'Everything is in order.'
_DESCRIPTION = (
    'Compares versions, checks devices, memory and disk, imports TensorFlow '
    'and TFF, and says how to fix what is missing.'
)

# The lines to print, and a sentence for each problem.
_Report = tuple[list[str], list[str]]


def _line(name: str, value: str, note: str = '') -> str:
  return f'{name:<29}{value}{"  " + note if note else ""}'


def _how_to_install(package: str, version: str) -> str:
  command = f'pip install --no-deps {package}=={version}'
  if package == 'tensorflow-federated':
    command = _stack.TFF_COMMAND
  return (
      'run `make venv` in a checkout of tff_adaptive and use its'
      f' .venv/bin/python, or `{sys.executable} -m {command}` here'
  )


def _check_python(version: tuple[int, int]) -> _Report:
  """Compares the running Python, as (major, minor), with the range."""
  oldest, newest = ('{}.{}'.format(*python) for python in _stack.PYTHONS)
  note = f'(supported: {oldest} to {newest})'
  lines = [_line('Python', platform.python_version(), note)]
  if _stack.PYTHONS[0] <= version <= _stack.PYTHONS[1]:
    return lines, []
  return lines, [
      f'This is Python {version[0]}.{version[1]}, but tff_adaptive needs Python'
      f' {oldest} to {newest} with TensorFlow {_stack.PACKAGES["tensorflow"]}:'
      ' install one of them and run `make venv` in a checkout of tff_adaptive.'
  ]


def _find_version(package: str) -> Optional[str]:
  try:
    return metadata.version(package)
  except metadata.PackageNotFoundError:
    return None


def _check_packages() -> _Report:
  """Compares installed versions with the lock file, without importing any."""
  lines: list[str] = []
  problems = []
  for package, locked in _stack.PACKAGES.items():
    # TensorFlow without support for GPUs is a package of its own.
    found = _find_version(package) or _find_version(f'{package}-cpu')
    lines.append(_line(package, found or 'missing', f'(locked: {locked})'))
    if found == locked:
      continue
    if found and found.startswith(_stack.NEWER.get(package, locked)):
      continue
    state = f'version {found}' if found else 'not installed'
    problems.append(
        f'{package} is {state}, but this release needs {locked}:'
        f' {_how_to_install(package, locked)}.'
    )
  return lines, problems


def _silence_tensorflow() -> None:
  # Set before TensorFlow is loaded: only the report should be printed.
  os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'
  warnings.simplefilter('ignore')


def _check_import(name: str) -> _Report:
  """Imports a package and reports any error."""
  try:
    importlib.import_module(name)
  except Exception as error:  # pylint: disable=broad-exception-caught
    cause = f'{type(error).__name__}: {error}'.splitlines()[0]
    return [_line(f'import {name}', 'fails')], [
        f'Importing {name} fails with "{cause}": fix the versions above first'
        ' if any is wrong, otherwise run `make venv` in a fresh checkout of'
        ' tff_adaptive.'
    ]
  return [_line(f'import {name}', 'works')], []


def _check_devices() -> _Report:
  """Lists the CPUs, and the devices of JAX, which are optional."""
  if hasattr(os, 'sched_getaffinity'):
    cpus = len(os.sched_getaffinity(0))
  else:
    cpus = os.cpu_count() or 1
  return [_line('CPUs', str(cpus)), *_list_jax_devices()], []


def _list_jax_devices() -> list[str]:
  """Lists the devices of JAX, what is missing, and where it keeps programs."""
  try:
    jax = importlib.import_module('jax')
    found = ', '.join(map(str, jax.devices()))
  except ModuleNotFoundError:
    note = (
        '(to run rounds on accelerators: make venv EXTRAS=jax in a checkout, or'
        f' {sys.executable} -m pip install jax)'
    )
    return [_line('JAX', 'none', note)]
  except Exception as error:  # pylint: disable=broad-exception-caught
    return [_line('JAX', 'none', f'({type(error).__name__}: {error})')]
  note = ''
  if jax.default_backend() == 'cpu':
    note = (
        '(to use a GPU: make venv LOCK=requirements-cuda.txt in a checkout, or'
        f" {sys.executable} -m pip install 'jax[cuda13]')"
    )
  folder = _compile_cache.find(jax) or 'none'
  return [_line('JAX', found, note), _line('compiled programs', folder)]


def _free_memory_gib() -> Optional[float]:
  """Returns the available memory, or `None` where Linux does not report it."""
  try:
    with open('/proc/meminfo', encoding='ascii') as meminfo:
      for line in meminfo:
        if line.startswith('MemAvailable:'):
          return int(line.split()[1]) / 2**20
  except OSError:
    pass
  return None


def _free_disk_gib() -> float:
  return shutil.disk_usage(os.getcwd()).free / 2**30


def _check_space() -> _Report:
  """Checks free memory, and free disk space in the current folder."""
  problems = []
  memory, disk = _free_memory_gib(), _free_disk_gib()
  shown = 'unknown' if memory is None else f'{memory:.1f} GiB'
  lines = [
      _line('free memory', shown),
      _line('free disk', f'{disk:.1f} GiB in {os.getcwd()}'),
  ]
  if memory is not None and memory < _NEEDED_MEMORY_GIB:
    problems.append(
        f'Only {memory:.1f} GiB of memory is free, {_NEEDED_MEMORY_GIB:.0f}'
        ' GiB are needed: close other programs or use a larger machine.'
    )
  if disk < _NEEDED_DISK_GIB:
    problems.append(
        f'Only {disk:.1f} GiB of disk are free in {os.getcwd()},'
        f' {_NEEDED_DISK_GIB:.0f} is needed: delete files, such as old runs, or'
        ' work in another folder.'
    )
  return lines, problems


def main(arguments: Sequence[str] = ()) -> int:
  """Prints the state of the environment and its problems.

  Args:
    arguments: Command-line arguments; only `--help` is known.

  Returns:
    The exit status: 0 if everything is in order, 1 otherwise.

  Raises:
    SystemExit: After `--help`, or for an unknown argument.
  """
  argparse.ArgumentParser(
      prog='python -m tff_adaptive.doctor', description=_DESCRIPTION
  ).parse_args(arguments)
  _silence_tensorflow()
  checks = [
      lambda: _check_python(sys.version_info[:2]),
      _check_packages,
      lambda: _check_import('tensorflow'),
      lambda: _check_import('tensorflow_federated'),
      _check_devices,
      _check_space,
  ]
  all_problems = []
  for check in checks:
    lines, problems = check()
    print(*lines, sep='\n', flush=True)
    all_problems.extend(problems)
  print('', *(all_problems or [_IN_ORDER]), sep='\n')
  return 1 if all_problems else 0


if __name__ == '__main__':
  sys.exit(main(sys.argv[1:]))
