# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads npz, CSV and JSON lines files with one example per row."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
import csv
import gzip
import json
import math
import pathlib
from typing import Any, Optional, TYPE_CHECKING
import zlib

import attrs
import numpy as np

from tff_adaptive import _files
from tff_adaptive.data import feature_arrays
from tff_adaptive.data import npz_files

if TYPE_CHECKING:
  import tensorflow as tf

_SPLIT_KEY = 'split'
SUFFIXES = ('.npz', '.csv', '.jsonl', '.jsonl.gz')

# Some programs write a byte order mark, which is no part of the text.
_ENCODING = 'utf-8-sig'
# Rows converted at once, which takes far less time than one by one.
_BLOCK_ROWS = 1024
_DAMAGES = (
    EOFError,
    OSError,
    UnicodeDecodeError,
    csv.Error,
    zlib.error,
)


@attrs.frozen
class Table:
  """The rows of a file.

  Attributes:
    examples: The requested features.
    client_ids: The client of each row; None if not requested.
  """

  examples: feature_arrays.Examples
  client_ids: Optional[list[str]]


def read_table(
    path: pathlib.Path,
    features: feature_arrays.ElementSpec,
    *,
    split_name: Optional[str],
    client_key: Optional[str],
) -> Table:
  """Reads the rows of a file.

  Args:
    path: A file that ends in one of `SUFFIXES`.
    features: Feature names and the `tf.TensorSpec` of one example, of fixed
      shape.
    split_name: Selects the rows whose 'split' it is; None for all rows.
    client_key: The column with the client ids, or None.

  Returns:
    The rows, in order.

  Raises:
    ValueError: If the file is damaged, lacks a column or rows of that split,
      a row has no split, or a value has a wrong type; names the file, the row
      and the column.
  """
  if not path.stat().st_size:
    raise ValueError(f'{path} is empty; replace it by an intact copy.')
  _files.check_readable(path)
  if path.name.endswith('.npz'):
    return _read_npz(path, features, split_name, client_key)
  kind = _CSVFile if path.name.endswith('.csv') else _JSONLinesFile
  return _read_rows(kind(path, features), split_name, client_key)


def _read_rows(
    file: _RowFile,
    split_name: Optional[str],
    client_key: Optional[str],
) -> Table:
  """Returns the rows of a file that belong to a split."""
  blocks: list[feature_arrays.Examples] = []
  pending: dict[int, Mapping[str, Any]] = {}
  client_ids = []
  splits = set()
  try:
    for line, row in file.rows():
      if split_name is not None:
        if _SPLIT_KEY not in row:
          raise _no_splits(file.where(line))
        splits.add(str(row[_SPLIT_KEY]))
        if str(row[_SPLIT_KEY]) != split_name:
          continue
      if client_key is not None:
        client_ids.append(_client_id(row, client_key, file.where(line)))
      pending[line] = {n: file.value(row, n, line) for n in file.features}
      if len(pending) == _BLOCK_ROWS:
        blocks.append(_convert_rows(file, pending))
        pending.clear()
  except _DAMAGES as error:
    raise _damaged(file.path, error) from error
  if pending:
    blocks.append(_convert_rows(file, pending))
  if not blocks:
    raise _no_rows(file.path, split_name, splits)
  examples = feature_arrays.concatenate(blocks, file.features)
  return Table(
      feature_arrays.as_examples(examples, str(file.path)),
      None if client_key is None else client_ids,
  )


def _no_splits(where: str) -> ValueError:
  return ValueError(
      f'{where} has no {_SPLIT_KEY!r}, by which `split_name` selects rows; add '
      'it, or leave out `split_name` to read all rows.'
  )


def _convert_rows(
    file: _RowFile, rows: Mapping[int, Mapping[str, Any]]
) -> feature_arrays.Examples:
  """Converts rows, given by line number, to arrays."""

  def convert(lines: Sequence[int]) -> feature_arrays.Examples:
    return feature_arrays.convert_examples(
        {name: [rows[line][name] for line in lines] for name in file.features},
        file.features,
        lambda example: file.where(lines[example or 0]),
    )

  lines = list(rows)
  try:
    return convert(lines)
  except ValueError:
    # Repeats the conversion line by line, to name the first wrong line.
    for line in lines:
      convert([line])
    raise


def _read_npz(
    path: pathlib.Path,
    features: feature_arrays.ElementSpec,
    split_name: Optional[str],
    client_key: Optional[str],
) -> Table:
  """Returns the rows of an npz file that belong to a split."""
  wanted = list(features) + ([] if client_key is None else [client_key])
  arrays = _load_arrays(path, wanted)
  rows = np.arange(len(arrays[wanted[0]]))
  splits: set[str] = set()
  if split_name is not None:
    if _SPLIT_KEY not in arrays:
      raise _no_splits(str(path))
    split_of_rows = _strings(path, _SPLIT_KEY, arrays[_SPLIT_KEY])
    splits = set(split_of_rows)
    rows = np.flatnonzero(np.asarray(split_of_rows) == split_name)
    arrays = {name: array[rows] for name, array in arrays.items()}
  if not len(rows):
    raise _no_rows(path, split_name, splits)
  return Table(
      feature_arrays.convert_examples(
          arrays,
          features,
          lambda row: str(path) if row is None else f'{path}, row {rows[row]}',
      ),
      _strings(path, client_key, arrays[client_key]) if client_key else None,
  )


def _load_arrays(
    path: pathlib.Path, wanted: Iterable[str]
) -> dict[str, np.ndarray]:
  """Returns the wanted arrays of an archive, and the splits if it has any."""
  try:
    found = npz_files.read_names(path)
    missing = [name for name in wanted if name not in found]
    if missing:
      raise ValueError(
          f'{path} lacks the arrays {shown(missing)}, found '
          f'{shown(found)}; add them, with one row per example.'
      )
    names = [*wanted, *([_SPLIT_KEY] if _SPLIT_KEY in found else [])]
    arrays = npz_files.read(path, names)
  except npz_files.DamagedNpzError as error:
    if error.array is None:
      raise _damaged(path, error) from error
    raise ValueError(
        f'{path}: array {error.array!r} could not be read ({error}); save '
        'strings as np.asarray(..., str), and replace a damaged file by an '
        'intact copy.'
    ) from error
  except _DAMAGES as error:
    raise _damaged(path, error) from error
  for name, array in arrays.items():
    if not array.ndim:
      raise ValueError(
          f'{path}: array {name!r} must have a row for each example, found the '
          f'single value {array}.'
      )
  lengths = {name: len(array) for name, array in arrays.items()}
  if len(set(lengths.values())) > 1:
    raise ValueError(
        f'{path} must have the same number of rows in every array, found '
        f'{lengths}.'
    )
  return arrays


def _strings(path: pathlib.Path, key: str, array: np.ndarray) -> list[str]:
  """Returns the names in an array, of strings or integers."""
  if array.ndim != 1 or array.dtype.kind not in 'SUiu':
    raise ValueError(
        f'{path}: array {key!r} must hold a string for each row, found type '
        f'{array.dtype} and shape {list(array.shape)}.'
    )
  if array.dtype.kind == 'S':
    try:
      return [item.decode() for item in array.tolist()]
    except UnicodeDecodeError as error:
      raise ValueError(
          f'{path}: array {key!r} must hold UTF-8 strings ({error}); save them '
          'as np.asarray(..., str).'
      ) from error
  return [str(item) for item in array.tolist()]


def _client_id(row: Mapping[str, Any], key: str, where: str) -> str:
  """Returns a row's client id, a string or an integer."""
  if key not in row:
    raise ValueError(
        f'{where} lacks the client id {key!r}, found {shown(row)}; add it to '
        'every row, or name another column by `client_key`.'
    )
  value = row[key]
  if (
      isinstance(value, bool)
      or not isinstance(value, (int, str))
      or value == ''
  ):
    raise ValueError(
        f'{where}: the client id {key!r} must be a string, found {value!r}.'
    )
  return str(value)


def _damaged(path: pathlib.Path, error: BaseException) -> ValueError:
  reason = str(error) or type(error).__name__
  return ValueError(
      f'{path} could not be read ({reason}); replace it by an intact copy.'
  )


def _no_rows(
    path: pathlib.Path, split_name: Optional[str], splits: Iterable[str]
) -> ValueError:
  if splits:
    return ValueError(
        f'{path} has no split {split_name!r}; it has '
        f'{shown(sorted(splits))}.'
    )
  return ValueError(f'{path} has no rows; it must have a row for each example.')


_MAX_SHOWN = 8


def shown(names: Iterable[str]) -> str:
  """Returns the first of some names as a part of a sentence.

  Args:
    names: The names; names after the eighth are only counted.
  """
  parts = [repr(name) for name in names]
  if len(parts) > _MAX_SHOWN:
    parts[_MAX_SHOWN:] = [f'{len(parts) - _MAX_SHOWN} more']
  return ', '.join(parts) or 'none'


class _RowFile(abc.ABC):
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


class _CSVFile(_RowFile):
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

  def rows(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
    with open(self.path, encoding=_ENCODING, newline='') as file:
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
    cells = []
    for column in self._columns[name]:
      try:
        cells.append(parse(row[column]))
      except ValueError as error:
        raise ValueError(
            f'{self.where(line)}: column {column!r} must hold values of type '
            f'{dtype.name}, found {row[column]!r}; correct the cell.'
        ) from error
    shape = self._shapes[name]
    if not shape:
      return cells[0]
    kind = np.object_ if dtype.name == 'string' else None
    return np.asarray(cells, kind).reshape(shape)

  def _check_header(self, header: Sequence[str]) -> None:
    found = set(header)
    repeated = sorted(name for name in found if header.count(name) > 1)
    if repeated:
      raise ValueError(
          f'{self.path} has several columns {shown(repeated)}; give each its '
          'own name in the first line.'
      )
    for name, columns in self._columns.items():
      missing = [column for column in columns if column not in found]
      if missing:
        raise ValueError(
            f'{self.path} lacks the columns {shown(missing)} of feature '
            f'{name!r} with shape {self._shapes[name]}, found '
            f'{shown(header)}; add them, or rename them in the first line.'
        )
      beyond = f'{name}_{len(columns)}'
      if self._shapes[name] and beyond in found:
        raise ValueError(
            f'{self.path} has the column {beyond!r} beyond the shape '
            f'{self._shapes[name]} of feature {name!r}; correct the shape.'
        )


class _JSONLinesFile(_RowFile):
  """A JSON lines file with one object per line; arrays are nested lists."""

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
    return row[name]

  def _parse(self, text: str, line: int) -> Mapping[str, Any]:
    try:
      row = json.loads(text)
    except ValueError as error:
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


def _cell_parser(dtype: tf.DType) -> Callable[[str], Any]:
  if dtype.name == 'string':
    return str
  return float if dtype.is_floating else int
