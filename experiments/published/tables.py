# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""A published table as a value: its axes, its cells and their flags."""

from collections.abc import Mapping, Sequence
import dataclasses
import itertools
import pathlib
import re
from typing import Any, Optional

from experiments import folders
from experiments import preset_flags
from experiments import yaml_files
from experiments.run_results import run_folder

ROOT = pathlib.Path(__file__).resolve().parents[2]
AXES = ('groups', 'rows', 'columns')
REPLICATION_ONLY = 'replication only: chosen on the test data'
# Short titles of the papers in the presets' folders.
_SHORT_TITLES = {
    'delta_sgd': 'Delta-SGD',
    'fedopt': 'Adaptive Federated Optimization',
    'fedcada': 'FedCAda',
    'fedli': 'FedLi',
}


# A published table does not exist, or its data file is invalid.
PublishedError = yaml_files.DataFileError


@dataclasses.dataclass(frozen=True)
class Measure:
  """A metric that a table compares.

  Attributes:
    metric: The name of an evaluation metric, such as 'accuracy', or a column of
      metrics.csv, such as 'clients/loss'.
    scale: The factor of a measured metric, 100 for percent.
    higher_is_better: Whether higher numbers are better.
  """

  metric: str
  scale: float
  higher_is_better: bool


@dataclasses.dataclass(frozen=True)
class Entry:
  """A row, a column or a group of a table.

  Attributes:
    name: The printed name; empty for the only group of a table without groups.
    flags: The flags that it adds to the command of its cells.
    measure: The measure of a column or group, if it differs from that of the
      table.
  """

  name: str
  flags: tuple[preset_flags.GivenFlag, ...] = ()
  measure: Optional[Measure] = None


Axis = tuple[Entry, ...]


@dataclasses.dataclass(frozen=True)
class Cell:
  """A cell: the runs behind a published number.

  Attributes:
    paper: The folder of the paper.
    table: The name of the table or figure, such as 'table_1'.
    group: The name of its group.
    row: The name of its row.
    column: The name of its column.
    flags: The flags of its runs except seed, data and output; later ones win.
    published: The number in the paper, in the unit of the table; None if the
      paper prints none.
    published_std: The spread in the paper.
  """

  paper: str
  table: str
  group: str
  row: str
  column: str
  flags: tuple[preset_flags.GivenFlag, ...]
  published: Optional[float] = None
  published_std: Optional[float] = None

  @property
  def key(self) -> tuple[str, str, str]:
    """Group, row and column."""
    return self.group, self.row, self.column

  @property
  def experiment_name(self) -> str:
    """The folder of its runs, relative to the folder of all runs."""
    slugs = [
        folders.to_slug(name.lower()).strip('_') for name in self.key if name
    ]
    return '/'.join([self.paper, self.table, '.'.join(slugs)])


@dataclasses.dataclass(frozen=True)
class Table:
  """A table or figure.

  Attributes:
    paper: The folder of the paper.
    name: The name, such as 'table_1' or 'figure_2'.
    title: A sentence on its contents.
    source: Its place in the literature.
    default_measure: The measure of columns and groups without their own.
    estimate: The summary of a run: 'last_10_evaluations' and 'last_100_rounds'
      are means, 'best' and 'final' single values.
    seeds: The number of runs per cell, with the seeds 0, 1, ...
    groups: The blocks of rows; a single unnamed one if there are none.
    rows: The rows, from top to bottom.
    columns: The columns, from left to right.
    cells: The cells, ordered by group, row and column.
    figure: The kind and options of a figure; None for a table.
    differs: Sentences on differences from the paper and their effect, as
      Markdown; they end the first paragraph of a page.
    notes: Notes for the reader, as Markdown.
    chosen_on_test: Whether it shows values chosen on the test data, whatever
      the estimate.
    num_left_out: The number of cells that `part` left out.
  """

  paper: str
  name: str
  title: str
  source: str
  default_measure: Measure
  estimate: str
  seeds: int
  groups: Axis
  rows: Axis
  columns: Axis
  cells: tuple[Cell, ...]
  figure: Optional[Mapping[str, Any]] = None
  differs: tuple[str, ...] = ()
  notes: tuple[str, ...] = ()
  chosen_on_test: bool = False
  num_left_out: int = 0

  def measure(self, column: str, group: str = '') -> Measure:
    """Returns the measure of a column or group, or else of the table."""
    for name, axis in ((column, self.columns), (group, self.groups)):
      for entry in axis:
        if entry.name == name and entry.measure is not None:
          return entry.measure
    return self.default_measure

  @property
  def place(self) -> str:
    """The paper and name, such as 'delta_sgd/table_1'."""
    return f'{self.paper}/{self.name}'

  @property
  def stamp(self) -> str:
    """A warning to show with its numbers; empty if none is needed."""
    is_chosen = self.chosen_on_test or self.estimate == run_folder.BEST
    return REPLICATION_ONLY if is_chosen else ''

  @property
  def heading(self) -> str:
    """The paper and what it prints: 'Delta-SGD, Table 1', or 'Delta-SGD'."""
    title = _SHORT_TITLES.get(self.paper, self.paper)
    printed = re.fullmatch(r'(table|figure)_(\d+)', self.name)
    return (
        f'{title}, {printed[1].capitalize()} {printed[2]}' if printed else title
    )

  def cell(self, group: str, row: str, column: str) -> Cell:
    """Returns a cell by the names of its group, row and column."""
    for cell in self.cells:
      if cell.key == (group, row, column):
        return cell
    raise KeyError((group, row, column))

  def restrict(self, **wanted: Sequence[str]) -> 'Table':
    """Returns the table with some of its groups, rows and columns.

    Args:
      **wanted: The names of the entries to keep, by axis of `AXES`; an axis
        without names is kept entirely.

    Raises:
      PublishedError: If the table lacks a named entry, or no cell remains.
    """
    axes: dict[str, Any] = {
        axis: self._keep(axis, list(map(str, wanted.get(axis) or ())))
        for axis in AXES
    }
    keys = set(
        itertools.product(*([e.name for e in axes[axis]] for axis in AXES))
    )
    cells = tuple(cell for cell in self.cells if cell.key in keys)
    if not cells:
      raise PublishedError(
          f'{self.place} has no cells in the given groups, rows and columns'
      )
    return dataclasses.replace(self, cells=cells, **axes)

  def part(self, **wanted: Sequence[str]) -> 'Table':
    """Returns the restricted table, whose title names what is kept.

    Args:
      **wanted: See `restrict`.

    Raises:
      PublishedError: See `restrict`.
    """
    found = self.restrict(**wanted)
    num_left_out = len(self.cells) - len(found.cells)
    if not num_left_out:
      return found
    kept = (getattr(found, axis) for axis in AXES if wanted.get(axis))
    names = ', '.join(entry.name for entry in itertools.chain(*kept))
    title = f'{self.title.rstrip(".")}; here {names}.'
    return dataclasses.replace(found, title=title, num_left_out=num_left_out)

  def _keep(self, axis: str, wanted: Sequence[str]) -> Axis:
    """Returns the wanted entries of an axis; all if none are named."""
    entries = getattr(self, axis)
    known = [entry.name for entry in entries]
    for name in wanted:
      if name not in known:
        raise PublishedError(
            f'the {axis} of {self.place} are {", ".join(known)}, found {name!r}'
        )
    return tuple(e for e in entries if not wanted or e.name in wanted)
