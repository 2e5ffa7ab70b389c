# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The common style of the figures: colors, lines, frames and saving."""

from collections.abc import Mapping, Sequence
import contextlib
import io
import os
import pathlib
import textwrap
from typing import Any, IO, Optional

import matplotlib
from matplotlib import figure
from matplotlib import text as text_lib
from matplotlib import ticker
from matplotlib.backends import backend_agg
from PIL import Image

from tff_adaptive import _files

# Okabe and Ito's colors, which the color-blind can distinguish, without the
# yellow, which is hard to see on white, and with another gray.
BLUE = '#0072B2'
VERMILION = '#D55E00'
GREEN = '#009E73'
PURPLE = '#CC79A7'
ORANGE = '#E69F00'
SKY = '#56B4E9'
BLACK = '#000000'
_SILVER = '#8A8A8A'
COLORS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, _SILVER, BLACK)

# Metadata by format. Without dates, equal figures are equal files.
_METADATA = {'.png': {}, '.pdf': {'CreationDate': None}, '.svg': {'Date': None}}

# Conferences refuse PDF files with matplotlib's own fonts, of type 3.
_FILES = {'pdf.fonttype': 42, 'svg.hashsalt': 'tff_adaptive'}

# The color map of heat maps. Light to dark: it also works printed in gray.
HEAT_COLORS = 'Blues'
_DARK = 0.6  # From this value on, white text is easier to read than black.

GRAY = '#555555'
GRID = '#DDDDDD'

# Their numbers are coprime to the number of colors, so that many lines differ
# in all three, and lines of one gray level in two.
_DASHES = ('-', '--', '-.', (0, (1, 1.2)), (0, (7, 2)))
_MARKERS = ('o', 's', '^', 'D', 'v', 'P', 'X', '*', 'p')
_MAX_MARKED_POINTS = 30
_DPI = 150
# Text of 10 points is 8 points high in a figure that is printed in its width.
_PRINTED_SCALE = 0.8
# For the title, in bold letters of 11 points.
_CHARACTERS_PER_INCH = 10.5


def looks(names: Sequence[str]) -> dict[str, Mapping[str, Any]]:
  """Returns the color, dashes and marker of each line, by name."""
  return {
      name: {
          'color': COLORS[i % len(COLORS)],
          'linestyle': _DASHES[i % len(_DASHES)],
          'marker': _MARKERS[i % len(_MARKERS)],
      }
      for i, name in enumerate(names)
  }


def marked_every(num_points: int) -> int:
  """Returns the number of points between two markers of a line."""
  return max(1, -(-num_points // _MAX_MARKED_POINTS))


def marker(num_points: int) -> Optional[str]:
  """Returns the marker of a single line; None if it has many points."""
  return 'o' if num_points <= _MAX_MARKED_POINTS else None


def frame(axes, axis: str = 'both', grid: Optional[str] = GRID):
  """Adds a frame and grid lines for the axes 'x', 'y' or 'both' to a panel."""
  if grid is not None:
    axes.grid(True, axis=axis, color=grid, linewidth=0.6)
  axes.set_axisbelow(True)
  axes.spines[['top', 'right']].set_visible(False)
  axes.spines[['left', 'bottom']].set_color(GRAY)
  axes.tick_params(colors=GRAY, labelcolor='black')


def new_figure(
    width: float, height: float, layout: str = 'constrained'
) -> figure.Figure:
  """Returns an empty figure without global state of matplotlib."""
  drawing = figure.Figure(figsize=(width, height), layout=layout)
  backend_agg.FigureCanvasAgg(drawing)
  return drawing


def text_scale(printed_width: Optional[float]) -> float:
  """Returns the size of text in a figure, relative to figures on a screen."""
  return 1.0 if printed_width is None else _PRINTED_SCALE


def printed(width: Optional[float]) -> contextlib.AbstractContextManager:
  """Returns the context in which the text of a figure has its size."""
  if width is None:
    return contextlib.nullcontext()
  return matplotlib.rc_context({'font.size': 10.0 * text_scale(width)})


def new_panels(
    titles: Sequence[str],
    *,
    width: float,
    height: float,
    max_columns: int = 3,
    printed_width: Optional[float] = None,
) -> tuple[figure.Figure, dict[str, Any]]:
  """Returns a figure with panels side by side, and the panels by title.

  Sizes are those of a panel, in inches; a single panel is 1.5 times as wide.
  A figure for print has another width, and panels of the same proportions.
  """
  num_columns = min(len(titles), max_columns)
  num_rows = -(-len(titles) // num_columns)
  total = max(width * num_columns, 1.5 * width)
  if printed_width is not None:
    height *= min(1.0, printed_width / num_columns / width)
    total = printed_width
  margin = 0.8 * text_scale(printed_width)
  drawing = new_figure(total, height * num_rows + margin)
  grid = drawing.subplots(num_rows, num_columns, squeeze=False)
  panels = dict(zip(titles, grid.flat))
  for title, axes in panels.items():
    size = 10 * text_scale(printed_width)
    axes.set_title(title, fontsize=size, loc='left')
  for axes in grid.flat[len(titles) :]:
    axes.set_visible(False)
  return drawing, panels


def new_stack(
    num_panels: int, *, width: float, height: float, x_label: str
) -> tuple[figure.Figure, Sequence[Any]]:
  """Returns a figure with panels stacked vertically, and the panels.

  The width is that of the figure, the height that of a panel, in inches. The
  shared axis has integer ticks.
  """
  drawing = new_figure(width, height * num_panels + 0.7)
  panels = drawing.subplots(num_panels, 1, sharex=True, squeeze=False)[:, 0]
  panels[-1].set_xlabel(x_label)
  panels[-1].xaxis.set_major_locator(ticker.MaxNLocator(integer=True))
  return drawing, panels


def write_cell(
    axes, row: int, column: int, text: str, darkness: float, **look: Any
):
  """Writes text into a cell of a heat map of darkness 0 to 1."""
  axes.text(
      column,
      row,
      text,
      ha='center',
      va='center',
      color='white' if darkness >= _DARK else 'black',
      **look,
  )


def _show_as_written(drawing: figure.Figure):
  """Makes '$' in names a character, not the start of a formula."""
  axes = [axis for a in drawing.axes for axis in (a.xaxis, a.yaxis)]
  labels = {axis: axis.get_ticklabels(which='both') for axis in axes}
  for written in drawing.findobj(text_lib.Text):
    written.set_parse_math(False)
  for axis, of_axis in labels.items():
    # These write powers of ten as formulas.
    is_log = isinstance(axis.get_major_formatter(), ticker.LogFormatter)
    for label in of_axis:
      label.set_parse_math(is_log)


def _save_in_few_colors(drawing: figure.Figure, file: IO[bytes]):
  """Writes a PNG of 256 colors: a third of the bytes, and it looks the same."""
  drawn = io.BytesIO()
  drawing.savefig(drawn, format='png', dpi=_DPI)
  with Image.open(drawn) as picture:
    picture.convert('RGB').quantize().save(
        file, 'PNG', optimize=True, dpi=(_DPI, _DPI)
    )


def save(drawing: figure.Figure, path: _files.PathLike, title: str = ''):
  """Writes a figure with a title, which may be empty, to a file atomically.

  Raises:
    OSError: If the file cannot be written; names it.
    ValueError: If its name does not end in a known format.
  """
  suffix = pathlib.Path(path).suffix
  if suffix not in _METADATA:
    raise ValueError(
        f'{os.fspath(path)!r} must end in {", ".join(_METADATA)}, for the '
        'format of the figure.'
    )
  if title:
    width = int(drawing.get_figwidth() * _CHARACTERS_PER_INCH)
    title = textwrap.fill(title, width)
    drawing.suptitle(title, x=0.02, ha='left', fontweight='bold', fontsize=11)
  _show_as_written(drawing)
  with _files.replacing(path) as file, matplotlib.rc_context(_FILES):
    if suffix == '.png':
      _save_in_few_colors(drawing, file)
    else:
      drawing.savefig(
          file, format=suffix[1:], dpi=_DPI, metadata=_METADATA[suffix]
      )
