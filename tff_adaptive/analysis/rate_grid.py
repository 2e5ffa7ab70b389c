# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Heat maps of a metric over client and server learning rates."""

from collections.abc import Mapping
import dataclasses
from typing import Optional

from matplotlib import patches
import numpy as np

from tff_adaptive import _files
from tff_adaptive.analysis import _style

_PITCH = 0.52  # Between two rates, in inches.
_MARGIN_WIDTH = 1.3  # For the labels, in inches.
_MARGIN_HEIGHT = 1.0
_MIN_SIZE = 2.2
_FONT_SIZE = 8
_CROSS_SIZE = 7.0


@dataclasses.dataclass(frozen=True, eq=False)
class RateGrid:
  """A metric for each pair of learning rates.

  Attributes:
    client_rates: The client learning rates, ascending.
    server_rates: The server learning rates, ascending.
    values: An array of shape [client rates, server rates]; NaN if nothing was
      measured or a run diverged.
    higher_is_better: Whether the largest value is the best. Defaults to True.
    diverged: Whether each run diverged, of the shape of `values`; None if none
      did.
  """

  client_rates: np.ndarray
  server_rates: np.ndarray
  values: np.ndarray
  higher_is_better: bool = True
  diverged: Optional[np.ndarray] = None

  def finite_values(self) -> np.ndarray:
    """Returns `values` as float64, NaN where they are infinite."""
    values = np.asarray(self.values, np.float64)
    return np.where(np.isfinite(values), values, np.nan)

  def best(self) -> Optional[tuple[int, int]]:
    """Returns the indices of the best finite value; None without any."""
    values = self.finite_values()
    if np.isnan(values).all():
      return None
    find = np.nanargmax if self.higher_is_better else np.nanargmin
    row, column = np.unravel_index(find(values), values.shape)
    return int(row), int(column)

  def is_empty(self) -> bool:
    """Returns whether there are neither values nor diverged runs."""
    has_cross = self.diverged is not None and np.any(self.diverged)
    return self.best() is None and not has_cross


def plot_rate_grids(
    panels: Mapping[str, RateGrid],
    path: _files.PathLike,
    *,
    title: str = '',
    x_label: str = 'server learning rate',
    y_label: str = 'client learning rate',
    decimals: int = 1,
):
  """Plots heat maps side by side; a frame marks the best value of each.

  A cross, explained by a legend, marks diverged runs, and a dash missing ones.
  Darker is better. The figure uses no global state of matplotlib.

  Args:
    panels: The values by the title of their panel.
    path: The .png, .pdf or .svg file to write; its folder is created.
    title: The title of the figure. Defaults to no title.
    x_label: The horizontal label. Defaults to 'server learning rate'.
    y_label: The vertical label. Defaults to 'client learning rate'.
    decimals: The number of decimals in the cells. Defaults to 1.

  Raises:
    ValueError: If there are neither values nor diverged runs.
    OSError: If the file cannot be written; names it.

  Example:

    >>> grid = RateGrid(
    ...     np.array([0.01, 0.1]), np.array([0.1, 1.0]),
    ...     np.array([[70.0, 80.0], [75.0, np.nan]]))
    >>> plot_rate_grids({'FedAdam': grid}, 'rates.png')

  References:
    Reddi et al., Adaptive Federated Optimization, ICLR 2021,
    https://arxiv.org/abs/2003.00295, Figure 2.
  """
  if all(grid.is_empty() for grid in panels.values()):
    raise ValueError('There are no values to plot.')
  num_rows, num_columns = np.max(
      [grid.values.shape for grid in panels.values()], axis=0
  )
  drawing, axes_by_title = _style.new_panels(
      list(panels),
      width=max(num_columns * _PITCH, _MIN_SIZE) + _MARGIN_WIDTH,
      height=max(num_rows * _PITCH, _MIN_SIZE) + _MARGIN_HEIGHT,
  )
  for name, grid in panels.items():
    _draw(axes_by_title[name], grid, decimals)
    axes_by_title[name].set(xlabel=x_label, ylabel=y_label)
  _add_legend(drawing)
  _style.save(drawing, path, title)


def _draw(axes, grid: RateGrid, decimals: int):
  """Plots the cells of a heat map, with their values."""
  values = grid.finite_values()
  shares = _to_shares(values if grid.higher_is_better else -values)
  axes.imshow(
      shares,
      cmap=_style.HEAT_COLORS,
      vmin=0.0,
      vmax=1.15,
      origin='lower',
      aspect='auto',
  )
  best = grid.best()
  diverged = np.zeros(values.shape, bool)
  if grid.diverged is not None:
    diverged = np.asarray(grid.diverged, bool)
    _draw_crosses(axes, diverged)
  for (row, column), value in np.ndenumerate(values):
    if diverged[row, column]:
      continue
    _style.write_cell(
        axes,
        row,
        column,
        f'{value:.{decimals}f}' if np.isfinite(value) else '–',
        shares[row, column],
        fontsize=_FONT_SIZE,
        fontweight='bold' if (row, column) == best else 'normal',
    )
  if best is not None:
    _draw_frame(axes, *best)
  for axis, rates in (
      (axes.xaxis, grid.server_rates),
      (axes.yaxis, grid.client_rates),
  ):
    axis.set_ticks(range(len(rates)), [f'{rate:.2g}' for rate in rates])
    axis.set_tick_params(length=0, labelsize=_FONT_SIZE)
  axes.spines[:].set_visible(False)


def _draw_crosses(axes, diverged: np.ndarray):
  """Marks the cells of diverged runs, if there are any."""
  rows, columns = np.nonzero(diverged)
  if len(rows):
    axes.plot(
        columns,
        rows,
        linestyle='none',
        marker='x',
        markersize=_CROSS_SIZE,
        markeredgewidth=1.6,
        color=_style.BLACK,
        label='diverged',
    )


def _add_legend(drawing):
  """Explains the crosses below the panels, if there are any."""
  look = dict(loc='outside lower left', frameon=False, fontsize=_FONT_SIZE)
  for axes in drawing.axes:
    handles, labels = axes.get_legend_handles_labels()
    if handles:
      drawing.legend(handles, labels, **look)
      return


def _to_shares(values: np.ndarray) -> np.ndarray:
  """Scales values from the worst, 0, to the best, 1."""
  if not np.isfinite(values).any():
    return values
  low, high = np.nanmin(values), np.nanmax(values)
  return (values - low) / (high - low) if high > low else values - low + 1.0


def _draw_frame(axes, row: int, column: int):
  """Adds the frame of the best cell, visible on light and dark."""
  corner = (column - 0.45, row - 0.45)
  look = dict(fill=False, edgecolor=_style.VERMILION, linewidth=2.2)
  axes.add_patch(patches.Rectangle(corner, 0.9, 0.9, **look))


def best_server_rates(grid: RateGrid) -> tuple[np.ndarray, np.ndarray]:
  """Returns the client rates with values, and the best server rate of each.

  Args:
    grid: The values; of equal ones, the smallest server rate is used.

  Returns:
    Two arrays of the same length.

  Example:

    >>> best_server_rates(RateGrid(
    ...     np.array([0.01, 0.1]), np.array([0.1, 1.0]),
    ...     np.array([[70.0, 80.0], [75.0, np.nan]])))
    (array([0.01, 0.1 ]), array([1. , 0.1]))
  """
  values = grid.finite_values()
  has_value = np.isfinite(values).any(axis=1)
  find = np.nanargmax if grid.higher_is_better else np.nanargmin
  best = find(values[has_value], axis=1)
  return (
      np.asarray(grid.client_rates)[has_value],
      np.asarray(grid.server_rates)[best],
  )
