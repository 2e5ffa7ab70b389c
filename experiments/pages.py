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
"""Pages of results: what they say, as Markdown, and as one file of HTML.

Texts may have `code`, **bold** and [links](address). No TensorFlow is imported
here.
"""

import base64
from collections.abc import Sequence
import dataclasses
import html
import pathlib
import re
from typing import Union

import markdown  # type: ignore[import-untyped]

# A page needs nothing from elsewhere, and can be read on a phone.
_TEMPLATE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
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
_CODE = re.compile('(`[^`]*`)')


@dataclasses.dataclass(frozen=True)
class Heading:
  """A heading below the title of the page."""

  text: str


@dataclasses.dataclass(frozen=True)
class Paragraph:
  """A few sentences."""

  text: str


@dataclasses.dataclass(frozen=True)
class Table:
  """A table.

  Attributes:
    header: The names of the columns.
    rows: The texts of the cells.
    num_labels: How many columns from the left are words; the others, numbers,
      stand to the right.
  """

  header: Sequence[str]
  rows: Sequence[Sequence[str]]
  num_labels: int = 1


@dataclasses.dataclass(frozen=True)
class Figure:
  """A picture.

  Attributes:
    path: The PNG file, in the folder of the page.
    caption: What it shows.
    command: What made it.
  """

  path: pathlib.Path
  caption: str
  command: str


@dataclasses.dataclass(frozen=True)
class Code:
  """Lines for a shell."""

  text: str


Block = Union[Heading, Paragraph, Table, Figure, Code]


@dataclasses.dataclass(frozen=True)
class Page:
  """A page.

  Attributes:
    title: Its title.
    blocks: What it says, from top to bottom.
  """

  title: str
  blocks: Sequence[Block]


def to_markdown(page: Page) -> str:
  """Returns a page as Markdown of GitHub's flavour.

  Args:
    page: The page; its pictures lie beside it.

  Returns:
    The text of the file.
  """
  blocks = [f'# {_escape(page.title)}', *map(_render_block, page.blocks)]
  return '\n\n'.join(blocks) + '\n'


def to_html(page: Page) -> str:
  """Returns a page as HTML, with its pictures in it.

  Args:
    page: The page.

  Returns:
    The text of the file.

  Raises:
    OSError: If a picture cannot be read.
  """
  body = markdown.markdown(
      to_markdown(page),
      extensions=['fenced_code', 'tables'],
      output_format='html',
  )
  body = body.replace('<table>', '<div class="wide"><table>')
  body = body.replace('</table>', '</table></div>')
  # An address that runs code is no link.
  body = re.sub(r'<a href="(?!https?://)[^"]*">', '<a>', body)
  for block in page.blocks:
    if isinstance(block, Figure):
      data = base64.b64encode(block.path.read_bytes()).decode('ascii')
      source = f'src="{block.path.name}"'
      body = body.replace(source, f'src="data:image/png;base64,{data}"')
  return _TEMPLATE.format(
      title=html.escape(page.title), style=_STYLE, body=body
  )


def _escape(text: str) -> str:
  """Keeps what looks like HTML from being it; code is shown as it is."""
  parts = _CODE.split(text)
  parts[::2] = [part.replace('<', '&lt;') for part in parts[::2]]
  return ''.join(parts)


def _render_block(block: Block) -> str:
  if isinstance(block, Heading):
    return f'## {_escape(block.text)}'
  if isinstance(block, Paragraph):
    return _escape(block.text)
  if isinstance(block, Code):
    return f'```\n{block.text}\n```'
  if isinstance(block, Table):
    return _render_table(block)
  alt = _escape(block.caption).replace('[', '(').replace(']', ')')
  return (
      f'![{alt}]({block.path.name})\n\n{_escape(block.caption)} Made by '
      f'`{block.command}`.'
  )


def _render_row(cells: Sequence[str]) -> str:
  texts = [
      ' '.join(_escape(cell).replace('|', r'\|').split()) for cell in cells
  ]
  return f'| {" | ".join(texts)} |'


def _render_table(table: Table) -> str:
  marks = [
      ':---' if i < table.num_labels else '---:'
      for i in range(len(table.header))
  ]
  rows = [table.header, marks, *table.rows]
  return '\n'.join(map(_render_row, rows))
