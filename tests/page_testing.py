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
"""Pages under test: their blocks, commands and links, and how they are run."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
import contextlib
import dataclasses
import doctest
import itertools
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from typing import Any

from tff_adaptive import _stack

ROOT = pathlib.Path(__file__).resolve().parents[1]
_TIMEOUT_SECONDS = 1200
_FENCED = re.compile(r'^```(\w*)\n(.*?)^```$', re.M | re.S)
_LINK = re.compile(r'\]\(([^)\s]+)\)')
# What a page shows below a block, where `...` stands for anything.
_SHOWN = 'text'


@dataclasses.dataclass(frozen=True)
class Block:
  """A fenced block of a page.

  Attributes:
    language: The word behind the fence; may be empty.
    text: What stands between the fences.
    line: The number of its first line in the page, counted from 1.
    shown: What the page shows below it as its output; empty for nothing.
  """

  language: str
  text: str
  line: int
  shown: str = ''


def read(name: str) -> str:
  """Returns a page, by its path in the project."""
  return (ROOT / name).read_text(encoding='utf-8')


def find_blocks(page: str) -> list[Block]:
  """Returns the fenced blocks of a page, in order.

  Args:
    page: The text of the page.

  Returns:
    The blocks. One of the language `text` with nothing but empty lines in front
    of it is the output of the block before.
  """
  blocks: list[Block] = []
  end = 0
  for match in _FENCED.finditer(page):
    language, text = match.groups()
    follows = blocks and not page[end : match.start()].strip()
    if language == _SHOWN and follows:
      blocks[-1] = dataclasses.replace(blocks[-1], shown=text)
    line = page.count('\n', 0, match.start(2)) + 1
    blocks.append(Block(language, text, line))
    end = match.end()
  return blocks


def blocks_of(page: str, language: str) -> list[str]:
  """Returns the texts of the blocks of a language."""
  return [b.text for b in find_blocks(page) if b.language == language]


def commands_of(page: str) -> list[Block]:
  """Returns the commands of the bash blocks, each without its line breaks.

  Args:
    page: The text of the page.

  Returns:
    A block a command; what is shown below a bash block is the output of its
    last command.
  """
  commands: list[Block] = []
  for block in find_blocks(page):
    if block.language != 'bash':
      continue
    lines = re.sub(r' *\\\n *', ' ', block.text).splitlines()
    commands += [Block('bash', line, block.line) for line in lines]
    commands[-1] = dataclasses.replace(commands[-1], shown=block.shown)
  return commands


def is_shown(shown: str, found: str) -> bool:
  """Returns whether an output is what a page shows of it."""
  return doctest.OutputChecker().check_output(shown, found, doctest.ELLIPSIS)


def broken_links(name: str) -> list[str]:
  """Returns the links of a page to files or headings that there are not.

  Args:
    name: The path of the page in the project.

  Returns:
    The targets as they are written; those of other sites are not looked at.
  """
  broken = []
  for target in _LINK.findall(_without_code(read(name))):
    if re.match(r'\w+:', target):
      continue
    path, _, heading = target.partition('#')
    file = ROOT / name
    if path:
      file = (file.parent / path).resolve()
    if not file.exists():
      broken.append(target)
    elif heading and heading not in _anchors(file.read_text('utf-8')):
      broken.append(target)
  return broken


def _without_code(page: str) -> str:
  return re.sub(r'`[^`\n]+`', '', _FENCED.sub('', page))


def _anchors(page: str) -> set[str]:
  """Returns the names by which the headings of a page can be linked."""
  titles = re.findall(r'^#+ (.*)$', _FENCED.sub('', page), re.M)
  kept = [re.sub(r'[^\w\- ]', '', title.lower()) for title in titles]
  return {title.strip().replace(' ', '-') for title in kept}


def table_rows(page: str, title: str) -> list[list[str]]:
  """Returns the cells of the table whose first column has a title."""
  lines = page.splitlines()
  start = next(
      i for i, line in enumerate(lines) if line.startswith(f'| {title} |')
  )
  rows = itertools.takewhile(lambda x: x.startswith('|'), lines[start + 2 :])
  return [[cell.strip() for cell in row.split('|')[1:-1]] for row in rows]


def names_in(cells: Iterable[str]) -> list[str]:
  """Returns what stands in backticks, in order."""
  return [name for cell in cells for name in re.findall('`([^`]+)`', cell)]


def run(command: Any, cwd: pathlib.Path) -> subprocess.CompletedProcess:
  """Runs a command as from a user's shell, on the CPU.

  Args:
    command: A line for bash, or a list of arguments.
    cwd: The folder to run it in.

  Returns:
    The process, with its output as text.
  """
  if isinstance(command, str) and cwd == ROOT:
    # The environment of the tests may have another name, or be that of a copy.
    command = command.replace('.venv/bin/python', sys.executable)
  # A make within a make says where it is, for one.
  environment = {
      name: value
      for name, value in os.environ.items()
      if not name.startswith(('MAKE', 'MFLAGS'))
  }
  return subprocess.run(
      ['bash', '-c', command] if isinstance(command, str) else command,
      cwd=cwd,
      env={
          **environment,
          'CUDA_VISIBLE_DEVICES': '-1',
          'STACK': _stack.installed().name,
      },
      check=False,
      capture_output=True,
      text=True,
      timeout=_TIMEOUT_SECONDS,
  )


@contextlib.contextmanager
def copied_project() -> Iterator[pathlib.Path]:
  """Yields a copy of the project that shares this one's environments."""
  with tempfile.TemporaryDirectory() as folder:
    copy = pathlib.Path(folder) / 'project'
    shutil.copytree(
        ROOT,
        copy,
        ignore=shutil.ignore_patterns(
            '.git', '.venv*', 'runs', '__pycache__', '.*_cache'
        ),
    )
    for environment in ROOT.glob('.venv-*'):
      (copy / environment.name).symlink_to(environment)
    # What a page's commands run is what runs the tests, whatever its name is.
    (copy / '.venv').symlink_to(sys.prefix)
    yield copy


def module_and_flags(command: str) -> tuple[str, list[str]]:
  """Returns the module that a command runs with `python -m`, and its flags.

  Args:
    command: A line for a shell.

  Returns:
    The module's name, empty if there is none, and its arguments.
  """
  lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
  lexer.whitespace_split = True
  words = list(lexer)
  if '-m' not in words:
    return '', []
  module, *arguments = words[words.index('-m') + 1 :]
  is_argument = lambda word: not set(word) <= set(';<>|&')
  return module, list(itertools.takewhile(is_argument, arguments))


def run_python_blocks(
    names: Sequence[str], given: str = ''
) -> dict[str, Mapping[str, Any]]:
  """Runs the Python blocks of pages, in one process of their own.

  The blocks of a page share their names, and an empty folder that they begin
  in.

  Args:
    names: The paths of the pages in the project.
    given: Code that a page may take for granted.

  Returns:
    By page `outputs`, what each block printed, and `error`, the traceback of
    the first one that failed, else empty.

  Raises:
    RuntimeError: If the process died.
  """
  pages = {
      name: [
          (block.text, block.line)
          for block in find_blocks(read(name))
          if block.language == 'python'
      ]
      for name in names
  }
  program = [sys.executable, '-m', 'tests.page_runner']
  result = run([*program, json.dumps([pages, given])], ROOT)
  if result.returncode:
    raise RuntimeError(f'{result.stdout}\n{result.stderr}')
  return json.loads(result.stdout.splitlines()[-1])
