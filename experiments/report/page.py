# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Pages and CSV files that compare measured with published numbers."""

from collections.abc import Callable, Mapping, Sequence
import itertools
import pathlib
from typing import Any, Optional

import numpy as np
import pandas as pd

from experiments import command_line
from experiments import formatting
from experiments import pages
from experiments import published
from experiments.report import drawing
from experiments.report import figures
from experiments.report import results as results_lib
from experiments.report import views
from experiments.run_results import statistics

_ESTIMATES = {
    'last_10_evaluations': 'the mean of the last ten evaluations of a run',
    'last_100_rounds': 'the mean of the last hundred rounds of a run',
    'best': (
        'the best evaluation of a run, which selects a round on the test data'
    ),
    'final': 'the last evaluation of a run',
}


def write_tables(
    tables: Sequence[published.Table],
    runs_dir: pathlib.Path,
    output_dir: pathlib.Path,
    command_of: Callable[[published.Table], str],
    data_dir: Optional[str] = None,
):
  """Writes `<output_dir>/<paper>/<table>` as .md, .csv and .png.

  The page of a figure that needs no runs shows only the figure.

  Args:
    tables: The tables.
    runs_dir: The folder of all runs.
    output_dir: The folder for the pages, created if missing.
    command_of: Maps a table to the command that makes its page.
    data_dir: The folder of the data sets, to plot partitions.

  Raises:
    RunError: If a file of a run is damaged.
    OSError: If a file cannot be read or written.
  """
  times = results_lib.ExpectedTimes(runs_dir)
  for table in tables:
    path = output_dir / table.place
    command = command_of(table)
    has_runs = figures.needs_runs(table, data_dir)
    if has_runs:
      results = results_lib.collect(table, runs_dir)
    else:
      results = results_lib.without_runs(table)
    pictures = drawing.draw(results, pages.with_suffix(path, '.png'), data_dir)
    if has_runs:
      blocks = [
          *_introduce(results),
          *(_numbers(results) if figures.shows_numbers(table) else ()),
          *_figures(results, pictures, command),
          *_not_counted(results),
          *_missing(results, runs_dir, times),
          *pages.origin(list(results.runs.run), command),
      ]
      _write_csv(pages.with_suffix(path, '.csv'), results, runs_dir)
      told = (
          f'{results.cells.was_run.sum()} of {len(table.cells)} cells measured'
      )
    else:
      texts = [f'Source: {table.source}.', *table.differs, *table.notes]
      blocks = [
          *map(pages.paragraph, texts),
          *_figures(results, pictures, command),
      ]
      told = f'{len(pictures)} pictures, without runs'
    pages.write_page(path, f'{table.heading}: {table.title}', blocks)
    print(f'{path}.md: {told}', flush=True)


def _write_csv(
    path: pathlib.Path, results: results_lib.Results, runs_dir: pathlib.Path
):
  """Writes a row for each cell; costs are means over its valid runs."""
  runs = results.runs.groupby(results_lib.KEYS, sort=False)
  cells = results.cells.join(runs[list(statistics.COSTS)].mean())
  table = results.table
  rows = [
      {
          'paper': table.paper,
          'table': table.name,
          **dict(zip(results_lib.KEYS, cell.Index)),
          'published': cell.published,
          'published_std': cell.published_std,
          'measured_mean': cell.mean,
          'measured_std': cell.std,
          'seeds': ' '.join(map(str, cell.seeds)),
          'rounds_done': cell.rounds_done,
          'seconds': cell.seconds,
          'gradient_evaluations': cell.gradient_evaluations,
          'bytes': cell.bytes_up + cell.bytes_down,
          'status': cell.status,
          'problems': '; '.join(results.problems.get(cell.Index, ())),
          'command': published.build_command(
              cell.cell, output_dir=str(runs_dir)
          ),
      }
      for cell in cells.itertuples()
  ]
  formatting.write_csv_rows(path, rows)


def _introduce(results: results_lib.Results) -> list[str]:
  """Returns the introduction: answer, source, meaning of numbers, notes."""
  table, cells = results.table, results.cells
  num_complete = sum(not results.missing_seeds(cell) for cell in cells.cell)
  seeds = (
      f', {num_complete} with all {table.seeds} seeds'
      if table.seeds > 1
      else ''
  )
  text = (
      f'Source: {table.source}. {cells.was_run.sum()} of '
      f'{len(cells) + table.num_left_out} cells were measured{seeds}.'
  )
  first = [_describe_seeds(cells), *table.differs]
  if figures.shows_numbers(table):
    text += (
        f' {_describe_metrics(table)} A number is '
        f'{_ESTIMATES[table.estimate]}; over several seeds it is the mean ± '
        'the standard deviation. The notes say where the published numbers '
        'were obtained in another way.'
    )
    stamp = f'This page is for **{table.stamp}**.' if table.stamp else ''
    first = [stamp, _describe_distance(cells), *first]
  texts = [' '.join(filter(None, first)), text, *table.notes]
  return [pages.paragraph(text) for text in texts if text]


def _describe_distance(cells: pd.DataFrame) -> str:
  """Returns how far percentages are from the published ones; empty if none."""
  if views.pairs_apart(cells).empty:
    return ''
  found = cells[cells.in_percent & np.isfinite(cells.ours - cells.theirs)]
  if found.empty:
    return ''
  apart = (found.ours - found.theirs).abs()
  _, row, _ = apart.idxmax()
  setting = found.setting[apart.idxmax()]
  return (
      '**Numbers differ from the published ones by '
      f'{apart.median():.1f} points in the median, and by {apart.max():.1f} at '
      f'most ({row}, {setting}).**'
  )


def _describe_seeds(cells: pd.DataFrame) -> str:
  """Returns a sentence on the number of seeds per cell."""
  found = cells.seeds[cells.was_run].map(frozenset).unique()
  if not len(found):
    return ''
  if len(found) > 1:
    return (
        'Cells have different seeds (n is their number); gaps and places '
        'compare means over different seeds.'
    )
  (seeds,) = found
  plural = 's' if len(seeds) > 1 else ''
  return f'Each measured number is over {len(seeds)} seed{plural}.'


def _describe_metrics(table: published.Table) -> str:
  """Returns a sentence on each metric, with its place if there are several."""
  places: dict[published.Measure, list[str]] = {}
  for group, column in itertools.product(table.groups, table.columns):
    # Either a group or a column may have its own measure; rarely do both.
    entry = group if group.measure and not column.measure else column
    measure = table.measure(column.name, group.name)
    places.setdefault(measure, []).append(entry.name)
  sentences = []
  for i, (measure, names) in enumerate(places.items()):
    place = f' of {", ".join(dict.fromkeys(names))}' if i else ''
    unit = ' in percent' if measure.scale == 100.0 else ''
    direction = 'higher' if measure.higher_is_better else 'lower'
    sentences.append(
        f'The metric{place} is `{measure.metric}`{unit}, {direction} is better.'
    )
  return ' '.join(sentences)


def _numbers(results: results_lib.Results) -> list[str]:
  """Returns the numbers of the cells and how they compare."""
  is_published = results.cells.published.notna().any()
  return [
      pages.heading('Measured (published)' if is_published else 'Measured'),
      *views.build_numbers(results),
      *views.build_other_pairs(results),
      *_gaps_and_places(results),
  ]


def _gaps_and_places(results: results_lib.Results) -> list[str]:
  """Returns the gaps to the best, and how often each row is first.

  Figures have no places, since their rows need not be rivals; nor has a table
  with one setting, whose gaps say as much.
  """
  table, cells = results.table, results.cells
  sources = [
      name
      for name in (views.MEASURED, views.PUBLISHED)
      if np.isfinite(cells[name]).any()
  ]
  if len(table.rows) < 2 or not sources:
    return []
  blocks = []
  for source in sources:
    blocks += [
        pages.heading(f'Gap to the best, {source}'),
        *views.build_gaps(results, source),
    ]
  if table.figure is not None or len(table.groups) * len(table.columns) < 2:
    return blocks
  return [
      *blocks,
      pages.heading('First and second places'),
      pages.paragraph(
          'The share of all settings in which a row is the best, or one of '
          'the best two. Tied rows share the better place. A measured setting '
          'counts once two of its rows were run; a diverged row comes last.'
      ),
      views.build_places(results, sources),
  ]


def _figures(
    results: results_lib.Results,
    pictures: Mapping[pathlib.Path, str],
    command: str,
) -> list[str]:
  """Returns the pictures, or a note that there are none yet."""
  table = results.table
  if not pictures and table.figure is None:
    return []
  blocks: list[str] = [
      pages.figure(path, caption, command) for path, caption in pictures.items()
  ] or [pages.paragraph('None yet: no valid run has its data.')]
  if figures.read_options(table).kind == figures.CKA:
    blocks += _cka_commands(results)
  return [pages.heading('Figure'), *blocks]


def _cka_commands(results: results_lib.Results) -> list[str]:
  """Returns the commands that plot the clients' states, for runs without."""
  found = figures.read_options(results.table)
  options = ['--cka']
  if found.part:
    options.append(f'--cka_part={found.part}')
  if found.clients:
    options.append(f'--cka_clients={found.clients}')

  def trace(run: Any, round_num: Any) -> str:
    arguments = [f'--run={run}', f'--round={round_num}', *options]
    return command_line.build_command('trace', [*arguments, '--data_dir=data'])

  runs = list(results.runs.run)
  commands = [
      trace(run.path, run.total_rounds)
      for run in runs
      if not (run.path / 'plots' / f'{figures.CKA}.png').is_file()
  ]
  if runs and not commands:
    return []
  return [
      pages.paragraph(
          'For a finished run, a separate command plots the picture from the '
          'checkpoint of the round; then make this page again.'
      ),
      pages.code_block('\n'.join(commands) or trace('RUN', 'ROUND')),
  ]


def _not_counted(results: results_lib.Results) -> list[str]:
  """Returns the runs that do not count, with the reasons."""
  rows = [
      [' / '.join(filter(None, key)), problem]
      for key, problems in results.problems.items()
      for problem in problems
  ]
  return pages.section(
      'Runs that do not count',
      pages.table(['cell', 'reason'], rows, num_labels=2) if rows else '',
      pages.paragraph(
          'The command below resumes an unfinished run. A run with other '
          "hyperparameters occupies the folder of the cell's run: move it away."
      ),
  )


def _missing(
    results: results_lib.Results,
    runs_dir: pathlib.Path,
    times: results_lib.ExpectedTimes,
) -> list[str]:
  """Returns the missing runs, with the commands that make them."""
  rows = []
  for cell in results.table.cells:
    seeds = results.missing_seeds(cell)
    if seeds:
      command = published.build_sweep_command(
          cell, seeds, output_dir=str(runs_dir)
      )
      time = times.describe(cell, len(seeds))
      shown_seeds = ', '.join(map(str, seeds))
      name = ' / '.join(filter(None, cell.key))
      rows.append([name, shown_seeds, time, pages.code(command)])
  header = ['cell', 'seeds', 'expected time', 'command']
  return pages.section(
      'Not run',
      pages.paragraph(
          'The expected time is the median time per round of runs with the '
          'same task, model, cohort and local work, here or on another '
          'machine, times the rounds and seeds, without evaluations.'
      ),
      pages.table(header, rows, num_labels=4) if rows else '',
  )
