# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The page that compares any runs: a table of results and curves by round."""

from collections.abc import Collection, Mapping, Sequence
import dataclasses
import math
import os
import pathlib
from typing import Any, Optional

import numpy as np
import pandas as pd

from experiments import formatting
from experiments import pages
from experiments import settings as settings_lib
from experiments.report import drawing
from experiments.run_results import run_folder
from experiments.run_results import statistics
from tff_adaptive import _files
from tff_adaptive import _metric_modes
from tff_adaptive import analysis

# Unless one is chosen, the first of these that all runs have is compared.
_METRICS = ('accuracy', 'recall_at_5', 'loss')
_IN_PERCENT = ('accuracy', 'recall_at_5')
_MOST_DECIMALS = 10
_ESTIMATES = {
    'final': 'final',
    'best': 'best',
    'last_10_evaluations': 'last ten',
}
_LEGEND = (
    'Over several seeds, metrics are the mean ± the standard deviation, '
    '`rounds` is the smallest number and `time` the sum. '
    f'`{_ESTIMATES["last_10_evaluations"]}` is the mean of the last ten '
    'evaluations, or of all if there are fewer. `best` is for replication '
    'only: chosen on the {data} data.'
)
# On test data, also of test clients.
_ADVICE = (
    ' To choose a method, compare them on examples that the test does not '
    'have: `--validation_fraction=0.1`.'
)

_UNFINISHED = ', unfinished'
# The flags that choose the examples of evaluations, on all data or on some.
_HELD_OUT = ('heldout_clients', 'heldout_fraction')
_HELD_OUT_OF = {settings_lib.VALIDATION: ('validation_fraction',)}

# The widths of PDF files, in inches, by what is added to their names: a column
# of a conference's page, and the page.
_WIDTHS = {'': 3.3, '_wide': 6.8}


@dataclasses.dataclass(frozen=True)
class _Metric:
  """The metric of a comparison.

  Attributes:
    name: Its name, or its column.
    higher_is_better: Whether higher values are better.
  """

  name: str
  higher_is_better: bool

  @property
  def column(self) -> str:
    return run_folder.column_of(self.name)

  @property
  def scale(self) -> float:
    return 100.0 if self.name in _IN_PERCENT else 1.0

  def find_data(self, central: str) -> str:
    """Returns the name of its data, given that of central evaluations."""
    if self.column.startswith(settings_lib.OF_CLIENTS):
      return settings_lib.TEST
    of_evaluations = (run_folder.EVALUATION, settings_lib.AVERAGE)
    return central if self.column.startswith(of_evaluations) else 'training'

  def label(self, data: str) -> str:
    """Returns what it is on some data; a column says that itself."""
    if self.name == self.column:
      return self.name
    unit = ' (%)' if self.name in _IN_PERCENT else ''
    return f'{data} {self.name.replace("_", " ")}{unit}'


def write_comparison(
    paths: Sequence[str],
    output_dir: pathlib.Path,
    command: str,
    *,
    kind: str = 'run',
    title: str = '',
    seeds: Optional[Collection[int]] = None,
    names: Sequence[str] = (),
    failed: Sequence[str] = (),
    metric: Optional[str] = None,
    metric_mode: Optional[str] = None,
):
  """Writes `<output_dir>/comparison` as .md, .csv, .tex, .png and .pdf.

  `comparison.pdf` fits into a column of a page, `comparison_wide.pdf` spans it.

  Args:
    paths: Folders of runs, or of the seeds of a run: `seed_0`, `seed_1`, ...
    output_dir: The folder for the page, created if missing.
    command: The command that makes the page, to be shown on it.
    kind: The name of a folder on the page. Default 'run'.
    title: The subject of the page, such as a task. Default: none.
    seeds: The seeds to compare. Default: all.
    names: The names of the folders in tables and legends. Default: their paths
      below their common folder.
    failed: The names of others, of which runs failed, to be named as well.
    metric: The metric, or its column. Default: the first of accuracy,
      recall_at_5 and loss that all runs have.
    metric_mode: 'max' or 'min', for what is best. Default: what the name says.

  Raises:
    RunError: If a folder is neither, a file in it is damaged, the runs lack the
      metric or have none in common, its name does not tell what is best, or the
      runs were evaluated on different data.
    OSError: If a file cannot be read or written.
  """
  runs = _read_runs([pathlib.Path(path) for path in paths], seeds, names)
  compared = _find_metric(runs, metric, metric_mode)
  data = compared.find_data(_find_data(runs))
  label = compared.label(data)
  path = output_dir / 'comparison'
  picture = path.with_suffix('.png')
  _draw(runs, compared, label, picture, title)
  for ending, width in _WIDTHS.items():
    file = path.with_name(f'{path.name}{ending}.pdf')
    _draw(runs, compared, label, file, width=width)
  summaries = {
      name: _summarize(of_name, compared)
      for name, of_name in runs.groupby('name', sort=False)
  }
  columns = [kind, *_ESTIMATES.values(), 'rounds', 'time', 'seeds']
  decimals = _count_decimals(compared, summaries.values())
  rows = [
      [name, *_format(summary, decimals, runs.run[runs.name == name])]
      for name, summary in summaries.items()
  ]
  missing = f'Left out, as runs failed: {", ".join(failed)}.' if failed else ''
  advice = _ADVICE if data.startswith(settings_lib.TEST) else ''
  blocks = [
      *([pages.paragraph(pages.text(missing))] if missing else []),
      pages.paragraph(_LEGEND.format(data=pages.text(data)) + advice),
      pages.table(columns, rows),
      pages.figure(
          picture,
          f'{pages.text(label)} by round; the band is the range of the seeds.',
          command,
      ),
      *pages.origin(list(runs.run), command),
  ]
  heading = f'{label} of {len(summaries)} {kind}s'
  pages.write_page(path, ': '.join(filter(None, [title, heading])), blocks)
  formatting.write_csv_rows(
      path.with_suffix('.csv'),
      [
          {kind: name, 'metric': compared.name, **summary}
          for name, summary in summaries.items()
      ],
  )
  table = pd.DataFrame(rows, columns=columns)
  _write_latex(path.with_suffix('.tex'), label, table, missing)
  print(f'{label}:')
  print(formatting.align([columns, *rows], num_labels=1))
  print(f'{path}.md: {len(summaries)} {kind}s compared.{advice}', flush=True)


def _write_latex(
    path: pathlib.Path, label: str, table: pd.DataFrame, missing: str
):
  """Writes the table without what a paper does not need.

  Args:
    path: The file.
    label: What its numbers are.
    table: The cells of the page's table.
    missing: A sentence on what is not in it; may be empty.
  """
  # `best` is chosen on the data that it is reported on.
  kept = table.drop(columns=[_ESTIMATES['best'], 'rounds', 'time'])
  comment = (
      f'It shows {label}: of the last evaluation, and the mean of the last '
      'ten, or of all if there are fewer; ± is the standard deviation over the '
      f'seeds. {missing}'.strip()
  )
  unfinished = [
      f'{name} ({rounds.removesuffix(_UNFINISHED)} rounds)'
      for name, rounds in zip(table.iloc[:, 0], table.rounds)
      if rounds.endswith(_UNFINISHED)
  ]
  if unfinished:
    comment += f' Not finished: {", ".join(unfinished)}.'
  _files.write(path, formatting.to_latex(list(kept), kept.to_numpy(), comment))


def _summarize(runs: pd.DataFrame, metric: _Metric) -> dict[str, Any]:
  """Returns the numbers of a folder's row, in the unit of the table.

  A mean is None if a run awaits its first evaluation and no other diverged.
  """
  row: dict[str, Any] = {}
  evaluated = [run for run in runs.run if not run.awaits_evaluation]
  for estimate in _ESTIMATES:
    values = metric.scale * np.array(
        [
            run.summarize(
                metric.name, estimate, higher_is_better=metric.higher_is_better
            )
            for run in evaluated
        ]
    )
    mean, std = None, None
    if len(values) == len(runs) or not np.isfinite(values).all():
      mean, std = values.mean(), statistics.std(values)
    row[f'{estimate}_mean'], row[f'{estimate}_std'] = mean, std
  row['rounds'] = runs.rounds_done.min()
  row['seconds'] = runs.seconds.sum(skipna=False)
  row['seeds'] = len(runs)
  return row


def _count_decimals(
    metric: _Metric, summaries: Collection[Mapping[str, Any]]
) -> int:
  """Returns the decimals of a metric, with three digits of small losses."""
  if metric.scale != 1.0:
    return 2
  means = [abs(s[f'{e}_mean'] or 0.0) for s in summaries for e in _ESTIMATES]
  smallest = min((m for m in means if 0.0 < m < math.inf), default=1.0)
  needed = 2 - math.floor(math.log10(smallest))
  return min(max(4, needed), _MOST_DECIMALS)


def _format(
    summary: Mapping[str, Any], decimals: int, runs: Collection[run_folder.Run]
) -> list[str]:
  """Returns the cells of a folder's row, after its name."""
  rounds = summary['rounds']
  total = max(run.total_rounds for run in runs)
  may_stop = all(run.hparams.get('early_stopping_patience') for run in runs)
  unfinished = '' if may_stop else _UNFINISHED
  return [
      *(
          formatting.format_mean(
              summary[f'{estimate}_mean'], summary[f'{estimate}_std'], decimals
          )
          for estimate in _ESTIMATES
      ),
      f'{rounds}' if rounds >= total else f'{rounds} of {total}{unfinished}',
      formatting.format_seconds(summary['seconds']),
      str(summary['seeds']),
  ]


def _read_runs(
    paths: Sequence[pathlib.Path],
    seeds: Optional[Collection[int]],
    names: Sequence[str],
) -> pd.DataFrame:
  """Returns the runs of folders, with their names; see `write_comparison`."""
  common = os.path.commonpath([path.absolute().parent for path in paths])
  names = names or [str(path.absolute().relative_to(common)) for path in paths]
  if len(set(names)) < len(names):
    raise run_folder.RunError(
        f'a folder is there twice: {", ".join(names)}; give each once'
    )
  runs = []
  for name, path in zip(names, paths, strict=True):
    by_seed = run_folder.read_seeds(path)
    found = [by_seed[s] for s in by_seed if seeds is None or s in seeds]
    runs += [
        ({'name': name}, run) for run in found or [run_folder.read_run(path)]
    ]
  return statistics.build_frame(runs)


def _find_data(runs: pd.DataFrame) -> str:
  """Returns the name of the data on which all runs were evaluated."""
  names = {
      run.hparams.get('evaluation_data') or settings_lib.TEST
      for run in runs.run
  }
  if len(names) > 1:
    raise run_folder.RunError(
        'the runs were evaluated on different data, '
        f'{", ".join(sorted(names))}; '
        'compare runs with the same --evaluation_data'
    )
  (name,) = names
  for flag in (*_HELD_OUT, *_HELD_OUT_OF.get(name, ())):
    values = {run.hparams.get(flag) for run in runs.run}
    if len(values) > 1:
      found = sorted('unset' if v is None else str(v) for v in values)
      raise run_folder.RunError(
          f'the runs were evaluated on different {name} data, with --{flag} '
          f'{", ".join(found)}; compare runs with the same --{flag}'
      )
  return name.replace('_', ' ')


def _find_metric(
    runs: pd.DataFrame, name: Optional[str], mode: Optional[str]
) -> _Metric:
  """Returns the metric of a comparison, which all runs have measured.

  Runs that diverged before their first evaluation have measured none, and are
  left out.
  """
  evaluated = [
      run.columns.keys()
      for run in runs.run
      if any(column.startswith(run_folder.EVALUATION) for column in run.columns)
  ]
  candidates = (name,) if name else _METRICS
  for metric in candidates:
    column = run_folder.column_of(metric)
    if evaluated and all(column in columns for columns in evaluated):
      try:
        mode = _metric_modes.mode_of(metric, mode, '--metric_mode')
      except _metric_modes.UnknownModeError as error:
        raise run_folder.RunError(f'--metric={metric}: {error}') from error
      return _Metric(metric, mode == _metric_modes.MAX)
  shared = set.intersection(*map(set, evaluated)) if evaluated else set()
  found = sorted(
      # With another slash, only the column itself is a value of --metric.
      column.removeprefix(run_folder.EVALUATION)
      if column.count('/') == 1
      else column
      for column in shared
      if column.startswith(run_folder.EVALUATION)
  )
  advice = 'they must have evaluated once'
  if found:
    advice = f'choose another --metric; they have {", ".join(found)}'
  raise run_folder.RunError(
      f'the runs have none of the metrics {", ".join(candidates)} in common; '
      f'{advice}'
  )


def _draw(
    runs: pd.DataFrame,
    metric: _Metric,
    label: str,
    path: pathlib.Path,
    title: str = '',
    width: Optional[float] = None,
):
  """Plots the metric by round, one line per folder."""
  curves = {
      name: drawing.curve_over_seeds(
          [run for run in found if not run.awaits_evaluation],
          metric.column,
          scale=metric.scale,
      )
      for name, found in runs.groupby('name', sort=False).run
  }
  shown = {name: curve for name, curve in curves.items() if curve is not None}
  if not shown:
    raise run_folder.RunError(
        f'there is no curve of {metric.column}: no run has a round in which '
        'all of its seeds measured it'
    )
  analysis.plot_band_curves(
      {'': shown},
      path,
      title=title,
      y_label=label,
      names=list(curves),
      width=width,
  )
