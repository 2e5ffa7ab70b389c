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
"""Pages as Markdown.

No TensorFlow is imported here.
"""

from collections.abc import Sequence
import re

from experiments.reports import pages

_CODE = re.compile('(`[^`]*`)')


def render(page: pages.Page) -> str:
  """Returns a page as Markdown of GitHub's flavour.

  Args:
    page: The page; its pictures lie beside it.

  Returns:
    The text of the file.
  """
  blocks = [f'# {_escape(page.title)}', *map(_render_block, page.blocks)]
  return '\n\n'.join(blocks) + '\n'


def _escape(text: str) -> str:
  """Keeps what looks like HTML from being it; code is shown as it is."""
  parts = _CODE.split(text)
  parts[::2] = [part.replace('<', '&lt;') for part in parts[::2]]
  return ''.join(parts)


def _render_block(block: pages.Block) -> str:
  if isinstance(block, pages.Heading):
    return f'## {_escape(block.text)}'
  if isinstance(block, pages.Paragraph):
    return _escape(block.text)
  if isinstance(block, pages.Code):
    return f'```\n{block.text}\n```'
  if isinstance(block, pages.Table):
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


def _render_table(table: pages.Table) -> str:
  marks = [
      ':---' if i < table.num_labels else '---:'
      for i in range(len(table.header))
  ]
  rows = [table.header, marks, *table.rows]
  return '\n'.join(map(_render_row, rows))
