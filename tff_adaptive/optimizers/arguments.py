# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks of the arguments of builders."""

from collections.abc import Callable, Iterable
import numbers
from typing import Any

import numpy as np
import tensorflow as tf


def check_choice(
    name: str, value: Any, choices: Iterable[Any], owner: str
) -> None:
  """Raises a `ValueError` unless `value` is among `choices`."""
  if value not in choices:
    raise ValueError(
        f'{owner} `{name}` must be one of {list(choices)}, found {value!r}.'
    )


def check_count(name: str, value: Any, owner: str) -> None:
  """Raises unless `value` is a positive integer."""
  if isinstance(value, bool) or not isinstance(value, numbers.Integral):
    raise TypeError(f'{owner} `{name}` must be an integer, found {value!r}.')
  if value < 1:
    raise ValueError(f'{owner} `{name}` must be positive, found {value}.')


# Rounds compute in float32, where anything larger is infinite.
_LARGEST = float(np.finfo(np.float32).max)


def _check(
    name: str,
    value: Any,
    owner: str,
    holds: Callable[[float], bool],
    sentence: str,
) -> None:
  """Raises unless a number has a property.

  Args:
    name: The argument's name, for the message.
    value: The number, also an array or a tensor with one. A symbolic tensor,
      whose value is unknown, is not checked.
    owner: The rule's name, for the message.
    holds: The property.
    sentence: What the number must be, for the message.

  Raises:
    TypeError: If `value` is not a number.
    ValueError: If it does not have the property.
  """
  if tf.is_symbolic_tensor(value):
    return
  try:
    if isinstance(value, (str, bytes)):  # `float` would parse these.
      raise TypeError
    number = float(value)
  except (TypeError, ValueError):
    raise TypeError(
        f'{owner} `{name}` must be a number, found {type(value).__name__}.'
    ) from None
  if not holds(number):
    raise ValueError(f'{owner} `{name}` must be {sentence}, found {value}.')


def check_finite(name: str, value: Any, owner: str) -> None:
  """Raises unless `value` is a finite float32, see `_check`."""
  _check(name, value, owner, lambda x: abs(x) <= _LARGEST, 'finite')


def check_rate(name: str, value: Any, owner: str) -> None:
  """Raises unless `value` is a finite float32 that is not negative."""
  _check(
      name,
      value,
      owner,
      lambda x: 0.0 <= x <= _LARGEST,
      'finite and not negative',
  )


def check_limit(name: str, value: Any, owner: str) -> None:
  """Raises unless `value` is a number above zero, which may be infinite."""
  _check(
      name,
      value,
      owner,
      lambda x: x > 0.0,
      'above zero, or infinite for no limit',
  )


def check_positive(name: str, value: Any, owner: str) -> None:
  """Raises unless `value` is a finite float32 above zero."""
  check_rate(name, value, owner)
  # A smaller number is 0 in float32.
  _check(name, value, owner, lambda x: np.float32(x) > 0.0, 'above zero')


def check_share(name: str, value: Any, owner: str) -> None:
  """Raises unless `value` is in [0, 1), also in seven decimals.

  Those are the decimals of `vectors.complement`.
  """
  _check(
      name, value, owner, lambda x: 0.0 <= x < 1.0, 'in the range [0.0, 1.0)'
  )
  _check(
      name,
      value,
      owner,
      lambda x: round(x, 7) < 1.0,
      'at most 0.9999999',
  )


def check_closed_share(name: str, value: Any, owner: str) -> None:
  """Raises unless `value` is in [0, 1]."""
  _check(
      name, value, owner, lambda x: 0.0 <= x <= 1.0, 'in the range [0.0, 1.0]'
  )
