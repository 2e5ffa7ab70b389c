# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Keeps the runs behind docs/results as text, and builds its pages from them.

`python -m tools.results pack` adds the finished runs in `runs` to the tables in
docs/results/runs, one a study: hyperparameters, versions, machine, and the
metrics that pages show. `unpack` writes them to `runs`, where training commands
skip finished runs, and `pages` writes docs/results from there. `--runs_dir`
names a folder other than `runs`.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
import pathlib
import subprocess
import sys
import tempfile

from experiments import published
from experiments.report import figures
from experiments.run_results import run_folder
from tools import kept_runs

_ROOT = pathlib.Path(__file__).resolve().parents[1]
_OUTPUT_DIR = pathlib.Path('docs/results')
KEPT_DIR = _ROOT / _OUTPUT_DIR / 'runs'
# The tables with pages, and the flags of their reports.
_REPORTS = (
    (
        (
            'delta_sgd/table_1',
            'delta_sgd/table_4',
            'delta_sgd/table_6',
            'delta_sgd/figure_7',
            'delta_sgd/last_batch',
            'delta_sgd/variants_mnist',
        ),
        ('--columns=MNIST',),
    ),
    (('delta_sgd/figure_4',), ('--rows=MNIST',)),
    (
        (
            'fedcada/table_1',
            'fedopt/code_shakespeare',
            'fedopt/table_1',
        ),
        ('--columns=Shakespeare',),
    ),
    (
        (
            'fedcada/figure_3',
            'fedcada/ablation_mnist',
            'fedcada/ag_news',
            'fedcada/comparison_mnist',
            'fedcada/similarity_mnist',
            'fedli/ag_news',
            'fedli/comparison_mnist',
            'fedli/logistic_mnist',
        ),
        (),
    ),
)


def _find_pictures() -> Mapping[bytes, str]:
  """Returns the pages' pictures by their contents."""
  folder = _ROOT / _OUTPUT_DIR
  return {
      path.read_bytes(): path.relative_to(folder).as_posix()
      for path in folder.rglob('*.png')
  }


def pack(kept_dir: pathlib.Path, runs_dir: pathlib.Path):
  """Adds the finished runs of a folder to the files of their studies.

  Args:
    kept_dir: The folder of the files.
    runs_dir: The folder of the runs.
  """
  pictures = _find_pictures()
  studies: dict[str, dict[str, kept_runs.Row]] = {}
  for run in run_folder.find_runs(runs_dir):
    if run.is_finished:
      row = kept_runs.to_row(run, runs_dir, pictures)
      study = kept_runs.study_of(row['run'])
      studies.setdefault(study, {})[row['run']] = row
  for study, rows in studies.items():
    path = kept_dir / f'{study}.csv'
    kept_runs.write(path, {**kept_runs.read(path), **rows})
    print(f'{len(rows)} runs, {path.stat().st_size:,} bytes: {path}')


def unpack(kept_dir: pathlib.Path, runs_dir: pathlib.Path):
  """Writes the folders of the kept runs, except existing ones.

  Args:
    kept_dir: The folder of the files.
    runs_dir: The folder of the runs.
  """
  num_runs = num_new = 0
  runs_dir.mkdir(parents=True, exist_ok=True)
  # A run that is there is whole: an interruption leaves the others to the next
  # call.
  with tempfile.TemporaryDirectory(dir=runs_dir, prefix='.') as temporary:
    for path in sorted(kept_dir.rglob('*.csv')):
      for name, row in kept_runs.read(path).items():
        num_runs += 1
        if not (runs_dir / name).exists():
          new = pathlib.Path(temporary, str(num_runs))
          kept_runs.restore(row, new, _ROOT / _OUTPUT_DIR)
          (runs_dir / name).parent.mkdir(parents=True, exist_ok=True)
          new.rename(runs_dir / name)
          num_new += 1
  print(f'wrote {num_new} of {num_runs} runs to {runs_dir}')


def _can_be_made(name: str, runs_dir: pathlib.Path) -> bool:
  """Returns whether a table has runs, or is a figure that needs no runs."""
  table = published.find_table(name)
  return not figures.needs_runs(table) or any(
      (runs_dir / cell.experiment_name).is_dir() for cell in table.cells
  )


def build_commands(
    runs_dir: pathlib.Path, output_dir: pathlib.Path
) -> Iterator[Sequence[str]]:
  """Yields the commands that write the pages for which there are runs.

  Args:
    runs_dir: The folder of the runs.
    output_dir: The folder of the pages.

  Yields:
    A module and its arguments.
  """
  folders = (f'--runs_dir={runs_dir}', f'--output_dir={output_dir}')
  for tables, flags in _REPORTS:
    found = [table for table in tables if _can_be_made(table, runs_dir)]
    if found:
      chosen = (f'--table={table}' for table in found)
      yield 'experiments.report', *chosen, *flags, *folders
  board = runs_dir / kept_runs.LEADERBOARD
  if board.is_dir():
    places = (f'--output_dir={board}', f'--results_dir={output_dir}')
    yield (
        'experiments.leaderboard',
        '--report_only',
        '--data_dir=data',
        *places,
    )
    yield 'tools.head_to_heads', *places
  yield 'tools.audit', *folders


def write_pages(runs_dir: pathlib.Path):
  """Writes every page for which there are runs to docs/results."""
  for module, *arguments in build_commands(runs_dir, _OUTPUT_DIR):
    print(f'python -m {module}', *arguments, flush=True)
    subprocess.run((sys.executable, '-m', module, *arguments), check=True)


def main(arguments: Sequence[str]):
  """Runs the action named on the command line."""
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument('action', choices=('pack', 'unpack', 'pages'))
  parser.add_argument('--runs_dir', type=pathlib.Path, default='runs')
  given = parser.parse_args(arguments)
  if given.action == 'pages':
    write_pages(given.runs_dir)
  else:
    act = {'pack': pack, 'unpack': unpack}[given.action]
    act(KEPT_DIR, given.runs_dir)


if __name__ == '__main__':
  main(sys.argv[1:])
