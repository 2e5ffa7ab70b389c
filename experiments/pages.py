# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Pages of results as Markdown, which runs no code of others.

A page is a title and blocks of Markdown. Titles, headings and the cells of
tables are text, of which nothing is markup, unless they are `Markup`.
Paragraphs and captions are the program's own sentences. Values from a run's
folder may be those of somebody else: in sentences they stand as `text` or
`code`, and whatever else gets into a sentence brings no tags, no pictures and
no links but web addresses.
"""

from collections.abc import Iterable, Sequence
import math
import pathlib
import re
from typing import Any

from experiments import formatting
from experiments.run_results import environments
from experiments.run_results import run_folder
from tff_adaptive import _files

_DATE = '%Y-%m-%d'


class Markup(str):
  """A sentence of the program with `code`, **bold** or [links](https://...)."""


# An underscore within a word is no emphasis.
_SPECIAL = re.compile(
    r'\\(?![\w\s])|[`*<]|&(?=#?\w+;)|(?<![^\W_])_|_(?![^\W_])'
    r'|~(?=~)|(?<=~)~|(?<=\])[(\[]'
)
_CODE = re.compile('(`[^`]*`)')
# A tag or a picture; a link to anything but the web or another file, in place
# or defined below.
_ACTIVE = re.compile(
    r'<|!(?=\[)|(?<=\]):'
    r'|(?<=\])\((?=\s*(?!https?:)([a-z][\w+.-]*:|[^\w./#-]))',
    re.I,
)
# Control characters, some of which Markdown uses for its own marks.
_CONTROL = re.compile(r'[\x00-\x08\x0e-\x1b\x7f]')
_ENTITIES = {'<': '&lt;', '&': '&amp;', '*': r'\*', '_': r'\_'}


def text(value: Any) -> Markup:
  """Returns a value as text in one line, of which nothing is markup.

  Args:
    value: The value, which may come from anywhere.

  Example:
    >>> text('**a** <b>')
    '\\\\*\\\\*a\\\\*\\\\* &lt;b>'
  """
  return Markup(_SPECIAL.sub(_to_entity, _in_one_line(value)))


def _in_one_line(value: Any) -> str:
  return ' '.join(_CONTROL.sub('', str(value)).split())


def _to_entity(match: re.Match) -> str:
  return _ENTITIES.get(match[0], f'&#{ord(match[0])};')


def code(value: Any) -> Markup:
  """Returns a value as code in one line.

  Args:
    value: The value, which may come from anywhere; one that would end the code
      is shown as text.
  """
  line = _in_one_line(value)
  return text(line) if '`' in line or not line else Markup(f'`{line}`')


def escape(sentence: str) -> str:
  """Returns `Markup` as Markdown without tags, pictures and links to scripts.

  Args:
    sentence: The sentence.
  """
  # Only pairs of single backticks are code for every reader.
  is_plain = '``' in sentence or '\\`' in sentence or sentence.count('`') % 2
  parts = [sentence] if is_plain else _CODE.split(sentence)
  parts[::2] = [_ACTIVE.sub(_to_entity, part) for part in parts[::2]]
  return ''.join(parts)


def heading(title: str) -> str:
  """Returns a second-level heading."""
  return f'## {_line(title)}'


def section(title: str, *blocks: str) -> list[str]:
  """Returns the blocks of a section; none if one of them, its table, is empty.

  Args:
    title: The heading.
    *blocks: The blocks below it.
  """
  return [heading(title), *blocks] if all(blocks) else []


def paragraph(sentences: str) -> str:
  """Returns a paragraph of the program's own sentences."""
  return escape(sentences)


def code_block(text: str) -> str:
  """Returns a code block."""
  ticks = max(map(len, re.findall('`+', text)), default=0)
  fence = '`' * max(3, ticks + 1)
  return f'{fence}\n{text}\n{fence}'


def figure(path: pathlib.Path, caption: str, command: str) -> str:
  """Returns a picture with its caption.

  Args:
    path: The PNG file, in the folder of the page.
    caption: The caption.
    command: The command that made the picture.
  """
  caption = escape(caption)
  alternative = caption.replace('[', '(').replace(']', ')')
  below = f'{caption} Made by {code(command)}.'
  return f'![{alternative}]({path.name})\n\n{below}'


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
  marked = [[Markup(cell) for cell in row] for row in rows]
  names = [Markup(name) for name in header]
  return table(names, marked, num_labels=len(header)) + '\n'


def _table_row(cells: Sequence[str]) -> str:
  texts = [' '.join(_line(cell).replace('|', r'\|').split()) for cell in cells]
  return f'| {" | ".join(texts)} |'


def _line(value: str) -> str:
  """Returns `Markup` or text as Markdown."""
  return escape(value) if isinstance(value, Markup) else text(value)


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
      code_block(command),
  ]


def to_markdown(title: str, blocks: Sequence[str]) -> str:
  """Returns a page as GitHub-flavored Markdown."""
  return '\n\n'.join([f'# {_line(title)}', *blocks]) + '\n'


def write_page(path: pathlib.Path, title: str, blocks: Sequence[str]):
  """Writes a page as Markdown.

  Args:
    path: The path without `.md`, in the folder of the pictures.
    title: The title of the page.
    blocks: The blocks of the page, in order.

  Raises:
    OSError: If the file cannot be written.
  """
  _files.write(with_suffix(path, '.md'), to_markdown(title, blocks))


def with_suffix(path: pathlib.Path, suffix: str) -> pathlib.Path:
  """Returns a path with a suffix after its name, which may have dots."""
  return path.with_name(path.name + suffix)
