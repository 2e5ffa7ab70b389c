# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs a program by its name: `tff-adaptive train --task=digits`.

It is installed as `.venv/bin/tff-adaptive`, and runs in any folder.
"""

import os
import runpy
import shutil
import sys

# Program names to modules.
PROGRAMS = {
    'train': 'experiments.train',
    'sweep': 'experiments.sweep',
    'report': 'experiments.report',
    'leaderboard': 'experiments.leaderboard',
    'export': 'experiments.export',
    'trace': 'experiments.trace',
    'benchmark': 'experiments.benchmark',
    'fetch': 'tasks.fetch',
    'doctor': 'tff_adaptive.doctor',
}


def main() -> None:
  """Runs the program named by the first argument with the other arguments."""
  name = sys.argv[1] if len(sys.argv) > 1 else ''
  if name in ('-h', '--help', 'help'):
    print(f'usage: tff-adaptive PROGRAM [--flags]; {_describe()}')
    sys.exit(0)
  if name not in PROGRAMS:
    problem = f'unknown program {name!r}' if name else 'no program was named'
    sys.exit(f'error: {problem}; {_describe()}.')
  del sys.argv[1]
  _tell_programs(sys.argv[0])
  # As with `python -m`, to find the user's own tasks.
  sys.path.append(os.getcwd())
  runpy.run_module(PROGRAMS[name], run_name='__main__', alter_sys=True)


def _tell_programs(script: str) -> None:
  """Makes the programs print commands that begin with this script's name."""
  name = os.path.basename(script)
  if name == 'tff-adaptive':
    found = shutil.which(name)
    is_on_path = found is not None and os.path.samefile(found, script)
    # The variable of `tasks.programs`, which needs packages that the doctor may
    # find missing.
    os.environ['TFF_ADAPTIVE_STARTED_BY'] = name if is_on_path else script


def _describe() -> str:
  return f'the programs are {", ".join(PROGRAMS)}'


if __name__ == '__main__':
  main()
