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
"""How the numbers of a column compare: gaps to the best, places, shares.

No TensorFlow is imported here.
"""

from collections.abc import Collection, Mapping
import dataclasses
import math
from typing import Optional

# By group, row and column; None where nothing was measured or printed, not a
# number where a run diverged.
Numbers = Mapping[tuple[str, str, str], Optional[float]]

# In points of percent, as the Delta-SGD paper marks its tables.
_CLOSE = 0.5
_FAR = 2.0
_DIGITS = 9  # What decimal fractions lose in binary is beyond them.


@dataclasses.dataclass(frozen=True)
class Standing:
  """How a number stands in its column.

  Attributes:
    gap: How far it is from the best, 0 or more.
    place: 1 for the best; one more than the numbers that are better.
    is_close: Whether it is the best or within 0.5 of it.
    is_far: Whether it is more than 2 behind.
  """

  gap: float
  place: int
  is_close: bool
  is_far: bool


def is_number(value: Optional[float]) -> bool:
  """Returns whether a value can be compared."""
  return value is not None and math.isfinite(value)


def rank(
    numbers: Numbers, *, lower_is_better: Collection[tuple[str, str]] = ()
) -> dict[tuple[str, str, str], Standing]:
  """Compares every number with those of its column within its group.

  Equal numbers share a place, the better one: of 3, 3 and 1 two are first and
  one is third.

  Args:
    numbers: The numbers.
    lower_is_better: The groups and columns whose smallest number is the best.
      Defaults to none.

  Returns:
    The standings of what are numbers, by the same keys.

  Example:

    >>> rank({('', 'SGD', 'MNIST'): 98.3, ('', 'SPS', 'MNIST'): 10.1})[
    ...     '', 'SPS', 'MNIST']
    Standing(gap=88.2, place=2, is_close=False, is_far=True)
  """
  # Of every column the numbers as losses: the smallest is the best.
  losses = {
      key: value if (key[0], key[2]) in lower_is_better else -value
      for key, value in numbers.items()
      if value is not None and math.isfinite(value)
  }
  columns: dict[tuple[str, str], list[float]] = {}
  for (group, _, column), loss in losses.items():
    columns.setdefault((group, column), []).append(loss)
  standings = {}
  for (group, row, column), loss in losses.items():
    behind = [round(loss - other, _DIGITS) for other in columns[group, column]]
    standings[group, row, column] = Standing(
        gap=max(behind),
        place=1 + sum(gap > 0 for gap in behind),
        is_close=max(behind) <= _CLOSE,
        is_far=max(behind) > _FAR,
    )
  return standings


def share_of_places(
    numbers: Numbers,
    row: str,
    max_place: int,
    *,
    lower_is_better: Collection[tuple[str, str]] = (),
) -> Optional[float]:
  """Returns in which part of the columns a row has one of the first places.

  A column counts once in every group, and only where the row was run and
  another row was, too; where the row diverged, it has none of the places. A tie
  counts for the row: in Delta-SGD's Table 1, 98.1 of Delta-SGD and of SGD are
  both first, and 98.4 of Delta-SGD is second behind 98.5, though SGDM(down) has
  it, too. Only so the numbers of that table give the 73 % and 100 % that its
  authors state.

  Args:
    numbers: The numbers.
    row: The name of the row.
    max_place: The last place that counts: 1 for 'first', 2 for 'first or
      second'.
    lower_is_better: The groups and columns whose smallest number is the best.
      Defaults to none.

  Returns:
    The share, from 0 to 1; None if there is nothing to compare.

  References:
    Kim et al., Adaptive Federated Learning with Auto-Tuned Clients, ICLR 2024,
    https://arxiv.org/abs/2306.11201, Table 1.
  """
  standings = rank(numbers, lower_is_better=lower_is_better)
  keys = [
      (group, name, column)
      for (group, name, column), number in numbers.items()
      if name == row
      and number is not None
      and _has_rival(numbers, group, row, column)
  ]
  if not keys:
    return None
  places = [standings[key].place for key in keys if key in standings]
  return sum(place <= max_place for place in places) / len(keys)


def _has_rival(numbers: Numbers, group: str, row: str, column: str) -> bool:
  """Returns whether another row was run in a column of a group."""
  return any(
      g == group and c == column and r != row and number is not None
      for (g, r, c), number in numbers.items()
  )
