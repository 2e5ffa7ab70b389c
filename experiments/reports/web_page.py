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
"""Pages as HTML: one file, nothing from elsewhere, readable on a phone.

No TensorFlow is imported here.
"""

import base64
import html
import re

from experiments.reports import pages

_STYLE = """
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
th, td { border-bottom: 1px solid var(--line); padding: .3rem .7rem;
  text-align: right; }
th { background: var(--soft); }
.word { text-align: left; }
.numbers .word { left: 0; position: sticky; }
.numbers td.word { background: var(--paper); }
code, pre { font: .85em/1.45 ui-monospace, monospace; }
pre { background: var(--soft); overflow-x: auto; padding: .7rem; }
figure { margin: 1rem 0; }
figcaption { font-size: .9rem; overflow-wrap: anywhere; }
img { background: #fff; height: auto; max-width: 100%; }
"""

# In the order in which they are looked for, in text that is escaped.
_MARKS = (
    (re.compile(r'\*\*(.+?)\*\*'), r'<strong>\1</strong>'),
    (re.compile(r'\[([^\]]+)\]\((https?://[^\s)]+)\)'), r'<a href="\2">\1</a>'),
)
_CODE = re.compile('`([^`]*)`')


def render(page: pages.Page) -> str:
  """Returns a page as HTML, with its pictures in it.

  Args:
    page: The page.

  Returns:
    The text of the file.

  Raises:
    OSError: If a picture cannot be read.
  """
  title = html.escape(page.title)
  body = '\n'.join(map(_render_block, page.blocks))
  return (
      '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
      '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
      f'<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n'
      f'<h1>{title}</h1>\n{body}\n</body>\n</html>\n'
  )


def _render_text(text: str) -> str:
  """Returns escaped text with its marks; code has none."""
  parts = _CODE.split(html.escape(text))
  for i, part in enumerate(parts):
    if i % 2:
      parts[i] = f'<code>{part}</code>'
    else:
      for pattern, replacement in _MARKS:
        parts[i] = pattern.sub(replacement, parts[i])
  return ''.join(parts)


def _render_block(block: pages.Block) -> str:
  if isinstance(block, pages.Heading):
    return f'<h2>{_render_text(block.text)}</h2>'
  if isinstance(block, pages.Paragraph):
    return f'<p>{_render_text(block.text)}</p>'
  if isinstance(block, pages.Code):
    return f'<pre>{html.escape(block.text)}</pre>'
  if isinstance(block, pages.Table):
    return _render_table(block)
  return _render_figure(block)


def _render_figure(block: pages.Figure) -> str:
  data = base64.b64encode(block.path.read_bytes()).decode('ascii')
  return (
      f'<figure>\n<img alt="{html.escape(block.caption)}" '
      f'src="data:image/png;base64,{data}">\n<figcaption>'
      f'{_render_text(block.caption)} Made by '
      f'<code>{html.escape(block.command)}</code>.</figcaption>\n</figure>'
  )


def _render_row(tag: str, cells, num_labels: int) -> str:
  texts = []
  for i, cell in enumerate(cells):
    kind = ' class="word"' if i < num_labels else ''
    texts.append(f'<{tag}{kind}>{_render_text(cell)}</{tag}>')
  return f'<tr>{"".join(texts)}</tr>'


def _render_table(table: pages.Table) -> str:
  head = _render_row('th', table.header, table.num_labels)
  rows = [_render_row('td', row, table.num_labels) for row in table.rows]
  # Names of rows stay in sight where numbers are scrolled.
  kind = ' class="numbers"' if table.num_labels == 1 else ''
  return (
      f'<div class="wide"><table{kind}>\n<thead>{head}</thead>\n<tbody>\n'
      + '\n'.join(rows)
      + '\n</tbody>\n</table></div>'
  )
