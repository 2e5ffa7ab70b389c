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
    found: Any, expected: Any, *, in_pipeline: bool = True
) -> Optional[str]:
  """Returns where specifications differ from what is expected, with the cure.

  Args:
    found: A structure of `tf.TypeSpec`s.
    expected: That of `tf.TensorSpec`s that it should be.
    in_pipeline: Whether it is about the elements of a `tf.data.Dataset`, which
      may turn out to be of a size that is not known before, and which `batch`
      and `unbatch` change. Defaults to True.

  Returns:
    The end of a sentence, what stands behind 'found'; None if all fits.

  Example:

    >>> found = {'x': tf.TensorSpec([None], tf.float64)}
    >>> find_difference(found, {'x': tf.TensorSpec([None], tf.float32)})
    "float64[?] in field 'x'; cast it to float32"
  """
  import tensorflow as tf  # pylint: disable=import-outside-toplevel

  difference = _find_in_names(found, expected)
  if difference is not None:
    return difference
  leaves = zip(
      field_names(expected), tf.nest.flatten(found), tf.nest.flatten(expected)
  )
  differences = (
      find_difference_in_field(*leaf, in_pipeline=in_pipeline)
      for leaf in leaves
  )
  return next(filter(None, differences), None)


def find_difference_in_field(
    name: str,
    found: tf.TypeSpec,
    expected: tf.TensorSpec,
    *,
    in_pipeline: bool = True,
) -> Optional[str]:
  """Returns how one field differs; see `find_difference`.

  Args:
    name: One of `field_names`.
    found: What the field is.
    expected: What it should be.
    in_pipeline: As `find_difference`.

  Returns:
    As `find_difference`.
  """
  import tensorflow as tf  # pylint: disable=import-outside-toplevel

  place = f' in field {name}' if name else ''
  # A component may also be None, or no dense tensor.
  if not isinstance(found, tf.TensorSpec):
    return f'{type(found).__name__}{place}; make it a dense tensor'
  cures = []
  fits = found.shape.is_compatible_with(expected.shape) and (
      in_pipeline or _is_as_open(found.shape, expected.shape)
  )
  if not fits:
    cures.append(_cure_of_shape(found.shape, expected.shape, in_pipeline))
  if found.dtype != expected.dtype:
    are_numbers = tf.string not in (found.dtype, expected.dtype)
    verb = 'cast' if are_numbers else 'convert'
    cures.append(f'{verb} it to {expected.dtype.name}')
  if not cures:
    return None
  type_found = f'{found.dtype.name}{_described(found.shape)}'
  return f'{type_found}{place}; {" and ".join(cures)}'


def field_names(structure: Any) -> list[str]:
  """Returns what the leaves are called, quoted, in the order of `tf.nest`."""
  return [
      repr('/'.join(path)) if path else '' for path in _paths(structure, ())
  ]


def missing_and_surplus(
    found: Mapping[str, Any], expected: Mapping[str, Any]
) -> Optional[str]:
  """Returns which names of fields differ; see `find_difference`.

  Args:
    found: The fields that there are, by name.
    expected: Those that there should be.

  Returns:
    As `find_difference`.
  """
  missing = [name for name in expected if name not in found]
  surplus = [name for name in found if name not in expected]
  if missing and surplus:
    return f'the fields {list(found)}; rename or add {missing}'
  names = ', '.join(map(repr, missing or surplus))
  is_one = len(missing or surplus) == 1
  noun, it = ('field', 'it') if is_one else ('fields', 'them')
  if missing:
    return f'no {noun} {names}; add {it}'
  if surplus:
    return f'the surplus {noun} {names}; leave {it} out'
  return None


def _find_in_names(found: Any, expected: Any) -> Optional[str]:
  """Returns a difference in the names of fields, or in how many there are."""
  if isinstance(found, Mapping) and isinstance(expected, Mapping):
    difference = missing_and_surplus(found, expected)
    if difference is not None:
      return difference
    differences = (
        _find_in_names(found[name], expected[name]) for name in found
    )
    return next(filter(None, differences), None)
  import tensorflow as tf  # pylint: disable=import-outside-toplevel

  num_found, num_expected = map(len, map(tf.nest.flatten, (found, expected)))
  if num_found != num_expected:
    return f'elements of {num_found} tensors; make them of {num_expected}'
  return None


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


def _cure_of_shape(
    found: tf.TensorShape, expected: tf.TensorShape, in_pipeline: bool
) -> str:
  """Returns what makes of one shape the other, which has a batch dimension."""
  example = expected[1:]
  lacks_batches = found.is_compatible_with(example) and _is_as_open(
      found, example
  )
  if in_pipeline and lacks_batches:
    return 'put the examples into batches, as `tf.data.Dataset.batch` does'
  rows = (found[1:], example)
  sizes = {row.num_elements() for row in rows}
  if rows[0] != rows[1] and len(sizes) == 1 and None not in sizes:
    return f'reshape it to {_described(expected)}'
  if in_pipeline and found[1:].is_compatible_with(expected):
    return 'take one level of batches away, as `tf.data.Dataset.unbatch` does'
  cure = f'make its shape {_described(expected)}'
  if not in_pipeline:
    return cure
  other = expected[:1].concatenate(found[1:])
  return f'{cure}, or build the model for {_described(other)}'


def _described(shape: tf.TensorShape) -> str:
  """Returns a shape as TFF's types have it."""
  if shape.rank is None:
    return '(unknown)'
  sizes = ('?' if size is None else str(size) for size in shape)
  return f'[{",".join(sizes)}]'


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


# What attrs calls with the object, the attribute and the value.
Validator = Callable[[Any, Any, Any], None]


def instance_of(expected: type[Any]) -> Validator:
  """Returns an attrs validator: an instance of a type.

  Args:
    expected: The type.

  Returns:
    A validator that raises a TypeError about a value of another type.
  """

  def validate(instance, attribute, value):
    del instance  # Unused.
    if not isinstance(value, expected):
      raise _type_error(attribute, f'of type {expected.__name__}', value)

  return validate


def is_callable(instance: Any, attribute: Any, value: Any) -> None:
  """An attrs validator: a function, or what can be called like one.

  Args:
    instance: The object under construction; unused.
    attribute: The attribute, whose name an error gives.
    value: The value to check.

  Raises:
    TypeError: If the value cannot be called.
  """
  del instance  # Unused.
  if not callable(value):
    raise _type_error(attribute, 'callable', value)


def _type_error(attribute: Any, wanted: str, value: Any) -> TypeError:
  return TypeError(
      f'`{attribute.name}` must be {wanted}, found {type(value).__name__}.'
  )
