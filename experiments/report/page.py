# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Pages and CSV files that compare measured with published numbers."""

from collections.abc import Callable, Mapping, Sequence
import itertools
import pathlib
from typing import Any, Optional

from experiments import command_line
from experiments import csv_files
from experiments import markup
from experiments import pages
from experiments import published
from experiments.report import answer
from experiments.report import cell_results
from experiments.report import drawing
from experiments.report import figures
from experiments.report import views
from experiments.run_results import seed_statistics

_Results = Sequence[cell_results.CellResult]

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
  times = cell_results.ExpectedTimes(runs_dir)
  for table in tables:
    path = output_dir / table.place
    path_png = pages.with_suffix(path, '.png')
    command = command_of(table)
    if not figures.needs_runs(table, data_dir):
      pictures = drawing.draw(table, [], path_png, data_dir)
      blocks = [
          *map(
              pages.paragraph,
              [f'Source: {table.source}.', *table.differs, *table.notes],
          ),
          *_figures(table, [], pictures, command),
      ]
      pages.write_page(path, f'{table.heading}: {table.title}', blocks)
      print(f'{path}.md: {len(pictures)} pictures, without runs', flush=True)
      continue
    results = cell_results.collect(table, runs_dir)
    pictures = drawing.draw(table, results, path_png)
    runs = [run for result in results for run in result.runs.values()]
    blocks = [
        *_introduce(table, results),
        *(_numbers(table, results) if figures.shows_numbers(table) else ()),
        *_figures(table, results, pictures, command),
        *_not_counted(results),
        *_missing(table, results, runs_dir, times),
        *pages.origin(runs, command),
    ]
    pages.write_page(path, f'{table.heading}: {table.title}', blocks)
    rows = [_csv_row(table, result, runs_dir) for result in results]
    csv_files.write_rows(pages.with_suffix(path, '.csv'), rows)
    num_measured = sum(bool(result.numbers) for result in results)
    print(
        f'{path}.md: {num_measured} of {len(results)} cells measured',
        flush=True,
    )


def _csv_row(
    table: published.Table,
    result: cell_results.CellResult,
    runs_dir: pathlib.Path,
) -> dict[str, Any]:
  """Returns the row of a cell; totals are means over its valid runs."""
  cell, runs = result.cell, result.runs.values()
  mean = seed_statistics.mean
  return {
      'paper': table.paper,
      'table': table.name,
      'group': cell.group,
      'row': cell.row,
      'column': cell.column,
      'published': cell.published,
      'published_std': cell.published_std,
      'measured_mean': result.mean,
      'measured_std': result.std,
      'seeds': ' '.join(map(str, result.runs)),
      'rounds_done': mean([run.rounds_done for run in runs]),
      'seconds': mean([run.seconds for run in runs]),
      'gradient_evaluations': mean([run.gradient_evaluations for run in runs]),
      'bytes': mean([run.num_bytes for run in runs]),
      'status': result.status,
      'problems': '; '.join(result.problems),
      'command': published.build_command(cell, output_dir=str(runs_dir)),
  }


def _introduce(table: published.Table, results: _Results) -> list[str]:
  """Returns the introduction: answer, source, meaning of numbers, notes."""
  num_measured = sum(bool(result.numbers) for result in results)
  num_complete = sum(
      not cell_results.missing_seeds(table, result) for result in results
  )
  seeds = (
      f', {num_complete} with all {table.seeds} seeds'
      if table.seeds > 1
      else ''
  )
  num_cells = len(results) + table.num_left_out
  text = (
      f'Source: {table.source}. {num_measured} of {num_cells} cells were '
      f'measured{seeds}.'
  )
  stamp, found = '', None
  if figures.shows_numbers(table):
    text += (
        f' {_describe_metrics(table)} A number is '
        f'{_ESTIMATES[table.estimate]}; over several seeds it is the mean ± '
        'the standard deviation. The notes say where the published numbers '
        'were obtained in another way.'
    )
    stamp = f'This page is for **{table.stamp}**.' if table.stamp else ''
    found = answer.describe(table, results)
  first = [stamp, found, _describe_seeds(results), *table.differs]
  texts = [' '.join(filter(None, first)), text, *table.notes]
  return [pages.paragraph(text) for text in texts if text]


def _find_seeds(results: _Results) -> set[frozenset[int]]:
  """Returns the distinct sets of seeds of the measured cells."""
  return {frozenset(result.numbers) for result in results if result.numbers}


def _describe_seeds(results: _Results) -> str:
  """Returns a sentence on the number of seeds per cell."""
  found = _find_seeds(results)
  if not found:
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


def _numbers(table: published.Table, results: _Results) -> list[str]:
  """Returns the numbers of the cells and how they compare."""
  return [
      *_side_by_side(table, results),
      *answer.describe_other_pairs(table, results),
      *_gaps_and_places(table, results),
  ]


def _side_by_side(table: published.Table, results: _Results) -> list[str]:
  """Returns every cell as 'measured (published)'."""
  by_key = {result.cell.key: result for result in results}
  shows_count = len(_find_seeds(results)) > 1

  def format_cell(key: tuple[str, str, str]) -> str:
    result = by_key.get(key)
    if result is None:  # Joined tables have gaps.
      return ''
    decimals = views.count_decimals(table, key[2], key[0])
    if result.numbers or not result.problems:
      text = _format_measured(result, decimals, shows_count=shows_count)
    else:
      text = result.status
    theirs = views.format_published(result.cell, decimals)
    return f'{text} ({theirs})' if theirs else text

  has_published = any(cell.published is not None for cell in table.cells)
  return [
      pages.heading('Measured (published)' if has_published else 'Measured'),
      *views.build_tables(table, format_cell),
  ]


def _format_measured(
    result: cell_results.CellResult, decimals: int, *, shows_count: bool
) -> str:
  """Returns mean, spread and number of seeds, or how many seeds diverged."""
  num_found = len(result.numbers)
  num_diverged = sum(
      not views.is_number(number) for number in result.numbers.values()
  )
  if num_diverged and num_found > 1:
    return f'{num_diverged} of {num_found} diverged'
  text = views.format_value(result.mean, result.std, decimals)
  return f'{text}, n = {num_found}' if shows_count and num_found else text


def _gaps_and_places(table: published.Table, results: _Results) -> list[str]:
  """Returns the gaps to the best, and how often each row is first.

  Figures have no places, since their rows need not be rivals; nor has a table
  with one setting, whose gaps say as much.
  """
  measured = {result.cell.key: result.mean for result in results}
  sources = {
      'measured': views.round_numbers(table, measured),
      'published': {cell.key: cell.published for cell in table.cells},
  }
  sources = {
      name: numbers
      for name, numbers in sources.items()
      if any(map(views.is_number, numbers.values()))
  }
  if len(table.rows) < 2 or not sources:
    return []
  blocks = []
  for source, numbers in sources.items():
    blocks += [
        pages.heading(f'Gap to the best, {source}'),
        *views.build_gap_tables(table, numbers),
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
      views.build_places_table(table, sources),
  ]


def _figures(
    table: published.Table,
    results: _Results,
    pictures: Mapping[pathlib.Path, str],
    command: str,
) -> list[str]:
  """Returns the pictures, or a note that there are none yet."""
  if not pictures and table.figure is None:
    return []
  blocks: list[str] = [
      pages.figure(path, caption, command) for path, caption in pictures.items()
  ] or [pages.paragraph('None yet: no valid run has its data.')]
  if figures.read_options(table).kind == figures.CKA:
    blocks += _cka_commands(table, results)
  return [pages.heading('Figure'), *blocks]


def _cka_commands(table: published.Table, results: _Results) -> list[str]:
  """Returns the commands that plot the clients' states, for runs without."""
  found = figures.read_options(table)
  options = ['--cka']
  if found.part:
    options.append(f'--cka_part={found.part}')
  if found.clients:
    options.append(f'--cka_clients={found.clients}')

  def trace(run: Any, round_num: Any) -> str:
    arguments = [f'--run={run}', f'--round={round_num}', *options]
    return command_line.build_command('trace', [*arguments, '--data_dir=data'])

  runs = [run for result in results for run in result.runs.values()]
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
      pages.code('\n'.join(commands) or trace('RUN', 'ROUND')),
  ]


def _not_counted(results: _Results) -> list[str]:
  """Returns the runs that do not count, with the reasons."""
  rows = [
      [_name(result.cell), problem]
      for result in results
      for problem in result.problems
  ]
  if not rows:
    return []
  return [
      pages.heading('Runs that do not count'),
      pages.table(['cell', 'reason'], rows, num_labels=2),
      pages.paragraph(
          'The command below resumes an unfinished run. A run with other '
          "hyperparameters occupies the folder of the cell's run: move it away."
      ),
  ]


def _missing(
    table: published.Table,
    results: _Results,
    runs_dir: pathlib.Path,
    times: cell_results.ExpectedTimes,
) -> list[str]:
  """Returns the missing runs, with the commands that make them."""
  rows = []
  for result in results:
    cell, seeds = result.cell, cell_results.missing_seeds(table, result)
    if seeds:
      command = published.build_sweep_command(
          cell, seeds, output_dir=str(runs_dir)
      )
      time = times.describe(cell, len(seeds))
      shown_seeds = ', '.join(map(str, seeds))
      rows.append([_name(cell), shown_seeds, time, markup.code(command)])
  if not rows:
    return []
  header = ['cell', 'seeds', 'expected time', 'command']
  return [
      pages.heading('Not run'),
      pages.paragraph(
          'The expected time is the median time per round of runs with the '
          'same task, model, cohort and local work, here or on another '
          'machine, times the rounds and seeds, without evaluations.'
      ),
      pages.table(header, rows, num_labels=4),
  ]


def _name(cell: published.Cell) -> str:
  return ' / '.join(filter(None, cell.key))
