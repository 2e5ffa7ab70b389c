# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rules for ops on a table of which only some rows are kept.

The other rows are not computed; the rules tell their value. For them, received
weights and factors count as finite: rows that are not finite are always kept,
and a factor that is not finite makes the kept rows not finite, too.
"""

from collections.abc import Callable, Mapping
import enum
import functools
from typing import NamedTuple, Optional


class Rest(enum.Enum):
  """The value of a tensor in the rows that are not kept.

  Attributes:
    RECEIVED: That of the table as received.
    ZERO: Zero.
    TRUE: True.
    SHARED: The same in all rows, also in those that are kept, and unknown. This
      is the case for operands that are broadcast to the rows.
  """

  RECEIVED = enum.auto()
  ZERO = enum.auto()
  TRUE = enum.auto()
  SHARED = enum.auto()


class Rows(NamedTuple):
  """A tensor with a row for each row of a table, of which only some are kept.

  Attributes:
    table: The table.
    rest: The value of the other rows.
  """

  table: int
  rest: Rest = Rest.RECEIVED


def _add(a: Rest, b: Rest) -> Optional[Rest]:
  if Rest.SHARED in (a, b):
    return None
  if b is Rest.ZERO:
    return a
  return b if a is Rest.ZERO else None


def _subtract(a: Rest, b: Rest) -> Optional[Rest]:
  if a is b is Rest.RECEIVED:
    return Rest.ZERO
  return a if b is Rest.ZERO and a is not Rest.SHARED else None


def _multiply(a: Rest, b: Rest) -> Optional[Rest]:
  return Rest.ZERO if Rest.ZERO in (a, b) else None


def _divide(a: Rest, b: Rest) -> Optional[Rest]:
  return Rest.ZERO if a is Rest.ZERO and b is Rest.SHARED else None


def _select(condition: Rest, a: Rest, b: Rest) -> Optional[Rest]:
  return a if condition is Rest.SHARED and a is b else None


# The rest of the output of ops that treat every entry alike, from those of the
# inputs; None if it is unknown.
ENTRYWISE: Mapping[str, Callable[..., Optional[Rest]]] = {
    'Identity': lambda a: a,
    'StopGradient': lambda a: a,
    'ZerosLike': lambda a: Rest.ZERO,
    'IsFinite': lambda a: Rest.TRUE,
    'AddV2': _add,
    'AddN': lambda *terms: functools.reduce(
        lambda a, b: a and _add(a, b), terms
    ),
    'Sub': _subtract,
    'Mul': _multiply,
    'RealDiv': _divide,
    'DivNoNan': _divide,
    'SelectV2': _select,
}
