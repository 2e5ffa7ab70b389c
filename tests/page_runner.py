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
"""Runs the Python blocks of pages; see `page_testing.run_python_blocks`.

The argument is a JSON list: the pages, with the text and the line number of
every block, and the code that each of them may take for granted. The last line
of the output is a JSON object: by page `outputs` and `error`.
"""

from collections.abc import Sequence
import contextlib
import io
import json
import linecache
import os
import sys
import tempfile
import traceback
from typing import Any

from experiments import command_line


def _remember_source(name: str, blocks: Sequence[tuple[str, int]]):
  """Makes the lines of a page known to tracebacks, and to AutoGraph."""
  lines: list[str] = []
  for text, first_line in blocks:
    lines += ['\n'] * (first_line - 1 - len(lines))
    lines += text.splitlines(keepends=True)
  linecache.cache[name] = (sum(map(len, lines)), None, lines, name)


def _run_blocks(
    name: str, blocks: Sequence[tuple[str, int]], given: str
) -> dict[str, Any]:
  """Runs the blocks of a page until one fails."""
  namespace: dict[str, Any] = {'__name__': 'page'}
  exec(given, namespace)  # pylint: disable=exec-used
  outputs: list[str] = []
  for text, first_line in blocks:
    code = compile('\n' * (first_line - 1) + text, name, 'exec')
    output = io.StringIO()
    try:
      with contextlib.redirect_stdout(output):
        exec(code, namespace)  # pylint: disable=exec-used
    except Exception:  # pylint: disable=broad-exception-caught
      return {'outputs': outputs, 'error': traceback.format_exc()}
    outputs.append(output.getvalue())
  return {'outputs': outputs, 'error': ''}


def _run_page(
    name: str, blocks: Sequence[tuple[str, int]], given: str
) -> dict[str, Any]:
  """Runs a page in an empty folder, and without the context of another one."""
  command_line.free_default_context()
  _remember_source(name, blocks)
  before = os.getcwd()
  with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    try:
      return _run_blocks(name, blocks, given)
    finally:
      os.chdir(before)


def main(argument: str):
  """Runs the pages of the argument."""
  pages, given = json.loads(argument)
  command_line.prepare_libraries()
  # pylint: disable=import-outside-toplevel
  import tensorflow_federated  # noqa: F401

  from tff_adaptive import runtime
  # pylint: enable=import-outside-toplevel

  # Pages may do so themselves, which is too late where another one has run.
  runtime.set_threads()
  results = {
      name: _run_page(name, blocks, given) for name, blocks in pages.items()
  }
  command_line.free_default_context()
  print(json.dumps(results))


if __name__ == '__main__':
  # Blocks import what lies beside the page's code, also from another folder.
  sys.path[0] = os.getcwd()
  main(sys.argv[1])
