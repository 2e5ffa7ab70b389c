# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Numbers, times and tables as text, CSV and LaTeX."""

import collections
from collections.abc import Iterable, Mapping, Sequence
import decimal
import math
import pathlib
import re
from typing import Any, Optional

from tff_adaptive import _files

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


# A float represents every integer up to this one.
_MAX_INTEGER = 2**53


def write_csv(
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


def write_csv_rows(path: pathlib.Path, rows: Sequence[Mapping[str, Any]]):
  """Writes a CSV file of one or more rows by the names of the columns."""
  write_csv(path, list(rows[0]), (row.values() for row in rows))


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


_TABLE = r"""% Needs \usepackage{{booktabs}}. {comment}
\begin{{tabular}}{{{columns}}}
\toprule
{header} \\
\midrule
{rows}
\bottomrule
\end{{tabular}}
"""
_SPECIAL = {
    **{character: f'\\{character}' for character in '&%$#_{}'},
    '~': r'\textasciitilde{}',
    '^': r'\textasciicircum{}',
    '\\': r'\textbackslash{}',
    '±': r'$\pm$',
    # The usual encoding of fonts has other characters in their places.
    '<': r'\textless{}',
    '>': r'\textgreater{}',
    '|': r'\textbar{}',
    # At the beginning of a row, they would belong to the end of the one before.
    '[': '{[}',
    '*': '{*}',
}
_IS_SPECIAL = re.compile(f'[{re.escape("".join(_SPECIAL))}]')


def escape_latex(text: str) -> str:
  r"""Returns text in which LaTeX sees no commands.

  Example:

    >>> escape_latex('a_b: 97.5 ± 0.1 %')
    'a\\_b: 97.5 $\\pm$ 0.1 \\%'
  """
  line = ' '.join(text.split())
  return _IS_SPECIAL.sub(lambda match: _SPECIAL[match[0]], line)


def to_latex(
    header: Sequence[str], rows: Iterable[Sequence[str]], comment: str
) -> str:
  """Returns a table in the style of booktabs.

  Args:
    header: The names of the columns; the first one is left-aligned, the others
      are right-aligned.
    rows: The texts of the cells.
    comment: A sentence above the table, for whoever includes it.
  """
  to_line = lambda cells: ' & '.join(map(escape_latex, cells))
  return _TABLE.format(
      comment=' '.join(comment.split()),
      columns='l' + 'r' * (len(header) - 1),
      header=to_line(header),
      rows='\n'.join(f'{to_line(row)} \\\\' for row in rows),
  )
