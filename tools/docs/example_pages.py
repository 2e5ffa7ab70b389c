# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes a page of the site for each program and notebook of docs/examples.

A program is shown as it is, a notebook with the outputs that are stored in it.
Each page links the file itself.
"""

import base64
from collections.abc import Iterator, Mapping
import json
import pathlib
import posixpath
from typing import Any, Union

FOLDER = 'docs/examples'
_PAGE = """\
---
title: {name}
---

{shown}

<p><a href="{name}" download>Download {name}</a></p>
"""


def page_of(path: str) -> str:
  """Returns the path of the page of a program or notebook.

  Args:
    path: The path of the file in the project.

  Returns:
    The path of its page; the given path if it is another file.
  """
  folder, name = posixpath.split(path)
  stem, suffix = posixpath.splitext(name)
  is_example = folder == FOLDER and suffix in ('.ipynb', '.py')
  return f'{folder}/{stem}.md' if is_example else path


def build_pages(root: pathlib.Path) -> dict[str, Union[str, bytes]]:
  """Returns the pages and their pictures, by path.

  Args:
    root: The folder of the project.
  """
  found: dict[str, Union[str, bytes]] = {}
  for path in sorted((root / FOLDER).iterdir()):
    page = page_of(f'{FOLDER}/{path.name}')
    if page.endswith('.md') and path.suffix != '.md':
      text = path.read_text(encoding='utf-8')
      pictures: dict[str, bytes] = {}
      if path.suffix == '.py':
        shown = f'# {path.name}\n\n{_fence(text, "python")}'
      else:
        shown = _show_notebook(text, path.stem, pictures)
      found[page] = _PAGE.format(name=path.name, shown=shown)
      found.update(pictures)
  return found


def _fence(text: str, language: str) -> str:
  return f'````{language}\n{text.rstrip()}\n````\n'


def _show_notebook(notebook: str, stem: str, pictures: dict[str, bytes]) -> str:
  """Returns the cells of a notebook; adds its pictures by their paths."""
  parts = []
  for cell in json.loads(notebook)['cells']:
    source = ''.join(cell['source'])
    if cell['cell_type'] == 'markdown':
      parts.append(source)
      continue
    parts.append(_fence(source, 'python'))
    for output in cell['outputs']:
      parts += _show_output(output, stem, pictures)
  return '\n\n'.join(parts) + '\n'


def _show_output(
    output: Mapping[str, Any], stem: str, pictures: dict[str, bytes]
) -> Iterator[str]:
  """Yields what a cell printed or drew."""
  if 'text' in output:
    yield _fence(''.join(output['text']), 'text')
  data = output.get('data', {})
  if 'image/png' in data:
    name = f'{stem}_{len(pictures) + 1}.png'
    pictures[f'{FOLDER}/{name}'] = base64.b64decode(data['image/png'])
    yield f'![Figure {len(pictures)} of the notebook]({name})'
  elif 'text/plain' in data:
    yield _fence(''.join(data['text/plain']), 'text')
