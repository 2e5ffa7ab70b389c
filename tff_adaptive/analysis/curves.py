# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Curves with bands over several seeds, in panels side by side."""

from collections.abc import Mapping, Sequence
import dataclasses
import math
import statistics
import sys
from typing import Any, Optional, Union

from matplotlib import ticker
import numpy as np

from tff_adaptive import _files
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
# Smaller distances to `log_below`, relative to it, are drawn at this one.
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
    width: Optional[float] = None,
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
    width: The width of the figure in inches if it is to be printed in this
      size, such as 3.3 for a column of a page, with text of 8 points. None (the
      default) for a size that suits a screen.

  Raises:
    ValueError: If there are no curves, or two scales of the vertical axis.
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
  if log_y and log_below is not None:
    raise ValueError('Give `log_y` or `log_below`, not both.')
  others = [name for name in found if only_names and name not in names]
  looks = _style.looks(
      [n for n in {**dict.fromkeys(names), **found} if n not in others]
  )
  with _style.printed(width):
    drawing, axes_by_title = _style.new_panels(
        list(panels),
        width=_PANEL_WIDTH,
        height=_PANEL_HEIGHT,
        max_columns=panels_per_row,
        printed_width=width,
    )
    handles = {}
    for panel, curves in panels.items():
      axes = axes_by_title[panel]
      handles.update(_draw_panel(axes, curves, looks, others))
      axes.set(xlabel=x_label, ylabel=y_label)
      if log_x:
        axes.set_xscale('log')
      if log_y:
        axes.set_yscale('log')
      elif log_below is not None:
        _set_scale_below(axes, log_below)
      elif y_max is None:
        _leave_out_exploded(axes, curves)
      axes.set_ylim(y_min, y_max)
      if log_y:
        _set_log_ticks(axes)
      elif log_below is not None:
        _set_ticks_below(axes, log_below)
      own = x_names.get(panel, ()) if isinstance(x_names, Mapping) else x_names
      _set_ticks(axes, curves, own, log_x)
      _style.frame(axes)
    _add_legend(
        drawing,
        {n: handles[n] for n in (*looks, _OTHERS) if n in handles},
        _style.text_scale(width),
    )
    _style.save(drawing, path, title)


def _draw_panel(
    axes,
    curves: Mapping[str, BandCurve],
    looks: Mapping[str, Mapping],
    others: Sequence[str],
) -> dict:
  """Plots the curves of a panel; returns their lines by method."""
  lines = {}
  for name in others:
    if name in curves:
      curve = curves[name]
      is_point = len(curve.x) == 1
      (lines[_OTHERS],) = axes.plot(
          curve.x, curve.mean, marker='.' if is_point else '', **_OTHERS_LOOK
      )
  places = {name: place for place, name in enumerate(looks)}
  for name, curve in curves.items():
    if name not in others:
      lines[name] = _draw(axes, curve, looks[name], places[name])
  return lines


def _add_legend(drawing, lines: Mapping[str, Any], scale: float):
  """Adds the legend below the panels."""
  drawing.legend(
      list(lines.values()),
      list(lines),
      loc='outside lower center',
      ncols=_count_legend_columns(list(lines), drawing.get_figwidth() / scale),
      frameon=False,
      fontsize=9 * scale,
      handlelength=3.2,
  )


def _leave_out_exploded(axes, curves: Mapping[str, BandCurve]) -> None:
  """Fits the axis to curves that did not explode; names those that did."""
  ends = {}
  for name, curve in curves.items():
    is_finite = np.isfinite(curve.low) & np.isfinite(curve.high)
    if is_finite.any():
      ends[name] = curve.low[is_finite].min(), curve.high[is_finite].max()
  if not ends:
    return
  # The lower of two in the middle: half of them may have exploded.
  limit = _EXPLODED * statistics.median_low(top for _, top in ends.values())
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


def _least_distance(top: float) -> float:
  return _LEAST_DISTANCE * (abs(top) or 1.0)


def _set_scale_below(axes, top: float):
  """Makes the vertical axis logarithmic in the distance to a value."""
  least = _least_distance(top)
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
  first = math.floor(math.log10(_least_distance(top)))
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
