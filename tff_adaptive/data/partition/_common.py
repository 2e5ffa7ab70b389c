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
"""What the partitions have in common: checks, sizes and names of clients."""

import collections
from collections.abc import Sequence
import numbers
from typing import Any, Optional, Union

import numpy as np

# From the ids of clients to the rows that they hold, int64.
ClientIndices = collections.OrderedDict[str, np.ndarray]
# One number for all clients, or one for each.
Sizes = Union[int, Sequence[int], np.ndarray]

# Below, NumPy tries for ever to draw a mix that is not 0; above, sums overflow.
_MIN_ALPHA = 1e-6
_MAX_ALPHA = 1e100


def client_sizes(
    num_examples: int, num_clients: int, examples_per_client: Optional[Sizes]
) -> list[int]:
  """Returns how many rows every client is to get."""
  check_positive('num_clients', num_clients)
  if examples_per_client is None:
    each, rest = divmod(num_examples, num_clients)
    return [each + (i < rest) for i in range(num_clients)]
  given: Any = examples_per_client
  sizes = [given] * num_clients if np.ndim(given) == 0 else list(given)
  if len(sizes) != num_clients:
    raise ValueError(
        '`examples_per_client` must have an entry for each of the '
        f'{num_clients} clients, found {len(sizes)}.'
    )
  for size in sizes:
    check_positive('examples_per_client', size)
  return [int(size) for size in sizes]


def check_labels(labels: np.ndarray, name: str = 'labels') -> np.ndarray:
  """Returns labels as a vector of integers, or raises."""
  labels = np.asarray(labels)
  if labels.ndim != 1 or not labels.size:
    raise ValueError(
        f'`{name}` must be a vector of classes, found shape {labels.shape}.'
    )
  if not np.issubdtype(labels.dtype, np.integer):
    raise TypeError(f'`{name}` must be integers, found {labels.dtype}.')
  return labels


def check_alpha(alpha: float, name: str = 'alpha') -> float:
  """Returns a concentration as a float, or raises."""
  if not (alpha > 0 and np.isfinite(alpha)):
    raise ValueError(f'`{name}` must be positive and finite, found {alpha}.')
  if not _MIN_ALPHA <= alpha <= _MAX_ALPHA:
    raise ValueError(
        f'`{name}` must be from {_MIN_ALPHA:g} to {_MAX_ALPHA:g}, the range '
        f'that NumPy can draw from, found {alpha}.'
    )
  return float(alpha)


def check_integer(name: str, value: int) -> None:
  """Raises unless an argument is an integer."""
  if isinstance(value, bool) or not isinstance(value, numbers.Integral):
    raise TypeError(f'`{name}` must be an integer, found {value!r}.')


def check_positive(name: str, value: int) -> None:
  """Raises unless an argument is a positive integer."""
  check_integer(name, value)
  if value <= 0:
    raise ValueError(f'`{name}` must be positive, found {value}.')


def check_not_negative(name: str, value: int) -> None:
  """Raises unless an argument is an integer from 0."""
  check_integer(name, value)
  if value < 0:
    raise ValueError(f'`{name}` must not be negative, found {value}.')


def check_enough(sizes: Sequence[int], num_examples: int) -> None:
  """Raises if clients without rows in common would need more than there are."""
  if sum(sizes) > num_examples:
    raise ValueError(
        f'{len(sizes)} clients would need {sum(sizes)} examples without '
        f'replacement, found {num_examples}.'
    )


def name_clients(clients: Sequence[np.ndarray]) -> ClientIndices:
  """Names clients by number, so that ids sort in order."""
  width = max(3, len(str(len(clients) - 1)))
  return collections.OrderedDict(
      (f'client_{i:0{width}d}', rows) for i, rows in enumerate(clients)
  )


def draw_class_counts(
    size: int,
    available: np.ndarray,
    alpha: float,
    generator: np.random.Generator,
) -> np.ndarray:
  """Returns how many rows of every class a client takes, by a Dirichlet mix.

  Draws of a class beyond its last row are made again without that class: this
  has the same distribution as stopping at the draw that empties it.
  """
  mix = generator.dirichlet(np.full(len(available), alpha, np.float64))
  counts = np.zeros(len(available), np.int64)
  while counts.sum() < size:
    left = counts < available
    mix = np.where(left, mix, 0.0)
    if mix.sum() <= 0.0:
      mix[left] = generator.dirichlet(np.full(left.sum(), alpha, np.float64))
    mix = mix / mix.sum()
    counts += generator.multinomial(size - counts.sum(), mix)
    counts = np.minimum(counts, available)
  return counts


def take_from_pools(
    pools: list[np.ndarray], counts: np.ndarray
) -> list[np.ndarray]:
  """Takes the first rows out of pools, which shrink."""
  taken = []
  for i, count in enumerate(counts):
    taken.append(pools[i][:count])
    pools[i] = pools[i][count:]
  return taken
