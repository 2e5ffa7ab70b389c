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
"""Wheels of the library, and environments that have them beside TFF."""

import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig

ROOT = pathlib.Path(__file__).resolve().parents[2]
_SOURCES = ('tff_adaptive', 'tasks', 'experiments', 'tests', 'tools')
_TIMEOUT_SECONDS = 1800
_PIP = ('-m', 'pip', '--quiet', '--disable-pip-version-check')


def copy_sources(target: pathlib.Path):
  """Copies what a wheel is made from, so that the tree stays clean.

  Args:
    target: A folder that exists.
  """
  for path in ROOT.iterdir():
    if path.name in _SOURCES:
      ignore = shutil.ignore_patterns('__pycache__')
      shutil.copytree(path, target / path.name, ignore=ignore)
    elif path.is_file():
      shutil.copy(path, target)


def build_wheel(folder: pathlib.Path) -> pathlib.Path:
  """Builds a wheel of the tree.

  Args:
    folder: Where it is made.

  Returns:
    Its path.
  """
  source = folder / 'source'
  source.mkdir()
  copy_sources(source)
  command = [sys.executable, *_PIP, 'wheel', '--no-deps', '--no-index']
  command += ['--no-build-isolation', '--wheel-dir', str(folder), str(source)]
  subprocess.run(command, cwd=folder, check=True)
  (wheel,) = folder.glob('*.whl')
  return wheel


def make_environment(folder: pathlib.Path) -> pathlib.Path:
  """Makes an environment that has TFF, and everything else of the lock.

  The packages are those of the environment that the tests run in.

  Args:
    folder: Where it is made.

  Returns:
    Its Python.
  """
  subprocess.run(
      [sys.executable, '-m', 'venv', '--without-pip', str(folder)], check=True
  )
  (site,) = folder.glob('lib/python*/site-packages')
  (site / 'lock.pth').write_text(sysconfig.get_path('purelib') + '\n')
  return folder / 'bin/python'


def install(python: pathlib.Path, wheel: pathlib.Path):
  """Installs a wheel, without what it requires.

  Args:
    python: The Python of an environment.
    wheel: The wheel.
  """
  command = [str(python), *_PIP, 'install', '--no-deps', '--no-index']
  command += ['--root-user-action', 'ignore', str(wheel)]
  subprocess.run(command, cwd=wheel.parent, check=True)


def run(
    python: pathlib.Path, *arguments: str, cwd: pathlib.Path
) -> subprocess.CompletedProcess:
  """Runs a program where nothing leads to the checkout.

  Args:
    python: The Python of an environment.
    *arguments: The program and its arguments.
    cwd: The folder to run it in.

  Returns:
    The process, with its output as text.
  """
  environment = {**os.environ, 'TF_CPP_MIN_LOG_LEVEL': '3'}
  environment.pop('PYTHONPATH', None)
  return subprocess.run(
      [str(python), *arguments],
      cwd=cwd,
      env=environment,
      capture_output=True,
      text=True,
      timeout=_TIMEOUT_SECONDS,
      check=False,
  )
