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
"""Reads the data files of published tables, one a table or figure."""

from collections.abc import Iterator, Mapping, Sequence
import dataclasses
import itertools
import pathlib
import re
from typing import Any, Optional

import yaml

from experiments.published import given_flags
from experiments.published import tables

ROOT = pathlib.Path(__file__).resolve().parents[2]
_PRESETS = ROOT / 'experiments' / 'presets'

_AXES = ('groups', 'rows', 'columns')
_ORIGINS = tuple(origin.value for origin in given_flags.Origin)
_ENTRY_KEYS = ('name', 'like', 'note', *_ORIGINS)
_CELL_KEYS = ('group', 'row', 'column', 'note', *_ORIGINS)
_KEYS = (
    'title',
    'source',
    'metric',
    'scale',
    'higher_is_better',
    'estimate',
    'seeds',
    'figure',
    'runs_of',
    'notes',
    'cells',
    'published',
    'published_std',
    *_AXES,
    *_ORIGINS,
)
_ESTIMATES = ('last_10_evaluations', 'last_100_rounds', 'best', 'final')


class PublishedError(ValueError):
  """A data file of a table is not as it should be."""


def _check_keys(found: Mapping[str, Any], known: Sequence[str], place: str):
  """Raises if a mapping has other keys than it can have."""
  for key in found:
    if key not in known:
      raise PublishedError(f'{place} takes {", ".join(known)}, found {key!r}')


def _read_axis(
    raw: Mapping[str, Any], axis: str, path: pathlib.Path
) -> tables.Axis:
  """Returns the entries of an axis; one without a name if there are none.

  Args:
    raw: The data file. An axis in it is a list of entries, or the name of a
      table of the same paper whose axis it shares; an entry that is `like` a
      table has the flags of that table's entry of the same name, and its own.
    axis: 'groups', 'rows' or 'columns'.
    path: The data file.
  """
  place = f'{path.parent.name}/{path.stem}: {axis}'
  found = raw.get(axis)
  if not found:
    return (tables.Entry(''),)
  if isinstance(found, str):
    return _read_axis_of(found, axis, path)
  entries = []
  for item in found:
    item = item if isinstance(item, dict) else {'name': item}
    _check_keys(item, _ENTRY_KEYS, place)
    name = str(item['name'])
    flags = tuple(given_flags.from_mapping(item))
    if 'like' in item:
      shared = {e.name: e for e in _read_axis_of(item['like'], axis, path)}
      _check_keys({name: item}, list(shared), f'{place} like {item["like"]}')
      flags = shared[name].flags + flags
    entries.append(tables.Entry(name, flags, item.get('note', '')))
  names = [entry.name for entry in entries]
  if len(set(names)) < len(names):
    raise PublishedError(f'{place} names an entry twice: {", ".join(names)}')
  return tuple(entries)


def _read_axis_of(name: str, axis: str, path: pathlib.Path) -> tables.Axis:
  """Returns an axis of another table of the same paper."""
  other = path.with_name(f'{name}.yaml')
  if not other.is_file():
    raise PublishedError(
        f'{path.parent.name}/{path.stem}: {axis} are those of {name!r}, and '
        'there is no such table'
    )
  raw = yaml.safe_load(other.read_text(encoding='utf-8'))
  return _read_axis(raw, axis, other)


def _read_numbers(
    raw: Any, axes: Sequence[tables.Axis], place: str
) -> dict[tuple[str, str, str], Optional[float]]:
  """Returns numbers by group, row and column.

  Args:
    raw: Lists in the order of the columns, by row, by group if there are any;
      rows that are missing have no number.
    axes: The groups, rows and columns.
    place: What to name in an error.
  """
  groups, rows, columns = axes
  if len(groups) == 1 and not groups[0].name:
    raw = {'': raw or {}}
  _check_keys(raw or {}, [entry.name for entry in groups], place)
  numbers: dict[tuple[str, str, str], Optional[float]] = {}
  for group, by_row in (raw or {}).items():
    _check_keys(by_row, [entry.name for entry in rows], place)
    for row, values in by_row.items():
      if len(values) != len(columns):
        raise PublishedError(
            f'{place} needs {len(columns)} numbers in row {row!r}, found '
            f'{len(values)}'
        )
      for column, value in zip(columns, values):
        numbers[group, row, column.name] = value
  return numbers


def _substitute(
    flags: Sequence[given_flags.GivenFlag], place: str
) -> tuple[given_flags.GivenFlag, ...]:
  """Puts the name of the task in the place of '{task}'."""
  tasks = [
      flag.text.partition('=')[2]
      for flag in given_flags.expand(flags, ROOT)
      if flag.name == 'task'
  ]
  if not tasks:
    raise PublishedError(f'{place} has no --task')
  return tuple(
      dataclasses.replace(
          flag,
          name=flag.name.replace('{task}', tasks[-1]),
          text=flag.text.replace('{task}', tasks[-1]),
      )
      for flag in flags
  )


def _build_cells(
    raw: Mapping[str, Any], paper: str, name: str, axes: Sequence[tables.Axis]
) -> Iterator[tables.Cell]:
  """Yields the cells of a table, from the general flags to their own."""
  place = f'{paper}/{name}'
  own = raw.get('cells') or ()
  for item in own:
    _check_keys(item, _CELL_KEYS, f'{place}: cells')
  published = _read_numbers(raw.get('published'), axes, f'{place}: published')
  stds = _read_numbers(
      raw.get('published_std'), axes, f'{place}: published_std'
  )
  for group, row, column in itertools.product(*axes):
    key = (group.name, row.name, column.name)
    names = dict(zip(('group', 'row', 'column'), key))
    fitting = [
        item
        for item in own
        if all(str(item.get(axis, n)) == n for axis, n in names.items())
    ]
    flags = [*given_flags.from_mapping(raw)]
    flags += [*group.flags, *column.flags, *row.flags]
    for item in fitting:
      flags += given_flags.from_mapping(item)
    yield tables.Cell(
        paper,
        name,
        *key,
        flags=_substitute(flags, f'{place}: {key}'),
        published=published.get(key),
        published_std=stds.get(key),
        note=' '.join(item['note'] for item in fitting if 'note' in item),
    )


def _select(
    raw: Mapping[str, Any], table: tables.Table, place: str
) -> dict[str, Any]:
  """Returns the axes and cells of another table that a figure is about."""
  axes = {}
  for axis in _AXES:
    entries = getattr(table, axis)
    wanted = [str(name) for name in raw.get(axis) or ()]
    known = [entry.name for entry in entries]
    _check_keys(dict.fromkeys(wanted), known, f'{place}: {axis}')
    axes[axis] = tuple(e for e in entries if not wanted or e.name in wanted)
  keys = set(
      itertools.product(*([entry.name for entry in a] for a in axes.values()))
  )
  cells = tuple(
      cell
      for cell in table.cells
      if (cell.group, cell.row, cell.column) in keys
  )
  return {**axes, 'cells': cells}


def _read_table(path: pathlib.Path) -> tables.Table:
  """Returns the table of a data file."""
  paper, name = path.parent.name, path.stem
  place = f'{paper}/{name}'
  raw = yaml.safe_load(path.read_text(encoding='utf-8'))
  _check_keys(raw, _KEYS, place)
  if raw.get('runs_of'):
    base = _read_table(path.with_name(f'{raw["runs_of"]}.yaml'))
    return dataclasses.replace(
        base,
        name=name,
        title=raw['title'],
        source=raw['source'],
        figure=raw.get('figure'),
        notes=tuple(raw.get('notes') or ()),
        **_select(raw, base, place),
    )
  if raw['estimate'] not in _ESTIMATES:
    raise PublishedError(
        f'{place}: estimate is one of {", ".join(_ESTIMATES)}, found '
        f'{raw["estimate"]!r}'
    )
  axes = [_read_axis(raw, axis, path) for axis in _AXES]
  return tables.Table(
      paper=paper,
      name=name,
      title=raw['title'],
      source=raw['source'],
      metric=raw['metric'],
      scale=float(raw.get('scale', 1.0)),
      higher_is_better=bool(raw.get('higher_is_better', True)),
      estimate=raw['estimate'],
      seeds=int(raw.get('seeds', 1)),
      groups=axes[0],
      rows=axes[1],
      columns=axes[2],
      cells=tuple(_build_cells(raw, paper, name, axes)),
      figure=raw.get('figure'),
      notes=tuple(raw.get('notes') or ()),
  )


def _order(path: pathlib.Path) -> tuple:
  """Sorts tables before figures, and 2 before 10."""
  numbers = [int(number) for number in re.findall(r'\d+', path.stem)]
  is_figure = path.stem.startswith('figure')
  return path.parent.name, is_figure, numbers, path.stem


def load_tables(
    paper: Optional[str] = None, presets: pathlib.Path = _PRESETS
) -> list[tables.Table]:
  """Returns the tables and figures, paper by paper, tables first.

  Args:
    paper: The folder of one paper; by default those of all.
    presets: The folder of the papers' folders.

  Returns:
    The tables.

  Raises:
    PublishedError: If a data file is not as it should be; names the place, what
      was found and what would be right.

  Example:

    >>> [table.name for table in load_tables('delta_sgd')][:2]
    ['table_1', 'table_2']
  """
  paths = presets.glob(f'{paper or "*"}/*.yaml')
  return [_read_table(path) for path in sorted(paths, key=_order)]


def find_table(name: str, presets: pathlib.Path = _PRESETS) -> tables.Table:
  """Returns one table by paper and name.

  Args:
    name: As 'delta_sgd/table_1'.
    presets: The folder of the papers' folders.

  Returns:
    The table.

  Raises:
    PublishedError: If there is no such table, or its file is not as it should
      be.
  """
  path = presets / f'{name}.yaml'
  if not path.is_file() or path.parent.parent != presets:
    known = sorted(presets.glob('*/*.yaml'), key=_order)
    names = ', '.join(f'{p.parent.name}/{p.stem}' for p in known)
    raise PublishedError(f'there is no table {name!r}; there are {names}')
  return _read_table(path)
