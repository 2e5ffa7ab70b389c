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
from typing import Any, Optional

import yaml

from experiments.published import tables
from experiments.run_results import run_folder

_PRESETS = tables.ROOT / 'experiments' / 'presets'
_TASK = 'task'
# The names of an entry of each axis, in the order of `AXES`.
_NAMES = ('group', 'row', 'column')
_ORIGINS = tuple(origin.value for origin in tables.Origin)
_NUMBERS = ('published', 'published_std')
_MEASURE_KEYS = ('metric', 'scale', 'higher_is_better')
_CELL_KEYS = (*_NAMES, 'like', 'of', 'origin', *_ORIGINS)
_TEXT_KEYS = (
    'title',
    'source',
    'chosen_on_test',
    'figure',
    'differs',
    'notes',
)
# The keys of a table that shows another table's runs by another metric.
_REMEASURED_KEYS = (*_MEASURE_KEYS, 'estimate', *_NUMBERS)
_SHOWN_KEYS = (*_TEXT_KEYS, 'runs_of', *tables.AXES)
_OWN_KEYS = (
    *_TEXT_KEYS,
    *_REMEASURED_KEYS,
    *('seeds', 'runs_of', 'beside', 'cells'),
    *tables.AXES,
    *_ORIGINS,
)


def load(path: pathlib.Path) -> Mapping[str, Any]:
  """Returns the content of a data file."""
  return _parse(path.read_text(encoding='utf-8'))


# Tables share axes and runs, so files are read repeatedly.
_parse = functools.lru_cache(maxsize=None)(yaml.safe_load)


def check_keys(
    found: Iterable[str],
    known: Sequence[str],
    place: str,
    needed: Sequence[str] = (),
):
  """Raises if a mapping has an unknown key, or lacks a needed one."""
  for key in found:
    if key not in known:
      raise tables.PublishedError(
          f'{place} takes {", ".join(known)}, found {key!r}'
      )
  for key in needed:
    if key not in found:
      raise tables.PublishedError(f'{place} needs {key!r}')


def check_choice(found: Any, known: Sequence[str], place: str):
  """Raises if a value is not one of the allowed ones."""
  if found not in known:
    raise tables.PublishedError(
        f'{place} must be one of {", ".join(known)}, found {found!r}'
    )


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
    self.raw = load(path)

  def other(self, name: str) -> '_File':
    """Returns the file of another table of the paper."""
    presets = self._path.parents[1]
    return _File(_find_path(f'{self._paper}/{name}', presets))

  def read_table(self) -> tables.Table:
    """Returns the table.

    The cells of tables in `beside` come first, those of the same columns.
    """
    if 'runs_of' in self.raw:
      return self._read_shown()
    self._check(_OWN_KEYS)
    axes: dict[str, Any] = {a: self.read_axis(a) for a in tables.AXES}
    table = tables.Table(
        paper=self._paper,
        name=self._path.stem,
        estimate=self.raw['estimate'],
        seeds=int(self.raw.get('seeds', 1)),
        cells=self._read_cells(list(axes.values())),
        **axes,
        default_measure=_read_measure(self.raw, self.place),
        **self._read_texts(chosen_on_test=False),
    )
    others = self._find_all(self.raw.get('beside') or [])
    columns = [entry.name for entry in table.columns]
    others = [other.restrict(columns=columns) for other in others]
    return _join(table, [*others, table]) if others else table

  def _check(self, known: Sequence[str]):
    """Raises unless the file has valid keys for a table with a metric."""
    needed = ('title', 'source', 'metric', 'estimate')
    check_keys(self.raw, known, self.place, needed)
    check_choice(
        self.raw['estimate'], run_folder.ESTIMATES, f'{self.place}: estimate'
    )

  def _read_texts(self, *, chosen_on_test: bool) -> dict[str, Any]:
    """Returns the texts and options that do not depend on the cells."""
    raw = self.raw
    return {
        'title': raw['title'],
        'source': raw['source'],
        'figure': raw.get('figure'),
        'differs': tuple(raw.get('differs') or ()),
        'notes': tuple(raw.get('notes') or ()),
        'chosen_on_test': bool(raw.get('chosen_on_test', chosen_on_test)),
    }

  def _find_all(self, names: Any) -> list[tables.Table]:
    return [self.other(name).read_table() for name in _as_list(names)]

  def _read_shown(self) -> tables.Table:
    """Returns a table of other tables' runs, maybe with another metric."""
    raw, place = self.raw, f'{self.place} with runs_of'
    if 'metric' in raw:
      self._check((*_SHOWN_KEYS, *_REMEASURED_KEYS))
    else:
      check_keys(raw, _SHOWN_KEYS, place, ('title', 'source', 'figure'))
    bases = self._find_all(raw['runs_of'])
    base = _join(bases[0], bases)
    shown = dataclasses.replace(
        base,
        name=self._path.stem,
        **self._read_texts(chosen_on_test=base.chosen_on_test),
    ).restrict(**{axis: raw.get(axis) or () for axis in tables.AXES})
    shown = _in_panels(shown)
    return self._remeasure(shown) if 'metric' in raw else shown

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
        estimate=self.raw['estimate'],
        cells=self._replace_numbers(table.cells, list(axes.values())),
        **axes,
        default_measure=_read_measure(self.raw, self.place),
    )

  def read_axis(self, axis: str) -> tables.Axis:
    """Returns the entries of an axis; a single unnamed one if there are none.

    Args:
      axis: One of `AXES`. In the file, it is a list of entries, or the name of
        a table with which the axis is shared.
    """
    found = self.raw.get(axis)
    if not found:
      return (tables.Entry(''),)
    if isinstance(found, str):
      return self.other(found).read_axis(axis)
    place = f'{self.place}: {axis}'
    entries = tuple(self._read_entry(item, axis, place) for item in found)
    names = [entry.name for entry in entries]
    if len(set(names)) < len(names):
      raise tables.PublishedError(
          f'{place} names an entry twice: {", ".join(names)}'
      )
    return entries

  def _read_entry(self, item: Any, axis: str, place: str) -> tables.Entry:
    """Returns an entry, with the flags of its `like` table and its own."""
    item = item if isinstance(item, dict) else {'name': item}
    known = ('name', 'like', *_ORIGINS)
    if axis != 'rows':
      known += _MEASURE_KEYS
    check_keys(item, known, place, needed=('name',))
    entry = tables.Entry(str(item['name']))
    if 'like' in item:
      others = self.other(item['like']).read_axis(axis)
      by_name = {other.name: other for other in others}
      check_choice(entry.name, list(by_name), f'{place} like {item["like"]}')
      entry = by_name[entry.name]
    if any(key in item for key in _MEASURE_KEYS):
      inherited = dict(self.raw)
      if 'metric' in item:  # The direction is that of another metric.
        inherited.pop('higher_is_better', None)
      measure = _read_measure({**inherited, **item}, place)
      entry = dataclasses.replace(entry, measure=measure)
    flags = entry.flags + tuple(tables.from_mapping(item))
    return dataclasses.replace(entry, flags=flags)

  def _read_cells(self, axes: Sequence[tables.Axis]) -> tuple[tables.Cell, ...]:
    """Returns the cells.

    The flags of a cell are those of the table, the group, the column and the
    row, in this order, and then its own; later ones win.
    """
    items = list(self._read_items())
    for item in self.raw.get('cells') or ():
      for name, axis in zip(_NAMES, axes):
        known = [entry.name for entry in axis]
        for found in _as_list(item.get(name, [])):
          check_choice(found, known, f'{self.place}: cells: {name}')
    cells = []
    for group, row, column in itertools.product(*axes):
      key = (group.name, row.name, column.name)
      flags = tables.from_mapping(self.raw)
      flags += [*group.flags, *column.flags, *row.flags]
      for item in items:
        names = zip(key, _NAMES)
        if all(name in _as_list(item.get(axis, name)) for name, axis in names):
          flags += tables.from_mapping(item)
      filled = tuple(_substitute(flags, f'{self.place}: {key}'))
      cells.append(tables.Cell(self._paper, self._path.stem, *key, filled))
    return self._replace_numbers(cells, axes)

  def _read_items(self) -> Iterator[Mapping[str, Any]]:
    """Yields the items of `cells`: flags of a cell, group, row or column.

    An item that is `like` another table is replaced by that table's items, or
    by those `of` one of its groups, rows or columns, without these names. The
    names and the origin of the item override those of the other table.
    """
    place = f'{self.place}: cells'
    for item in self.raw.get('cells') or ():
      check_keys(item, _CELL_KEYS, place)
      if 'like' not in item:
        yield item
        continue
      wanted = item.get('of') or {}
      check_keys(wanted, _NAMES, f'{place}: of')
      names = {name: item[name] for name in _NAMES if name in item}
      for shared in self.other(item['like'])._read_items():
        if all(shared.get(name) == value for name, value in wanted.items()):
          kept = {key: shared[key] for key in shared if key not in wanted}
          yield {**_with_origin(kept, item.get('origin'), place), **names}

  def _replace_numbers(
      self, cells: Iterable[tables.Cell], axes: Sequence[tables.Axis]
  ) -> tuple[tables.Cell, ...]:
    """Returns cells with only the numbers in this file."""
    published, stds = (self._read_numbers(name, axes) for name in _NUMBERS)
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
    raw, place = self.raw.get(name) or {}, f'{self.place}: {name}'
    groups, rows, columns = ([entry.name for entry in axis] for axis in axes)
    if groups == ['']:
      raw = {'': raw}
    check_keys(raw, groups, place)
    numbers = {}
    for group, by_row in raw.items():
      check_keys(by_row, rows, place)
      for row, values in by_row.items():
        if len(values) != len(columns):
          raise tables.PublishedError(
              f'{place} needs {len(columns)} numbers in row {row!r}, found '
              f'{len(values)}'
          )
        for column, value in zip(columns, values):
          numbers[group, row, column] = value
    return numbers


def _as_list(names: Any) -> list[str]:
  return [str(n) for n in (names if isinstance(names, list) else [names])]


def _read_measure(raw: Mapping[str, Any], place: str) -> tables.Measure:
  higher_is_better = raw.get('higher_is_better')
  if higher_is_better is None:
    try:
      higher_is_better = run_folder.is_higher_better(raw['metric'])
    except ValueError as error:
      raise tables.PublishedError(
          f'{place} needs higher_is_better: the name of the metric '
          f'{raw["metric"]!r} does not tell'
      ) from error
  return tables.Measure(
      metric=raw['metric'],
      scale=float(raw.get('scale', 1.0)),
      higher_is_better=bool(higher_is_better),
  )


def _with_origin(
    item: Mapping[str, Any], origin: Optional[str], place: str
) -> Mapping[str, Any]:
  """Returns an item with the origin of its flags replaced, unless None."""
  if origin is None:
    return item
  check_choice(origin, _ORIGINS, f'{place}: origin')
  flags = [flag for other in _ORIGINS for flag in item.get(other) or ()]
  others = {key: item[key] for key in item if key not in _ORIGINS}
  return {**others, origin: flags}


def _substitute(
    flags: Sequence[tables.GivenFlag], place: str
) -> Iterator[tables.GivenFlag]:
  """Fills in the values of other flags: '{task}', '{server_optimizer}'."""
  chosen = {flag.name: flag.value for flag in tables.expand(flags)}
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
      (p for p in presets.glob('*/*.yaml') if paper in ('*', p.parent.name)),
      key=_order,
  )
  if not paths:
    known = sorted({path.parent.name for path in presets.glob('*/*.yaml')})
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
  known = list(presets.glob('*/*.yaml'))
  if path not in known:
    known.sort(key=_order)
    names = ', '.join(f'{p.parent.name}/{p.stem}' for p in known)
    raise tables.PublishedError(
        f'there is no table {name!r}; choose one of {names}'
    )
  return path
