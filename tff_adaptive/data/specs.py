# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks data against specs, converts numbers, and validates arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
import numbers
from typing import Any, Optional, TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
  import tensorflow as tf


# The kinds of dtypes that other packages add to NumPy, by their names.
_KINDS = {'bfloat': 'f', 'float': 'f', 'int': 'i', 'uint': 'u'}


def batched(spec: Mapping[str, tf.TensorSpec]) -> dict[str, tf.TensorSpec]:
  """Returns the specs of batches of any size, given those of one example."""
  import tensorflow as tf  # pylint: disable=import-outside-toplevel

  return {
      name: tf.TensorSpec([None, *feature.shape], feature.dtype)
      for name, feature in spec.items()
  }


def is_registered(dtype: np.dtype) -> bool:
  """Returns whether another package added a dtype, such as bfloat16."""
  return dtype.isbuiltin == 2


def kind(dtype: np.dtype) -> str:
  """Returns the kind of a dtype, also of the types that NumPy does not have.

  Args:
    dtype: A dtype of NumPy, or of ml_dtypes, which TensorFlow uses for bfloat16
      and floats of 8 bits; NumPy calls the kind of most of those 'V'.

  Returns:
    NumPy's letter, such as 'f' for floats, 'i' and 'u' for integers.

  Example:
    >>> kind(np.dtype(np.float16)), kind(np.dtype(tf.bfloat16.as_numpy_dtype))
    ('f', 'f')
  """
  if dtype.kind != 'V' or not is_registered(dtype):
    return dtype.kind
  named = (k for start, k in _KINDS.items() if dtype.name.startswith(start))
  return next(named, dtype.kind)


def cast(array: np.ndarray, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
  """Casts numbers to another type, and finds the values that change.

  Args:
    array: Booleans, integers or floats.
    dtype: A dtype of numbers; floats cannot become integers.

  Returns:
    The cast array, itself if it has the dtype already; and a boolean array,
    true where an integer changes or a finite float becomes infinite. Rounding a
    float does not count as a change.

  Example:
    >>> cast(np.array([1, 300]), np.uint8)
    (array([ 1, 44], dtype=uint8), array([False,  True]))
  """
  if array.dtype == dtype:
    return array, np.zeros(array.shape, np.bool_)
  with np.errstate(over='ignore', invalid='ignore'):
    converted = array.astype(dtype)
    if kind(array.dtype) == 'f':
      return converted, np.isfinite(array) & ~np.isfinite(converted)
    back = converted.astype(array.dtype)
    # Compares signs, too: casting back restores a value that wrapped around.
    return converted, (back != array) | ((converted < 0) != (array < 0))


def is_encodable(text: str) -> bool:
  """Returns whether UTF-8 has a text: not with half of a surrogate pair."""
  try:
    text.encode()
  except UnicodeEncodeError:
    return False
  return True


def find_difference(
    found: Any,
    expected: Any,
    *,
    in_pipeline: bool = False,
    in_order: bool = False,
) -> Optional[str]:
  """Returns the difference between specs, and how to fix it.

  Args:
    found: A structure of `tf.TypeSpec`s.
    expected: The expected structure of `tf.TensorSpec`s.
    in_pipeline: Whether these are elements of a `tf.data.Dataset`, whose sizes
      may be known only when it is read. Defaults to False.
    in_order: Whether these are mappings whose order matters. Defaults to False.

  Returns:
    The end of a sentence, after 'found'; None if there is no difference.

  Example:
    >>> found = {'x': tf.TensorSpec([None], tf.float64)}
    >>> find_difference(found, {'x': tf.TensorSpec([None], tf.float32)})
    "float64[?] in field 'x'; make it float32[?]"
  """
  import tensorflow as tf  # pylint: disable=import-outside-toplevel

  difference = _find_in_names(found, expected)
  if difference is not None:
    return difference
  leaves = zip(
      field_names(expected), tf.nest.flatten(found), tf.nest.flatten(expected)
  )
  for name, leaf, wanted in leaves:
    place = f' in field {name}' if name else ''
    # A component may also be None, or not a dense tensor.
    if not isinstance(leaf, tf.TensorSpec):
      return (
          f'{type(leaf).__name__}{place}; make it a dense {_described(wanted)}'
      )
    fits = leaf.shape.is_compatible_with(wanted.shape) and (
        in_pipeline or _is_as_open(leaf.shape, wanted.shape)
    )
    if not fits or leaf.dtype != wanted.dtype:
      return f'{_described(leaf)}{place}; make it {_described(wanted)}'
  if in_order and list(found) != list(expected):
    return f'the order {list(found)}; make it {list(expected)}'
  return None


def _find_in_names(found: Any, expected: Any) -> Optional[str]:
  """Returns a difference in the names or the number of fields."""
  if isinstance(found, Mapping) and isinstance(expected, Mapping):
    if set(found) != set(expected):
      return f'the fields {list(found)}; make them {list(expected)}'
    differences = (
        _find_in_names(found[name], expected[name]) for name in found
    )
    return next(filter(None, differences), None)
  import tensorflow as tf  # pylint: disable=import-outside-toplevel

  num_found, num_expected = map(len, map(tf.nest.flatten, (found, expected)))
  if num_found != num_expected:
    return f'elements of {num_found} tensors; make them of {num_expected}'
  return None


def field_names(structure: Any) -> list[str]:
  """Returns the names of the leaves, quoted, in the order of `tf.nest`."""
  return [
      repr('/'.join(path)) if path else '' for path in _paths(structure, ())
  ]


def _paths(structure: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
  """Yields the names on the path to every leaf."""
  import tensorflow as tf  # pylint: disable=import-outside-toplevel

  if isinstance(structure, Mapping):
    for name in sorted(structure):
      yield from _paths(structure[name], (*path, str(name)))
  elif isinstance(structure, (list, tuple)):
    names = getattr(structure, '_fields', range(len(structure)))
    for name, value in zip(names, structure):
      yield from _paths(value, (*path, str(name)))
  else:  # A leaf, or a container without known names.
    for _ in tf.nest.flatten(structure):
      yield path


def _is_as_open(found: tf.TensorShape, expected: tf.TensorShape) -> bool:
  """Returns whether `expected` is unknown in all unknown axes of `found`."""
  if expected.rank is None or found.rank is None:
    return expected.rank is None
  return all(
      size is not None or wanted is None
      for size, wanted in zip(found, expected)
  )


def _described(spec: tf.TensorSpec) -> str:
  """Returns a spec in the notation of TFF's types."""
  if spec.shape.rank is None:
    return f'{spec.dtype.name}(unknown)'
  sizes = ('?' if size is None else str(size) for size in spec.shape)
  return f'{spec.dtype.name}[{",".join(sizes)}]'


def check_integer(name: str, value: int) -> None:
  """Raises a TypeError unless an argument is an integer."""
  if isinstance(value, bool) or not isinstance(value, numbers.Integral):
    raise TypeError(f'`{name}` must be an integer, found {value!r}.')


def check_positive(name: str, value: int) -> None:
  """Raises a TypeError or ValueError unless an argument is at least 1."""
  check_integer(name, value)
  if value <= 0:
    raise ValueError(f'`{name}` must be positive, found {value}.')


def check_not_negative(name: str, value: int) -> None:
  """Raises a TypeError or ValueError unless an argument is at least 0."""
  check_integer(name, value)
  if value < 0:
    raise ValueError(f'`{name}` must not be negative, found {value}.')


def positive_integer(instance: Any, attribute: Any, value: Any) -> None:
  """Raises unless an attribute is an integer of at least 1; for attrs."""
  del instance  # Unused.
  check_positive(attribute.name, value)


def instance_of(expected: Any) -> Callable[[Any, Any, Any], None]:
  """Returns an attrs validator whose error does not print the value."""

  def validate(instance, attribute, value):
    del instance  # Unused.
    if not isinstance(value, expected):
      raise TypeError(
          f'`{attribute.name}` must be of type {expected.__name__}, found '
          f'{type(value).__name__}.'
      )

  return validate
