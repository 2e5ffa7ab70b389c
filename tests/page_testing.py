# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Pages under test: their blocks and commands, and how they are run."""

from collections.abc import Iterable, Iterator
import contextlib
import dataclasses
import doctest
import itertools
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGES = tuple(
    path.relative_to(ROOT).as_posix()
    for pattern in ('*.md', 'docs/**/*.md', 'experiments/presets/*/README.md')
    for path in sorted(ROOT.glob(pattern))
    if path.name != 'CHANGELOG.md'  # It is also about the past.
)
_TIMEOUT_SECONDS = 1800
_FENCED = re.compile(r'^```(\w*)\n(.*?)^```$', re.M | re.S)


@dataclasses.dataclass(frozen=True)
class Block:
  """A fenced block of a page.

  Attributes:
    language: The word behind the fence; may be empty.
    text: The text between the fences.
    line: The number of its first line in the page, counted from 1.
    shown: The output that the page shows below it; may be empty.
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

  A block of the language `text` right after another one is its output.

  Raises:
    ValueError: If a fence has lost its other one.
  """
  _check_fences(page)
  blocks: list[Block] = []
  end = 0
  for match in _FENCED.finditer(page):
    language, text = match.groups()
    if language == 'text' and blocks and not page[end : match.start()].strip():
      blocks[-1] = dataclasses.replace(blocks[-1], shown=text)
    line = page.count('\n', 0, match.start(2)) + 1
    blocks.append(Block(language, text, line))
    end = match.end()
  return blocks


def _check_fences(page: str) -> None:
  """Raises if fences do not come in pairs, the second one without language."""
  opened = ''
  for fence in re.findall(r'^ *(```.*)$', page, re.M):
    if opened and fence != '```':
      raise ValueError(f'{fence!r} is inside of the block {opened!r}')
    opened = '' if opened else fence
  if opened:
    raise ValueError(f'the block {opened!r} has no end')


def commands_of(page: str) -> list[Block]:
  """Returns the commands of the bash blocks, each on one line.

  The output below a bash block belongs to its last command.
  """
  commands: list[Block] = []
  for block in find_blocks(page):
    if block.language == 'bash':
      lines = re.sub(r' *\\\n *', ' ', block.text).splitlines()
      commands += [Block('bash', line, block.line) for line in lines]
      commands[-1] = dataclasses.replace(commands[-1], shown=block.shown)
  return commands


def module_and_flags(command: str) -> tuple[str, list[str]]:
  """Returns the module of `python -m` in a command, or empty, and its flags."""
  lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
  lexer.whitespace_split = True
  words = list(lexer)
  if '-m' not in words:
    return '', []
  module, *arguments = words[words.index('-m') + 1 :]
  is_argument = lambda word: not set(word) <= set(';<>|&')
  return module, list(itertools.takewhile(is_argument, arguments))


def is_shown(shown: str, found: str) -> bool:
  """Returns whether an output is what a page shows of it."""
  return doctest.OutputChecker().check_output(shown, found, doctest.ELLIPSIS)


def table_rows(page: str, title: str) -> list[list[str]]:
  """Returns the cells of the table whose first column has a title."""
  lines = page.splitlines()
  start = next(
      i for i, line in enumerate(lines) if line.startswith(f'| {title} |')
  )
  rows = itertools.takewhile(lambda x: x.startswith('|'), lines[start + 2 :])
  return [[cell.strip() for cell in row.split('|')[1:-1]] for row in rows]


def names_in(cells: Iterable[str]) -> list[str]:
  """Returns the text in backticks, in order."""
  return [name for cell in cells for name in re.findall('`([^`]+)`', cell)]


def run(command: str, cwd: pathlib.Path = ROOT) -> subprocess.CompletedProcess:
  """Runs a line of bash as from a user's shell, on the CPU."""
  if cwd == ROOT:
    # The environment of the tests may have another name.
    command = command.replace('.venv/bin/python', sys.executable)
  # A make within a make says where it is, for one.
  environment = {
      name: value
      for name, value in os.environ.items()
      if not name.startswith(('MAKE', 'MFLAGS'))
  }
  return subprocess.run(
      ['bash', '-c', command],
      cwd=cwd,
      env={**environment, 'CUDA_VISIBLE_DEVICES': '-1'},
      stdin=subprocess.DEVNULL,
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
    # Commands of pages use the Python of the tests, whatever its name.
    (copy / '.venv').symlink_to(sys.prefix)
    yield copy
