# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads the data files of published tables and figures.

A file names its `title` and `source`; the `metric`, its `scale` and, if its
name does not tell, whether `higher_is_better`; the `estimate` of a run's
result; the number of `seeds`; and the axes `groups`, `rows` and `columns`. An
axis is a list of names, or of mappings with a `name` and flags, or the name of
the paper's table that has it; an entry that is `like` another table has the
flags that it has there.

Flags are in lists under `specified`, `assumed` and `lost`. Those of a cell are
the flags of the file, of its group, column and row, and of the items of `cells`
that name it or a part of the table; later ones win. `{task}` in a flag stands
for the value of `--task`. `published` and `published_std` have a list per row,
in the order of the columns, within each group if there are groups.

Sentences under `differs` tell the differences from the paper, and end the first
paragraph of the page; those under `notes` follow. `figure` has the kind and the
options of a figure. `chosen_on_test` marks numbers for replication only.

A file with `runs_of` shows the runs of other tables, as a figure or by another
metric; one with `beside` also has the cells of other tables.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
import dataclasses
import functools
import itertools
import pathlib
import re
from typing import Any, Optional, Union

import attrs

from experiments import flag_table
from experiments import preset_flags
from experiments import yaml_files
from experiments.published import tables
from experiments.run_results import run_folder

_PRESETS = preset_flags.PRESETS
_TASK = 'task'
# The names of an entry of each axis, in the order of `AXES`.
_NAMES = ('group', 'row', 'column')
_ORIGINS = tuple(origin.value for origin in preset_flags.Origin)
# The name of an entry, or of a table, or several.
_Texts = Union[str, tuple[str, ...]]
# By group and row, in the order of the columns.
_Numbers = Mapping[str, Mapping[str, tuple[Optional[float], ...]]]


def _given(found: Any, kind: type) -> dict[str, Any]:
  """Returns the values of the fields of a class that are given, by name."""
  values = {f.name: getattr(found, f.name) for f in attrs.fields(kind)}
  return {n: value for n, value in values.items() if value not in (None, ())}


@attrs.frozen(kw_only=True, slots=False)
class _Entry(preset_flags.FlagsByOrigin):
  """A row."""

  name: str
  like: Optional[str] = None


@attrs.frozen(kw_only=True, slots=False)
class _Metric:
  """A measure; what a group or a column does not give is the table's."""

  metric: Optional[str] = None
  scale: Optional[float] = None
  higher_is_better: Optional[bool] = None


@attrs.frozen(kw_only=True, slots=False)
class _MeasuredEntry(_Metric, _Entry):
  """A group or a column."""


# The table that has the entries, or they themselves or their names.
_Axis = Union[str, tuple[Union[str, _Entry], ...]]
_MeasuredAxis = Union[str, tuple[Union[str, _MeasuredEntry], ...]]


@attrs.frozen(kw_only=True, slots=False)
class _Part:
  """A part of a table: some of its groups, rows and columns, by default all."""

  group: _Texts = ()
  row: _Texts = ()
  column: _Texts = ()

  def __contains__(self, key: tuple[str, str, str]) -> bool:
    names = _given(self, _Part)
    return all(
        axis not in names or name in _as_tuple(names[axis])
        for axis, name in zip(_NAMES, key)
    )


@attrs.frozen(kw_only=True, slots=False)
class _PartFlags(_Part, preset_flags.FlagsByOrigin):
  """Flags of a part of a table, or those that another table has for it."""

  like: Optional[str] = None
  of: _Part = _Part()
  origin: Optional[str] = attrs.field(
      default=None,
      validator=attrs.validators.optional(attrs.validators.in_(_ORIGINS)),
  )


@attrs.frozen(kw_only=True, slots=False)
class _Content:
  """The texts of a file, and the options of its figure."""

  title: str
  source: str
  figure: Optional[Mapping[str, Any]] = None
  differs: tuple[str, ...] = ()
  notes: tuple[str, ...] = ()
  chosen_on_test: Optional[bool] = None

  @property
  def texts(self) -> dict[str, Any]:
    """The fields of a table that do not depend on its cells."""
    names = ('title', 'source', 'figure', 'differs', 'notes')
    return {name: getattr(self, name) for name in names}


@attrs.frozen(kw_only=True, slots=False)
class _Results(_Metric):
  """The metric of a table and its numbers."""

  metric: str
  estimate: str = attrs.field(
      validator=attrs.validators.in_(run_folder.ESTIMATES)
  )
  published: Mapping[str, Any] = attrs.field(factory=dict)
  published_std: Mapping[str, Any] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True, slots=False)
class _Shown(_Content):
  """A file that shows runs of other tables, some of them by their names."""

  runs_of: _Texts
  groups: tuple[str, ...] = ()
  rows: tuple[str, ...] = ()
  columns: tuple[str, ...] = ()


@attrs.frozen(kw_only=True, slots=False)
class _Figure(_Shown):
  """A file that shows them in a figure."""

  figure: Mapping[str, Any]


@attrs.frozen(kw_only=True, slots=False)
class _Remeasured(_Shown, _Results):
  """A file that shows them by another metric."""


@attrs.frozen(kw_only=True, slots=False)
class _Own(_Content, _Results, preset_flags.FlagsByOrigin):
  """A file that has runs of its own."""

  seeds: int = attrs.field(default=1, validator=attrs.validators.ge(1))
  groups: _MeasuredAxis = ()
  rows: _Axis = ()
  columns: _MeasuredAxis = ()
  beside: _Texts = ()
  cells: tuple[_PartFlags, ...] = ()


# Tables share axes and runs, so files are read repeatedly.
@functools.lru_cache(maxsize=None)
def _structure(text: str, place: str) -> Any:
  """Returns a file as a value of the class that its keys ask for."""
  raw = yaml_files.parse(text, place)
  kind: type = _Own
  if 'runs_of' in raw:
    kind = _Remeasured if 'metric' in raw else _Figure
  return yaml_files.structure(raw, kind, place)


def _in_panels(table: tables.Table) -> tables.Table:
  """Returns a table with only the cells that its figure's panels name."""
  panels = (table.figure or {}).get('panels')
  if not panels:
    return table
  keys = {
      (panel.get('group', ''), column)
      for panel in panels.values()
      for column in panel['columns']
  }
  cells = tuple(c for c in table.cells if (c.group, c.column) in keys)
  return dataclasses.replace(table, cells=cells)


class _File:
  """A data file, which may refer to others of the same paper."""

  def __init__(self, path: pathlib.Path):
    self._path = path
    self._paper = path.parent.name
    self.place = f'{self._paper}/{path.stem}'
    self.content = _structure(path.read_text(encoding='utf-8'), self.place)

  def other(self, name: str) -> '_File':
    """Returns the file of another table of the paper."""
    return _File(_find_path(f'{self._paper}/{name}', self._path.parents[1]))

  def read_table(self) -> tables.Table:
    """Returns the table.

    The cells of tables in `beside` come first, those of the same columns.
    """
    content = self.content
    if isinstance(content, _Shown):
      return self._read_shown()
    axes: dict[str, Any] = {a: self.read_axis(a) for a in tables.AXES}
    table = tables.Table(
        paper=self._paper,
        name=self._path.stem,
        estimate=content.estimate,
        seeds=content.seeds,
        cells=self._read_cells(list(axes.values())),
        **axes,
        default_measure=self._read_measure(self.place),
        chosen_on_test=bool(content.chosen_on_test),
        **content.texts,
    )
    others = self._find_all(content.beside)
    columns = [entry.name for entry in table.columns]
    others = [other.restrict(columns=columns) for other in others]
    return _join(table, [*others, table]) if others else table

  def _find_all(self, names: _Texts) -> list[tables.Table]:
    return [self.other(name).read_table() for name in _as_tuple(names)]

  def _read_shown(self) -> tables.Table:
    """Returns a table of other tables' runs, maybe with another metric."""
    content = self.content
    bases = self._find_all(content.runs_of)
    base = _join(bases[0], bases)
    is_chosen = content.chosen_on_test
    shown = dataclasses.replace(
        base,
        name=self._path.stem,
        chosen_on_test=base.chosen_on_test if is_chosen is None else is_chosen,
        **content.texts,
    ).restrict(**{axis: getattr(content, axis) for axis in tables.AXES})
    shown = _in_panels(shown)
    is_measured = isinstance(content, _Remeasured)
    return self._remeasure(shown) if is_measured else shown

  def _remeasure(self, table: tables.Table) -> tables.Table:
    """Returns a table with the same runs and another metric."""
    axes: dict[str, Any] = {
        axis: tuple(
            dataclasses.replace(entry, measure=None)
            for entry in getattr(table, axis)
        )
        for axis in tables.AXES
    }
    return dataclasses.replace(
        table,
        estimate=self.content.estimate,
        cells=self._replace_numbers(table.cells, list(axes.values())),
        **axes,
        default_measure=self._read_measure(self.place),
    )

  def _read_measure(
      self, place: str, own: Optional[_Metric] = None
  ) -> tables.Measure:
    """Returns the measure of the table, or that of a group or column."""
    found = _given(self.content, _Metric)
    if own is not None:
      if own.metric:  # The direction is that of another metric.
        found.pop('higher_is_better', None)
      found.update(_given(own, _Metric))
    if 'higher_is_better' not in found:
      try:
        is_higher = run_folder.is_higher_better(found['metric'])
      except ValueError as error:
        raise tables.PublishedError(
            f'{place} needs higher_is_better: the name of the metric '
            f'{found["metric"]!r} does not tell'
        ) from error
      found['higher_is_better'] = is_higher
    return tables.Measure(**{'scale': 1.0, **found})

  def read_axis(self, axis: str) -> tables.Axis:
    """Returns the entries of an axis; a single unnamed one if there are none.

    Args:
      axis: One of `AXES`. In the file, it is a list of entries, or the name of
        a table with which the axis is shared.
    """
    found = getattr(self.content, axis)
    if not found:
      return (tables.Entry(''),)
    if isinstance(found, str):
      return self.other(found).read_axis(axis)
    entries = tuple(self._read_entry(item, axis) for item in found)
    names = [entry.name for entry in entries]
    if len(set(names)) < len(names):
      raise tables.PublishedError(
          f'{self.place}.{axis} names an entry twice: {", ".join(names)}'
      )
    return entries

  def _read_entry(self, item: Union[str, _Entry], axis: str) -> tables.Entry:
    """Returns an entry, with the flags of its `like` table and its own."""
    if isinstance(item, str):
      return tables.Entry(item)
    place = f'{self.place}.{axis}'
    entry = tables.Entry(item.name)
    if item.like:
      others = {e.name: e for e in self.other(item.like).read_axis(axis)}
      yaml_files.check_choice(item.name, others, f'{place} like {item.like}')
      entry = others[item.name]
    if isinstance(item, _MeasuredEntry) and _given(item, _Metric):
      measure = self._read_measure(place, item)
      entry = dataclasses.replace(entry, measure=measure)
    return dataclasses.replace(entry, flags=entry.flags + item.given)

  def _read_cells(self, axes: Sequence[tables.Axis]) -> tuple[tables.Cell, ...]:
    """Returns the cells.

    The flags of a cell are those of the table, the group, the column and the
    row, in this order, and then its own; later ones win.
    """
    items = list(self._read_items())
    for item in self.content.cells:
      for name, axis in zip(_NAMES, axes):
        known = [entry.name for entry in axis]
        for found in _as_tuple(getattr(item, name)):
          yaml_files.check_choice(found, known, f'{self.place}.cells: {name}')
    cells = []
    for group, row, column in itertools.product(*axes):
      key = (group.name, row.name, column.name)
      flags = [*self.content.given, *group.flags, *column.flags, *row.flags]
      flags += [flag for item in items if key in item for flag in item.given]
      filled = tuple(_substitute(flags, f'{self.place}: {key}'))
      cells.append(tables.Cell(self._paper, self._path.stem, *key, filled))
    return self._replace_numbers(cells, axes)

  def _read_items(self) -> Iterator[_PartFlags]:
    """Yields the flags of cells, groups, rows or columns.

    An item that is `like` another table is replaced by that table's items, or
    by those `of` one of its groups, rows or columns, without these names. The
    names and the origin of the item override those of the other table.
    """
    for item in self.content.cells:
      if not item.like:
        yield item
        continue
      names, wanted = _given(item, _Part), _given(item.of, _Part)
      for shared in self.other(item.like)._read_items():
        if {**_given(shared, _Part), **wanted} == _given(shared, _Part):
          shared = attrs.evolve(
              shared, **{**dict.fromkeys(wanted, ()), **names}
          )
          yield shared.with_origin(item.origin) if item.origin else shared

  def _replace_numbers(
      self, cells: Iterable[tables.Cell], axes: Sequence[tables.Axis]
  ) -> tuple[tables.Cell, ...]:
    """Returns cells with only the numbers in this file."""
    published = self._read_numbers('published', axes)
    stds = self._read_numbers('published_std', axes)
    return tuple(
        dataclasses.replace(
            cell,
            published=published.get(cell.key),
            published_std=stds.get(cell.key),
        )
        for cell in cells
    )

  def _read_numbers(
      self, name: str, axes: Sequence[tables.Axis]
  ) -> dict[tuple[str, str, str], Optional[float]]:
    """Returns numbers by group, row and column.

    In the file, a row has a list in the order of the columns. Rows are nested
    in groups, if there are any, and may be missing.
    """
    place = f'{self.place}.{name}'
    groups, rows, columns = ([entry.name for entry in axis] for axis in axes)
    raw = getattr(self.content, name)
    by_group = {'': raw} if groups == [''] else raw
    numbers = {}
    for group, by_row in yaml_files.structure(
        by_group, _Numbers, place
    ).items():
      yaml_files.check_choice(group, groups, place)
      for row, values in by_row.items():
        yaml_files.check_choice(row, rows, place)
        if len(values) != len(columns):
          raise tables.PublishedError(
              f'{place} needs {len(columns)} numbers in row {row!r}, found '
              f'{len(values)}'
          )
        for column, value in zip(columns, values):
          numbers[group, row, column] = value
    return numbers


def _as_tuple(names: _Texts) -> tuple[str, ...]:
  return (names,) if isinstance(names, str) else names


def _substitute(
    flags: Sequence[preset_flags.GivenFlag], place: str
) -> Iterator[preset_flags.GivenFlag]:
  """Fills in the values of other flags: '{task}', '{server_optimizer}'."""
  try:
    expanded = preset_flags.expand(flags)
  except flag_table.HparamError as error:
    raise tables.PublishedError(f'{place}: {error}') from error
  chosen = {flag.name: flag.value for flag in expanded}
  if _TASK not in chosen:
    raise tables.PublishedError(f'{place} has no --{_TASK}')
  for flag in flags:
    text = flag.text
    for name in re.findall(r'{(\w+)}', text):
      if name not in chosen:
        raise tables.PublishedError(f'{place} has {text!r}, but no --{name}')
      text = text.replace(f'{{{name}}}', chosen[name])
    yield dataclasses.replace(flag, text=text)


def _join(table: tables.Table, parts: Sequence[tables.Table]) -> tables.Table:
  """Returns a table with the axes and cells of several tables."""
  axes: dict[str, Any] = {}
  for axis in tables.AXES:
    entries = [entry for part in parts for entry in getattr(part, axis)]
    axes[axis] = tuple({entry.name: entry for entry in entries}.values())
  if len({part.measure('') for part in parts}) > 1:
    axes['groups'] = tuple(
        dataclasses.replace(group, measure=part.measure('', group.name))
        for part in parts
        for group in part.groups
    )
  cells = tuple(cell for part in parts for cell in part.cells)
  return dataclasses.replace(table, cells=cells, **axes)


def _order(path: pathlib.Path) -> tuple:
  """Returns a sort key: tables, figures, then others, and 2 before 10."""
  numbers = [int(number) for number in re.findall(r'\d+', path.stem)]
  is_table = path.stem.startswith('table')
  is_figure = path.stem.startswith('figure')
  return path.parent.name, not is_table, not is_figure, numbers, path.stem


def _paths(presets: pathlib.Path) -> list[pathlib.Path]:
  """Returns the files of tables and figures."""
  found = presets.glob('*/*.yaml')
  return [path for path in found if path.name != preset_flags.FILE]


def load_tables(
    paper: str = '*', presets: pathlib.Path = _PRESETS
) -> list[tables.Table]:
  """Returns the tables and figures, paper by paper.

  Within a paper, tables come first, then figures, then additions such as an
  ablation.

  Args:
    paper: The folder of one paper; all by default.
    presets: The folder of the papers' folders.

  Returns:
    The tables.

  Raises:
    PublishedError: If the paper does not exist, or a data file is invalid;
      names the place, what was found and what was expected.

  Example:

    >>> [table.name for table in load_tables('delta_sgd')][:2]
    ['table_1', 'table_2']
  """
  paths = sorted(
      (p for p in _paths(presets) if paper in ('*', p.parent.name)), key=_order
  )
  if not paths:
    known = sorted({path.parent.name for path in _paths(presets)})
    raise tables.PublishedError(
        f'there is no paper {paper!r}; choose one of {", ".join(known)}'
    )
  return [_File(path).read_table() for path in paths]


def find_table(name: str, presets: pathlib.Path = _PRESETS) -> tables.Table:
  """Returns a table by paper and name.

  Args:
    name: The place of the table, such as 'delta_sgd/table_1'.
    presets: The folder of the papers' folders.

  Returns:
    The table.

  Raises:
    PublishedError: If the table does not exist, or its file is invalid.
  """
  return _File(_find_path(name, presets)).read_table()


def _find_path(name: str, presets: pathlib.Path) -> pathlib.Path:
  path = presets / f'{name}.yaml'
  known = _paths(presets)
  if path not in known:
    known.sort(key=_order)
    names = ', '.join(f'{p.parent.name}/{p.stem}' for p in known)
    raise tables.PublishedError(
        f'there is no table {name!r}; choose one of {names}'
    )
  return path
