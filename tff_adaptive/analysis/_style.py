# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the figures share: colours, looks of lines, frames and saving."""

from collections.abc import Mapping, Sequence
import os
import textwrap
from typing import Any, Optional, Union

from matplotlib import figure
from matplotlib import ticker
from matplotlib.backends import backend_agg

from tff_adaptive import _files

PathLike = Union[str, os.PathLike]

# Okabe and Ito's colours, which the colour-blind tell apart, without the yellow
# that is lost on white, and one more grey.
BLUE = '#0072B2'
VERMILION = '#D55E00'
GREEN = '#009E73'
PURPLE = '#CC79A7'
ORANGE = '#E69F00'
SKY = '#56B4E9'
BLACK = '#000000'
_SILVER = '#8A8A8A'
COLORS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, _SILVER, BLACK)

# Of heat maps. Light to dark: it reads the same printed in grey.
HEAT_COLORS = 'Blues'
_DARK = 0.6  # From this value on, white is read better than black.

GREY = '#555555'
GRID = '#DDDDDD'

# Their numbers have no common divisor with that of the colours, so many lines
# differ in all three, and those of one grey in two.
_DASHES = ('-', '--', '-.', (0, (1, 1.2)), (0, (7, 2)))
_MARKERS = ('o', 's', '^', 'D', 'v', 'P', 'X', '*', 'p')
_MAX_MARKED_POINTS = 30
_DPI = 150
# Of the title, whose letters are bold and of 11 points.
_CHARACTERS_PER_INCH = 10.5


def looks(names: Sequence[str]) -> dict[str, Mapping[str, Any]]:
  """Returns a colour, dashes and a marker for every line, by its name."""
  return {
      name: {
          'color': COLORS[i % len(COLORS)],
          'linestyle': _DASHES[i % len(_DASHES)],
          'marker': _MARKERS[i % len(_MARKERS)],
      }
      for i, name in enumerate(names)
  }


def marked_every(num_points: int) -> int:
  """Returns after how many points of a line to draw a marker again."""
  return max(1, -(-num_points // _MAX_MARKED_POINTS))


def marker(num_points: int) -> Optional[str]:
  """Returns the marker of a single line; none where it has many points."""
  return 'o' if num_points <= _MAX_MARKED_POINTS else None


def frame(axes, axis: str = 'both', grid: Optional[str] = GRID):
  """Gives a panel its grid and frame.

  Args:
    axes: The panel.
    axis: Where lines of the grid stand: 'x', 'y' or 'both'.
    grid: The colour of the grid; None for no grid.
  """
  if grid is not None:
    axes.grid(True, axis=axis, color=grid, linewidth=0.6)
  axes.set_axisbelow(True)
  axes.spines[['top', 'right']].set_visible(False)
  axes.spines[['left', 'bottom']].set_color(GREY)
  axes.tick_params(colors=GREY, labelcolor='black')


def new_figure(
    width: float, height: float, layout: str = 'constrained'
) -> figure.Figure:
  """Returns an empty figure that uses no global state of matplotlib."""
  drawing = figure.Figure(figsize=(width, height), layout=layout)
  backend_agg.FigureCanvasAgg(drawing)
  return drawing


def new_panels(
    titles: Sequence[str],
    *,
    width: float,
    height: float,
    max_columns: int = 3,
    **sharing: Any,
) -> tuple[figure.Figure, dict[str, Any]]:
  """Returns a figure with panels side by side, and these by their titles.

  Args:
    titles: The titles of the panels; one may be empty.
    width: Of a panel, in inches; a single one is as wide as one and a half.
    height: Of a panel, in inches.
    max_columns: How many panels stand side by side at most.
    **sharing: Of `subplots`: `sharex`, `sharey`.

  Returns:
    The figure and the panels.
  """
  num_columns = min(len(titles), max_columns)
  num_rows = -(-len(titles) // num_columns)
  drawing = new_figure(
      max(width * num_columns, 1.5 * width), height * num_rows + 0.8
  )
  grid = drawing.subplots(num_rows, num_columns, squeeze=False, **sharing)
  panels = dict(zip(titles, grid.flat))
  for title, axes in panels.items():
    axes.set_title(title, fontsize=10, loc='left')
  for axes in grid.flat[len(titles) :]:
    axes.set_visible(False)
  return drawing, panels


def new_stack(
    num_panels: int, *, width: float, height: float, x_label: str
) -> tuple[figure.Figure, Sequence[Any]]:
  """Returns a figure with panels one above the other, and these.

  Args:
    num_panels: How many there are.
    width: Of the figure, in inches.
    height: Of a panel, in inches.
    x_label: The label of the axis that they share, of whole numbers.

  Returns:
    The figure and the panels.
  """
  drawing = new_figure(width, height * num_panels + 0.7)
  panels = drawing.subplots(num_panels, 1, sharex=True, squeeze=False)[:, 0]
  panels[-1].set_xlabel(x_label)
  panels[-1].xaxis.set_major_locator(ticker.MaxNLocator(integer=True))
  return drawing, panels


def write_cell(
    axes, row: int, column: int, text: str, darkness: float, **look: Any
):
  """Writes into a cell of a heat map.

  Args:
    axes: The panel.
    row: The place of the cell.
    column: The place of the cell.
    text: What to write.
    darkness: Of the cell, from 0 to 1.
    **look: Of the letters.
  """
  axes.text(
      column,
      row,
      text,
      ha='center',
      va='center',
      color='white' if darkness >= _DARK else 'black',
      **look,
  )


def save(drawing: figure.Figure, path_png: PathLike, title: str = ''):
  """Puts the title above a figure and writes it, atomically.

  Args:
    drawing: The figure.
    path_png: The picture to write; its folder is made.
    title: The title; may be empty. A long one gets several lines.

  Raises:
    OSError: If the picture cannot be written; names it.
  """
  if title:
    width = int(drawing.get_figwidth() * _CHARACTERS_PER_INCH)
    title = textwrap.fill(title, width)
    drawing.suptitle(title, x=0.02, ha='left', fontweight='bold', fontsize=11)
  with _files.replacing(path_png) as file:
    drawing.savefig(file, format='png', dpi=_DPI)
