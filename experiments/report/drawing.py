# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Plots of published figures from the runs of their cells."""

from collections.abc import Mapping, Sequence
import dataclasses
import itertools
import pathlib
from typing import Optional

import numpy as np

from experiments import command_line
from experiments import published
from experiments.report import cell_results
from experiments.report import figure_data
from experiments.report import figures
from experiments.report import views
from experiments.run_results import run_folder
from tff_adaptive import _files
from tff_adaptive import analysis
from tff_adaptive.optimizers.client import fedcada

_Panels = dict[str, dict[str, analysis.BandCurve]]

_LABELS = {
    'clients/loss': 'training loss',
    'train/accuracy': 'training accuracy',
}
_PNG_SIGNATURE = b'\x89PNG\r\n\x1a\n'


def draw(
    table: published.Table,
    results: figure_data.Results,
    path_png: pathlib.Path,
    data_dir: Optional[str] = None,
) -> dict[pathlib.Path, str]:
  """Plots the figure of a table.

  Args:
    table: The table.
    results: The measurements of its cells.
    path_png: The picture to write. Pictures of single cells are written next to
      it, with a number in their names.
    data_dir: The folder of the data sets, to plot a partition; None copies the
      pictures of the runs.

  Returns:
    The captions of the pictures by file; empty if there is nothing to plot.

  Raises:
    OSError: If a picture cannot be written; names the file.
    UserError: If the data of a partition are missing or damaged.
  """
  options = figures.read_options(table)
  if options.kind == figures.PARTITION and data_dir is not None:
    return _draw_partitions(table, path_png, data_dir)
  kind = figures.KINDS[options.kind]
  if kind.of_runs:
    return _copy_pictures(results, options.kind, path_png)
  if not _Drawing(table, options, results, path_png).draw():
    return {}
  stamp = f' ({table.stamp})' if table.stamp and kind.shows_numbers else ''
  gain = (
      '; client rates that lower the worst loss by less than '
      f'{options.min_gain:.0%} are omitted'
      if options.min_gain
      else ''
  )
  seeds = 'one seed'
  if any(len(result.runs) > 1 for result in results):
    band = figures.BANDS[options.band]
    seeds = f'the mean over the seeds; the band reaches {band}'
  caption = kind.caption.format(seeds=seeds, gain=gain)
  if options.log_below is not None:
    caption += (
        ' The axis is logarithmic in the distance to ' f'{options.log_below:g}.'
    )
  return {path_png: f'{_title(table)}{stamp}: {caption}'}


def _title(table: published.Table) -> str:
  return table.title.rstrip('.')


def _copy_pictures(
    results: figure_data.Results, kind: str, path_png: pathlib.Path
) -> dict[pathlib.Path, str]:
  """Copies the pictures of runs, skipping duplicates."""
  copied: dict[pathlib.Path, str] = {}
  seen = set()
  # A partition does not depend on the row.
  several = kind == figures.CKA and len({r.cell.row for r in results}) > 1
  for result in results:
    for run in result.runs.values():
      picture = run.path / 'plots' / f'{kind}.png'
      data = _read_picture(picture)
      if not data or data in seen:
        continue
      seen.add(data)
      path = path_png.with_name(f'{path_png.stem}_{len(copied) + 1}.png')
      _files.write(path, data)
      cell = result.cell
      names = [cell.row if several else '', cell.column, cell.group]
      place = ', '.join(filter(None, names))
      copied[path] = f'{figures.KINDS[kind].caption}: {place}.'
  return copied


def _read_picture(path: pathlib.Path) -> bytes:
  """Returns a picture that a run has made; empty if there is none.

  A folder of somebody else may have a link to another file in its place.
  """
  if path.is_symlink() or path.parent.is_symlink() or not path.is_file():
    return b''
  data = path.read_bytes()
  return data if data.startswith(_PNG_SIGNATURE) else b''


def _draw_partitions(
    table: published.Table, path_png: pathlib.Path, data_dir: str
) -> dict[pathlib.Path, str]:
  """Plots the class counts of the clients of each cell's task."""
  # The trainer's parts take seconds to import.
  from experiments.train import run_parts  # pylint: disable=import-outside-toplevel

  drawn = {}
  for i, cell in enumerate(table.cells, start=1):
    flags = [flag.text for flag in published.expand(cell.flags)]
    choices, settings = published.parse_flags(
        [*flags, f'--data_dir={data_dir}']
    )
    with command_line.errors_as(
        command_line.UserError, FileNotFoundError, TypeError, ValueError
    ):
      task = run_parts.build_task(choices, settings)
    path = path_png.with_name(f'{path_png.stem}_{i}.png')
    place = ', '.join(filter(None, [cell.column, cell.group]))
    num_classes = task.num_classes or 0
    analysis.plot_client_labels(task.train_data, num_classes, path, place)
    caption = figures.KINDS[figures.PARTITION].caption
    drawn[path] = f'{caption}: {place}.'
  return drawn


@dataclasses.dataclass(frozen=True)
class _Drawing:
  """The figure of a table; its methods return False if nothing was plotted.

  Attributes:
    table: The table.
    options: The options of the figure.
    results: The measurements of its cells.
    path_png: The picture to write.
  """

  table: published.Table
  options: figures.FigureOptions
  results: figure_data.Results
  path_png: pathlib.Path

  def draw(self) -> bool:
    """Plots the kind of figure that the options name."""
    return {
        figures.CURVES: self._draw_curves,
        figures.STEP_SIZES: self._draw_step_sizes,
        figures.FINAL_OVER: self._draw_final_over,
        figures.ADJUSTMENTS: self._draw_adjustments,
        figures.HEAT_MAP: self._draw_heat_map,
        figures.BEST_SERVER_RATE: self._draw_best_server_rate,
    }[self.options.kind]()

  def _draw_curves(self) -> bool:
    """Plots one or several metrics by round."""
    metrics = self.options.metrics
    labels = [self._label(metric) for metric in metrics]
    panels: _Panels = {}
    for result in self.results:
      group, row, column = result.cell.key
      for metric, label in zip(metrics, labels):
        curve = self._curve(result, metric)
        if curve is not None:
          parts = (column, group, label if len(metrics) > 1 else '')
          title = ', '.join(filter(None, parts))
          panels.setdefault(title, {})[row] = curve
    per_row = len(metrics) if len(metrics) > 1 else None
    label = labels[0] if len(metrics) == 1 else ''
    return self._draw_panels(panels, 'round', label, per_row=per_row)

  def _curve(
      self, result: cell_results.CellResult, metric: str
  ) -> Optional[analysis.BandCurve]:
    """Returns a metric of a cell by round; None if nothing was measured."""
    measure = self.table.measure(result.cell.column, result.cell.group)
    is_own = metric in ('', measure.metric)
    column = run_folder.column_of(metric or measure.metric)
    runs = [run.series(column) for run in result.runs.values()]
    scale = measure.scale if is_own else 1.0
    return figure_data.band_over_seeds(runs, scale, self.options.band)

  def _label(self, metric: str) -> str:
    """Returns the label of a metric that curves show."""
    if metric in ('', self.table.default_measure.metric):
      return self._metric_label()
    return _LABELS.get(metric, metric)

  def _draw_step_sizes(self) -> bool:
    """Plots both conditions of the step size and their minimum."""
    panels: _Panels = {}
    for result in self.results:
      runs = list(result.runs.values())
      for limit, name in figures.STEP_SIZE_CURVES.items():
        series = [run.series(f'clients/{limit}_mean') for run in runs]
        rounds, values = figure_data.align(series)
        shown = rounds <= self.options.last_round
        if values.size:
          mean = values.mean(0)[shown]
          group, row, column = result.cell.key
          several = row if len(self.table.rows) > 1 else ''
          title = ', '.join(filter(None, (column, group, several)))
          curve = analysis.BandCurve.of_line(rounds[shown], mean)
          panels.setdefault(title, {})[name] = curve
    return self._draw_panels(
        panels,
        'round',
        "clients' step size",
        names=list(figures.STEP_SIZE_CURVES.values()),
    )

  def _draw_adjustments(self) -> bool:
    """Plots FedCAda's divisor of a moment for the option of each row."""
    options = self.options
    rounds = np.arange(1, int(options.last_round) + 1)
    curves = {}
    for cell in self.table.cells:
      found = {h.name: h.value for h in published.hyperparameters(cell)}
      option = found['fedcada_adam_option']
      values = [
          float(fedcada.correction(option, options.beta, t)) for t in rounds
      ]
      curves[cell.row] = analysis.BandCurve.of_line(rounds, values)
    return self._draw_panels({'': curves}, 'round', 'denominator')

  def _draw_final_over(self) -> bool:
    """Plots the final metric over the columns."""
    all_names = [entry.name for entry in self.table.columns]
    chosen = self.options.panels or {
        group.name: {'group': group.name, 'columns': all_names}
        for group in self.table.groups
    }
    panels: _Panels = {}
    x_names = {}
    for title, panel in chosen.items():
      names = panel['columns']
      numbers = figures.to_numbers(names)
      xs = dict(zip(names, numbers or range(len(names))))
      if not numbers:
        x_names[title] = names
      found: dict[str, dict[float, list[float]]] = {}
      for result in self.results:
        group, row, column = result.cell.key
        is_shown = group == panel.get('group', '') and column in xs
        if is_shown and result.status == 'measured':
          values = list(result.numbers.values())
          found.setdefault(row, {})[xs[column]] = values
      panels[title] = {
          row: figure_data.to_band(
              sorted(values),
              [values[x] for x in sorted(values)],
              self.options.band,
          )
          for row, values in found.items()
      }
    x_label = '' if self.options.panels else 'setting'
    return self._draw_panels(
        panels, x_label, self._metric_label(), x_names=x_names
    )

  def _draw_panels(
      self,
      panels: _Panels,
      x_label: str,
      y_label: str,
      *,
      x_names: Optional[Mapping[str, Sequence[str]]] = None,
      names: Sequence[str] = (),
      per_row: Optional[int] = None,
  ) -> bool:
    """Plots curves with bands."""
    options = self.options
    panels = {title: curves for title, curves in panels.items() if curves}
    if not panels:
      return False
    if per_row is None:
      # One row of panels per group, if they fit.
      per_group = len(panels) // len(self.table.groups)
      per_row = per_group if per_group in (2, 4) else 3
    analysis.plot_band_curves(
        panels,
        self.path_png,
        title=_title(self.table),
        x_label=options.x_label or x_label,
        y_label=options.y_label or y_label,
        log_x=options.log_x,
        log_y=options.log_y,
        log_below=options.log_below,
        y_min=options.y_min,
        y_max=options.y_max,
        x_names=x_names or {},
        names=names or [entry.name for entry in self.table.rows],
        panels_per_row=per_row,
    )
    return True

  def _draw_heat_map(self) -> bool:
    """Plots the metric over client and server rates, one panel per group."""
    table, options = self.table, self.options
    grids = figure_data.rate_grids(table, self.results)
    if not grids:
      return False
    labels = {'x_label': options.x_label, 'y_label': options.y_label}
    in_percent = views.is_percent(table, '', table.groups[0].name)
    analysis.plot_rate_grids(
        grids,
        self.path_png,
        title=_title(table),
        decimals=1 if in_percent else 3,
        **{name: label for name, label in labels.items() if label},
    )
    return True

  def _draw_best_server_rate(self) -> bool:
    """Plots the best server rate over the client rate, one panel per task."""
    panels: _Panels = {}
    options = dataclasses.replace(self.options, log_x=True, log_y=True)
    for group, grid in figure_data.rate_grids(self.table, self.results).items():
      losses = figure_data.losses(self.table, self.results, group, grid)
      grid = figure_data.without_useless_rates(grid, losses, options.min_gain)
      rates, best = analysis.best_server_rates(grid)
      if len(rates):
        task, _, method = group.rpartition(' ')
        curve = analysis.BandCurve.of_line(rates, best)
        panels.setdefault(task, {})[method] = curve
        # The axis spans the searched grid, to show a best rate at its edge.
        ends = {
            'y_min': grid.server_rates[0] / 2,
            'y_max': grid.server_rates[-1] * 2,
        }
        options = dataclasses.replace(options, **ends)
    methods = [group.name.rpartition(' ')[2] for group in self.table.groups]
    return dataclasses.replace(self, options=options)._draw_panels(
        panels,
        'client learning rate',
        'best server learning rate',
        names=list(dict.fromkeys(methods)),
    )

  def _metric_label(self) -> str:
    """Returns the label of the table's metric, with its unit."""
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
