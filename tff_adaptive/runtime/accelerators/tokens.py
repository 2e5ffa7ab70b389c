# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Numbers that stand for strings, which XLA does not have.

A round passes strings on, such as the ids of clients that keep a state, and at
most compares them. So each string of the process has a number.
"""

from typing import Any

import numpy as np

from tff_adaptive.runtime.accelerators import lowerings

# Ops that join strings, or make empty ones.
_COMPUTING = frozenset({'Add', 'Pad', 'ScatterNd', 'ZerosLike'})

_strings: list[bytes] = []
_numbers: dict[bytes, int] = {}


def _number_of(string: bytes) -> int:
  if string not in _numbers:
    _numbers[string] = len(_strings)
    _strings.append(string)
  return _numbers[string]


def check_not_used(node: lowerings.Node) -> None:
  """Raises an error if an op would compute with the numbers of strings."""
  if node.op in _COMPUTING and node.is_string('T'):
    raise lowerings.NoLoweringError(f'{node.op} makes other strings')


def encode(strings: np.ndarray) -> np.ndarray:
  """Returns the numbers of strings, int64 of their shape."""
  numbers = [_number_of(string) for string in strings.ravel().tolist()]
  return np.asarray(numbers, np.int64).reshape(strings.shape)


def decode(numbers: np.ndarray) -> Any:
  """Returns the strings of numbers, as an array or a single one."""
  found = [_strings[number] for number in np.ravel(numbers).tolist()]
  return np.array(found, object).reshape(np.shape(numbers))[()]
