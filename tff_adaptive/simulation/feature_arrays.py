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
"""The examples of one owner, as a mapping from feature names to arrays."""

import collections
from collections.abc import Mapping

import numpy as np
import tensorflow as tf

Examples = collections.OrderedDict[str, np.ndarray]
ElementSpec = collections.OrderedDict[str, tf.TensorSpec]


def as_examples(features: Mapping[str, np.ndarray], owner: str) -> Examples:
  """Returns features as arrays after checking that they fit together.

  Args:
    features: A flat mapping from feature names to arrays, or to what NumPy
      turns into arrays, all of shape [num_examples, ...].
    owner: Whose features they are, the subject of an error's sentence.

  Returns:
    The same features in the same order, as read-only views: nothing is copied
    that is an array already.

  Raises:
    TypeError: If `features` is not a mapping from strings, or nested.
    ValueError: If there is no feature, a feature is a scalar, or the features
      differ in the number of examples.

  Example:

    >>> as_examples({'x': [1.0, 2.0]}, 'The test set')['x']
    array([1., 2.])
  """
  if not isinstance(features, Mapping):
    raise TypeError(
        f'{owner} must be a mapping from feature names to arrays, found '
        f'{type(features).__name__}.'
    )
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
    array.setflags(write=False)
    examples[name] = array
  sizes = {name: len(array) for name, array in examples.items()}
  if len(set(sizes.values())) > 1:
    raise ValueError(
        f'{owner} must have equally many examples in every feature, found '
        f'{sizes}.'
    )
  return examples


def spec_of(examples: Mapping[str, np.ndarray]) -> ElementSpec:
  """Returns the specification of one example.

  Args:
    examples: Feature names and arrays of shape [num_examples, ...].

  Returns:
    Feature names and `tf.TensorSpec`s without the dimension of the examples.

  Example:

    >>> spec_of({'y': np.zeros([5, 2], np.int32)})['y'].shape.as_list()
    [2]
  """
  return collections.OrderedDict(
      (name, tf.TensorSpec(array.shape[1:], tf.as_dtype(array.dtype)))
      for name, array in examples.items()
  )


def check_match(
    examples: Mapping[str, np.ndarray], spec: ElementSpec, client_id: str
) -> Examples:
  """Returns a client's features in the order of a specification.

  Args:
    examples: Feature names and arrays of shape [num_examples, ...].
    spec: Feature names and the `tf.TensorSpec` of one example.
    client_id: The client, for the error's sentence.

  Returns:
    The same arrays, in the order of `spec`.

  Raises:
    ValueError: If names, types or shapes differ.

  Example:

    >>> spec = {'x': tf.TensorSpec([], tf.float32)}
    >>> check_match({'x': np.ones([2], np.float32)}, spec, 'a')['x']
    array([1., 1.], dtype=float32)
  """
  if set(examples) != set(spec):
    raise ValueError(
        f'Client {client_id!r} has the features {list(examples)}, where '
        f'{list(spec)} are expected.'
    )
  for name, found in spec_of(examples).items():
    expected = spec[name]
    if found.dtype != expected.dtype or not found.shape.is_compatible_with(
        expected.shape
    ):
      raise ValueError(
          f'Client {client_id!r} has feature {name!r} with examples of type '
          f'{found.dtype.name} and shape {found.shape}, where '
          f'{expected.dtype.name} and {expected.shape} are expected.'
      )
  return collections.OrderedDict((name, examples[name]) for name in spec)


def num_bytes(examples: Mapping[str, np.ndarray]) -> int:
  """Returns the size of a client; strings count with their contents."""
  size = 0
  for array in examples.values():
    size += array.nbytes
    if array.dtype == np.object_:
      size += sum(len(item) for item in array.flat)
  return size
