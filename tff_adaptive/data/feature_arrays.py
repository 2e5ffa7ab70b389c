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
# Maps the index of an example, or None for all examples, to the subject of an
# error message.
Where = Callable[[Optional[int]], str]


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
  check_mapping(features, owner)
  if not features:
    raise ValueError(f'{owner} must have at least one feature, found none.')
  examples = collections.OrderedDict()
  for name, value in features.items():
    if not isinstance(name, str) or isinstance(value, Mapping):
      raise TypeError(
          f'{owner} must map strings to arrays, found {name!r} with a '
          f'{type(value).__name__}.'
      )
    array = _as_array(value, name, owner).view()
    if array.ndim == 0:
      raise ValueError(
          f'{owner} must have arrays of shape [num_examples, ...], found the '
          f'scalar {array} for feature {name!r}.'
      )
    if array.dtype.kind == 'O' or _has_surrogates(array):
      check_strings(array, name, lambda row: f'{owner}, example {row}')
    array.setflags(write=False)
    examples[name] = array
  sizes = {name: len(array) for name, array in examples.items()}
  if len(set(sizes.values())) > 1:
    raise ValueError(
        f'{owner} must have the same number of examples in every feature, '
        f'found {sizes}.'
    )
  return examples


def _as_array(value: Any, name: str, owner: str) -> np.ndarray:
  """Returns a feature as an array, if NumPy changes no value of a list."""
  value = unboxed(value)
  is_list = isinstance(value, (list, tuple)) and not any(
      hasattr(item, '__array__') for item in value
  )
  try:
    array = np.asarray(value)
  except UnicodeDecodeError:  # Of text and bytes.
    return np.asarray(value, np.object_)
  except ValueError as error:
    raise ValueError(
        f'{owner} must have arrays of shape [num_examples, ...], found lists '
        f'of different lengths for feature {name!r}.'
    ) from error
  if is_list and array.dtype.kind in 'SU':
    # NumPy drops zeros at the end, and takes numbers among strings for these.
    objects = np.asarray(value, np.object_)
    return array if (objects == array).all() else objects
  if is_list and array.dtype.kind in 'fO':
    for item in np.asarray(value, np.object_).flat:
      if isinstance(item, int) and not _is_exact(item):
        raise ValueError(
            f'{owner} has the integer {item} in a list for feature {name!r}, '
            'which NumPy does not keep; give an array of a type that holds it.'
        )
  return array


def unboxed(values: Any) -> Any:
  """Returns values in a form that becomes an array of numbers or strings.

  Args:
    values: An array or array-like value.

  Returns:
    A list in place of an array whose items are lists or arrays, such as a
    column of pandas; strings as objects in place of NumPy's StringDType, which
    TensorFlow does not have; other arrays as arrays of NumPy, lists unchanged.
  """
  if not hasattr(values, 'dtype'):
    return values
  array = np.asarray(values)
  if array.dtype.kind == 'T':
    return array.astype(np.object_)
  has_arrays = array.dtype == np.object_ and any(
      isinstance(item, (np.ndarray, list, tuple)) for item in array.flat[:1]
  )
  return array.tolist() if has_arrays else array


def _is_exact(integer: int) -> bool:
  """Returns whether NumPy keeps an integer in a list that becomes floats."""
  return -(2**63) <= integer < 2**63 and int(float(integer)) == integer


def _has_surrogates(array: np.ndarray) -> bool:
  """Returns whether strings of NumPy's own type have surrogates."""
  if array.dtype.kind != 'U' or not array.size:
    return False
  codes = np.array(array, array.dtype.newbyteorder('=')).view(np.uint32)
  return bool(((codes & 0xFFFFF800) == 0xD800).any())


def spec_of(examples: Mapping[str, np.ndarray]) -> ElementSpec:
  """Returns the spec of one example.

  Args:
    examples: Feature names and arrays of shape [num_examples, ...].

  Returns:
    Feature names and `tf.TensorSpec`s without the example dimension.

  Raises:
    TypeError: If TensorFlow does not have the type of a feature.

  Example:

    >>> spec_of({'y': np.zeros([5, 2], np.int32)})['y'].shape.as_list()
    [2]
  """
  import tensorflow as tf  # pylint: disable=import-outside-toplevel

  spec = collections.OrderedDict()
  for name, array in examples.items():
    try:
      spec[name] = tf.TensorSpec(array.shape[1:], tf.as_dtype(array.dtype))
    except TypeError as error:
      raise TypeError(
          f'Feature {name!r} has the type {array.dtype}, which TensorFlow does '
          'not have; convert it, such as to numbers.'
      ) from error
  return spec


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


def check_mapping(features: Any, owner: str) -> None:
  """Raises a TypeError unless features are a mapping."""
  if not isinstance(features, Mapping):
    raise TypeError(
        f'{owner} must be a mapping from feature names to arrays, found '
        f'{type(features).__name__}.'
    )


def check_strings(array: np.ndarray, name: str, where: Where) -> None:
  """Raises a ValueError if an item is neither text nor bytes.

  Args:
    array: The feature, of objects or strings.
    name: Its name.
    where: Names the owner, for error messages.
  """
  for place, item in enumerate(array.flat):
    if isinstance(item, bytes):
      continue
    if not isinstance(item, str):
      problem = f'strings, found {item!r}; convert it to a string'
    elif not specs_lib.is_encodable(item):
      problem = f'text, found {str(item)!r}; it has half of a surrogate pair'
    else:
      continue
    raise ValueError(
        f'{where(example_of(array, place))}: feature {name!r} must hold '
        f'{problem}.'
    )


def example_of(array: np.ndarray, place: int) -> int:
  """Returns the example of an item of `array.flat`, by the item's place."""
  return place * len(array) // array.size
