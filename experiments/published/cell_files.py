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
"""Reads the cells of a data file: their flags and the published numbers."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
import dataclasses
import itertools
import pathlib
import re
from typing import Any, Optional

from experiments.published import data_files
from experiments.published import given_flags
from experiments.published import tables

_TASK = 'task'
# An entry each of the axes, in their order.
_NAMES = ('group', 'row', 'column')
_ORIGINS = tuple(origin.value for origin in given_flags.Origin)
_KEYS = (*_NAMES, 'like', 'of', 'origin', 'note', *_ORIGINS)


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
  data_files.check_keys(raw or {}, [entry.name for entry in groups], place)
  numbers: dict[tuple[str, str, str], Optional[float]] = {}
  for group, by_row in (raw or {}).items():
    data_files.check_keys(by_row, [entry.name for entry in rows], place)
    for row, values in by_row.items():
      if len(values) != len(columns):
        raise data_files.PublishedError(
            f'{place} needs {len(columns)} numbers in row {row!r}, found '
            f'{len(values)}'
        )
      for column, value in zip(columns, values):
        numbers[group, row, column.name] = value
  return numbers


def replace_numbers(
    raw: Mapping[str, Any],
    cells: Iterable[tables.Cell],
    axes: Sequence[tables.Axis],
    place: str,
) -> tuple[tables.Cell, ...]:
  """Returns cells with the numbers that a data file gives, and no others.

  Args:
    raw: The data file.
    cells: Those of a table.
    axes: Its groups, rows and columns.
    place: What to name in an error.

  Raises:
    PublishedError: If a number is that of a cell that does not exist.
  """
  published = _read_numbers(raw.get('published'), axes, f'{place}: published')
  stds = _read_numbers(
      raw.get('published_std'), axes, f'{place}: published_std'
  )
  replaced = []
  for cell in cells:
    key = (cell.group, cell.row, cell.column)
    replaced.append(
        dataclasses.replace(
            cell, published=published.get(key), published_std=stds.get(key)
        )
    )
  return tuple(replaced)


def _substitute(
    flags: Sequence[given_flags.GivenFlag], place: str
) -> tuple[given_flags.GivenFlag, ...]:
  """Puts what a flag chooses in its place: '{task}', '{server_optimizer}'."""
  chosen = {
      flag.name: flag.text.partition('=')[2]
      for flag in given_flags.expand(flags, data_files.ROOT)
  }
  if _TASK not in chosen:
    raise data_files.PublishedError(f'{place} has no --{_TASK}')

  def fill(text: str) -> str:
    for name in re.findall(r'{(\w+)}', text):
      if name not in chosen:
        raise data_files.PublishedError(
            f'{place} has {text!r}, and no --{name}'
        )
      text = text.replace(f'{{{name}}}', chosen[name])
    return text

  return tuple(
      dataclasses.replace(flag, name=fill(flag.name), text=fill(flag.text))
      for flag in flags
  )


def _as_list(names: Any) -> list[str]:
  return [str(n) for n in (names if isinstance(names, list) else [names])]


def _read_own(
    raw: Mapping[str, Any], path: pathlib.Path
) -> Iterator[Mapping[str, Any]]:
  """Yields what is said of single cells, or of all in a group, row, column.

  An item that is `like` another table stands for what is said of the cells of
  that table, or of those `of` a group, row or column of it, whose names then do
  not count; names and an origin beside take the place of theirs.

  Args:
    raw: The data file.
    path: Where it is.
  """
  place = f'{path.parent.name}/{path.stem}: cells'
  for item in raw.get('cells') or ():
    data_files.check_keys(item, _KEYS, place)
    if 'like' not in item:
      yield item
      continue
    other = data_files.find_sibling(path, item['like'])
    wanted = item.get('of') or {}
    data_files.check_keys(wanted, _NAMES, f'{place}: of')
    names = {name: item[name] for name in _NAMES if name in item}
    for shared in _read_own(data_files.load(other), other):
      if all(shared.get(name) == value for name, value in wanted.items()):
        kept = {key: shared[key] for key in shared if key not in wanted}
        yield {**_with_origin(kept, item.get('origin'), place), **names}


def _with_origin(
    item: Mapping[str, Any], origin: Optional[str], place: str
) -> Mapping[str, Any]:
  """Returns an item with all its flags of one origin; None leaves them."""
  if origin is None:
    return item
  data_files.check_choice(origin, _ORIGINS, f'{place}: origin')
  flags = [flag for other in _ORIGINS for flag in item.get(other) or ()]
  others = {key: item[key] for key in item if key not in _ORIGINS}
  return {**others, origin: flags}


def _check_names(
    raw: Mapping[str, Any], axes: Sequence[tables.Axis], place: str
):
  """Raises if something is said of cells that there are not."""
  for item in raw.get('cells') or ():
    for key, axis in zip(_NAMES, axes):
      known = [entry.name for entry in axis]
      for name in _as_list(item.get(key, [])):
        data_files.check_choice(name, known, f'{place}: {key}')


def build_cells(
    raw: Mapping[str, Any], path: pathlib.Path, axes: Sequence[tables.Axis]
) -> tuple[tables.Cell, ...]:
  """Returns the cells of a table.

  Their flags are, from the general to the special: those of the table, of the
  group, the column and the row, and their own.

  Args:
    raw: The data file.
    path: Where it is.
    axes: The groups, rows and columns.

  Raises:
    PublishedError: If a cell, a number or a table that is named does not exist,
      or a cell has no task.
  """
  paper, name = path.parent.name, path.stem
  place = f'{paper}/{name}'
  own = list(_read_own(raw, path))
  _check_names(raw, axes, f'{place}: cells')
  cells = []
  for group, row, column in itertools.product(*axes):
    key = (group.name, row.name, column.name)
    names = dict(zip(_NAMES, key))
    fitting = [
        item
        for item in own
        if all(n in _as_list(item.get(axis, n)) for axis, n in names.items())
    ]
    flags = [*given_flags.from_mapping(raw)]
    flags += [*group.flags, *column.flags, *row.flags]
    for item in fitting:
      flags += given_flags.from_mapping(item)
    cells.append(
        tables.Cell(
            paper,
            name,
            *key,
            flags=_substitute(flags, f'{place}: {key}'),
            note=' '.join(item['note'] for item in fitting if 'note' in item),
        )
    )
  return replace_numbers(raw, cells, axes, place)
