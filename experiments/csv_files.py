# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""CSV files of results."""

from collections.abc import Iterable, Mapping, Sequence
import math
import pathlib
from typing import Any

from tff_adaptive import _files

# A float represents every integer up to this one.
_MAX_INTEGER = 2**53


def write(
    path: pathlib.Path, header: Sequence[str], rows: Iterable[Iterable[Any]]
):
  """Writes a CSV file; see `format_value`.

  Args:
    path: The file.
    header: The names of the columns.
    rows: The values of the rows.

  Raises:
    OSError: If the file cannot be written.
  """
  lines = [header, *([format_value(v) for v in row] for row in rows)]
  _files.write(path, _files.to_csv(lines))


def write_rows(path: pathlib.Path, rows: Sequence[Mapping[str, Any]]):
  """Writes a CSV file of one or more rows by the names of the columns."""
  write(path, list(rows[0]), (row.values() for row in rows))


def format_value(value: Any) -> str:
  """Formats a value for a CSV file.

  Args:
    value: The value; None and NaN stand for missing values.

  Returns:
    Ten digits for a float, all digits for a whole number; empty for a missing
    value.

  Example:

    >>> format_value(0.1 + 0.2), format_value(3.0), format_value(math.nan)
    ('0.3', '3', '')
  """
  if value is None:
    return ''
  if not isinstance(value, float):
    return str(value)
  if math.isnan(value):
    return ''
  is_whole = value.is_integer() and abs(value) <= _MAX_INTEGER
  return str(int(value)) if is_whole else f'{value:.10g}'
