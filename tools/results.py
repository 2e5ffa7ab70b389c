# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Archives the runs behind docs/results, and builds its pages from them.

`python -m tools.results pack` adds the finished runs in `runs` to
docs/results/runs.tar.xz: hyperparameters, metrics, versions, machine and any
plot of the similarity of moments, but no checkpoints. `unpack` extracts them to
`runs`, where training commands skip finished runs, and `pages` writes
docs/results from there. `--runs_dir` names a folder other than `runs`.
"""

import argparse
from collections.abc import Iterator, Sequence
import pathlib
import subprocess
import sys
import tarfile
import tempfile

from experiments import published
from experiments.report import figures
from experiments.run_results import run_folder
from tff_adaptive import _files

ARCHIVE = 'docs/results/runs.tar.xz'
_ROOT = pathlib.Path(__file__).resolve().parents[1]
_OUTPUT_DIR = pathlib.Path('docs/results')
# The folder of the leaderboard's runs.
_LEADERBOARD = 'leaderboard'
# The files that pages need; the rest of a run is large.
_KEPT = ('hparams.json', 'environment.json', 'metrics.csv', 'plots/cka.png')
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
            'fedli/table_1',
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


def _find_files(runs_dir: pathlib.Path) -> Iterator[pathlib.Path]:
  """Yields the kept files of finished runs, relative to `runs_dir`."""
  for run in run_folder.find_runs(runs_dir):
    if run.is_finished:
      for name in _KEPT:
        if (run.path / name).is_file():
          yield (run.path / name).relative_to(runs_dir)


def _run_of(path: pathlib.Path) -> pathlib.Path:
  """Returns the folder of the run to which a kept file belongs."""
  return path.parents[1] if path.parent.name == 'plots' else path.parent


def unpack(archive: pathlib.Path, runs_dir: pathlib.Path):
  """Extracts the runs of an archive to a folder, except existing ones.

  Args:
    archive: The archive.
    runs_dir: The folder.
  """
  with tarfile.open(archive) as file:
    # No links, whose targets are whatever is there, and no files elsewhere.
    members = [
        member
        for member in file
        if member.isfile()
        and not member.name.startswith('/')
        and '..' not in pathlib.Path(member.name).parts
    ]
    folders = {_run_of(pathlib.Path(m.name)) for m in members}
    new = {folder for folder in folders if not (runs_dir / folder).exists()}
    runs_dir.mkdir(parents=True, exist_ok=True)
    # A run that is there is whole: an interruption leaves the others to the
    # next call.
    with tempfile.TemporaryDirectory(dir=runs_dir, prefix='.') as extracted:
      file.extractall(
          extracted,
          [m for m in members if _run_of(pathlib.Path(m.name)) in new],
          filter='data',
      )
      for folder in sorted(new):
        (runs_dir / folder.parent).mkdir(parents=True, exist_ok=True)
        (extracted / folder).rename(runs_dir / folder)
  print(f'extracted {len(new)} of {len(folders)} runs to {runs_dir}')


def pack(archive: pathlib.Path, runs_dir: pathlib.Path):
  """Adds the finished runs of a folder to an archive.

  Args:
    archive: The archive, created if missing.
    runs_dir: The folder.
  """
  with tempfile.TemporaryDirectory() as temporary:
    kept_dir = pathlib.Path(temporary)
    if archive.exists():
      unpack(archive, kept_dir)
    sources = {path: runs_dir for path in _find_files(runs_dir)}
    replaced = set(map(_run_of, sources))
    for path in _find_files(kept_dir):
      if _run_of(path) not in replaced:
        sources[path] = kept_dir
    with (
        _files.replacing(archive) as new,
        tarfile.open(fileobj=new, mode='w:xz') as file,
    ):
      for path, folder in sorted(sources.items()):
        file.add(folder / path, path.as_posix(), filter=_without_owner)
  num_runs = len({_run_of(path) for path in sources})
  print(f'{num_runs} runs, {archive.stat().st_size:,} bytes: {archive}')


def _without_owner(member: tarfile.TarInfo) -> tarfile.TarInfo:
  """Returns a member of the archive without its owner."""
  member.uid = member.gid = 0
  member.uname = member.gname = ''
  return member


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
  if (runs_dir / _LEADERBOARD).is_dir():
    yield (
        'experiments.leaderboard',
        '--report_only',
        '--data_dir=data',
        f'--output_dir={runs_dir / _LEADERBOARD}',
        f'--results_dir={output_dir}',
    )
  yield 'experiments.audit', *folders


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
    act(_ROOT / ARCHIVE, given.runs_dir)


if __name__ == '__main__':
  main(sys.argv[1:])
