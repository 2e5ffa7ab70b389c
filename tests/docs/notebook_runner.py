# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs the code cells of a notebook without Jupyter.

  python tests/docs/notebook_runner.py NOTEBOOK

prints a JSON list of what each code cell gives: its text and how many pictures.
The cells are plain Python, but for lines of `%pip`, indented or not.
"""

import ast
import contextlib
import importlib
from importlib import util
import io
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
from typing import Any

_PIP_LINE = re.compile(r'^( *)%pip (.*)$', re.MULTILINE)


class _Output(io.StringIO):
  """Collects what a cell prints; processes that it starts print to stderr."""

  def fileno(self) -> int:
    return sys.stderr.fileno()


def _count_pictures(counts: dict[str, int]):
  """Takes the place of `plt.show`, once matplotlib is installed."""
  if counts or util.find_spec('matplotlib') is None:
    return
  counts['shown'] = 0
  import matplotlib  # pylint: disable=g-import-not-at-top

  matplotlib.use('Agg')
  from matplotlib import pyplot  # pylint: disable=g-import-not-at-top

  def show():
    for number in pyplot.get_fignums():
      pyplot.figure(number).canvas.draw()
      counts['shown'] += 1
    pyplot.close('all')

  pyplot.show = show


def read_code(notebook: pathlib.Path) -> list[dict[str, Any]]:
  """Returns the code cells of a notebook, with their sources as one text."""
  cells = json.loads(notebook.read_text(encoding='utf-8'))['cells']
  return [
      {**cell, 'source': ''.join(cell['source'])}
      for cell in cells
      if cell['cell_type'] == 'code'
  ]


def _pip(arguments: str):
  """Runs the line `%pip ARGUMENTS`."""
  command = [sys.executable, '-m', 'pip', *shlex.split(arguments)]
  subprocess.run(command, check=True, stdout=sys.stderr)
  importlib.invalidate_caches()


def _replace_magics(source: str) -> str:
  """Returns a cell in which calls of `_pip` replace the lines `%pip ...`."""
  return _PIP_LINE.sub(lambda line: f'{line[1]}_pip({line[2]!r})', source)


def _run_cell(source: str, name: str, namespace: dict[str, Any]) -> Any:
  """Runs a cell and returns the value of its last line, if it has one."""
  tree = ast.parse(source, name)
  last = None
  if tree.body and isinstance(tree.body[-1], ast.Expr):
    if not source.rstrip().endswith(';'):
      last = ast.Expression(tree.body.pop().value)  # type: ignore[attr-defined]
  exec(compile(tree, name, 'exec'), namespace)  # pylint: disable=exec-used
  # pylint: disable-next=eval-used
  return last and eval(compile(last, name, 'eval'), namespace)


def run(notebook: pathlib.Path) -> list[dict[str, Any]]:
  """Runs a notebook in its folder, as Jupyter does.

  Returns the `text` and the number of `pictures` of every code cell.
  """
  counts: dict[str, int] = {}
  namespace: dict[str, Any] = {'__name__': '__main__', '_pip': _pip}
  os.chdir(notebook.parent)
  results = []
  for number, cell in enumerate(read_code(notebook)):
    source = _replace_magics(cell['source'])
    _count_pictures(counts)
    before = counts.get('shown', 0)
    text = _Output()
    with contextlib.redirect_stdout(text):
      value = _run_cell(source, f'cell {number}', namespace)
    pictures = counts.get('shown', 0) - before
    if value is not None:
      text.write(f'{value!r}\n')
    results.append({'text': text.getvalue(), 'pictures': pictures})
  return results


if __name__ == '__main__':
  print(json.dumps(run(pathlib.Path(sys.argv[1]).resolve())))
