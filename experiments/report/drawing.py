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
import dataclasses
import functools
import itertools
import pathlib
from typing import Optional

import numpy as np

from experiments import published
from experiments.report import cell_results
from experiments.report import figures
from experiments.report import views
from experiments.run_results import run_folder
from tff_adaptive import _files
from tff_adaptive import analysis

_Results = Sequence[cell_results.CellResult]
_Series = tuple[Sequence[int], Sequence[float]]
_Panels = dict[str, dict[str, analysis.BandCurve]]

_STEP_SIZES = (
    'clients/step_size_mean',
    'clients/step_size_min',
    'clients/step_size_max',
)
_BANDS = {
    figures.RANGE: 'from the lowest to the highest seed',
    figures.STD: 'one standard deviation of the seeds to both sides',
}
# The kinds whose pictures runs have drawn of themselves.
_PICTURES = {
    figures.PARTITION: 'The partition',
    figures.CKA: 'How alike the moments are that clients keep, linear CKA',
}
_CAPTIONS = {
    figures.CURVES: (
        'by round, the mean over the seeds; the band reaches {band}.'
    ),
    figures.STEP_SIZES: (
        "the mean of the clients' step sizes by round, in the range of all "
        'clients and seeds.'
    ),
    figures.FINAL_OVER: 'the mean over the seeds; the band reaches {band}.',
    figures.HEAT_MAP: (
        'the best value of a panel has a frame; a cross stands where a run '
        'diverged, a dash where none was measured.'
    ),
    figures.BEST_SERVER_RATE: (
        'the best server rate of those searched, which fill the axis, for '
        'each client rate.'
    ),
}


def draw(
    table: published.Table, results: _Results, path_png: pathlib.Path
) -> dict[pathlib.Path, str]:
  """Draws the figure of a table.

  Args:
    table: The table.
    results: The measurements of its cells.
    path_png: The picture to write; pictures that runs have drawn of themselves
      lie beside it, a number in their names.

  Returns:
    The captions of the pictures, by their files; none if nothing was measured
    that could be drawn.

  Raises:
    OSError: If a picture cannot be written; names it.
  """
  options = figures.read_options(table)
  if options.kind in _PICTURES:
    return _copy_pictures(results, options.kind, path_png)
  if not _Drawing(table, options, results, path_png).draw():
    return {}
  is_of_curves = options.kind in (figures.CURVES, figures.STEP_SIZES)
  # Curves choose nothing.
  stamp = f' ({table.stamp})' if table.stamp and not is_of_curves else ''
  caption = _CAPTIONS[options.kind].format(band=_BANDS[options.band])
  return {path_png: f'{_title(table, options)}{stamp}: {caption}'}


def _title(table: published.Table, options: figures.FigureOptions) -> str:
  return (options.title or table.title).rstrip('.')


def _copy_pictures(
    results: _Results, kind: str, path_png: pathlib.Path
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


@dataclasses.dataclass(frozen=True)
class _Drawing:
  """The figure of a table; each kind returns whether it had something.

  Attributes:
    table: The table.
    options: How it is drawn.
    results: The measurements of its cells.
    path_png: The picture to write.
  """

  table: published.Table
  options: figures.FigureOptions
  results: _Results
  path_png: pathlib.Path

  def draw(self) -> bool:
    """Draws the kind that the options ask for."""
    return {
        figures.CURVES: self._draw_curves,
        figures.STEP_SIZES: self._draw_step_sizes,
        figures.FINAL_OVER: self._draw_final_over,
        figures.HEAT_MAP: self._draw_heat_map,
        figures.BEST_SERVER_RATE: self._draw_best_server_rate,
    }[self.options.kind]()

  def _draw_curves(self) -> bool:
    """Draws a metric over the rounds."""
    metric = self.options.metric

    def build(result: cell_results.CellResult) -> Optional[analysis.BandCurve]:
      measure = self.table.measure(result.cell.column, result.cell.group)
      is_own = metric in ('', measure.metric)
      column = run_folder.column_of(metric or measure.metric)
      runs = [run.series(column) for run in result.runs.values()]
      scale = measure.scale if is_own else 1.0
      return band_over_seeds(runs, scale, self.options.band)

    label = metric or self._metric_label()
    return self._draw_panels(self._panels(build), 'round', label)

  def _draw_step_sizes(self) -> bool:
    """Draws the mean step size of the clients within its range."""

    def build(result: cell_results.CellResult) -> Optional[analysis.BandCurve]:
      runs = list(result.runs.values())
      (rounds, mean), (_, low), (_, high) = (
          _align([run.series(name) for run in runs]) for name in _STEP_SIZES
      )
      if not mean.size or not mean.shape == low.shape == high.shape:
        return None
      return analysis.BandCurve(rounds, mean.mean(0), low.min(0), high.max(0))

    return self._draw_panels(self._panels(build), 'round', "clients' step size")

  def _panels(
      self,
      build: Callable[[cell_results.CellResult], Optional[analysis.BandCurve]],
  ) -> _Panels:
    """Returns curves by row, by group and column."""
    panels: _Panels = {}
    for result in self.results:
      group, row, column = result.cell.key
      curve = build(result)
      if curve is not None:
        title = ', '.join(filter(None, (column, group)))
        panels.setdefault(title, {})[row] = curve
    return panels

  def _draw_final_over(self) -> bool:
    """Draws the final metric over the columns."""
    names = [entry.name for entry in self.table.columns]
    numbers = figures.to_numbers(names)
    xs = dict(zip(names, numbers or range(len(names))))
    found: dict[str, dict[str, dict[float, list[float]]]] = {
        group.name: {row.name: {} for row in self.table.rows}
        for group in self.table.groups
    }
    for result in self.results:
      if result.status == 'measured':
        group, row, column = result.cell.key
        found[group][row][xs[column]] = list(result.numbers.values())
    panels = {
        group: {
            row: _band(
                sorted(values),
                [values[x] for x in sorted(values)],
                self.options.band,
            )
            for row, values in curves.items()
            if values
        }
        for group, curves in found.items()
    }
    x_names = [] if numbers else names
    return self._draw_panels(panels, 'setting', self._metric_label(), x_names)

  def _draw_panels(
      self,
      panels: _Panels,
      x_label: str,
      y_label: str,
      x_names: Sequence[str] = (),
  ) -> bool:
    """Draws curves with bands."""
    options = self.options
    panels = {title: curves for title, curves in panels.items() if curves}
    if not panels:
      return False
    # A row of panels for every group, if all of them fit.
    per_row = len(panels) // len(self.table.groups)
    analysis.plot_band_curves(
        panels,
        self.path_png,
        title=_title(self.table, options),
        x_label=options.x_label or x_label,
        y_label=options.y_label or y_label,
        log_x=options.log_x,
        log_y=options.log_y,
        y_min=options.y_min,
        y_max=options.y_max,
        x_names=x_names,
        names=[entry.name for entry in self.table.rows],
        panels_per_row=per_row if per_row in (2, 4) else 3,
    )
    return True

  def _draw_heat_map(self) -> bool:
    """Draws the metric over client rate and server rate."""
    table = self.table
    in_percent = views.is_percent(table, '', table.groups[0].name)
    decimals = 1 if in_percent else 3
    plot = functools.partial(analysis.plot_rate_grids, decimals=decimals)
    return self._draw_rates(plot, _rate_grids(table, self.results))

  def _draw_best_server_rate(self) -> bool:
    """Draws the best server rate over the client rate."""
    grids = _rate_grids(self.table, self.results)
    grids = {name: g for name, g in grids.items() if g.best() is not None}
    return self._draw_rates(analysis.plot_best_server_rates, grids)

  def _draw_rates(
      self, plot: Callable[..., None], grids: Mapping[str, analysis.RateGrid]
  ) -> bool:
    """Draws a panel a group."""
    if not grids:
      return False
    options = self.options
    labels = {'x_label': options.x_label, 'y_label': options.y_label}
    given = {name: label for name, label in labels.items() if label}
    plot(grids, self.path_png, title=_title(self.table, options), **given)
    return True

  def _metric_label(self) -> str:
    """Returns the name of what the table compares, with its unit."""
    table = self.table
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


def _align(series: Sequence[_Series]) -> tuple[np.ndarray, np.ndarray]:
  """Returns the rounds that all seeds have, and their values by seed."""
  values = [dict(zip(*one)) for one in series]
  common = sorted(set.intersection(*map(set, values))) if values else []
  return np.array(common), np.array(
      [[by_round[r] for r in common] for by_round in values], np.float64
  )


def band_over_seeds(
    series: Sequence[_Series], scale: float, band: str
) -> Optional[analysis.BandCurve]:
  """Returns the mean over the seeds; None if nothing was measured."""
  rounds, values = _align(series)
  return _band(rounds, scale * values.T, band) if len(rounds) else None


def _band(
    xs: Sequence[float], samples: Sequence[Sequence[float]], band: str
) -> analysis.BandCurve:
  """Returns the band of the values of the seeds at every place."""
  found = [np.asarray(values, np.float64) for values in samples]
  mean = np.array([values.mean() for values in found])
  if band == figures.STD:
    # Of one seed there is no deviation.
    std = [v.std(ddof=1) if len(v) > 1 else 0.0 * v[0] for v in found]
    low, high = mean - std, mean + std
  else:
    low = np.array([values.min() for values in found])
    high = np.array([values.max() for values in found])
  return analysis.BandCurve(np.asarray(xs), mean, low, high)


def _rate_grids(
    table: published.Table, results: _Results
) -> dict[str, analysis.RateGrid]:
  """Returns the measured means of every group over both rates.

  Args:
    table: The table; its rows are client rates, its columns server rates.
    results: The measurements of its cells.

  Returns:
    The grids by group; without groups of which nothing was measured.
  """
  client_rates, server_rates = (
      sorted(figures.to_rates([entry.name for entry in axis], table.place))
      for axis in (table.rows, table.columns)
  )
  grids = {}
  for group in table.groups:
    values = np.full([len(client_rates), len(server_rates)], np.nan)
    diverged = np.zeros(values.shape, bool)
    for result in results:
      if result.cell.group == group.name and result.numbers:
        row = client_rates.index(float(result.cell.row))
        column = server_rates.index(float(result.cell.column))
        values[row, column] = result.mean
        diverged[row, column] = not np.isfinite(result.mean)
    grid = analysis.RateGrid(
        np.array(client_rates),
        np.array(server_rates),
        values,
        table.measure('', group.name).higher_is_better,
        diverged,
    )
    if not grid.is_empty():
      grids[group.name] = grid
  return grids
