# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Plots of published figures from the runs of their cells."""

from collections.abc import Callable, Iterable, Mapping, Sequence
import dataclasses
import itertools
import pathlib
from typing import Optional

import attrs
import numpy as np
import pandas as pd

from experiments import command_line
from experiments import published
from experiments import settings as settings_lib
from experiments.report import figures
from experiments.report import results as results_lib
from experiments.run_results import run_folder
from experiments.run_results import statistics
from tff_adaptive import _files
from tff_adaptive import analysis
from tff_adaptive.optimizers.client import fedcada

_Panels = dict[str, dict[str, analysis.BandCurve]]

_LABELS = {
    'clients/loss': 'training loss',
    'train/accuracy': 'training accuracy',
}
_PNG_SIGNATURE = b'\x89PNG\r\n\x1a\n'


def curve_over_seeds(
    runs: Iterable[run_folder.Run],
    column: str,
    *,
    scale: float = 1.0,
    band: str = figures.RANGE,
) -> Optional[analysis.BandCurve]:
  """Returns a column by round, the mean and band over the runs.

  Args:
    runs: The runs.
    column: The column of metrics.csv.
    scale: The factor of its values.
    band: A key of `figures.BANDS`.

  Returns:
    The curve; None if nothing was measured.
  """
  values = scale * statistics.read_series(runs, column)
  if values.empty:
    return None
  return to_curve(list(values.index), values.to_numpy(), band)


def to_curve(
    xs: Sequence[float], samples: Sequence[Sequence[float]], band: str
) -> analysis.BandCurve:
  """Returns the mean and band over the samples at every x."""
  found = [np.asarray(values, np.float64) for values in samples]
  mean = np.array([values.mean() for values in found])
  if band == figures.STD:
    # One seed has no deviation.
    std = [v.std(ddof=1) if len(v) > 1 else 0.0 * v[0] for v in found]
    low, high = mean - std, mean + std
  else:
    low = np.array([values.min() for values in found])
    high = np.array([values.max() for values in found])
  return analysis.BandCurve(np.asarray(xs), mean, low, high)


def draw(
    results: results_lib.Results,
    path_png: pathlib.Path,
    data_dir: Optional[str] = None,
) -> dict[pathlib.Path, str]:
  """Plots the figure of a table.

  Args:
    results: The results of the table.
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
  table, options = results.table, figures.read_options(results.table)
  if options.kind == figures.PARTITION and data_dir is not None:
    return _draw_partitions(table, path_png, data_dir)
  kind = figures.KINDS[options.kind]
  if kind.of_runs:
    return _copy_pictures(results, options.kind, path_png)
  if not _KINDS[options.kind](_Drawing(options, results, path_png)):
    return {}
  stamp = f' ({table.stamp})' if table.stamp and kind.shows_numbers else ''
  gain = (
      '; client rates that lower the worst loss by less than '
      f'{options.min_gain:.0%} are omitted'
      if options.min_gain
      else ''
  )
  seeds = 'one seed'
  if results.cells.seeds.map(len).max() > 1:
    band = figures.BANDS[options.band]
    seeds = f'the mean over the seeds; the band reaches {band}'
  caption = kind.caption.format(seeds=seeds, gain=gain)
  if options.log_below is not None:
    caption += (
        f' The axis is logarithmic in the distance to {options.log_below:g}.'
    )
  return {path_png: f'{_title(table)}{stamp}: {caption}'}


def _title(table: published.Table) -> str:
  return table.title.rstrip('.')


def _copy_pictures(
    results: results_lib.Results, kind: str, path_png: pathlib.Path
) -> dict[pathlib.Path, str]:
  """Copies the pictures of runs, skipping duplicates."""
  copied: dict[pathlib.Path, str] = {}
  seen = set()
  # A partition does not depend on the row.
  several = kind == figures.CKA and len(results.table.rows) > 1
  for run in results.runs.itertuples():
    data = _read_picture(run.run.path / 'plots' / f'{kind}.png')
    if not data or data in seen:
      continue
    seen.add(data)
    path = path_png.with_name(f'{path_png.stem}_{len(copied) + 1}.png')
    _files.write(path, data)
    place = _join(run.row if several else '', run.column, run.group)
    copied[path] = f'{figures.KINDS[kind].caption}: {place}.'
  return copied


def _join(*names: str) -> str:
  return ', '.join(filter(None, names))


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
    place = _join(cell.column, cell.group)
    num_classes = task.num_classes or 0
    analysis.plot_client_labels(task.train_data, num_classes, path, place)
    drawn[path] = f'{figures.KINDS[figures.PARTITION].caption}: {place}.'
  return drawn


@dataclasses.dataclass(frozen=True)
class _Drawing:
  """What a kind of figure draws from.

  Attributes:
    options: The options of the figure.
    results: The results of the table.
    path_png: The picture to write.
  """

  options: figures.FigureOptions
  results: results_lib.Results
  path_png: pathlib.Path

  @property
  def table(self) -> published.Table:
    """The table."""
    return self.results.table

  def draw_panels(
      self,
      panels: _Panels,
      x_label: str,
      y_label: str,
      *,
      x_names: Optional[Mapping[str, Sequence[str]]] = None,
      names: Sequence[str] = (),
      per_row: Optional[int] = None,
  ) -> bool:
    """Plots curves with bands; returns False if there are none."""
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

  def label_of(self, metric: str) -> str:
    """Returns the label of a metric that curves show."""
    if metric in ('', self.table.default_measure.metric):
      return self.metric_label()
    return _LABELS.get(metric, metric)

  def metric_label(self) -> str:
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
    kind = '' if '/' in measure.metric else f'{self._data()} '
    return f'{kind}{measure.metric.replace("_", " ")}{unit}'

  def _data(self) -> str:
    """Returns the name of the data on which the runs were evaluated."""
    names = {
        run.hparams.get('evaluation_data') or settings_lib.TEST
        for run in self.results.runs.run
    }
    return names.pop().replace('_', ' ') if len(names) == 1 else 'evaluation'


def _draw_curves(drawing: _Drawing) -> bool:
  """Plots one or several metrics by round."""
  table, metrics = drawing.table, drawing.options.metrics
  labels = [drawing.label_of(metric) for metric in metrics]
  panels: _Panels = {}
  for cell in drawing.results.cells.cell:
    measure = table.measure(cell.column, cell.group)
    for metric, label in zip(metrics, labels):
      curve = curve_over_seeds(
          drawing.results.of(cell).run,
          run_folder.column_of(metric or measure.metric),
          scale=measure.scale if metric in ('', measure.metric) else 1.0,
          band=drawing.options.band,
      )
      if curve is not None:
        title = _join(
            cell.column, cell.group, label if len(metrics) > 1 else ''
        )
        panels.setdefault(title, {})[cell.row] = curve
  per_row = len(metrics) if len(metrics) > 1 else None
  label = labels[0] if len(metrics) == 1 else ''
  return drawing.draw_panels(panels, 'round', label, per_row=per_row)


def _draw_step_sizes(drawing: _Drawing) -> bool:
  """Plots both conditions of the step size and their minimum."""
  panels: _Panels = {}
  for cell in drawing.results.cells.cell:
    runs = drawing.results.of(cell).run
    for limit, name in figures.STEP_SIZE_CURVES.items():
      values = statistics.read_series(runs, f'clients/{limit}_mean')
      if not values.empty:
        mean = values[values.index <= drawing.options.last_round].mean(axis=1)
        several = cell.row if len(drawing.table.rows) > 1 else ''
        curve = analysis.BandCurve.of_line(mean.index, mean)
        title = _join(cell.column, cell.group, several)
        panels.setdefault(title, {})[name] = curve
  return drawing.draw_panels(
      panels,
      'round',
      "clients' step size",
      names=list(figures.STEP_SIZE_CURVES.values()),
  )


def _draw_adjustments(drawing: _Drawing) -> bool:
  """Plots FedCAda's divisor of a moment for the option of each row."""
  options = drawing.options
  rounds = np.arange(1, int(options.last_round) + 1)
  curves = {}
  for cell in drawing.table.cells:
    found = {h.name: h.value for h in published.hyperparameters(cell)}
    option = found['fedcada_adam_option']
    values = [
        float(fedcada.correction(option, options.beta, t)) for t in rounds
    ]
    curves[cell.row] = analysis.BandCurve.of_line(rounds, values)
  return drawing.draw_panels({'': curves}, 'round', 'denominator')


def _draw_final_over(drawing: _Drawing) -> bool:
  """Plots the final metric over the columns."""
  table, options = drawing.table, drawing.options
  all_names = tuple(entry.name for entry in table.columns)
  chosen = options.panels or {
      group.name: figures.Panel(all_names, group.name) for group in table.groups
  }
  cells = drawing.results.cells
  measured = cells[cells.status == 'measured'].cell
  panels: _Panels = {}
  x_names = {}
  for title, panel in chosen.items():
    names = panel.columns
    numbers = figures.to_numbers(names)
    xs = dict(zip(names, numbers or range(len(names))))
    if not numbers:
      x_names[title] = names
    found: dict[str, dict[float, list[float]]] = {}
    for cell in measured:
      if cell.group == panel.group and cell.column in xs:
        samples = list(drawing.results.numbers(cell).values())
        found.setdefault(cell.row, {})[xs[cell.column]] = samples
    panels[title] = {
        row: to_curve(
            sorted(samples), [samples[x] for x in sorted(samples)], options.band
        )
        for row, samples in found.items()
    }
  x_label = '' if options.panels else 'setting'
  return drawing.draw_panels(
      panels, x_label, drawing.metric_label(), x_names=x_names
  )


def rate_grids(results: results_lib.Results) -> dict[str, analysis.RateGrid]:
  """Returns the measured means of each group over client and server rates.

  Args:
    results: The results of a table, whose rows are client rates and whose
      columns are server rates.

  Returns:
    The grids by group, without groups that were not measured.
  """
  table = results.table
  grids = {}
  for group in table.groups:
    means = _pivot(results, group.name, results.cells['mean'])
    status = _pivot(results, group.name, results.cells.status)
    grid = analysis.RateGrid(
        means.index.to_numpy(),
        means.columns.to_numpy(),
        means.to_numpy(float),
        table.measure('', group.name).higher_is_better,
        (status == 'diverged').to_numpy(),
    )
    if not grid.is_empty():
      grids[group.name] = grid
  return grids


def _pivot(
    results: results_lib.Results, group: str, values: pd.Series
) -> pd.DataFrame:
  """Returns values of a group by ascending client and server rates."""
  frame = values.xs(group).unstack()
  frame.index, frame.columns = (
      figures.to_rates(list(axis), results.table.place)
      for axis in (frame.index, frame.columns)
  )
  return frame.sort_index().sort_index(axis=1)


def _draw_heat_map(drawing: _Drawing) -> bool:
  """Plots the metric over client and server rates, one panel per group."""
  options = drawing.options
  grids = rate_grids(drawing.results)
  if not grids:
    return False
  labels = {'x_label': options.x_label, 'y_label': options.y_label}
  analysis.plot_rate_grids(
      grids,
      drawing.path_png,
      title=_title(drawing.table),
      decimals=1 if drawing.results.cells.in_percent.iloc[0] else 3,
      **{name: label for name, label in labels.items() if label},
  )
  return True


def without_useless_rates(
    grid: analysis.RateGrid, losses: np.ndarray, min_gain: float
) -> analysis.RateGrid:
  """Returns a grid without the client rates that did not train the model.

  Args:
    grid: The grid.
    losses: Its validation losses; NaN where a run diverged.
    min_gain: The fraction of the worst loss by which the best loss of a client
      rate must be lower.
  """
  finite = losses[np.isfinite(losses)]
  if not min_gain or not finite.size:
    return grid
  best = np.nanmin(np.where(np.isfinite(losses), losses, np.inf), axis=1)
  trains = best < (1.0 - min_gain) * finite.max()
  values = np.where(trains[:, np.newaxis], grid.values, np.nan)
  return dataclasses.replace(grid, values=values)


def _draw_best_server_rate(drawing: _Drawing) -> bool:
  """Plots the best server rate over the client rate, one panel per task."""
  results = drawing.results
  panels: _Panels = {}
  options = attrs.evolve(drawing.options, log_x=True, log_y=True)
  runs = results.runs.assign(
      loss=[
          run.summarize('loss', results.table.estimate, higher_is_better=False)
          for run in results.runs.run
      ]
  )
  losses = runs.groupby(results_lib.KEYS, sort=False).loss.mean(skipna=False)
  losses = losses.reindex(results.cells.index)
  for group, grid in rate_grids(results).items():
    shown = without_useless_rates(
        grid, _pivot(results, group, losses).to_numpy(float), options.min_gain
    )
    rates, best = analysis.best_server_rates(shown)
    if len(rates):
      task, _, method = group.rpartition(' ')
      curve = analysis.BandCurve.of_line(rates, best)
      panels.setdefault(task, {})[method] = curve
      # The axis spans the searched grid, to show a best rate at its edge.
      options = attrs.evolve(
          options,
          y_min=grid.server_rates[0] / 2,
          y_max=grid.server_rates[-1] * 2,
      )
  methods = [group.name.rpartition(' ')[2] for group in drawing.table.groups]
  return dataclasses.replace(drawing, options=options).draw_panels(
      panels,
      'client learning rate',
      'best server learning rate',
      names=list(dict.fromkeys(methods)),
  )


_KINDS: Mapping[str, Callable[[_Drawing], bool]] = {
    figures.CURVES: _draw_curves,
    figures.STEP_SIZES: _draw_step_sizes,
    figures.FINAL_OVER: _draw_final_over,
    figures.ADJUSTMENTS: _draw_adjustments,
    figures.HEAT_MAP: _draw_heat_map,
    figures.BEST_SERVER_RATE: _draw_best_server_rate,
}
