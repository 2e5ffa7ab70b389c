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
"""Numbers and times of runs as text."""

from collections.abc import Iterable, Sequence
import csv
import io
import math
from typing import Any, Optional

# Up to this number a float holds every integer.
_MAX_INTEGER = 2**53


def format_value(value: Any) -> str:
  """Returns a field.

  Args:
    value: Anything; None, and what is not a number, for what was not measured.

  Returns:
    Ten digits of a float, all digits of one that is a whole number; empty for
    what was not measured.

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


def format_table(header: Sequence[str], rows: Iterable[Iterable[Any]]) -> str:
  """Returns the text of a file.

  Args:
    header: The names of the columns.
    rows: The values of the rows, see `format_value`.

  Returns:
    The text.
  """
  file = io.StringIO()
  writer = csv.writer(file, lineterminator='\n')
  writer.writerow(header)
  writer.writerows(map(format_value, row) for row in rows)
  return file.getvalue()


UNKNOWN = 'unknown'


def format_seconds(seconds: Optional[float]) -> str:
  """Returns a time in its two largest units, rounded up.

  Args:
    seconds: The time; None, or not a number, if it is not known.

  Returns:
    As '45 s', '3 min 20 s', '2 h 5 min' or 'unknown'.

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
