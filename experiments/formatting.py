# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tables and times as text."""

import collections
from collections.abc import Iterable, Sequence
import decimal
import math
from typing import Optional

UNKNOWN = 'unknown'
# Numbers from here on, such as losses of runs that explode, have an exponent.
_LARGE = 1e6


def align(
    rows: Iterable[Sequence[str]], num_labels: int = 0, min_width: int = 8
) -> str:
  """Formats a table as text with aligned columns.

  Args:
    rows: The cells of each row.
    num_labels: The number of columns from the left that are left-aligned; the
      others are right-aligned. Default 0.
    min_width: The minimal width of a right-aligned column. Default 8.
  """
  rows = list(rows)
  widths = [max(map(len, column)) for column in zip(*rows)]
  return '\n'.join(
      '  '.join(
          cell.ljust(width)
          if i < num_labels
          else cell.rjust(max(width, min_width))
          for i, (cell, width) in enumerate(zip(row, widths))
      )
      for row in rows
  )


def format_seconds(seconds: Optional[float]) -> str:
  """Formats a time in its two largest units, with seconds rounded up.

  Args:
    seconds: The time; None or NaN if unknown.

  Returns:
    A text such as '45 s', '3 min 20 s', '2 h 5 min' or 'unknown'.

  Example:

    >>> format_seconds(199.5)
    '3 min 20 s'
  """
  if seconds is None or not math.isfinite(seconds):
    return UNKNOWN
  total = math.ceil(seconds)
  if total < 60:
    return f'{total} s'
  if total < 3600:
    return f'{total // 60} min {total % 60} s'
  return f'{total // 3600:,} h {total % 3600 // 60} min'


def count_decimals(numbers: Iterable[float], default: int) -> int:
  """Returns the most common number of decimals of numbers as they were typed.

  Args:
    numbers: The numbers.
    default: The answer without numbers.

  Example:

    >>> count_decimals([98.4, 97.85, 0.1], default=3)
    1
  """
  counts = collections.Counter(map(_count_decimals_of, numbers))
  return counts.most_common(1)[0][0] if counts else default


def _count_decimals_of(number: float) -> int:
  # Not from str(), which gives 1e-05 for a small number.
  return len(f'{decimal.Decimal(str(number)):f}'.partition('.')[2])


def format_number(number: float, decimals: int) -> str:
  """Returns a number with all its decimals, and at least `decimals`."""
  return f'{number:.{max(decimals, _count_decimals_of(number))}f}'


def format_metric(number: float, decimals: int) -> str:
  """Returns a measured number, with an exponent if it is very large.

  Args:
    number: The number.
    decimals: The number of decimals below a million.

  Example:

    >>> format_metric(0.5, 2), format_metric(5.7549e34, 4)
    ('0.50', '5.75e+34')
  """
  return f'{number:.2e}' if abs(number) >= _LARGE else f'{number:.{decimals}f}'


def format_mean(
    mean: Optional[float], std: Optional[float], decimals: int
) -> str:
  """Returns a mean and its spread.

  Args:
    mean: The mean; None without runs, NaN or infinite if a run diverged.
    std: The standard deviation; None or NaN for one run.
    decimals: The number of decimals.

  Returns:
    A text such as '98.4 ± 0.1', '98.4', 'diverged' or '-'.
  """
  if mean is None:
    return '-'
  if not math.isfinite(mean):
    return 'diverged'
  text = format_metric(mean, decimals)
  if std is None or math.isnan(std):
    return text
  return f'{text} ± {format_metric(std, decimals)}'
