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
"""The page of a published table: measured beside published."""

from collections.abc import Callable, Mapping, Sequence
import itertools
import pathlib

from experiments import pages
from experiments import published
from experiments.report import cell_results
from experiments.report import figures
from experiments.report import views
from experiments.run_results import provenance

_Results = Sequence[cell_results.CellResult]

_ESTIMATES = {
    'last_10_evaluations': 'the mean of the last ten evaluations of a run',
    'last_100_rounds': 'the mean of the last hundred rounds of a run',
    'best': 'the best evaluation of a run, which looks at the test data often',
    'final': 'the last evaluation of a run',
}


def build_page(
    table: published.Table,
    results: _Results,
    pictures: Mapping[pathlib.Path, str],
    *,
    command: str,
    runs_dir: pathlib.Path,
    expect_time: Callable[[published.Cell, int], str],
) -> pages.Page:
  """Returns the page of a table.

  Args:
    table: The table.
    results: What was measured of its cells.
    pictures: What the pictures show, by their files.
    command: What makes the page and the pictures.
    runs_dir: The folder of all runs.
    expect_time: From a cell and the number of its runs to the time that these
      may take, in words.

  Returns:
    The page.
  """
  runs = [run for result in results for run in result.runs.values()]
  return pages.Page(
      f'{table.heading}: {table.title}',
      [
          *_stamp(table),
          pages.Paragraph(_describe(table, results)),
          *map(pages.Paragraph, table.notes),
          *_side_by_side(table, results),
          *_gaps(table, results),
          *_places(table, results),
          *_figures(table, results, pictures, command),
          *cell_results.build_blocks(table, results, runs_dir, expect_time),
          *provenance.build_blocks(runs, command),
      ],
  )


def _stamp(table: published.Table) -> list[pages.Block]:
  """Returns the warning that the numbers were chosen on the test data."""
  if not table.stamp:
    return []
  return [pages.Paragraph(f'This page is for **{table.stamp}**.')]


def _describe(table: published.Table, results: _Results) -> str:
  """Returns what the numbers are."""
  num_measured = sum(bool(result.numbers) for result in results)
  num_complete = sum(
      not cell_results.missing_seeds(table, result) for result in results
  )
  seeds = (
      f', {num_complete} with all {table.seeds} seeds'
      if table.seeds > 1
      else ''
  )
  return (
      f'Source: {table.source}. {num_measured} of {len(results)} cells were '
      f'measured{seeds}. {_describe_metrics(table)} A number is '
      f'{_ESTIMATES[table.estimate]}; of several seeds it is the mean ± the '
      f'standard deviation. {_describe_seeds(results)}How the published '
      'numbers were made may differ; the notes say so.'
  )


def _find_seeds(results: _Results) -> set[frozenset[int]]:
  """Returns the seeds of the measured cells; one set if all have the same."""
  return {frozenset(result.numbers) for result in results if result.numbers}


def _describe_seeds(results: _Results) -> str:
  """Returns of how many seeds the numbers are, or that these differ."""
  found = _find_seeds(results)
  if len(found) > 1:
    return (
        'The cells differ in their seeds: n is how many a cell has, and gaps '
        'and places compare means over different seeds. '
    )
  return ''.join(
      f'Each measured number is of {len(seeds)} '
      f'seed{"s" if len(seeds) > 1 else ""}. '
      for seeds in found
  )


def _describe_metrics(table: published.Table) -> str:
  """Returns what is compared, and where if that is not the same everywhere."""
  places: dict[published.Measure, list[str]] = {}
  for group, column in itertools.product(table.groups, table.columns):
    # A group or a column has a measure of its own, rarely both.
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


def _side_by_side(
    table: published.Table, results: _Results
) -> list[pages.Block]:
  """Returns every cell as 'measured (published)'."""
  by_key = {result.key: result for result in results}
  shows_count = len(_find_seeds(results)) > 1

  def format_cell(key: tuple[str, str, str]) -> str:
    result = by_key.get(key)
    if result is None:  # Tables that were joined have gaps.
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
      pages.Heading('Measured (published)' if has_published else 'Measured'),
      *views.build_tables(table, format_cell),
  ]


def _format_measured(
    result: cell_results.CellResult, decimals: int, *, shows_count: bool
) -> str:
  """Returns mean and spread, and of how many seeds, or how many diverged."""
  num_found = len(result.numbers)
  num_diverged = sum(
      not views.is_number(number) for number in result.numbers.values()
  )
  if num_diverged and num_found > 1:
    return f'{num_diverged} of {num_found} diverged'
  text = views.format_value(result.mean, result.std, decimals)
  return f'{text}, n = {num_found}' if shows_count and num_found else text


def _numbers_by_source(
    table: published.Table, results: _Results
) -> dict[str, views.Numbers]:
  """Returns what there is of measured and published numbers, as shown."""
  sources = {
      'measured': views.round_numbers(
          table, cell_results.measured_numbers(results)
      ),
      'published': cell_results.published_numbers(table.cells),
  }
  return {
      name: numbers
      for name, numbers in sources.items()
      if any(map(views.is_number, numbers.values()))
  }


def _gaps(table: published.Table, results: _Results) -> list[pages.Block]:
  """Returns the gaps to the best, measured and published."""
  if len(table.rows) < 2:
    return []
  blocks: list[pages.Block] = []
  for source, numbers in _numbers_by_source(table, results).items():
    blocks += [
        pages.Heading(f'Gap to the best, {source}'),
        pages.Paragraph(views.GAP_LEGEND),
        *views.build_gap_tables(table, numbers),
    ]
  return blocks


def _places(table: published.Table, results: _Results) -> list[pages.Block]:
  """Returns how often rows are first; a figure's rows may be no rivals."""
  sources = _numbers_by_source(table, results)
  if table.figure is not None or len(table.rows) < 2 or not sources:
    return []
  return [
      pages.Heading('First and second places'),
      pages.Paragraph(
          'In which part of the columns of all groups a row is the best, or '
          'one of the best two; a tie counts for all in it. Measured columns '
          'count as soon as two rows were run; a row that diverged is behind '
          'all.'
      ),
      views.build_places_table(table, sources),
  ]


def _figures(
    table: published.Table,
    results: _Results,
    pictures: Mapping[pathlib.Path, str],
    command: str,
) -> list[pages.Block]:
  """Returns the pictures, or that there is none yet."""
  if not pictures and table.figure is None:
    return []
  blocks: list[pages.Block] = [pages.Heading('Figure')]
  if not pictures:
    blocks.append(
        pages.Paragraph('None yet: no run that counts has what it shows.')
    )
  blocks += [
      pages.Figure(path, caption, command) for path, caption in pictures.items()
  ]
  if figures.read_options(table).kind == figures.CKA:
    blocks += cell_results.build_cka_blocks(results)
  return blocks
