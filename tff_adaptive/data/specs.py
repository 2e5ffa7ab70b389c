# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Whether data are what was asked for: their specifications, their numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
import numbers
from typing import Any, Optional, TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
  import tensorflow as tf


def batched(spec: Mapping[str, tf.TensorSpec]) -> dict[str, tf.TensorSpec]:
  """Returns the specifications of batches of any size.

  Args:
    spec: Feature names and the specification of one example.
  """
  import tensorflow as tf  # pylint: disable=import-outside-toplevel

  return {
      name: tf.TensorSpec([None, *feature.shape], feature.dtype)
      for name, feature in spec.items()
  }


def cast(array: np.ndarray, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
  """Returns numbers of another type, and where they are other numbers.

  Args:
    array: Booleans, integers or floats.
    dtype: A dtype of numbers; floats become no integers.

  Returns:
    The array of the dtype, itself if it is of it; and a boolean array, true
    where an integer has changed, or a finite float has become infinite. That a
    float is rounded is no change.

  Example:

    >>> cast(np.array([1, 300]), np.uint8)
    (array([ 1, 44], dtype=uint8), array([False,  True]))
  """
  if array.dtype == dtype:
    return array, np.zeros(array.shape, np.bool_)
  with np.errstate(over='ignore', invalid='ignore'):
    converted = array.astype(dtype)
    if array.dtype.kind == 'f':
      return converted, np.isfinite(array) & ~np.isfinite(converted)
    back = converted.astype(array.dtype)
    # The sign, too: what wraps around comes back to what it was.
    return converted, (back != array) | ((converted < 0) != (array < 0))


def find_difference(
    found: Any, expected: Any, *, in_pipeline: bool = False
) -> Optional[str]:
  """Returns where specifications differ from what is expected, with the cure.

  Args:
    found: A structure of `tf.TypeSpec`s.
    expected: The structure of `tf.TensorSpec`s that it should be.
    in_pipeline: Whether these are elements of a `tf.data.Dataset`, which may
      turn out to have a size that is not known before. Defaults to False.

  Returns:
    The end of a sentence, after 'found'; None if all fits.

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
    # A component may also be None, or no dense tensor.
    if not isinstance(leaf, tf.TensorSpec):
      return (
          f'{type(leaf).__name__}{place}; make it a dense {_described(wanted)}'
      )
    fits = leaf.shape.is_compatible_with(wanted.shape) and (
        in_pipeline or _is_as_open(leaf.shape, wanted.shape)
    )
    if not fits or leaf.dtype != wanted.dtype:
      return f'{_described(leaf)}{place}; make it {_described(wanted)}'
  return None


def _find_in_names(found: Any, expected: Any) -> Optional[str]:
  """Returns a difference in the names of fields, or in how many there are."""
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
  """Yields the names on the way to every leaf."""
  import tensorflow as tf  # pylint: disable=import-outside-toplevel

  if isinstance(structure, Mapping):
    for name in sorted(structure):
      yield from _paths(structure[name], (*path, str(name)))
  elif isinstance(structure, (list, tuple)):
    names = getattr(structure, '_fields', range(len(structure)))
    for name, value in zip(names, structure):
      yield from _paths(value, (*path, str(name)))
  else:  # A leaf, or what has no names that are known here.
    for _ in tf.nest.flatten(structure):
      yield path


def _is_as_open(found: tf.TensorShape, expected: tf.TensorShape) -> bool:
  """Whether a compatible shape leaves open only what the other leaves open."""
  if expected.rank is None or found.rank is None:
    return expected.rank is None
  return all(
      size is not None or wanted is None
      for size, wanted in zip(found, expected)
  )


def _described(spec: tf.TensorSpec) -> str:
  """Returns a specification as TFF's types have it."""
  if spec.shape.rank is None:
    return f'{spec.dtype.name}(unknown)'
  sizes = ('?' if size is None else str(size) for size in spec.shape)
  return f'{spec.dtype.name}[{",".join(sizes)}]'


def check_integer(name: str, value: int) -> None:
  """Raises a TypeError unless an argument is an integer."""
  if isinstance(value, bool) or not isinstance(value, numbers.Integral):
    raise TypeError(f'`{name}` must be an integer, found {value!r}.')


def check_positive(name: str, value: int) -> None:
  """Raises a TypeError or ValueError unless an argument is from 1."""
  check_integer(name, value)
  if value <= 0:
    raise ValueError(f'`{name}` must be positive, found {value}.')


def check_not_negative(name: str, value: int) -> None:
  """Raises a TypeError or ValueError unless an argument is from 0."""
  check_integer(name, value)
  if value < 0:
    raise ValueError(f'`{name}` must not be negative, found {value}.')


def positive_integer(instance: Any, attribute: Any, value: Any) -> None:
  """Raises unless an attribute is an integer from 1; a validator of attrs."""
  del instance  # Unused.
  check_positive(attribute.name, value)


def instance_of(expected: Any) -> Callable[[Any, Any, Any], None]:
  """Returns a validator of attrs, whose error does not show the value.

  Args:
    expected: The type that an attribute must have.
  """

  def validate(instance, attribute, value):
    del instance  # Unused.
    if not isinstance(value, expected):
      raise TypeError(
          f'`{attribute.name}` must be of type {expected.__name__}, found '
          f'{type(value).__name__}.'
      )

  return validate
