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
"""Published tables and figures: their axes, their cells and their numbers."""

from collections.abc import Mapping
import dataclasses
import re
from typing import Any, Optional

from experiments import folders
from experiments.published import given_flags
from experiments.run_results import run_folder

REPLICATION_ONLY = 'replication only: chosen on the test data'
# How the papers of the presets' folders are called for short.
_SHORT_TITLES = {
    'delta_sgd': 'Delta-SGD',
    'fedopt': 'Adaptive Federated Optimization',
    'fedcada': 'FedCAda',
    'fedli': 'FedLi',
}


@dataclasses.dataclass(frozen=True)
class Measure:
  """What is compared.

  Attributes:
    metric: Its name: an evaluation's, as 'accuracy', or that of a column of
      metrics.csv, as 'clients/loss'.
    scale: What a measured metric is multiplied by: 100 for percent.
    higher_is_better: Whether the largest number of a column is the best.
  """

  metric: str
  scale: float
  higher_is_better: bool


@dataclasses.dataclass(frozen=True)
class Entry:
  """A row, a column or a group of a table.

  Attributes:
    name: As printed; empty for the only group of a table without groups.
    flags: What it adds to the command of its cells.
    note: What is to be said about it; may be empty.
    measure: Of a column or a group: what is compared in it; None where it is
      what the table compares.
  """

  name: str
  flags: tuple[given_flags.GivenFlag, ...] = ()
  note: str = ''
  measure: Optional[Measure] = None


Axis = tuple[Entry, ...]


@dataclasses.dataclass(frozen=True)
class Cell:
  """One cell: the run or runs behind a published number.

  Attributes:
    paper: The folder of the paper.
    table: The name of the table or figure, as 'table_1'.
    group: The name of its group.
    row: The name of its row.
    column: The name of its column.
    flags: The flags of its runs but for seed, data and output, in the order in
      which later ones win.
    published: The number in the paper, in the unit of the table; None where it
      printed none.
    published_std: The spread that the paper printed.
    note: What is to be said about it; may be empty.
  """

  paper: str
  table: str
  group: str
  row: str
  column: str
  flags: tuple[given_flags.GivenFlag, ...]
  published: Optional[float] = None
  published_std: Optional[float] = None
  note: str = ''

  @property
  def experiment_name(self) -> str:
    """The folder of its runs, in the folder of all runs."""
    names = [name for name in (self.group, self.row, self.column) if name]
    return '/'.join([self.paper, self.table, '.'.join(map(_to_slug, names))])


@dataclasses.dataclass(frozen=True)
class Table:
  """A table, or what a figure shows.

  Attributes:
    paper: The folder of the paper.
    name: As 'table_1' or 'figure_2'.
    title: What it shows, in a sentence.
    source: Where it is printed.
    metric: What is compared, but for columns with a measure of their own, see
      `Measure`.
    scale: What a measured metric is multiplied by: 100 for percent.
    higher_is_better: Whether the largest number of a column is the best.
    estimate: How a run's number is made: 'last_10_evaluations' and
      'last_100_rounds' are means, 'best' and 'final' single values.
    seeds: How many runs a cell has, with the seeds 0, 1, ...
    groups: Blocks of rows; one without a name if there are none.
    rows: From top to bottom.
    columns: From left to right.
    cells: By group, row and column, in their order.
    figure: How a figure is drawn: its kind and its options; None for a table.
    notes: What a reader must know, as Markdown.
    chosen_on_test: Whether it shows what is the best on the test data, whatever
      the estimate of a run is.
  """

  paper: str
  name: str
  title: str
  source: str
  metric: str
  scale: float
  higher_is_better: bool
  estimate: str
  seeds: int
  groups: Axis
  rows: Axis
  columns: Axis
  cells: tuple[Cell, ...]
  figure: Optional[Mapping[str, Any]] = None
  notes: tuple[str, ...] = ()
  chosen_on_test: bool = False

  def measure(self, column: str, group: str = '') -> Measure:
    """Returns what is compared in a column of a group, or in the table."""
    for name, axis in ((column, self.columns), (group, self.groups)):
      for entry in axis:
        if entry.name == name and entry.measure is not None:
          return entry.measure
    return Measure(self.metric, self.scale, self.higher_is_better)

  @property
  def stamp(self) -> str:
    """What is to stand wherever its numbers are shown; empty for nothing."""
    is_chosen = self.chosen_on_test or self.estimate == run_folder.BEST
    return REPLICATION_ONLY if is_chosen else ''

  @property
  def heading(self) -> str:
    """As 'Delta-SGD, Table 1'."""
    name = self.name.replace('_', ' ')
    if re.fullmatch(r'(table|figure) \d+', name):
      name = name.capitalize()
    return f'{_SHORT_TITLES.get(self.paper, self.paper)}, {name}'

  def cell(self, group: str, row: str, column: str) -> Cell:
    """Returns a cell by the names of its group, row and column."""
    for cell in self.cells:
      if (cell.group, cell.row, cell.column) == (group, row, column):
        return cell
    raise KeyError((group, row, column))


def _to_slug(name: str) -> str:
  return folders.to_slug(name.lower()).strip('_')
