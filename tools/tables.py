# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of the documentation that are generated from the code.

`python -m tools.tables` replaces the text between `<!-- begin NAME -->` and
`<!-- end NAME -->` in every page.
"""

from collections.abc import Callable, Mapping
import pathlib
import re

from experiments import command_line
from tools import recommended_hyperparameters
from tools import rule_tables
from tools import task_table

_ROOT = pathlib.Path(__file__).resolve().parents[1]
_SECTION = re.compile(r'(<!-- begin (\w+) -->\n)(.*?)(<!-- end \2 -->)', re.S)

# The tables of each page by name.
PAGES: Mapping[str, Mapping[str, Callable[[], str]]] = {
    **{
        module.PAGE: module.SECTIONS
        for module in (recommended_hyperparameters, rule_tables, task_table)
    },
    rule_tables.STOCK_TFF_PAGE: {'stock_tff': rule_tables.stock_tff},
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


def main():
  """Writes the pages."""
  command_line.prepare_libraries()
  for name in PAGES:
    path = _ROOT / name
    page = path.read_text(encoding='utf-8')
    path.write_text(fill(name, page), encoding='utf-8')
  command_line.free_default_context()


if __name__ == '__main__':
  main()
