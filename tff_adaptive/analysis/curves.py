# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Curves over rounds: of single runs, and with bands over several seeds."""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import functools
import math
import statistics
import sys
from typing import Optional, Union

from matplotlib import ticker
import numpy as np

from tff_adaptive import _files
from tff_adaptive import _run_metrics
from tff_adaptive.analysis import _style

_PANEL_WIDTH = 4.2
_PANEL_HEIGHT = 3.0
_BAND_OPACITY = 0.16
_FEW_TICKS = 9
_FEW_DECADES = 3
_LEGEND_CHARACTERS_PER_INCH = 11
_HANDLE_CHARACTERS = 9  # The width of a legend's line with its margins.
_MAX_LEGEND_COLUMNS = 4
_OTHERS = 'others'
_OTHERS_LOOK = {'color': '#BBBBBB', 'linewidth': 0.8, 'zorder': 1.5}
# Smaller distances to `log_below` are drawn at this one.
_LEAST_DISTANCE = 1e-4
# A curve that rises this many times as high as the middle one leaves the panel.
_EXPLODED = 100.0
_MARGIN = 0.05


@dataclasses.dataclass(frozen=True, eq=False)
class BandCurve:
  """A curve with a band around it.

  Attributes:
    x: The positions of the values, ascending.
    mean: The curve.
    low: The lower edge of the band; for a single run, the curve.
    high: The upper edge of the band.
  """

  x: np.ndarray
  mean: np.ndarray
  low: np.ndarray
  high: np.ndarray

  @classmethod
  def of_line(cls, x: Sequence[float], y: Sequence[float]) -> 'BandCurve':
    """Returns a curve without a band."""
    line = np.asarray(y, float)
    return cls(np.asarray(x), line, line, line)


def plot_band_curves(
    panels: Mapping[str, Mapping[str, BandCurve]],
    path: _files.PathLike,
    *,
    title: str = '',
    x_label: str = 'round',
    y_label: str = '',
    log_x: bool = False,
    log_y: bool = False,
    log_below: Optional[float] = None,
    y_min: Optional[float] = None,
    y_max: Optional[float] = None,
    x_names: Union[Sequence[str], Mapping[str, Sequence[str]]] = (),
    names: Sequence[str] = (),
    only_names: bool = False,
    panels_per_row: int = 3,
):
  """Plots a line with a band for each method, in panels side by side.

  A method has the same color, dashes and marker in all panels. The figure uses
  no global state of matplotlib.

  Args:
    panels: The curves by method, by the title of their panel.
    path: The .png, .pdf or .svg file to write; its folder is created.
    title: The title of the figure. Defaults to no title.
    x_label: The label of the horizontal axis. Defaults to 'round'.
    y_label: The label of the vertical axis, with its unit. Defaults to none.
    log_x: Whether the horizontal axis is logarithmic. Defaults to False.
    log_y: Whether the vertical axis is logarithmic. Defaults to False.
    log_below: An upper bound of the curves, such as 100 percent. The vertical
      axis is logarithmic in the distance to it. Defaults to None: it is not.
    y_min: The lower end of the vertical axis. None (the default) for that of
      the data.
    y_max: The upper end of the vertical axis, in the same way. Unless the axis
      is logarithmic, that of the data leaves out curves that rise 100 times as
      high as the middle one; the panel names them.
    x_names: Names for x = 0, 1, ..., in all panels or by the title of a panel.
      Defaults to numbers.
    names: All methods in the order of their looks, so that a method looks the
      same in several figures. Defaults to the methods of the panels.
    only_names: Whether methods that are not in `names` are all drawn as thin
      gray lines. Defaults to False.
    panels_per_row: The maximum number of panels per row. Defaults to 3.

  Raises:
    ValueError: If there are no curves.
    OSError: If the file cannot be written; names it.

  Example:

    >>> rounds = np.arange(1, 101)
    >>> mean = 98.0 - 50.0 / rounds
    >>> sgd = BandCurve(rounds, mean, mean - 1.0, mean + 1.0)
    >>> plot_band_curves(
    ...     {'MNIST': {'SGD': sgd}}, 'accuracy.png',
    ...     y_label='test accuracy (%)')
  """
  found = dict.fromkeys(name for curves in panels.values() for name in curves)
  if not found:
    raise ValueError('There are no curves to plot.')
  others = [name for name in found if only_names and name not in names]
  looks = _style.looks(
      [n for n in {**dict.fromkeys(names), **found} if n not in others]
  )
  places = {name: place for place, name in enumerate(looks)}
  drawing, axes_by_title = _style.new_panels(
      list(panels),
      width=_PANEL_WIDTH,
      height=_PANEL_HEIGHT,
      max_columns=panels_per_row,
  )
  handles = {}
  for panel, curves in panels.items():
    axes = axes_by_title[panel]
    for name in others:
      if name in curves:
        curve = curves[name]
        is_point = len(curve.x) == 1
        (handles[_OTHERS],) = axes.plot(
            curve.x, curve.mean, marker='.' if is_point else '', **_OTHERS_LOOK
        )
    for name, curve in curves.items():
      if name not in others:
        handles[name] = _draw(axes, curve, looks[name], places[name])
    axes.set(xlabel=x_label, ylabel=y_label)
    if log_x:
      axes.set_xscale('log')
    if log_y:
      axes.set_yscale('log')
    if log_below is not None:
      _set_scale_below(axes, log_below)
    if not log_y and log_below is None and y_max is None:
      _leave_out_exploded(axes, curves)
    axes.set_ylim(y_min, y_max)
    if log_y:
      _set_log_ticks(axes)
    if log_below is not None:
      _set_ticks_below(axes, log_below)
    own = x_names.get(panel, ()) if isinstance(x_names, Mapping) else x_names
    _set_ticks(axes, curves, own, log_x)
    _style.frame(axes)
  shown = [name for name in (*looks, _OTHERS) if name in handles]
  drawing.legend(
      [handles[name] for name in shown],
      shown,
      loc='outside lower center',
      ncols=_count_legend_columns(shown, drawing.get_figwidth()),
      frameon=False,
      fontsize=9,
      handlelength=3.2,
  )
  _style.save(drawing, path, title)


def _leave_out_exploded(axes, curves: Mapping[str, BandCurve]) -> None:
  """Fits the axis to curves that did not explode; names those that did."""
  ends = {}
  for name, curve in curves.items():
    is_finite = np.isfinite(curve.low) & np.isfinite(curve.high)
    if is_finite.any():
      ends[name] = curve.low[is_finite].min(), curve.high[is_finite].max()
  if not ends:
    return
  limit = _EXPLODED * statistics.median(top for _, top in ends.values())
  exploded = [name for name, (_, top) in ends.items() if 0.0 < limit < top]
  if exploded:
    kept = [end for name, end in ends.items() if name not in exploded]
    low, top = np.min(kept), np.max(kept)
    margin = _MARGIN * (top - low)
    axes.set_ylim(low - margin, top + margin)
    axes.text(
        0.98,
        0.95,
        f'out of range: {", ".join(exploded)}',
        transform=axes.transAxes,
        ha='right',
        va='top',
        fontsize=8,
    )


def _count_legend_columns(names: Sequence[str], width: float) -> int:
  """Returns the number of legend columns, for rows of equal length."""
  longest = max(map(len, names)) + _HANDLE_CHARACTERS
  fitting = int(width * _LEGEND_CHARACTERS_PER_INCH) // longest
  num_rows = -(-len(names) // max(1, min(fitting, _MAX_LEGEND_COLUMNS)))
  return -(-len(names) // num_rows)


def _draw(axes, curve: BandCurve, look: Mapping, place: int):
  """Plots a curve above its band; returns its line."""
  if np.any(np.asarray(curve.high) > np.asarray(curve.low)):
    axes.fill_between(
        curve.x,
        curve.low,
        curve.high,
        color=look['color'],
        alpha=_BAND_OPACITY,
        linewidth=0,
    )
  distance = _style.marked_every(2 * len(curve.x))
  (line,) = axes.plot(
      curve.x,
      curve.mean,
      linewidth=1.6,
      markersize=4.0,
      # Each line has its own points, so that no marker hides another.
      markevery=(place % distance, distance),
      **look,
  )
  return line


def _set_log_ticks(axes):
  """Labels 1, 2, 5, 10, ... if there would be too few powers of ten."""
  low, high = axes.get_ylim()
  if high <= low * 10.0**_FEW_DECADES:
    axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter('{x:g}')
    axes.yaxis.set_minor_formatter(ticker.NullFormatter())


def _set_scale_below(axes, top: float):
  """Makes the vertical axis logarithmic in the distance to a value."""
  least = _LEAST_DISTANCE * abs(top)
  axes.set_yscale(
      'function',
      functions=(
          lambda values: -np.log10(np.maximum(top - values, least)),
          lambda places: top - 10.0**-places,
      ),
  )
  axes.autoscale_view()  # The margins of a linear axis would be too wide.


def _set_ticks_below(axes, top: float):
  """Writes values whose distances to a value are 1, 2, 5, 10, ..."""
  low, high = axes.get_ylim()
  last = math.ceil(math.log10(max(top - low, sys.float_info.min)))
  first = math.floor(math.log10(_LEAST_DISTANCE * abs(top)))
  values = [
      top - digit * 10.0**power
      for power in range(first, last + 1)
      for digit in (1, 2, 5)
  ]
  ticks = [value for value in values if low <= value <= high]
  if len(ticks) < 3:
    ticks = ticker.MaxNLocator(5).tick_values(low, high)
    ticks = [value for value in ticks if low <= value <= high]
  axes.set_yticks(ticks)
  axes.yaxis.set_major_formatter('{x:g}')


def _set_ticks(
    axes, curves: Mapping[str, BandCurve], x_names: Sequence[str], log_x: bool
):
  """Names the values of the horizontal axis if there are few."""
  if x_names:
    axes.set_xticks(range(len(x_names)), x_names)
    axes.set_xlim(-0.3, len(x_names) - 0.7)
    return
  values = np.unique(np.concatenate([c.x for c in curves.values()] or [[]]))
  if log_x and len(values) <= _FEW_TICKS:
    axes.set_xticks(values, [f'{value:g}' for value in values])
    axes.xaxis.set_minor_locator(ticker.NullLocator())
  elif np.all(values == np.round(values)) and not log_x:
    axes.xaxis.set_major_locator(ticker.MaxNLocator(6, integer=True))


_ACCURACY = 'evaluation/accuracy'
_LOSS = 'evaluation/loss'
_TRAIN_LOSS = 'clients/loss'
_STEP_SIZES = (
    'clients/step_size_mean',
    'clients/step_size_min',
    'clients/step_size_max',
)
_RUN_PANEL_HEIGHT = 2.3
_WIDTH = 7.0


def _frame(axes, label: str):
  """Adds the label, grid and frame of a panel."""
  axes.set_ylabel(label)
  _style.frame(axes)


def _legend(axes):
  """Adds the legend above the panel, where it covers no curve."""
  axes.legend(
      frameon=False,
      loc='lower right',
      bbox_to_anchor=(1.0, 0.97),
      ncols=2,
      fontsize=9,
  )


def _draw_accuracy(axes, columns, *, data):
  """Plots the accuracy on the data, with its last value next to it."""
  rounds, values = columns[_ACCURACY]
  percents = [100.0 * value for value in values]
  marker = _style.marker(len(rounds))
  axes.plot(
      rounds,
      percents,
      color=_style.BLUE,
      linewidth=1.8,
      marker=marker,
      markersize=3.5,
  )
  axes.annotate(
      f'{percents[-1]:.1f} %',
      (rounds[-1], percents[-1]),
      xytext=(6, 0),
      textcoords='offset points',
      color=_style.BLUE,
      va='center',
      fontweight='bold',
      annotation_clip=False,
  )
  _frame(axes, f'{data} accuracy (%)')


def _draw_losses(axes, columns, *, data):
  """Plots the clients' training loss and, if measured, that on the data."""
  looks = {
      _TRAIN_LOSS: dict(label='training (clients)', color=_style.VERMILION),
      _LOSS: dict(label=data, color=_style.BLUE, linestyle='--'),
  }
  drawn = [name for name in looks if name in columns]
  for name in drawn:
    marker = _style.marker(len(columns[name][0]))
    axes.plot(
        *columns[name],
        linewidth=1.5,
        marker=marker if name == _LOSS else None,
        markersize=3.5,
        **looks[name],
    )
  if len(drawn) > 1:
    _legend(axes)
  _frame(axes, 'mean loss per example')


def _draw_step_sizes(axes, columns):
  """Plots the mean of the clients' step sizes within their range."""
  mean, low, high = (columns[name] for name in _STEP_SIZES)
  if min(low[1]) > 0 and max(high[1]) > 20 * min(low[1]):
    axes.set_yscale('log')
  axes.fill_between(
      mean[0],
      low[1],
      high[1],
      color=_style.GREEN,
      alpha=0.22,
      linewidth=0,
      label='smallest to largest',
  )
  axes.plot(*mean, color=_style.GREEN, linewidth=1.5, label='mean')
  bottom, top = axes.get_ylim()
  if top - bottom < 1e-3 * abs(top):  # Rounding errors of a constant.
    axes.set_ylim(0.9 * bottom, 1.1 * top)
  _legend(axes)
  _frame(axes, "clients' step size")


def _panels(columns, data: str) -> list:
  """Returns the panels for which there are columns, from top to bottom."""
  panels: list[Callable[..., None]] = []
  if _ACCURACY in columns:
    panels.append(functools.partial(_draw_accuracy, data=data))
  if _TRAIN_LOSS in columns or _LOSS in columns:
    panels.append(functools.partial(_draw_losses, data=data))
  if all(name in columns for name in _STEP_SIZES):
    if len({len(columns[name][0]) for name in _STEP_SIZES}) == 1:
      panels.append(_draw_step_sizes)
  return panels


def plot_training_curve(
    metrics_csv: _files.PathLike,
    path: _files.PathLike,
    title: str = '',
    *,
    data: str = 'test',
):
  """Plots a run: accuracy, loss and the clients' step sizes by round.

  Panels without columns in the file are left out. The figure uses no global
  state of matplotlib.

  Args:
    metrics_csv: A file of `CSVMetricsWriter`.
    path: The .png, .pdf or .svg file to write; its folder is created.
    title: The title, for example the method and the task. Defaults to no title.
    data: The name of the data of the evaluations. Defaults to 'test'.

  Raises:
    OSError: If a file cannot be read or written; names it.
    ValueError: If the metrics file is damaged or has no column to plot.

  Example:
    >>> plot_training_curve(
    ...     'runs/demo/metrics.csv', 'runs/demo/plots/training.png',
    ...     title='delta_sgd + fedavg on digits')
  """
  columns = _run_metrics.read_columns(metrics_csv)
  panels = _panels(columns, data)
  if not panels:
    raise ValueError(f'{metrics_csv} has no accuracy, loss or step size.')
  drawing, stack = _style.new_stack(
      len(panels), width=_WIDTH, height=_RUN_PANEL_HEIGHT, x_label='round'
  )
  for draw, axes in zip(panels, stack):
    draw(axes, columns)
  drawing.align_ylabels()
  stack[-1].set_xlim(0, max(columns['round_num'][0]) + 1)
  _style.save(drawing, path, title)
