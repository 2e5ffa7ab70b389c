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
"""Which published tables a binary is about, and which parts of them.

No TensorFlow is imported here.
"""

from collections.abc import Sequence
import dataclasses
import itertools

from absl import flags

from experiments import hparam_errors
from experiments import published

AXES = ('groups', 'rows', 'columns')


def define(flag_values: flags.FlagValues):
  """Defines the flags of the parts of tables.

  Args:
    flag_values: Where to define them.
  """
  for axis in AXES:
    flags.DEFINE_list(
        axis,
        [],
        f'Of the tables, only these {axis}, separated by commas.',
        flag_values=flag_values,
        # Given twice, the first one would be lost without a word.
        allow_overwrite=False,
    )


def read_names(flag_values: flags.FlagValues) -> dict[str, list[str]]:
  """Returns the groups, rows and columns that flags name.

  Args:
    flag_values: The parsed flags.

  Returns:
    The names by axis, as the arguments of `restrict`; none where all is meant.
  """
  return {axis: flag_values[axis].value for axis in AXES}


def find_tables(
    papers: Sequence[str], names: Sequence[str]
) -> list[published.Table]:
  """Returns the tables of papers and those that are named.

  Args:
    papers: Folders of papers.
    names: As 'delta_sgd/table_1'.

  Returns:
    The tables, each once.

  Raises:
    HparamError: If there is no such paper.
    PublishedError: If there is no such table, or a file is not as it should be.
  """
  found = []
  for paper in papers:
    tables = published.load_tables(paper)
    if not tables:
      known = dict.fromkeys(table.paper for table in published.load_tables())
      raise hparam_errors.HparamError(
          f'there is no --paper={paper}; there are {", ".join(known)}'
      )
    found.extend(tables)
  found.extend(published.find_table(name) for name in names)
  return list({(table.paper, table.name): table for table in found}.values())


def restrict(
    table: published.Table,
    *,
    groups: Sequence[str] = (),
    rows: Sequence[str] = (),
    columns: Sequence[str] = (),
) -> published.Table:
  """Returns a table with some of its groups, rows and columns.

  Args:
    table: The table.
    groups: The names of those that stay; all by default.
    rows: The same for the rows.
    columns: The same for the columns.

  Returns:
    The table, with fewer cells.

  Raises:
    HparamError: If it has no such group, row or column.
  """
  place = f'{table.paper}/{table.name}'
  kept_groups = _keep(table.groups, groups, f'--groups of {place}')
  kept_rows = _keep(table.rows, rows, f'--rows of {place}')
  kept_columns = _keep(table.columns, columns, f'--columns of {place}')
  keys = set(
      itertools.product(
          *(
              [entry.name for entry in axis]
              for axis in (kept_groups, kept_rows, kept_columns)
          )
      )
  )
  return dataclasses.replace(
      table,
      groups=kept_groups,
      rows=kept_rows,
      columns=kept_columns,
      cells=tuple(
          cell
          for cell in table.cells
          if (cell.group, cell.row, cell.column) in keys
      ),
  )


def _keep(
    axis: published.Axis, wanted: Sequence[str], place: str
) -> published.Axis:
  """Returns the entries that are wanted, or all."""
  known = [entry.name for entry in axis]
  for name in wanted:
    if name not in known:
      raise hparam_errors.HparamError(
          f'{place} are {", ".join(known)}, found {name!r}'
      )
  return tuple(entry for entry in axis if not wanted or entry.name in wanted)
