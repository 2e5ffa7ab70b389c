# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Pages of results as Markdown and HTML.

A page is a title and blocks of Markdown. Titles, headings and the cells of
tables are text, unless they are `markup.Markup`; paragraphs and captions are
the program's own sentences, in which values of others stand as `markup.text` or
`markup.code`.
"""

import base64
from collections.abc import Iterable, Sequence
import html
import math
import pathlib
import re

from experiments import formatting
from experiments import markup
from experiments.run_results import environments
from experiments.run_results import run_folder
from tff_adaptive import _files

# A page is self-contained, and readable on a phone.
_TEMPLATE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none';
img-src data:; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
{body}
</body>
</html>
"""
_STYLE = """\
:root { color-scheme: light dark; --ink: #1c1c1c; --paper: #fff;
  --line: #d4d4d4; --soft: #f3f3f0; --link: #005a94; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e6e6; --paper: #161616;
  --line: #444; --soft: #242424; --link: #8cc4ee; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 72rem; padding: 1rem; color: var(--ink);
  background: var(--paper); font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; line-height: 1.25; }
h2 { font-size: 1.15rem; margin-top: 2rem; }
a { color: var(--link); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; white-space: nowrap;
  font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid var(--line); padding: .3rem .7rem; }
th { background: var(--soft); }
th:first-child, td:first-child { left: 0; position: sticky; }
td:first-child { background: var(--paper); }
code, pre { font: .85em/1.45 ui-monospace, monospace; }
pre { background: var(--soft); overflow-x: auto; padding: .7rem; }
img { background: #fff; height: auto; max-width: 100%; }
"""
_DATE = '%Y-%m-%d'


class Figure(str):
  """The block of a picture that the program made.

  Attributes:
    name: The name of the PNG file.
    alternative: The text in place of the picture.
    below: The Markdown below the picture.
  """

  name: str
  alternative: str
  below: str


def heading(text: str) -> str:
  """Returns a second-level heading."""
  return f'## {_line(text)}'


def paragraph(text: str) -> str:
  """Returns a paragraph of the program's own sentences."""
  return markup.escape(text)


def code(text: str) -> str:
  """Returns a code block."""
  ticks = max(map(len, re.findall('`+', text)), default=0)
  fence = '`' * max(3, ticks + 1)
  return f'{fence}\n{text}\n{fence}'


def figure(path: pathlib.Path, caption: str, command: str) -> Figure:
  """Returns a picture with its caption.

  Args:
    path: The PNG file, in the folder of the page.
    caption: The caption.
    command: The command that made the picture.
  """
  caption = markup.escape(caption)
  alternative = caption.replace('[', '(').replace(']', ')')
  below = f'{caption} Made by {markup.code(command)}.'
  block = Figure(f'![{alternative}]({path.name})\n\n{below}')
  block.name, block.alternative, block.below = path.name, alternative, below
  return block


def table(
    header: Sequence[str], rows: Iterable[Sequence[str]], num_labels: int = 1
) -> str:
  """Returns a table.

  Args:
    header: The names of the columns.
    rows: The texts of the cells.
    num_labels: The number of columns from the left that are left-aligned; the
      others are right-aligned.
  """
  marks = [':---'] * num_labels + ['---:'] * (len(header) - num_labels)
  return '\n'.join(map(_table_row, [header, marks, *rows]))


def text_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
  """Returns a table of the program's own `Markup`, as the lines of a file."""
  marked = [[markup.Markup(cell) for cell in row] for row in rows]
  names = [markup.Markup(name) for name in header]
  return table(names, marked, num_labels=len(header)) + '\n'


def _table_row(cells: Sequence[str]) -> str:
  texts = [' '.join(_line(cell).replace('|', r'\|').split()) for cell in cells]
  return f'| {" | ".join(texts)} |'


def _line(text: str) -> str:
  """Returns `Markup` or text as Markdown."""
  if isinstance(text, markup.Markup):
    return markup.escape(text)
  return markup.text(text)


def origin(runs: Sequence[run_folder.Run], command: str) -> list[str]:
  """Returns the blocks at the end of a page that document its origin.

  Args:
    runs: The runs that the page shows.
    command: The command that made the page.

  Returns:
    Versions, machine, seeds, dates, total time and the command.
  """
  found = [found for run in runs for found in environments.read(run.path)]
  names = dict.fromkeys(name for environment in found for name in environment)
  rows = [
      [name, ', '.join(dict.fromkeys(str(e.get(name, '-')) for e in found))]
      for name in names
  ]
  if runs:
    seeds = sorted({int(run.hparams.get('seed') or 0) for run in runs})
    first = min(run.started for run in runs).strftime(_DATE)
    last = max(run.ended for run in runs).strftime(_DATE)
    seconds = sum(run.seconds for run in runs)
    time = formatting.format_seconds(seconds)
    if not math.isnan(seconds):
      time = f'{seconds:,.0f} s ({time})'
    rows += [
        ['seeds', ', '.join(map(str, seeds))],
        ['runs', f'{len(runs)}, from {first} to {last}'],
        ['time of all rounds, without starts and evaluations', time],
    ]
  of_runs = [
      table(['item', 'value'], rows, num_labels=2),
      paragraph(
          'The runs recorded their versions and machine; the dates are those '
          'of their files.'
      ),
  ]
  return [
      heading('How this page was made'),
      *(of_runs if runs else ()),
      code(command),
  ]


def to_markdown(title: str, blocks: Sequence[str]) -> str:
  """Returns a page as GitHub-flavored Markdown."""
  return '\n\n'.join([f'# {_line(title)}', *blocks]) + '\n'


def to_html(title: str, blocks: Sequence[str], folder: pathlib.Path) -> str:
  """Returns a page as HTML with embedded pictures.

  Args:
    title: The title of the page.
    blocks: The blocks of the page, in order.
    folder: The folder of its pictures.

  Returns:
    The text of the file.

  Raises:
    OSError: If a picture cannot be read.
  """
  blocks = [f'# {_line(title)}', *blocks]
  body = '\n'.join(_block_to_html(block, folder) for block in blocks)
  body = body.replace('<table>', '<div class="wide"><table>')
  body = body.replace('</table>', '</table></div>')
  return _TEMPLATE.format(title=html.escape(title), style=_STYLE, body=body)


def _block_to_html(block: str, folder: pathlib.Path) -> str:
  if not isinstance(block, Figure):
    return markup.to_html(block)
  data = base64.b64encode((folder / block.name).read_bytes()).decode('ascii')
  alternative = html.escape(html.unescape(block.alternative))
  picture = f'<img alt="{alternative}" src="data:image/png;base64,{data}">'
  return f'<p>{picture}</p>\n{markup.to_html(block.below)}'


def write_page(path: pathlib.Path, title: str, blocks: Sequence[str]):
  """Writes a page as Markdown and as HTML.

  Args:
    path: The path without `.md` and `.html`, in the folder of the pictures.
    title: The title of the page.
    blocks: The blocks of the page, in order.

  Raises:
    OSError: If a picture cannot be read, or a file cannot be written.
  """
  _files.write(with_suffix(path, '.md'), to_markdown(title, blocks))
  _files.write(with_suffix(path, '.html'), to_html(title, blocks, path.parent))


def with_suffix(path: pathlib.Path, suffix: str) -> pathlib.Path:
  """Returns a path with a suffix appended to its name."""
  return path.with_name(path.name + suffix)
