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
"""The figures of published tables, drawn from the runs of their cells."""

from collections.abc import Callable, Mapping, Sequence
import functools
import itertools
import pathlib
from typing import Optional

from experiments import published
from experiments.report import cell_results
from experiments.report import figure_data
from experiments.report import figures
from experiments.report import views
from experiments.run_results import run_folder
from tff_adaptive import _files
from tff_adaptive import analysis

_STEP_SIZES = (
    'clients/step_size_mean',
    'clients/step_size_min',
    'clients/step_size_max',
)


def draw(
    table: published.Table,
    options: figures.FigureOptions,
    results: figure_data.Results,
    path_png: pathlib.Path,
) -> dict[pathlib.Path, str]:
  """Draws the figure of a table.

  Args:
    table: The table.
    options: How to draw.
    results: What was measured of its cells.
    path_png: The picture to write; pictures that runs have drawn of themselves
      lie beside it, a number in their names.

  Returns:
    What the pictures show, by their files; none if nothing was measured that
    could be drawn.

  Raises:
    OSError: If a picture cannot be written; names it.
  """
  if options.kind in (figures.PARTITION, figures.CKA):
    return _copy_pictures(results, options.kind, path_png)
  draw_kind, caption = _KINDS[options.kind]
  if not draw_kind(table, options, results, path_png):
    return {}
  caption = caption.format(band=_BANDS[options.band])
  # Curves choose nothing.
  is_of_numbers = options.kind in _KINDS_OF_NUMBERS
  stamp = f' ({table.stamp})' if is_of_numbers and table.stamp else ''
  return {path_png: f'{_title(table, options)}{stamp}: {caption}'}


def _draw_lines(
    table: published.Table,
    options: figures.FigureOptions,
    panels: figure_data.Panels,
    path_png: pathlib.Path,
    *,
    x_label: str,
    y_label: str,
    x_names: Sequence[str] = (),
) -> bool:
  """Draws curves with bands; returns whether there were any."""
  panels = {title: curves for title, curves in panels.items() if curves}
  if not panels:
    return False
  # A row of panels for every group, if all of them fit.
  per_row = len(panels) // len(table.groups)
  analysis.plot_band_curves(
      panels,
      path_png,
      title=_title(table, options),
      x_label=options.x_label or x_label,
      y_label=options.y_label or y_label,
      log_x=options.log_x,
      log_y=options.log_y,
      y_min=options.y_min,
      y_max=options.y_max,
      x_names=x_names,
      names=[entry.name for entry in table.rows],
      panels_per_row=per_row if per_row in (2, 4) else 3,
  )
  return True


def _title(table: published.Table, options: figures.FigureOptions) -> str:
  return (options.title or table.title).rstrip('.')


def _draw_curves(table, options, results, path_png) -> bool:
  """Draws a metric over the rounds."""

  def build(result: cell_results.CellResult) -> Optional[analysis.BandCurve]:
    measure = table.measure(result.cell.column, result.cell.group)
    metric = options.metric or measure.metric
    scale = measure.scale if metric == measure.metric else 1.0
    column = run_folder.column_of(metric)
    runs = [run.series(column) for run in result.runs.values()]
    return figure_data.band_over_seeds(runs, scale, options.band)

  return _draw_lines(
      table,
      options,
      figure_data.panels_by_group_and_column(results, build),
      path_png,
      x_label='round',
      y_label=options.metric or _metric_label(table),
  )


def _draw_step_sizes(table, options, results, path_png) -> bool:
  """Draws the mean step size of the clients within its range."""

  def build(result: cell_results.CellResult) -> Optional[analysis.BandCurve]:
    runs = list(result.runs.values())
    mean, low, high = (
        figure_data.align([run.series(name) for run in runs])
        for name in _STEP_SIZES
    )
    if not len(mean[0]) or not len(mean[0]) == len(low[0]) == len(high[0]):
      return None
    return analysis.BandCurve(
        mean[0], mean[1].mean(0), low[1].min(0), high[1].max(0)
    )

  return _draw_lines(
      table,
      options,
      figure_data.panels_by_group_and_column(results, build),
      path_png,
      x_label='round',
      y_label="clients' step size",
  )


def _draw_final_over(table, options, results, path_png) -> bool:
  """Draws the final metric over the columns."""
  names = [entry.name for entry in table.columns]
  numbers = figures.to_numbers(names)
  xs = dict(zip(names, numbers or range(len(names))))
  panels: figure_data.Panels = {}
  for group in table.groups:
    curves = panels.setdefault(group.name, {})
    for row in table.rows:
      found = [
          (xs[result.cell.column], list(result.numbers.values()))
          for result in results
          if (result.cell.group, result.cell.row) == (group.name, row.name)
          and result.status == 'measured'
      ]
      if found:
        curves[row.name] = figure_data.band_over_values(
            sorted(found), options.band
        )
  return _draw_lines(
      table,
      options,
      panels,
      path_png,
      x_label='setting',
      y_label=_metric_label(table),
      x_names=[] if numbers else names,
  )


def _draw_heat_map(table, options, results, path_png) -> bool:
  """Draws the metric over client rate and server rate."""
  in_percent = views.is_percent(table, '', table.groups[0].name)
  return _draw_rates(
      functools.partial(
          analysis.plot_rate_grids, decimals=1 if in_percent else 3
      ),
      figure_data.rate_grids(table, results),
      table,
      options,
      path_png,
  )


def _draw_best_server_rate(table, options, results, path_png) -> bool:
  """Draws the best server rate over the client rate."""
  panels = {
      name: grid
      for name, grid in figure_data.rate_grids(table, results).items()
      if grid.best() is not None
  }
  return _draw_rates(
      analysis.plot_best_server_rates, panels, table, options, path_png
  )


def _draw_rates(plot, panels, table, options, path_png) -> bool:
  """Draws a panel a group; returns whether there were any."""
  if not panels:
    return False
  labels = {'x_label': options.x_label, 'y_label': options.y_label}
  given = {name: label for name, label in labels.items() if label}
  plot(panels, path_png, title=_title(table, options), **given)
  return True


_BANDS = {
    figures.RANGE: 'from the lowest to the highest seed',
    figures.STD: 'one standard deviation of the seeds to both sides',
}
_PICTURES = {
    figures.PARTITION: 'The partition',
    figures.CKA: 'How alike the moments are that clients keep, linear CKA',
}
_KINDS_OF_NUMBERS = (
    figures.FINAL_OVER,
    figures.HEAT_MAP,
    figures.BEST_SERVER_RATE,
)
# How a kind is drawn, and what to say about it.
_KINDS: Mapping[str, tuple[Callable[..., bool], str]] = {
    figures.CURVES: (
        _draw_curves,
        'by round, the mean over the seeds; the band reaches {band}.',
    ),
    figures.STEP_SIZES: (
        _draw_step_sizes,
        "the mean of the clients' step sizes by round, in the range of all "
        'clients and seeds.',
    ),
    figures.FINAL_OVER: (
        _draw_final_over,
        'the mean over the seeds; the band reaches {band}.',
    ),
    figures.HEAT_MAP: (
        _draw_heat_map,
        'the best value of a panel has a frame; a cross stands where a run '
        'diverged, a dash where none was measured.',
    ),
    figures.BEST_SERVER_RATE: (
        _draw_best_server_rate,
        'the best server rate of those searched, which fill the axis, for '
        'each client rate.',
    ),
}


def _metric_label(table: published.Table) -> str:
  """Returns the name of what a table compares, with its unit."""
  measures = {
      table.measure(column.name, group.name)
      for group, column in itertools.product(table.groups, table.columns)
  }
  if len(measures) > 1:
    return 'metric'
  (measure,) = measures
  unit = ' (%)' if measure.scale == 100.0 else ''
  kind = '' if '/' in measure.metric else 'test '
  return f'{kind}{measure.metric.replace("_", " ")}{unit}'


def _copy_pictures(
    results: figure_data.Results, kind: str, path_png: pathlib.Path
) -> dict[pathlib.Path, str]:
  """Copies pictures of runs; of runs with the same picture, one."""
  copied: dict[pathlib.Path, str] = {}
  seen = set()
  for result in results:
    for run in result.runs.values():
      picture = run.path / 'plots' / f'{kind}.png'
      data = picture.read_bytes() if picture.is_file() else b''
      if not data or data in seen:
        continue
      seen.add(data)
      path = path_png.with_name(f'{path_png.stem}_{len(copied) + 1}.png')
      with _files.replacing(path) as file:
        file.write(data)
      place = ', '.join(filter(None, [result.cell.column, result.cell.group]))
      copied[path] = f'{_PICTURES[kind]}: {place}.'
  return copied
