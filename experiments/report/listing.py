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
"""A line for every cell of the published tables.

No TensorFlow is imported here.
"""

from collections.abc import Iterable, Iterator
import functools
from typing import Optional

from experiments import published

HEADER = (
    'paper',
    'table',
    'row',
    'column',
    'published',
    'command',
    'hyperparameters',
)


def format_lines(tables: Iterable[published.Table]) -> Iterator[str]:
  r"""Yields the list of cells, tab separated, after a line of headings.

  Args:
    tables: Those to list. A figure that draws the runs of a table has lines of
      its own.

  Yields:
    A line: paper, table, group and row, column, published number or '-', the
    command of the first seed, and the hyperparameters by origin.

  Raises:
    HparamError: If two flags of a cell do not fit.
    absl.flags.Error: If there is no such flag.
    OSError: If a flagfile cannot be read.

  Example:

    >>> lines = format_lines([published.find_table('delta_sgd/table_1')])
    >>> next(lines).split('\t')[:3]
    ['paper', 'table', 'row']
    >>> next(lines).split('\t')[:5]
    ['delta_sgd', 'table_1', 'alpha = 1 / SGD', 'MNIST', '98.3']
  """
  yield '\t'.join(HEADER)
  for table in tables:
    for cell in table.cells:
      yield '\t'.join(
          [
              table.paper,
              table.name,
              ' / '.join(name for name in (cell.group, cell.row) if name),
              cell.column,
              format_number(cell.published),
              published.build_command(cell),
              format_hyperparameters(cell),
          ]
      )


def format_number(value: Optional[float]) -> str:
  """Returns a published number as it was typed, '-' for none."""
  return '-' if value is None else str(value)


@functools.lru_cache(maxsize=None)  # Figures share the cells of tables.
def format_hyperparameters(cell: published.Cell) -> str:
  """Returns the hyperparameters of a cell by origin.

  Args:
    cell: The cell.

  Returns:
    As 'specified: a=1 b=2; assumed: c=3; lost: d=4'; an origin of which there
    are none is left out, and so are values that are not set.

  Raises:
    HparamError: If two flags of the cell do not fit.
    absl.flags.Error: If there is no such flag.
    OSError: If a flagfile cannot be read.
  """
  found = published.hyperparameters(cell)
  parts = []
  for origin in published.Origin:
    pairs = ' '.join(
        f'{item.name}={item.value}'
        for item in found
        if item.origin == origin and item.value is not None
    )
    if pairs:
      parts.append(f'{origin.value}: {pairs}')
  return '; '.join(parts)
