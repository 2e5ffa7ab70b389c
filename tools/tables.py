# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of the documentation that are generated from the code.

`python -m tools.tables` replaces the text between `<!-- begin NAME -->` and
`<!-- end NAME -->` in every page; with `--check` it only reports the pages that
are out of date.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
import pathlib
import re
import sys
from typing import Optional

from experiments import command_line
from tools import recommended_hyperparameters
from tools import rule_tables
from tools import task_table

_ROOT = pathlib.Path(__file__).resolve().parents[1]
_SECTION = re.compile(r'(<!-- begin (\w+) -->\n)(.*?)(<!-- end \2 -->)', re.S)

# The tables of each page by name.
PAGES: Mapping[str, Mapping[str, Callable[[], str]]] = {
    module.PAGE: module.SECTIONS
    for module in (recommended_hyperparameters, rule_tables, task_table)
}


def fill(name: str, page: str) -> str:
  """Returns the text of a page with up-to-date tables.

  Args:
    name: A key of `PAGES`.
    page: The text of the page.

  Raises:
    KeyError: If the page names an unknown table.
  """

  def write(match: re.Match) -> str:
    begin, table, _, end = match.groups()
    return f'{begin}{PAGES[name][table]()}{end}'

  return _SECTION.sub(write, page)


def main(arguments: Optional[Sequence[str]] = None) -> int:
  """Writes or checks the pages.

  Args:
    arguments: The command line; by default that of the process.

  Returns:
    The exit status: 1 if a page is out of date.
  """
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument('--check', action='store_true')
  options = parser.parse_args(arguments)
  command_line.prepare_libraries()
  stale = []
  for name in PAGES:
    path = _ROOT / name
    page = path.read_text(encoding='utf-8')
    new = fill(name, page)
    if new == page:
      continue
    stale.append(name)
    if not options.check:
      path.write_text(new, encoding='utf-8')
  command_line.free_default_context()
  if not options.check or not stale:
    return 0
  print(f'{", ".join(stale)}: out of date, run `make tables`.', file=sys.stderr)
  return 1


if __name__ == '__main__':
  sys.exit(main())
