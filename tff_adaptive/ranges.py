# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The ranges of numbers, as types of the arguments of a builder.

`gamma: ranges.Positive = 2.0` says it once: `optimizers.arguments.checked`
checks the argument, and the flag of the argument has the range and its words in
`--help`. TensorFlow is not imported here.
"""

import dataclasses
import math
import typing
from typing import Annotated, Any, Optional

import numpy as np

# Rounds compute in float32, where anything larger is infinite.
_LARGEST = float(np.finfo(np.float32).max)


@dataclasses.dataclass(frozen=True)
class Range:
  """The values that a number may have.

  Attributes:
    minimum: The smallest value.
    maximum: The largest value.
    is_above: Whether the value must be above `minimum`, also in float32.
    is_below: Whether the value must be below `maximum`, also in seven decimals,
      those of `vectors.complement`.
    may_be_infinite: Whether infinity, for no limit, is a value.
    is_whole: Whether a value must be an integer.
  """

  minimum: float = -math.inf
  maximum: float = math.inf
  is_above: bool = False
  is_below: bool = False
  may_be_infinite: bool = False
  is_whole: bool = False

  def __contains__(self, value: float) -> bool:
    if not abs(value) <= _LARGEST:
      return self.may_be_infinite and value > 0
    is_low = value < self.minimum or (
        self.is_above and not np.float32(value) > self.minimum
    )
    is_high = value > self.maximum or (
        self.is_below and round(value, 7) >= self.maximum
    )
    return not (is_low or is_high)

  def __str__(self) -> str:
    """What a value must be: 'above 0', 'in [0, 1)'."""
    if math.isfinite(self.maximum):
      brackets = '(['[not self.is_above], ')]'[not self.is_below]
      return f'in {brackets[0]}{self.minimum:g}, {self.maximum:g}{brackets[1]}'
    words = 'a finite number'
    if math.isfinite(self.minimum):
      words = f'{"above" if self.is_above else "at least"} {self.minimum:g}'
    return f'{words}, or infinite' if self.may_be_infinite else words

  def describe(self, value: float) -> str:
    """Returns what a value outside the range must be instead."""
    is_finite = abs(value) <= _LARGEST
    return str(self) if is_finite or self.may_be_infinite else 'a finite number'


def find(annotation: Any) -> Optional[Range]:
  """Returns the range of an annotation, also of an optional one, or None."""
  for kind in (annotation, *typing.get_args(annotation)):
    if typing.get_origin(kind) is Annotated:
      (found,) = typing.get_args(kind)[1:]
      return found
  return None


Finite = Annotated[float, Range()]
NotNegative = Annotated[float, Range(0.0)]
Positive = Annotated[float, Range(0.0, is_above=True)]
# Infinity stands for no limit.
Limit = Annotated[float, Range(0.0, is_above=True, may_be_infinite=True)]
# A decay rate, a share of what was before, or one between 0 and 1.
Share = Annotated[float, Range(0.0, 1.0, is_below=True)]
ClosedShare = Annotated[float, Range(0.0, 1.0)]
PositiveShare = Annotated[float, Range(0.0, 1.0, is_above=True)]
OpenShare = Annotated[float, Range(0.0, 1.0, is_above=True, is_below=True)]
# The number of things, and numbers of steps that may be means over clients.
Count = Annotated[int, Range(1, is_whole=True)]
PositiveSteps = Annotated[int, Range(0, is_above=True)]
Steps = Annotated[int, Range(0)]
