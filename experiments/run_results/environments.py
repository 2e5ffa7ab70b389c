# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Records of the versions and the machine that train a run, in its folder."""

from importlib import metadata
import json
import os
import pathlib
import platform
import subprocess
from typing import Any

import tff_adaptive
from tff_adaptive import _files

_FILE = 'environment.json'
_PACKAGES = ('tensorflow', 'tensorflow-federated', 'keras', 'tf_keras', 'numpy')
_CPU_INFO = pathlib.Path('/proc/cpuinfo')


def collect() -> dict[str, Any]:
  """Returns the versions and the machine of this process.

  Returns:
    Plain values by name. The version of tff_adaptive includes the commit if it
    is imported from a checkout, with 'dirty' if files have changed since.
  """
  return {
      'tff_adaptive': _own_version(),
      **{package: _version(package) for package in _PACKAGES},
      'python': platform.python_version(),
      'system': f'{platform.system()} {platform.machine()}',
      'processor': processor(),
      'cores': os.cpu_count(),
  }


def _own_version() -> str:
  root = pathlib.Path(tff_adaptive.__file__).parents[1]
  if not (root / '.git').exists():
    return tff_adaptive.__version__
  try:
    commit = subprocess.run(
        'git describe --always --dirty --exclude=*'.split(),
        cwd=root,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
  except (OSError, subprocess.CalledProcessError):  # No git, or no access.
    return tff_adaptive.__version__
  return f'{tff_adaptive.__version__} ({commit})'


def _version(package: str) -> str:
  """Returns the version of a package."""
  try:
    return metadata.version(package)
  except metadata.PackageNotFoundError:
    return 'not installed'


def processor() -> str:
  """Returns the name of the processor, if the system reports it."""
  try:
    lines = _CPU_INFO.read_text(encoding='utf-8').splitlines()
  except OSError:
    return platform.processor()
  names = [line.partition(':')[2] for line in lines if 'model name' in line]
  return names[0].strip() if names else platform.processor()


def read(folder: pathlib.Path) -> list[dict[str, Any]]:
  """Returns the environments in which a run was started and resumed.

  Args:
    folder: The folder of the run.

  Returns:
    The distinct environments; none if the record is missing or damaged.
  """
  try:
    found = json.loads((folder / _FILE).read_text(encoding='utf-8'))
  except (OSError, ValueError):
    return []
  is_whole = isinstance(found, list) and all(isinstance(e, dict) for e in found)
  return found if is_whole else []


def record(folder: pathlib.Path):
  """Adds the environment of this process to the record of a run.

  Args:
    folder: The folder of the run, which must exist.

  Raises:
    WriteError: If the file cannot be written.
  """
  found = read(folder)
  current = collect()
  if current in found:
    return
  _files.write(folder / _FILE, json.dumps([*found, current], indent=2) + '\n')
