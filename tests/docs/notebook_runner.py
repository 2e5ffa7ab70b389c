# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs the code cells of a notebook without Jupyter.

  python tests/docs/notebook_runner.py NOTEBOOK

prints a JSON list of what each code cell gives: its text and how many pictures.
The cells are plain Python; of IPython they may use `display.Image`, and lines
that begin with `%pip`.
"""

import ast
import contextlib
import importlib
from importlib import util
import io
import json
import os
import pathlib
import shlex
import subprocess
import sys
import types
from typing import Any


class _Image:
  """Stands in for `IPython.display.Image`."""

  def __init__(self, filename: str, **unused_arguments):
    with open(filename, 'rb') as file:
      if file.read(4) != b'\x89PNG':
        raise ValueError(f'{filename} is no PNG file')


def _add_ipython():
  """Makes `from IPython import display` work where there is no IPython."""
  package = types.ModuleType('IPython')
  package.display = types.SimpleNamespace(Image=_Image)
  # What matplotlib asks for where it finds the module.
  package.version_info = (8, 24)
  package.get_ipython = lambda: None
  sys.modules['IPython'] = package


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


def _install(source: str) -> str:
  """Runs the lines that begin with `%pip`, and returns the others."""
  lines = source.splitlines(keepends=True)
  for line in lines:
    if line.startswith('%pip '):
      command = [sys.executable, '-m', *shlex.split(line[1:])]
      subprocess.run(command, check=True, stdout=sys.stderr)
  importlib.invalidate_caches()
  return ''.join(line for line in lines if not line.startswith('%pip '))


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

  Args:
    notebook: The file.

  Returns:
    For every code cell its `text` and its number of `pictures`.
  """
  _add_ipython()
  counts: dict[str, int] = {}
  namespace: dict[str, Any] = {'__name__': '__main__'}
  os.chdir(notebook.parent)
  results = []
  for number, cell in enumerate(read_code(notebook)):
    source = _install(cell['source'])
    _count_pictures(counts)
    before = counts.get('shown', 0)
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
      value = _run_cell(source, f'cell {number}', namespace)
    pictures = counts.get('shown', 0) - before
    if isinstance(value, _Image):
      pictures += 1
    elif value is not None:
      text.write(f'{value!r}\n')
    results.append({'text': text.getvalue(), 'pictures': pictures})
  return results


if __name__ == '__main__':
  print(json.dumps(run(pathlib.Path(sys.argv[1]).resolve())))
