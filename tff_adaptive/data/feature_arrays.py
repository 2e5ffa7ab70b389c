# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The examples of one client, as a mapping from feature names to arrays."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Optional, TYPE_CHECKING

import numpy as np

from tff_adaptive.data import specs as specs_lib

if TYPE_CHECKING:
  import tensorflow as tf

Examples = collections.OrderedDict[str, np.ndarray]
ElementSpec = collections.OrderedDict[str, 'tf.TensorSpec']


def as_examples(features: Mapping[str, np.ndarray], owner: str) -> Examples:
  """Converts features to arrays and checks that they are consistent.

  Args:
    features: A flat mapping from feature names to arrays or array-like values
      of shape [num_examples, ...].
    owner: The owner of the features, the subject of error messages.

  Returns:
    The same features in the same order, as read-only views: arrays are not
    copied.

  Raises:
    TypeError: If `features` is nested, or not a mapping from strings.
    ValueError: If there are no features, a feature is a scalar or holds objects
      other than strings, or the features differ in the number of examples.

  Example:

    >>> as_examples({'x': [1.0, 2.0]}, 'The test set')['x']
    array([1., 2.])
  """
  _check_mapping(features, owner)
  if not features:
    raise ValueError(f'{owner} must have at least one feature, found none.')
  examples = collections.OrderedDict()
  for name, value in features.items():
    if not isinstance(name, str) or isinstance(value, Mapping):
      raise TypeError(
          f'{owner} must map strings to arrays, found {name!r} with a '
          f'{type(value).__name__}.'
      )
    array = np.asarray(value).view()
    if array.ndim == 0:
      raise ValueError(
          f'{owner} must have arrays of shape [num_examples, ...], found the '
          f'scalar {array} for feature {name!r}.'
      )
    if array.dtype.kind == 'O':
      _check_strings(array, name, lambda row: f'{owner}, example {row}')
    array.setflags(write=False)
    examples[name] = array
  sizes = {name: len(array) for name, array in examples.items()}
  if len(set(sizes.values())) > 1:
    raise ValueError(
        f'{owner} must have the same number of examples in every feature, '
        f'found {sizes}.'
    )
  return examples


def spec_of(examples: Mapping[str, np.ndarray]) -> ElementSpec:
  """Returns the spec of one example.

  Args:
    examples: Feature names and arrays of shape [num_examples, ...].

  Returns:
    Feature names and `tf.TensorSpec`s without the example dimension.

  Example:

    >>> spec_of({'y': np.zeros([5, 2], np.int32)})['y'].shape.as_list()
    [2]
  """
  import tensorflow as tf  # pylint: disable=import-outside-toplevel

  return collections.OrderedDict(
      (name, tf.TensorSpec(array.shape[1:], tf.as_dtype(array.dtype)))
      for name, array in examples.items()
  )


def check_match(
    examples: Mapping[str, np.ndarray], spec: ElementSpec, owner: str
) -> Examples:
  """Returns features in the order of a spec.

  Args:
    examples: Feature names and arrays of shape [num_examples, ...].
    spec: Feature names and the `tf.TensorSpec` of one example.
    owner: Who has them, for error messages, such as "Client 'a'".

  Returns:
    The same arrays, in the order of `spec`.

  Raises:
    ValueError: If names, types or shapes differ.

  Example:

    >>> spec = {'x': tf.TensorSpec([], tf.float32)}
    >>> check_match({'x': np.ones([2], np.float32)}, spec, "Client 'a'")['x']
    array([1., 1.], dtype=float32)
  """
  difference = specs_lib.find_difference(
      specs_lib.batched(spec_of(examples)), specs_lib.batched(spec)
  )
  if difference is not None:
    raise ValueError(f'{owner} has {difference}.')
  return collections.OrderedDict((name, examples[name]) for name in spec)


def num_rows(examples: Mapping[str, np.ndarray]) -> int:
  """Returns the number of examples, of which there is at least one feature."""
  return len(next(iter(examples.values())))


def num_bytes(examples: Mapping[str, np.ndarray]) -> int:
  """Returns the size of a client in bytes, with the contents of strings."""
  size = 0
  for array in examples.values():
    size += array.nbytes
    if array.dtype == np.object_:
      size += sum(len(item) for item in array.flat)
  return size


def take(rows: Mapping[str, np.ndarray], places: Any) -> Examples:
  """Returns a selection of the rows of every feature.

  Args:
    rows: Feature names and arrays of shape [num_rows, ...].
    places: Row indices, or a slice.

  Returns:
    Feature names and arrays.
  """
  return collections.OrderedDict(
      (name, array[places]) for name, array in rows.items()
  )


def concatenate(
    parts: Sequence[Mapping[str, np.ndarray]], names: Iterable[str]
) -> Examples:
  """Concatenates the rows of several parts.

  Args:
    parts: Feature names and arrays of shape [num_rows, ...]; at least one part.
    names: The feature names, in the order of the result.

  Returns:
    Feature names and new arrays.
  """
  # Empty parts do not determine the shape of rows.
  filled = [part for part in parts if num_rows(part)]
  parts = filled or parts[:1]
  return collections.OrderedDict(
      (name, np.concatenate([part[name] for part in parts])) for name in names
  )


def empty(spec: ElementSpec) -> Examples:
  """Returns features with zero examples.

  Args:
    spec: Feature names and the `tf.TensorSpec` of one example.

  Returns:
    Feature names and arrays of shape [0, ...]; unknown dimensions become 0.
  """
  return collections.OrderedDict(
      (
          name,
          np.zeros(
              [0, *(size or 0 for size in feature.shape)],
              feature.dtype.as_numpy_dtype,
          ),
      )
      for name, feature in spec.items()
  )


# Maps the index of an example, or None for all examples, to the subject of an
# error message.
Where = Callable[[Optional[int]], str]


def convert(
    values: Any, name: str, spec: tf.TensorSpec, where: Where
) -> np.ndarray:
  """Converts a feature to the type that a task expects.

  Integers become other integers, or floats, if that changes no value; floats
  become floats of another width, rounded; strings become arrays of UTF-8 bytes,
  as in TFF. Nothing else is converted.

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
  if spec.dtype.name == 'string':
    return _as_bytes(array, name, where)
  return _as_numbers(array, name, spec.dtype, where)


def convert_examples(
    features: Mapping[str, Any], specs: ElementSpec, where: Where
) -> Examples:
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
  _check_mapping(features, where(None))
  check_names(features, specs, where(None))
  return as_examples(
      {
          name: convert(features[name], name, spec, where)
          for name, spec in specs.items()
      },
      where(None),
  )


def check_names(
    found: Iterable[str], wanted: Iterable[str], owner: str
) -> None:
  """Raises unless all wanted features are present.

  Args:
    found: The names of the features found.
    wanted: The names of the features wanted.
    owner: The owner of the features, the subject of error messages.

  Raises:
    ValueError: If one of them is missing.
  """
  missing = sorted(set(wanted) - set(found))
  if missing:
    raise ValueError(
        f'{owner} must have the features {list(wanted)}, found {list(found)}; '
        f'add or rename {missing}.'
    )


def _check_mapping(features: Any, owner: str) -> None:
  if not isinstance(features, Mapping):
    raise TypeError(
        f'{owner} must be a mapping from feature names to arrays, found '
        f'{type(features).__name__}.'
    )


def _as_array(
    values: Any, name: str, spec: tf.TensorSpec, where: Where
) -> np.ndarray:
  """Returns values as an array with at least one dimension."""
  # Otherwise NumPy would turn numbers among strings into strings.
  is_list_of_strings = spec.dtype.name == 'string' and isinstance(values, list)
  try:
    array = np.asarray(values, np.object_ if is_list_of_strings else None)
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
  return array


def _as_numbers(
    array: np.ndarray, name: str, dtype: tf.DType, where: Where
) -> np.ndarray:
  """Converts numbers to another type, or raises if a value changes."""
  target = dtype.as_numpy_dtype
  if array.dtype == target:
    return array
  from_integers = np.issubdtype(array.dtype, np.integer)
  from_floats = np.issubdtype(array.dtype, np.floating)
  is_cast = (from_integers and (dtype.is_integer or dtype.is_floating)) or (
      from_floats and dtype.is_floating
  )
  if not is_cast:
    raise _wrong_type(array, name, dtype.name, where)
  converted, changed = specs_lib.cast(array, target)
  if changed.any():
    place = tuple(np.argwhere(changed)[0])
    raise ValueError(
        f'{where(place[0])}: feature {name!r} has the value {array[place]}, '
        f'which {dtype.name} cannot hold; correct or scale it.'
    )
  return converted


def _as_bytes(array: np.ndarray, name: str, where: Where) -> np.ndarray:
  """Converts strings to objects of type bytes."""
  if array.dtype.kind not in 'OSU':
    raise _wrong_type(array, name, 'string', where)
  _check_strings(array, name, where)
  converted = np.empty(array.size, np.object_)
  for place, item in enumerate(array.flat):
    converted[place] = item.encode() if isinstance(item, str) else item
  return converted.reshape(array.shape)


def _check_strings(array: np.ndarray, name: str, where: Where) -> None:
  """Raises if a value is neither a string nor bytes."""
  for place, item in enumerate(array.flat):
    if not isinstance(item, (str, bytes)):
      example = place * len(array) // array.size
      raise ValueError(
          f'{where(example)}: feature {name!r} must hold strings, found '
          f'{item!r}; convert it to a string.'
      )


def _wrong_type(
    array: np.ndarray, name: str, dtype: str, where: Where
) -> ValueError:
  found = 'strings' if array.dtype.kind in 'SU' else array.dtype
  return ValueError(
      f'{where(None)}: feature {name!r} must be of type {dtype}, found '
      f'{found} such as {array.flat[:1].tolist()[0]!r}.'
  )
