# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads the rows of CSV and JSON lines files."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
import gzip
import json
import math
import pathlib
import re
from typing import Any, TYPE_CHECKING

import numpy as np

from tff_adaptive import _files
from tff_adaptive.data import feature_arrays

if TYPE_CHECKING:
  import tensorflow as tf

# Some programs write a byte order mark, which is no part of the text.
_ENCODING = 'utf-8-sig'
_MARK = '\ufeff'
# The end of a whole number that is written as a float, as in `1.0`.
_WHOLE_END = re.compile(r'\.0*\s*$')
_LINE_END = re.compile('\r\n|\r|\n')
_MAX_SHOWN = 8
_BOOLS = {'true': True, '1': True, 'false': False, '0': False}


def shown(names: Iterable[str]) -> str:
  """Returns the first of some names as a part of a sentence.

  Args:
    names: The names; names after the eighth are only counted.
  """
  parts = [repr(name) for name in names]
  if len(parts) > _MAX_SHOWN:
    parts[_MAX_SHOWN:] = [f'{len(parts) - _MAX_SHOWN} more']
  return ', '.join(parts) or 'none'


class RowFile(abc.ABC):
  """A file that is read row by row."""

  def __init__(self, path: pathlib.Path, features: feature_arrays.ElementSpec):
    self.path = path
    self.features = features

  def where(self, line: int) -> str:
    """Returns the subject of a message about a line."""
    return f'{self.path}, line {line}'

  @abc.abstractmethod
  def rows(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yields each row by column, with the number of its last line."""

  @abc.abstractmethod
  def value(self, row: Mapping[str, Any], name: str, line: int) -> Any:
    """Returns a feature of a row: a value, nested lists or an array."""


class CSVFile(RowFile):
  """A CSV file with a header; an array has a column for each value."""

  def __init__(self, path: pathlib.Path, features: feature_arrays.ElementSpec):
    super().__init__(path, features)
    self._shapes = {n: spec.shape.as_list() for n, spec in features.items()}
    self._columns = {
        name: (
            [f'{name}_{i}' for i in range(math.prod(shape))]
            if shape
            else [name]
        )
        for name, shape in self._shapes.items()
    }
    self._types = {n: _type_of(spec.dtype) for n, spec in features.items()}
    # Of the columns, without those that no feature has.
    self._type_of_column = {
        column: self._types[name]
        for name, columns in self._columns.items()
        for column in columns
    }

  def rows(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
    with open(self.path, encoding=_ENCODING, newline='') as file:
      try:
        rows = _files.parse_csv(file)
        last, header = next(rows, (0, []))
        self._check_header(header)
        for line, cells in rows:
          self._check_cells(cells, header, line)
          if line > last + 1:  # After empty lines, or with a cell of several.
            self._check_several_lines(cells, header, line)
          last = line
          yield line, dict(zip(header, cells))
      except _files.DamagedCSVError as error:
        raise ValueError(
            f'{self.where(error.line_num)} cannot be split into cells: '
            f'{error}; remove a stray quote, or write a quote within a quoted '
            'cell twice.'
        ) from error

  def value(self, row: Mapping[str, Any], name: str, line: int) -> Any:
    kind = self._types[name]
    columns = self._columns[name]
    try:
      cells = _parse([row[column] for column in columns], kind)
    except ValueError as error:
      bad = next(c for c in columns if not _is_parsed(row[c], kind))
      raise ValueError(
          f'{self.where(line)}: column {bad!r} must hold values of type '
          f'{self.features[name].dtype.name}, found {row[bad]!r}; correct the '
          'cell.'
      ) from error
    shape = self._shapes[name]
    if not shape:
      return cells[0]
    # As objects, integers of 64 bits stay exact.
    if kind is float:
      return np.asarray(cells).reshape(shape)
    return np.asarray(cells, np.object_).reshape(shape).tolist()

  def _check_cells(
      self, cells: Sequence[str], header: Sequence[str], line: int
  ) -> None:
    """Raises unless a row fits the header, and is not where files join."""
    if len(cells) != len(header):
      raise ValueError(
          f'{self.where(line)} has {len(cells)} cells, where the header has '
          f'{len(header)}; put double quotes around cells that hold commas.'
      )
    is_text = self._type_of_column.get(header[0]) is str
    has_mark = cells[0].startswith(_MARK) and not is_text
    if has_mark or (cells == header and len(cells) > 1):
      raise ValueError(
          f'{self.where(line)} begins another file, with a header or a byte '
          'order mark of its own; remove what files must have only once.'
      )

  def _check_several_lines(
      self, cells: Sequence[str], header: Sequence[str], last: int
  ) -> None:
    """Raises if a cell of several lines has swallowed rows.

    A stray quote that opens a cell and one that closes it are correct CSV, but
    lines that read as rows, with numbers in the right columns, give them away.
    """
    for place, cell in enumerate(cells):
      lines = _LINE_END.split(cell)
      for i, text in enumerate(lines if len(lines) > 1 else ()):
        start = 0 if i else place
        after = cells[place + 1 :] if i == len(lines) - 1 else []
        swallowed = text.split(',')
        row = [*cells[:start], *swallowed, *after]
        if len(row) == len(header) and self._has_numbers(
            dict(zip(header, row)), header[start : start + len(swallowed)]
        ):
          raise ValueError(
              f'{self.where(last)} ends a quoted cell of {len(lines)} lines, '
              f'of which {text[:40]!r} reads as a row of its own; remove the '
              'stray quotes, or use JSON lines if the cell is meant so.'
          )

  def _has_numbers(self, row: Mapping[str, str], inside: Iterable[str]) -> bool:
    """Returns whether a row has its numbers, some of them in some columns."""
    kinds = self._type_of_column
    return any(kinds.get(column, str) is not str for column in inside) and all(
        _is_parsed(row[column], kind) for column, kind in kinds.items()
    )

  def _check_header(self, header: Sequence[str]) -> None:
    found = set(header)
    repeated = sorted(name for name in found if header.count(name) > 1)
    if repeated:
      raise ValueError(
          f'{self.path} has several columns {shown(repeated)}; give each its '
          'own name in the first line.'
      )
    is_one_cell = len(header) == 1 and re.search('[;\t]', header[0])
    advice = 'add them, or rename them in the first line'
    if any('\0' in name for name in header):
      advice = 'save the file as UTF-8, which seems to be UTF-16'
    elif is_one_cell:
      advice = 'separate the cells of all lines by commas'
    for name, columns in self._columns.items():
      missing = [column for column in columns if column not in found]
      if missing:
        raise ValueError(
            f'{self.path} lacks the columns {shown(missing)} of feature '
            f'{name!r} with shape {self._shapes[name]}, found '
            f'{shown(header)}; {advice}.'
        )
      beyond = f'{name}_{len(columns)}'
      if self._shapes[name] and beyond in found:
        raise ValueError(
            f'{self.path} has the column {beyond!r} beyond the shape '
            f'{self._shapes[name]} of feature {name!r}; correct the shape.'
        )


class JSONLinesFile(RowFile):
  """A JSON lines file with one object per line; arrays are nested lists."""

  def __init__(self, path: pathlib.Path, features: feature_arrays.ElementSpec):
    super().__init__(path, features)
    self._text = ''  # The line that was read last.
    self._floats = {n for n, spec in features.items() if spec.dtype.is_floating}

  def rows(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
    opener: Any = gzip.open if self.path.suffix == '.gz' else open
    with opener(self.path, 'rt', encoding=_ENCODING) as file:
      for line, text in enumerate(file, start=1):
        if text.strip():
          yield line, self._parse(text, line)

  def value(self, row: Mapping[str, Any], name: str, line: int) -> Any:
    if name not in row:
      raise ValueError(
          f'{self.where(line)} has no {name!r}, found {shown(row)}; every '
          f'line must have {shown(self.features)}.'
      )
    value = row[name]
    if (
        name in self._floats
        and _has_infinity(value)
        and 'Infinity' not in self._text
    ):
      raise ValueError(
          f'{self.where(line)}: feature {name!r} has a number that a float of '
          '64 bits cannot hold; correct or scale it.'
      )
    return value

  def _parse(self, text: str, line: int) -> Mapping[str, Any]:
    self._text = text
    try:
      row = json.loads(text, object_pairs_hook=_files.to_object)
    except _files.RepeatedKeyError as error:
      raise ValueError(
          f'{self.where(line)} has {error}; keep the right value.'
      ) from error
    except (ValueError, RecursionError) as error:
      raise ValueError(
          f'{self.where(line)} is not JSON ({error}); write one object per'
          ' line.'
      ) from error
    if not isinstance(row, Mapping):
      raise ValueError(
          f'{self.where(line)} must be an object with the keys '
          f'{shown(self.features)}, found {text.strip()[:40]!r}.'
      )
    return row


def _to_bool(cell: str) -> bool:
  """Returns the value of a cell; a ValueError if it has none."""
  if cell.strip().lower() not in _BOOLS:
    raise ValueError(f'{cell} is no boolean.')
  return _BOOLS[cell.strip().lower()]


def _to_int(cell: str) -> int:
  """Returns the whole number of a cell; a ValueError if it has none."""
  try:
    return int(cell)
  except ValueError:
    return int(_WHOLE_END.sub('', cell))


def _type_of(dtype: tf.DType) -> Callable[[str], Any]:
  """Returns the function with which cells are read."""
  if dtype.name == 'string':
    return str
  if dtype.is_bool:
    return _to_bool
  if dtype.is_floating:
    return float
  return int if dtype.is_unsigned else _to_int  # See `conversion.convert`.


def _parse(cells: list[str], kind: Callable[[str], Any]) -> list[Any]:
  """Returns the values of cells; a ValueError if one is no number."""
  if kind is str:
    return cells
  values = list(map(kind, cells))
  if '_' in ''.join(cells):  # Python reads 1_0 as 10.
    raise ValueError('A number has an underscore.')
  if _has_infinity(values):
    for value, cell in zip(values, cells):
      if math.isinf(value) and 'inf' not in cell.lower():
        raise ValueError(f'{cell} has more than 64 bits.')
  return values


def _is_parsed(cell: str, kind: Callable[[str], Any]) -> bool:
  try:
    _parse([cell], kind)
  except ValueError:
    return False
  return True


def _has_infinity(value: Any) -> bool:
  """Returns whether a number, or one of nested lists, is infinite."""
  if not isinstance(value, list):
    return value in (math.inf, -math.inf)
  if value and isinstance(value[0], list):
    return any(map(_has_infinity, value))
  return math.inf in value or -math.inf in value
