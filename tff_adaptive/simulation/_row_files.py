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
"""Files that are read row by row: CSV, and JSON lines."""

import abc
from collections.abc import Callable, Iterable, Iterator, Mapping
import csv
import gzip
import json
import math
import pathlib
from typing import Any

import numpy as np
import tensorflow as tf

from tff_adaptive.simulation import feature_arrays

_MAX_SHOWN = 8


def shown(names: Iterable[str]) -> str:
  """Returns the first of some names, to be part of a sentence.

  Args:
    names: The names; those beyond the eighth are only counted.
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
    """Returns the subject of a sentence about a line."""
    return f'{self.path}, line {line}'

  @abc.abstractmethod
  def rows(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yields the number of a row's last line, and the row by columns."""

  @abc.abstractmethod
  def value(self, row: Mapping[str, Any], name: str, line: int) -> Any:
    """Returns a feature of a row: a value, nested lists or an array."""


class CSVFile(RowFile):
  """A file with a header; an array takes a column for each of its values."""

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

  def rows(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
    # Spreadsheets put a mark in front of UTF-8, which is no part of a name.
    with open(self.path, encoding='utf-8-sig', newline='') as file:
      reader = csv.reader(file)
      header = next(reader, [])
      self._check_header(header)
      for cells in reader:
        if not cells:
          continue
        if len(cells) != len(header):
          raise ValueError(
              f'{self.where(reader.line_num)} has {len(cells)} cells, where '
              f'the header has {len(header)}; put double quotes around cells '
              'that hold commas.'
          )
        yield reader.line_num, dict(zip(header, cells))

  def value(self, row: Mapping[str, Any], name: str, line: int) -> Any:
    dtype = self.features[name].dtype
    parse = _cell_parser(dtype)
    try:
      cells = [parse(row[column]) for column in self._columns[name]]
    except ValueError as error:
      column, cell = self._first_bad_cell(row, name, parse)
      raise ValueError(
          f'{self.where(line)}: column {column!r} must hold values of type '
          f'{dtype.name}, found {cell!r}; correct the cell.'
      ) from error
    shape = self._shapes[name]
    if not shape:
      return cells[0]
    kind = np.object_ if dtype == tf.string else None
    return np.asarray(cells, kind).reshape(shape)

  def _check_header(self, header: Iterable[str]) -> None:
    found = set(header)
    for name, columns in self._columns.items():
      missing = [column for column in columns if column not in found]
      if missing:
        raise ValueError(
            f'{self.path} lacks the columns {shown(missing)} of feature '
            f'{name!r} with shape {self._shapes[name]}, found '
            f'{shown(header)}; add them, or rename them in the first line.'
        )

  def _first_bad_cell(
      self, row: Mapping[str, Any], name: str, parse: Callable[[str], Any]
  ) -> tuple[str, str]:
    for column in self._columns[name]:
      try:
        parse(row[column])
      except ValueError:
        return column, row[column]
    raise AssertionError('Some cell was found bad.')


class JSONLinesFile(RowFile):
  """A file with an object a line; an array is a nested list."""

  def rows(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
    opener: Any = gzip.open if self.path.suffix == '.gz' else open
    with opener(self.path, 'rt', encoding='utf-8') as file:
      for line, text in enumerate(file, start=1):
        if text.strip():
          yield line, self._parse(text, line)

  def value(self, row: Mapping[str, Any], name: str, line: int) -> Any:
    if name not in row:
      raise ValueError(
          f'{self.where(line)} has no {name!r}, found {shown(row)}; every '
          f'line must have {shown(self.features)}.'
      )
    return row[name]

  def _parse(self, text: str, line: int) -> Mapping[str, Any]:
    try:
      row = json.loads(text)
    except ValueError as error:
      raise ValueError(
          f'{self.where(line)} is not JSON ({error}); write one object a line.'
      ) from error
    if not isinstance(row, Mapping):
      raise ValueError(
          f'{self.where(line)} must be an object with the keys '
          f'{shown(self.features)}, found {text.strip()[:40]!r}.'
      )
    return row


def _cell_parser(dtype: tf.DType) -> Callable[[str], Any]:
  if dtype == tf.string:
    return str
  return float if dtype.is_floating else int
