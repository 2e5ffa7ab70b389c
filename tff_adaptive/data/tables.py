# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads npz, CSV and JSON lines files with one example per row."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Mapping, Sequence
import pathlib
from typing import Any, Optional
import zlib

import attrs
import numpy as np

from tff_adaptive import _files
from tff_adaptive.data import conversion
from tff_adaptive.data import feature_arrays
from tff_adaptive.data import npz_files
from tff_adaptive.data import row_files
from tff_adaptive.data import specs as specs_lib

_SPLIT_KEY = 'split'
SUFFIXES = ('.npz', '.csv', '.jsonl', '.jsonl.gz')

# Rows converted at once, which takes far less time than one by one.
_BLOCK_ROWS = 1024
_DAMAGES = (
    EOFError,
    OSError,
    UnicodeDecodeError,
    zlib.error,
)

# The first bytes of texts in other encodings; that of UTF-16 begins another.
_OTHER_MARKS = {
    codecs.BOM_UTF32_LE: 'UTF-32',
    codecs.BOM_UTF32_BE: 'UTF-32',
    codecs.BOM_UTF16_LE: 'UTF-16',
    codecs.BOM_UTF16_BE: 'UTF-16',
}


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
    needs_split: bool = True,
) -> Table:
  """Reads the rows of a file.

  Args:
    path: A file that ends in one of `SUFFIXES`.
    features: Feature names and the `tf.TensorSpec` of one example, of fixed
      shape.
    split_name: Selects the rows whose 'split' it is; None for all rows.
    client_key: The column with the client ids, or None.
    needs_split: Whether to refuse a file without splits if `split_name` is
      given; otherwise all its rows are read.

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
    return _read_npz(path, features, split_name, client_key, needs_split)
  kind = (
      row_files.CSVFile
      if path.name.endswith('.csv')
      else row_files.JSONLinesFile
  )
  return _read_rows(kind(path, features), split_name, client_key, needs_split)


def _read_rows(
    file: row_files.RowFile,
    split_name: Optional[str],
    client_key: Optional[str],
    needs_split: bool,
) -> Table:
  """Returns the rows of a file that belong to a split."""
  blocks: list[feature_arrays.Examples] = []
  pending: dict[int, Mapping[str, Any]] = {}
  client_ids = []
  splits = set()
  line_without_split = None
  try:
    for line, row in file.rows():
      if split_name is not None:
        if _SPLIT_KEY in row:
          splits.add(str(row[_SPLIT_KEY]))
        else:
          line_without_split = line
        if line_without_split and (needs_split or splits):
          raise _no_splits(file.where(line_without_split))
        if str(row.get(_SPLIT_KEY, split_name)) != split_name:
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
    file: row_files.RowFile, rows: Mapping[int, Mapping[str, Any]]
) -> feature_arrays.Examples:
  """Converts rows, given by line number, to arrays."""

  def convert(lines: Sequence[int]) -> feature_arrays.Examples:
    return conversion.convert_examples(
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
    needs_split: bool,
) -> Table:
  """Returns the rows of an npz file that belong to a split."""
  wanted = list(features) + ([] if client_key is None else [client_key])
  arrays = _load_arrays(path, wanted)
  rows = np.arange(len(arrays[wanted[0]]))
  splits: set[str] = set()
  if split_name is not None and (needs_split or _SPLIT_KEY in arrays):
    if _SPLIT_KEY not in arrays:
      raise _no_splits(str(path))
    split_of_rows = _strings(path, _SPLIT_KEY, arrays[_SPLIT_KEY])
    splits = set(split_of_rows)
    rows = np.flatnonzero(np.asarray(split_of_rows) == split_name)
    arrays = {name: array[rows] for name, array in arrays.items()}
  if not len(rows):
    raise _no_rows(path, split_name, splits)
  return Table(
      conversion.convert_examples(
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
      advice = (
          'that is the layout of a file of a task, such as `tasks.mnist` or '
          '`tasks.NpzData`; here every array has one row per example'
          if 'x_train' in found
          else 'add them, with one row per example'
      )
      raise ValueError(
          f'{path} lacks the arrays {row_files.shown(missing)}, found '
          f'{row_files.shown(found)}; {advice}.'
      )
    names = [*wanted, *([_SPLIT_KEY] if _SPLIT_KEY in found else [])]
    arrays = npz_files.read(path, names)
  except npz_files.DamagedNpzError as error:
    raise ValueError(error.describe(path)) from error
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
        f'{where} lacks the client id {key!r}, found {row_files.shown(row)}; '
        'add it to every row, or name another column by `client_key`.'
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
  text = str(value)
  if not specs_lib.is_encodable(text):
    raise ValueError(
        f'{where}: the client id {key!r} must be text, found {value!r} with '
        'half of a surrogate pair.'
    )
  return text


def _damaged(path: pathlib.Path, error: BaseException) -> ValueError:
  reason = str(error) or type(error).__name__
  advice = ''
  if isinstance(error, UnicodeDecodeError):
    advice = 'save it as UTF-8, or '
    for mark, encoding in _OTHER_MARKS.items():
      if error.start <= 2 and error.object.startswith(mark):
        return ValueError(
            f'{path} must be UTF-8 text, but its byte order mark is that of '
            f'{encoding}; save it as UTF-8, in a spreadsheet as "CSV UTF-8".'
        )
  return ValueError(
      f'{path} could not be read ({reason}); {advice}replace it by an intact '
      'copy.'
  )


def _no_rows(
    path: pathlib.Path, split_name: Optional[str], splits: Iterable[str]
) -> ValueError:
  if splits:
    return ValueError(
        f'{path} has no split {split_name!r}; it has '
        f'{row_files.shown(sorted(splits))}.'
    )
  return ValueError(f'{path} has no rows; it must have a row for each example.')
