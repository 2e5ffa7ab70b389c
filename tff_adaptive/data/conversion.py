# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Converts features to the types that a task expects, without silent losses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TYPE_CHECKING

import numpy as np

from tff_adaptive.data import feature_arrays
from tff_adaptive.data import specs as specs_lib

if TYPE_CHECKING:
  import tensorflow as tf

# The floats up to here hold all whole numbers.
_MAX_WHOLE = 2.0**53
# Items of nested lists; those of other types are left to NumPy.
_PLAIN = {bool, int, float, str, bytes, list, dict, tuple, type(None)}


def convert(
    values: Any, name: str, spec: tf.TensorSpec, where: feature_arrays.Where
) -> np.ndarray:
  """Converts a feature to the type that a task expects.

  Integers become other integers, or floats, if that changes no value; floats
  become floats of another width, rounded, and whole numbers that are stored as
  floats become signed integers (not bytes, of which images in [0, 1] would be
  black); strings become arrays of UTF-8 bytes, as in TFF. Nothing else is
  converted.

  Args:
    values: An array or array-like value of shape [num_examples, ...].
    name: The feature.
    spec: The type and the shape of one example.
    where: Names the owner, for error messages.

  Returns:
    The converted array; the same array if it has the type already.

  Raises:
    ValueError: If the shape differs, or a value cannot be converted; names the
      first such example.

  Example:

    >>> spec = tf.TensorSpec([], tf.int32)
    >>> convert(np.array([1, 2]), 'y', spec, lambda example: 'The test data')
    array([1, 2], dtype=int32)
  """
  array = _as_array(values, name, spec, where)
  if not len(array):
    fits = spec.shape.is_compatible_with(array.shape[1:])
    sizes = array.shape[1:] if fits else [size or 0 for size in spec.shape]
    return np.zeros([0, *sizes], spec.dtype.as_numpy_dtype)
  if not spec.shape.is_compatible_with(array.shape[1:]):
    raise ValueError(
        f'{where(None)}: feature {name!r} must have examples of shape '
        f'{spec.shape}, found {list(array.shape[1:])}; reshape them.'
    )
  if not array.size:  # NumPy takes empty lists for floats.
    return np.zeros(array.shape, spec.dtype.as_numpy_dtype)
  if spec.dtype.name == 'string':
    return _as_bytes(array, name, where)
  return _as_numbers(array, name, spec.dtype, where)


def convert_examples(
    features: Mapping[str, Any],
    specs: feature_arrays.ElementSpec,
    where: feature_arrays.Where,
) -> feature_arrays.Examples:
  """Selects and converts the features that a task expects; see `convert`.

  Args:
    features: Feature names and arrays of shape [num_examples, ...]; additional
      features are ignored.
    specs: Feature names and the `tf.TensorSpec` of one example.
    where: Names the owner, for error messages.

  Returns:
    The features, in the order of `specs`.

  Raises:
    TypeError: If `features` is not a mapping from names to arrays.
    ValueError: If a feature is missing or cannot be converted, or features
      differ in the number of examples.
  """
  feature_arrays.check_mapping(features, where(None))
  feature_arrays.check_names(features, specs, where(None))
  return feature_arrays.as_examples(
      {
          name: convert(features[name], name, spec, where)
          for name, spec in specs.items()
      },
      where(None),
  )


def _as_array(
    values: Any, name: str, spec: tf.TensorSpec, where: feature_arrays.Where
) -> np.ndarray:
  """Returns values as an array with at least one dimension."""
  values = feature_arrays.unboxed(values)
  is_text = spec.dtype.name == 'string'
  types: set[type] = set()
  try:
    if isinstance(values, (list, tuple)) and (
        is_text or not any(hasattr(value, '__array__') for value in values)
    ):
      # NumPy would turn numbers among strings into strings, and large integers
      # into floats.
      array = np.asarray(values, np.object_)
      types = set(map(type, array.flat))
      if types & {list, tuple}:
        raise ValueError('Some lists are longer than others.')
    if not types or not (is_text or types <= _PLAIN):
      types, array = set(), np.asarray(values)
  except ValueError as error:
    raise ValueError(
        f'{where(None)}: feature {name!r} must have examples of shape '
        f'{spec.shape}, found lists of different lengths.'
    ) from error
  if not array.ndim:
    raise ValueError(
        f'{where(None)}: feature {name!r} must have a value for each example, '
        f'found the single value {array}.'
    )
  if types and not is_text:
    return _numbers_of(array, types, name, spec.dtype, where)
  return array


def _numbers_of(
    objects: np.ndarray,
    types: set[type],
    name: str,
    dtype: tf.DType,
    where: feature_arrays.Where,
) -> np.ndarray:
  """Returns numbers of Python, of which NumPy would choose a common type."""
  allowed: set[type]
  if dtype.is_bool:
    allowed = {bool}
  else:
    allowed = {int, float} if dtype.is_floating else {int}
  if _takes_whole_floats(dtype) and float in types:
    objects = _whole_as_integers(objects)
    types = set(map(type, objects.flat))
  if types - allowed:
    bad = next(i for i, v in enumerate(objects.flat) if type(v) not in allowed)
    example = feature_arrays.example_of(objects, bad)
    found = np.asarray([objects.flat[bad]])
    raise _wrong_type(found, name, dtype.name, lambda _: where(example))
  if dtype.is_bool:
    return objects.astype(np.bool_)
  if types == {int}:
    low, high = min(objects.flat), max(objects.flat)
    for info in map(np.iinfo, (np.int64, np.uint64)):
      if info.min <= low and high <= info.max:
        return objects.astype(info.dtype)
  try:
    if dtype.is_floating:
      return objects.astype(np.float64)
    limits = dtype.min, dtype.max
  except OverflowError:
    largest = int(np.finfo(np.float64).max)
    limits = -largest, largest
  bad = next(
      i for i, v in enumerate(objects.flat) if v < limits[0] or v > limits[1]
  )
  raise _too_large(objects, bad, name, dtype, where)


def _takes_whole_floats(dtype: tf.DType) -> bool:
  return dtype.is_integer and not dtype.is_unsigned


def _is_whole(value: float) -> bool:
  """Returns whether a float is a whole number that others do not round to."""
  return abs(value) <= _MAX_WHOLE and float(value).is_integer()


def _whole_as_integers(objects: np.ndarray) -> np.ndarray:
  """Returns numbers of Python with whole floats as integers."""
  converted = objects.copy()
  for place, value in enumerate(objects.flat):
    if type(value) is float and _is_whole(value):  # pylint: disable=unidiomatic-typecheck
      converted.flat[place] = int(value)
  return converted


def _as_numbers(
    array: np.ndarray, name: str, dtype: tf.DType, where: feature_arrays.Where
) -> np.ndarray:
  """Converts numbers to another type, or raises if a value changes."""
  target = dtype.as_numpy_dtype
  if array.dtype == target:
    return array
  kind = specs_lib.kind(array.dtype)
  if kind == 'f' and _takes_whole_floats(dtype):
    wide = array.astype(np.float64)
    is_whole = (np.abs(wide) <= _MAX_WHOLE) & (np.floor(wide) == wide)
    if not is_whole.all():
      bad = np.flatnonzero(~is_whole)[0]
      example = feature_arrays.example_of(array, bad)
      found = array.flat[bad : bad + 1]
      raise _wrong_type(found, name, dtype.name, lambda _: where(example))
    array, kind = wide.astype(np.int64), 'i'
    if array.dtype == target:
      return array
  is_cast = (kind in 'iu' and (dtype.is_integer or dtype.is_floating)) or (
      kind == 'f' and dtype.is_floating
  )
  if not is_cast:
    raise _wrong_type(array, name, dtype.name, where)
  converted, changed = specs_lib.cast(array, target)
  if changed.any():
    bad = np.flatnonzero(changed)[0]
    raise _too_large(array, bad, name, dtype, where)
  return converted


def _as_bytes(
    array: np.ndarray, name: str, where: feature_arrays.Where
) -> np.ndarray:
  """Converts strings to objects of type bytes."""
  if array.dtype.kind not in 'OSU':
    raise _wrong_type(array, name, 'string', where)
  feature_arrays.check_strings(array, name, where)
  converted = np.empty(array.size, np.object_)
  for place, item in enumerate(array.flat):
    converted[place] = item.encode() if isinstance(item, str) else item
  return converted.reshape(array.shape)


def _too_large(
    array: np.ndarray,
    place: int,
    name: str,
    dtype: tf.DType,
    where: feature_arrays.Where,
) -> ValueError:
  return ValueError(
      f'{where(feature_arrays.example_of(array, place))}: feature {name!r} has '
      f'the value {array.flat[place]!s}, which {dtype.name} cannot hold; '
      'correct or scale it.'
  )


def _wrong_type(
    array: np.ndarray, name: str, dtype: str, where: feature_arrays.Where
) -> ValueError:
  found = 'strings' if array.dtype.kind in 'SU' else array.dtype
  return ValueError(
      f'{where(None)}: feature {name!r} must be of type {dtype}, found '
      f'{found} such as {array.flat[:1].tolist()[0]!r}.'
  )
