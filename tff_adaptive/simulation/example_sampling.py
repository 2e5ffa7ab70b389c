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
"""Some examples of a data set, drawn for good, to evaluate on."""

import collections
from collections.abc import Mapping

import numpy as np

from tff_adaptive.simulation import client_data
from tff_adaptive.simulation import feature_arrays
from tff_adaptive.simulation import random_streams


def sample_examples(
    examples: Mapping[str, np.ndarray], num_examples: int, seed: int
) -> feature_arrays.Examples:
  """Draws some examples of a central data set, without replacement.

  Args:
    examples: Feature names and arrays of shape [total, ...].
    num_examples: How many, a positive integer.
    seed: The seed of the draw, a non-negative integer.

  Returns:
    New arrays of shape [num_examples, ...], in stored order; `examples` as they
    are if there are not more.

  Raises:
    TypeError: If the seed is not an integer.
    ValueError: If `num_examples` is not positive, the seed negative, or the
      arrays differ in length.

  Example:

    >>> sample_examples({'x': np.arange(100)}, 3, seed=0)['x'].shape
    (3,)
  """
  _check_positive(num_examples)
  features = feature_arrays.as_examples(examples, 'The examples')
  total = len(next(iter(features.values())))
  if num_examples >= total:
    return features
  stream = random_streams.stream(seed, random_streams.EXAMPLE_SUBSET)
  rows = np.sort(stream.choice(total, num_examples, replace=False))
  return collections.OrderedDict(
      (name, array[rows]) for name, array in features.items()
  )


def sample_client_examples(
    source: client_data.ClientArrays, num_examples: int, seed: int
) -> feature_arrays.Examples:
  """Draws examples of clients, of no more clients than it takes.

  Clients come in random order, each with all its examples, until there are
  enough; of the last one only the first count. So of clients in files no others
  are read.

  Args:
    source: The clients.
    num_examples: How many examples, a positive integer.
    seed: The seed of the draw, a non-negative integer.

  Returns:
    Feature names and arrays of shape [num_examples, ...], or [total, ...] if
    there are not as many.

  Raises:
    TypeError: If the seed is not an integer.
    ValueError: If `num_examples` is not positive, or the seed negative.

  Example:

    >>> seen = sample_client_examples(digits.train_data, 100, seed=0)
    >>> seen['y'].shape
    (100,)
  """
  _check_positive(num_examples)
  order = random_streams.stream(
      seed, random_streams.EXAMPLE_SUBSET
  ).permutation(len(source.client_ids))
  parts, missing = [], num_examples
  for place in order:
    examples = source.examples(source.client_ids[place])
    part = {name: array[:missing] for name, array in examples.items()}
    parts.append(part)
    missing -= len(next(iter(part.values())))
    if not missing:
      break
  return collections.OrderedDict(
      (name, np.concatenate([part[name] for part in parts]))
      for name in source.element_spec
  )


def _check_positive(num_examples: int) -> None:
  if num_examples < 1:
    raise ValueError(f'`num_examples` must be positive, found {num_examples}.')
