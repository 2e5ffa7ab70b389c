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
"""Runs the code cells of a notebook without Jupyter, which is not in the lock.

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


class _Pictures:
  """Counts what `plt.show()` shows."""

  def __init__(self):
    self.count = 0
    self._is_attached = False

  def attach(self):
    """Takes the place of `plt.show`, once matplotlib is installed."""
    if self._is_attached or util.find_spec('matplotlib') is None:
      return
    self._is_attached = True
    import matplotlib  # pylint: disable=g-import-not-at-top

    matplotlib.use('Agg')
    from matplotlib import pyplot  # pylint: disable=g-import-not-at-top

    def show():
      for number in pyplot.get_fignums():
        pyplot.figure(number).canvas.draw()
        self.count += 1
      pyplot.close('all')

    pyplot.show = show


def read_code(notebook: pathlib.Path) -> list[dict[str, Any]]:
  """Returns the code cells of a notebook.

  Args:
    notebook: The file.

  Returns:
    The cells in nbformat's form, with their sources as one text.
  """
  cells = json.loads(notebook.read_text(encoding='utf-8'))['cells']
  return [
      {**cell, 'source': ''.join(cell['source'])}
      for cell in cells
      if cell['cell_type'] == 'code'
  ]


def _install(source: str) -> str:
  """Runs the lines that begin with `%pip`, and returns the others."""
  others = []
  for line in source.splitlines(keepends=True):
    if line.startswith('%pip '):
      command = [sys.executable, '-m', *shlex.split(line[1:])]
      subprocess.run(command, check=True, stdout=sys.stderr)
    else:
      others.append(line)
  importlib.invalidate_caches()
  return ''.join(others)


def _run_cell(source: str, name: str, namespace: dict[str, Any]) -> Any:
  """Runs a cell and returns the value of its last line, if it has one."""
  source = _install(source)
  tree = ast.parse(source, name)
  if not tree.body:
    return None
  last = tree.body[-1]
  if not isinstance(last, ast.Expr) or source.rstrip().endswith(';'):
    exec(compile(tree, name, 'exec'), namespace)  # pylint: disable=exec-used
    return None
  tree.body.pop()
  exec(compile(tree, name, 'exec'), namespace)  # pylint: disable=exec-used
  # pylint: disable-next=eval-used
  return eval(compile(ast.Expression(last.value), name, 'eval'), namespace)


def run(notebook: pathlib.Path) -> list[dict[str, Any]]:
  """Runs a notebook in its folder, as Jupyter does.

  Args:
    notebook: The file.

  Returns:
    For every code cell its `text` and its number of `pictures`.
  """
  _add_ipython()
  pictures = _Pictures()
  namespace: dict[str, Any] = {'__name__': '__main__'}
  os.chdir(notebook.parent)
  results = []
  for number, cell in enumerate(read_code(notebook)):
    text = io.StringIO()
    pictures.attach()
    before = pictures.count
    with contextlib.redirect_stdout(text):
      value = _run_cell(cell['source'], f'cell {number}', namespace)
    if isinstance(value, _Image):
      pictures.count += 1
    elif value is not None:
      text.write(f'{value!r}\n')
    results.append(
        {'text': text.getvalue(), 'pictures': pictures.count - before}
    )
  return results


if __name__ == '__main__':
  print(json.dumps(run(pathlib.Path(sys.argv[1]).resolve())))
