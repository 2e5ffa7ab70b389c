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

from collections.abc import Mapping, Sequence
import dataclasses
import itertools
import pathlib
import re
from typing import Any, Optional, Union

from experiments.published import cell_files
from experiments.published import data_files
from experiments.published import given_flags
from experiments.published import tables
from experiments.run_results import run_folder

ROOT = data_files.ROOT
PublishedError = data_files.PublishedError
_PRESETS = ROOT / 'experiments' / 'presets'

_AXES = ('groups', 'rows', 'columns')
_ORIGINS = tuple(origin.value for origin in given_flags.Origin)
_ENTRY_KEYS = ('name', 'like', 'note', *_ORIGINS)
# Of a column or a group that measures something else than the table.
_MEASURE_KEYS = ('metric', 'scale', 'higher_is_better')
_KEYS = (
    'title',
    'source',
    'metric',
    'scale',
    'higher_is_better',
    'estimate',
    'chosen_on_test',
    'seeds',
    'figure',
    'runs_of',
    'beside',
    'notes',
    'cells',
    'published',
    'published_std',
    *_AXES,
    *_ORIGINS,
)
# Of a table or figure that has runs of its own, and of one that shows others.
_NEEDED_KEYS = ('title', 'source', 'metric', 'estimate')
_RUNS_OF_KEYS = (
    'title',
    'source',
    'chosen_on_test',
    'runs_of',
    'figure',
    'notes',
    *_AXES,
)
_RUNS_OF_NEEDED_KEYS = ('title', 'source', 'figure')
# Of a table that compares another metric of the runs of others.
_REMEASURED_KEYS = (*_MEASURE_KEYS, 'estimate', 'published', 'published_std')


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
  entries = tuple(_read_entry(raw, item, axis, path) for item in found)
  names = [entry.name for entry in entries]
  if len(set(names)) < len(names):
    raise PublishedError(f'{place} names an entry twice: {", ".join(names)}')
  return entries


def _read_entry(
    raw: Mapping[str, Any], item: Any, axis: str, path: pathlib.Path
) -> tables.Entry:
  """Returns an entry of an axis, which may have no more than a name."""
  place = f'{path.parent.name}/{path.stem}: {axis}'
  item = item if isinstance(item, dict) else {'name': item}
  known = _ENTRY_KEYS + (() if axis == 'rows' else _MEASURE_KEYS)
  data_files.check_keys(item, known, place, needed=('name',))
  shared = tables.Entry(str(item['name']))
  if 'like' in item:
    others = _read_axis_of(item['like'], axis, path)
    by_name = {entry.name: entry for entry in others}
    data_files.check_choice(
        shared.name, list(by_name), f'{place} like {item["like"]}'
    )
    shared = by_name[shared.name]
  measure = shared.measure
  if any(key in item for key in _MEASURE_KEYS):
    measure = _read_measure({**raw, **item})
  return dataclasses.replace(
      shared,
      flags=shared.flags + tuple(given_flags.from_mapping(item)),
      note=item.get('note', ''),
      measure=measure,
  )


def _read_measure(raw: Mapping[str, Any]) -> tables.Measure:
  return tables.Measure(
      metric=raw['metric'],
      scale=float(raw.get('scale', 1.0)),
      higher_is_better=bool(raw.get('higher_is_better', True)),
  )


def _remeasure(
    raw: Mapping[str, Any], table: tables.Table, place: str
) -> tables.Table:
  """Returns a table of the same runs that compares another metric."""
  data_files.check_choice(
      raw['estimate'], run_folder.ESTIMATES, f'{place}: estimate'
  )
  groups, rows, columns = (
      tuple(dataclasses.replace(entry, measure=None) for entry in axis)
      for axis in (table.groups, table.rows, table.columns)
  )
  measure = _read_measure(raw)
  return dataclasses.replace(
      table,
      metric=measure.metric,
      scale=measure.scale,
      higher_is_better=measure.higher_is_better,
      estimate=raw['estimate'],
      groups=groups,
      rows=rows,
      columns=columns,
      cells=cell_files.replace_numbers(
          raw, table.cells, (groups, rows, columns), place
      ),
  )


def _read_axis_of(name: str, axis: str, path: pathlib.Path) -> tables.Axis:
  """Returns an axis of another table of the same paper."""
  other = data_files.find_sibling(path, name)
  return _read_axis(data_files.load(other), axis, other)


def _select(
    raw: Mapping[str, Any], table: tables.Table, place: str
) -> dict[str, Any]:
  """Returns the axes and cells of another table that a figure is about."""
  axes = {}
  for axis in _AXES:
    entries = getattr(table, axis)
    wanted = [str(name) for name in raw.get(axis) or ()]
    known = [entry.name for entry in entries]
    data_files.check_keys(dict.fromkeys(wanted), known, f'{place}: {axis}')
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


def _find_all(
    names: Union[str, Sequence[str]], path: pathlib.Path
) -> list[tables.Table]:
  """Returns other tables of the same paper."""
  names = [names] if isinstance(names, str) else names
  return [find_table(f'{path.parent.name}/{n}', path.parents[1]) for n in names]


def _join(parts: Sequence[tables.Table]) -> dict[str, Any]:
  """Returns the axes and cells of all of some tables."""
  axes = {}
  for axis in _AXES:
    entries = [entry for part in parts for entry in getattr(part, axis)]
    axes[axis] = tuple({entry.name: entry for entry in entries}.values())
  if len({part.measure('') for part in parts}) > 1:
    axes['groups'] = tuple(
        dataclasses.replace(group, measure=part.measure('', group.name))
        for part in parts
        for group in part.groups
    )
  return {**axes, 'cells': tuple(c for part in parts for c in part.cells)}


def _read_shown(raw: Mapping[str, Any], path: pathlib.Path) -> tables.Table:
  """Returns the table of a data file with `runs_of`."""
  name = path.stem
  place = f'{path.parent.name}/{name}'
  known: Sequence[str] = _RUNS_OF_KEYS
  needed: Sequence[str] = _RUNS_OF_NEEDED_KEYS
  if 'metric' in raw:
    known, needed = (*known, *_REMEASURED_KEYS), _NEEDED_KEYS
  data_files.check_keys(raw, known, f'{place} with runs_of', needed)
  bases = _find_all(raw['runs_of'], path)
  base = dataclasses.replace(bases[0], **_join(bases))
  shown = dataclasses.replace(
      base,
      name=name,
      title=raw['title'],
      source=raw['source'],
      figure=raw.get('figure'),
      notes=tuple(raw.get('notes') or ()),
      chosen_on_test=bool(raw.get('chosen_on_test', base.chosen_on_test)),
      **_select(raw, base, place),
  )
  return _remeasure(raw, shown, place) if 'metric' in raw else shown


def _read_table(path: pathlib.Path) -> tables.Table:
  """Returns the table of a data file.

  Args:
    path: The data file. With `runs_of` it shows the runs of one or more other
      tables of the paper, and none of its own, by another metric if it names
      one; with `beside`, theirs and its own. A joined table need not have a
      cell for all of its entries.
  """
  paper, name = path.parent.name, path.stem
  place = f'{paper}/{name}'
  raw = data_files.load(path)
  data_files.check_keys(raw, _KEYS, place)
  if 'runs_of' in raw:
    return _read_shown(raw, path)
  data_files.check_keys(raw, _KEYS, place, _NEEDED_KEYS)
  data_files.check_choice(
      raw['estimate'], run_folder.ESTIMATES, f'{place}: estimate'
  )
  axes = [_read_axis(raw, axis, path) for axis in _AXES]
  table = tables.Table(
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
      cells=cell_files.build_cells(raw, path, axes),
      figure=raw.get('figure'),
      notes=tuple(raw.get('notes') or ()),
      chosen_on_test=bool(raw.get('chosen_on_test', False)),
  )
  if 'beside' not in raw:
    return table
  others = _find_all(raw['beside'], path)
  return dataclasses.replace(table, **_join([*others, table]))


def _order(path: pathlib.Path) -> tuple:
  """Sorts tables, figures, then what the paper has not; and 2 before 10."""
  numbers = [int(number) for number in re.findall(r'\d+', path.stem)]
  is_table = path.stem.startswith('table')
  is_figure = path.stem.startswith('figure')
  return path.parent.name, not is_table, not is_figure, numbers, path.stem


def load_tables(
    paper: Optional[str] = None, presets: pathlib.Path = _PRESETS
) -> list[tables.Table]:
  """Returns the tables and figures, paper by paper, tables first.

  What is not in the paper but beside its tables, as an ablation, comes last.

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
