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
"""Tables in files: npz, CSV and JSON lines, with an example a row."""

from collections.abc import Iterable, Mapping, Sequence
import csv
import pathlib
from typing import Any, Optional
import zipfile
import zlib

import attrs
import numpy as np

from tff_adaptive.simulation import _feature_conversion
from tff_adaptive.simulation import _row_files
from tff_adaptive.simulation import feature_arrays

SPLIT_KEY = 'split'
SUFFIXES = ('.npz', '.csv', '.jsonl', '.jsonl.gz')

# So many rows are converted at once, which takes far less time than one by one.
_BLOCK_ROWS = 1024
_DAMAGES = (
    EOFError,
    OSError,
    UnicodeDecodeError,
    csv.Error,
    zipfile.BadZipFile,
    zlib.error,
)


@attrs.frozen
class Table:
  """The rows of a file.

  Attributes:
    examples: The features that were asked for.
    client_ids: The client of every row; None where it was not asked for.
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
    split_name: Which rows: those whose 'split' it is. All of them if it is
      None, or if the file does not say of which split a row is.
    client_key: The column that says whose row it is, or None.

  Returns:
    The rows, in their order.

  Raises:
    ValueError: If the file is damaged, lacks a column or rows of that split, or
      a value is not as asked for; names the file, the row and the column.
  """
  if not path.stat().st_size:
    raise ValueError(f'{path} is empty; replace it by a good copy.')
  if path.name.endswith('.npz'):
    return _read_npz(path, features, split_name, client_key)
  kind = (
      _row_files.CSVFile
      if path.name.endswith('.csv')
      else _row_files.JSONLinesFile
  )
  return _read_rows(kind(path, features), split_name, client_key)


def _read_rows(
    file: _row_files.RowFile,
    split_name: Optional[str],
    client_key: Optional[str],
) -> Table:
  """Returns those rows of a file that are of a split."""
  blocks: list[feature_arrays.Examples] = []
  pending: dict[int, Mapping[str, Any]] = {}
  client_ids = []
  splits = set()
  try:
    for line, row in file.rows():
      if split_name is not None and SPLIT_KEY in row:
        splits.add(str(row[SPLIT_KEY]))
        if row[SPLIT_KEY] != split_name:
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
  examples = {
      name: np.concatenate([block[name] for block in blocks])
      for name in file.features
  }
  return Table(
      feature_arrays.as_examples(examples, str(file.path)),
      None if client_key is None else client_ids,
  )


def _convert_rows(
    file: _row_files.RowFile, rows: Mapping[int, Mapping[str, Any]]
) -> feature_arrays.Examples:
  """Returns rows, given by the numbers of their lines, as arrays."""

  def convert(lines: Sequence[int]) -> feature_arrays.Examples:
    return _feature_conversion.convert_examples(
        {name: [rows[line][name] for line in lines] for name in file.features},
        file.features,
        lambda example: file.where(lines[example or 0]),
    )

  lines = list(rows)
  try:
    return convert(lines)
  except ValueError:
    # Again one by one, to name the first line that is wrong.
    for line in lines:
      convert([line])
    raise


def _read_npz(
    path: pathlib.Path,
    features: feature_arrays.ElementSpec,
    split_name: Optional[str],
    client_key: Optional[str],
) -> Table:
  """Returns those rows of an archive of arrays that are of a split."""
  wanted = list(features) + ([] if client_key is None else [client_key])
  arrays = _load_arrays(path, wanted)
  _check_lengths(path, arrays)
  rows = np.arange(len(arrays[wanted[0]]))
  splits: set[str] = set()
  if split_name is not None and SPLIT_KEY in arrays:
    split_of_rows = _strings(path, SPLIT_KEY, arrays[SPLIT_KEY])
    splits = set(split_of_rows)
    rows = np.flatnonzero(np.asarray(split_of_rows) == split_name)
    arrays = {name: array[rows] for name, array in arrays.items()}
  if not len(rows):
    raise _no_rows(path, split_name, splits)
  return Table(
      _feature_conversion.convert_examples(
          arrays,
          features,
          lambda row: str(path) if row is None else f'{path}, row {rows[row]}',
      ),
      _strings(path, client_key, arrays[client_key]) if client_key else None,
  )


def _load_arrays(
    path: pathlib.Path, wanted: Iterable[str]
) -> dict[str, np.ndarray]:
  """Returns the wanted arrays of an archive, and the splits if there are."""
  try:
    # `np.load` takes a file that is no archive for one array, or a pickle.
    with open(path, 'rb') as file, zipfile.ZipFile(file) as archive:
      found = [name.removesuffix('.npy') for name in archive.namelist()]
    missing = [name for name in wanted if name not in found]
    if missing:
      raise ValueError(
          f'{path} lacks the arrays {_row_files.shown(missing)}, found '
          f'{_row_files.shown(found)}; add them, with a row an example.'
      )
    names = [*wanted, *([SPLIT_KEY] if SPLIT_KEY in found else [])]
    with np.load(path, allow_pickle=False) as archive:
      return {name: _load_array(path, name, archive) for name in names}
  except _DAMAGES as error:
    raise _damaged(path, error) from error


def _load_array(
    path: pathlib.Path, name: str, archive: Mapping[str, np.ndarray]
) -> np.ndarray:
  """Returns an array of an archive, of one dimension or more."""
  try:
    array = archive[name]
  except MemoryError:
    raise
  except Exception as error:  # pylint: disable=broad-exception-caught
    # Of zipfile, zlib, tokenize and NumPy, depending on the byte that is wrong.
    raise ValueError(
        f'{path}: array {name!r} could not be read ({error}); save strings as '
        'np.asarray(..., str), and replace a damaged file by a good copy.'
    ) from error
  if not array.ndim:
    raise ValueError(
        f'{path}: array {name!r} must have a row for each example, found the '
        f'single value {array}.'
    )
  return array


def _check_lengths(
    path: pathlib.Path, arrays: Mapping[str, np.ndarray]
) -> None:
  lengths = {name: len(array) for name, array in arrays.items()}
  if len(set(lengths.values())) > 1:
    raise ValueError(
        f'{path} must have equally many rows in every array, found {lengths}.'
    )


def _strings(path: pathlib.Path, key: str, array: np.ndarray) -> list[str]:
  """Returns the names that an array holds; integers are names, too."""
  if array.ndim != 1 or array.dtype.kind not in 'SUiu':
    raise ValueError(
        f'{path}: array {key!r} must hold a string for each row, found type '
        f'{array.dtype} and shape {list(array.shape)}.'
    )
  if array.dtype.kind == 'S':
    return [item.decode() for item in array.tolist()]
  return [str(item) for item in array.tolist()]


def _client_id(row: Mapping[str, Any], key: str, where: str) -> str:
  """Returns whose row it is; integers are names, too."""
  if key not in row:
    raise ValueError(
        f'{where} lacks {key!r}, which says whose row it is, found '
        f'{_row_files.shown(row)}; add it to every row.'
    )
  value = row[key]
  if (
      isinstance(value, bool)
      or not isinstance(value, (int, str))
      or value == ''
  ):
    raise ValueError(
        f'{where}: {key!r} must be a string that says whose row it is, found '
        f'{value!r}.'
    )
  return str(value)


def _damaged(path: pathlib.Path, error: BaseException) -> ValueError:
  reason = str(error) or type(error).__name__
  return ValueError(
      f'{path} could not be read ({reason}); replace it by a good copy.'
  )


def _no_rows(
    path: pathlib.Path, split_name: Optional[str], splits: Iterable[str]
) -> ValueError:
  if splits:
    return ValueError(
        f'{path} has no split {split_name!r}; it has '
        f'{_row_files.shown(sorted(splits))}.'
    )
  return ValueError(f'{path} has no rows; it must have a row for each example.')
