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
"""Splitting a central data set among clients.

Every function returns an ordered mapping from client ids, 'client_000' and so
on, to the rows that the client holds, which
`PackedClientArrays.from_partition` takes as it is. All are pure functions of
their arguments; random numbers come from `random_streams`.
"""

import collections
from collections.abc import Sequence
import numbers
from typing import Any, Optional, Union

import numpy as np

from tff_adaptive.simulation import random_streams

ClientIndices = collections.OrderedDict[str, np.ndarray]
# One number for all clients, or one for each.
Sizes = Union[int, Sequence[int], np.ndarray]


def iid(
    num_examples: int,
    num_clients: int,
    seed: int,
    *,
    examples_per_client: Optional[Sizes] = None,
) -> ClientIndices:
  """Splits a data set uniformly at random, without replacement.

  Args:
    num_examples: Rows of the data set, a positive integer.
    num_clients: Number of clients, a positive integer.
    seed: The seed of the partition, a non-negative integer.
    examples_per_client: How many rows a client gets: one number for all, or one
      for each. Together at most `num_examples`; rows left over are in no
      client. None (the default) for all rows, as evenly as possible.

  Returns:
    For every client id its rows, int64 of shape [examples of the client].

  Raises:
    TypeError: If a number is not an integer.
    ValueError: If a number is out of range.

  Example:

    >>> parts = iid(10, 3, seed=1)
    >>> [len(rows) for rows in parts.values()]
    [4, 3, 3]
  """
  _check_positive('num_examples', num_examples)
  sizes = _client_sizes(num_examples, num_clients, examples_per_client)
  _check_enough(sizes, num_examples)
  generator = random_streams.stream(seed, random_streams.PARTITION, 'iid')
  order = generator.permutation(num_examples).astype(np.int64, copy=False)
  ends = np.cumsum(sizes)
  return _name_clients(
      [order[end - size : end] for size, end in zip(sizes, ends)]
  )


def dirichlet_per_client(
    labels: np.ndarray,
    num_clients: int,
    alpha: float,
    seed: int,
    *,
    examples_per_client: Optional[Sizes] = None,
    with_replacement: bool = False,
) -> ClientIndices:
  """Gives every client a mix of classes of its own, drawn from a Dirichlet.

  ```
  q_i ~ Dirichlet(alpha * ones(num_classes))     for every client i
  ```

  Without replacement (the default) this is a true partition: n_i classes are
  drawn from q_i; where a class has no row left, it is left out and q_i is
  normalized again; where nothing of q_i is left, it is drawn anew over the
  classes that remain. Later clients thus get more of what is left.

  With replacement, client i gets round(n_i * q_i[c]) rows of every class but
  the last, which takes the rest (or nothing, where rounding up leaves less than
  nothing: sizes may then exceed n_i by a few), drawn from all rows of the class
  by every client anew. Client i does not depend on `num_clients` then.

  Args:
    labels: The class of every row, integers of shape [num_rows]. The classes
      are the values that occur.
    num_clients: Number of clients, a positive integer.
    alpha: Concentration, positive; small is heterogeneous (at 0.01 a client has
      one class or two), large is nearly i.i.d.
    seed: The seed of the partition, a non-negative integer.
    examples_per_client: n_i, the number of rows of a client: one number for
      all, or one for each. None (the default) divides the number of rows as
      evenly as possible.
    with_replacement: Whether clients draw rows independently of each other and
      with replacement, as in the Delta-SGD experiments.

  Returns:
    For every client id its rows in random order, int64 of shape [n_i].

  Raises:
    TypeError: If `labels`, a number of clients or examples is not an integer.
    ValueError: If `labels` is empty or not a vector, `alpha` or a number is not
      positive, or clients without replacement would need more rows than there
      are.

  Example:

    >>> parts = dirichlet_per_client([0, 0, 1, 1, 2], 2, alpha=1.0, seed=1)
    >>> sorted(np.concatenate(list(parts.values())).tolist())
    [0, 1, 2, 3, 4]

  References:
    With replacement: the published code of Kim et al., Adaptive Federated
    Learning with Auto-Tuned Clients, ICLR 2024,
    https://arxiv.org/abs/2306.11201, with 500 rows for each of 100 clients.
    Its text writes Dirichlet(alpha * p) with the prior p of the classes, which
    is more heterogeneous; its figures follow from its code.
    Without: Reddi et al., Adaptive Federated Optimization, ICLR 2021,
    https://arxiv.org/abs/2003.00295, Appendix C (CIFAR-10), after Hsu et al.,
    https://arxiv.org/abs/1909.06335. Theirs normalizes the mixes of all clients
    again when a class runs out, which comes to the same, and does not say what
    happens when nothing of a mix is left.
  """
  labels = _check_labels(labels)
  if not (alpha > 0 and np.isfinite(alpha)):
    raise ValueError(f'`alpha` must be positive and finite, found {alpha}.')
  sizes = _client_sizes(len(labels), num_clients, examples_per_client)
  if not with_replacement:
    _check_enough(sizes, len(labels))
  classes = [np.flatnonzero(labels == label) for label in np.unique(labels)]
  take = _draw_with_replacement if with_replacement else _draw_from_pools
  if not with_replacement:
    classes = _shuffled_pools(classes, seed)
  clients = []
  for i, size in enumerate(sizes):
    generator = random_streams.stream(
        seed, random_streams.PARTITION, 'dirichlet_per_client', i
    )
    rows = np.concatenate(take(classes, size, float(alpha), generator))
    clients.append(generator.permutation(rows).astype(np.int64, copy=False))
  return _name_clients(clients)


def _draw_with_replacement(
    classes: list[np.ndarray],
    size: int,
    alpha: float,
    generator: np.random.Generator,
) -> list[np.ndarray]:
  """Returns a client's rows of every class, drawn with replacement."""
  mix = generator.dirichlet(np.full(len(classes), alpha, np.float64))
  counts = np.round(size * mix).astype(np.int64)
  counts[-1] = max(size - counts[:-1].sum(), 0)
  return [
      generator.choice(rows, count, replace=True)
      for rows, count in zip(classes, counts)
  ]


def _draw_from_pools(
    pools: list[np.ndarray],
    size: int,
    alpha: float,
    generator: np.random.Generator,
) -> list[np.ndarray]:
  """Takes a client's rows out of the pools, which shrink.

  Draws of a class beyond its last row are made again without that class: this
  has the same distribution as stopping at the draw that empties it.
  """
  available = np.array([len(pool) for pool in pools])
  mix = generator.dirichlet(np.full(len(pools), alpha, np.float64))
  counts = np.zeros(len(pools), np.int64)
  while counts.sum() < size:
    left = counts < available
    mix = np.where(left, mix, 0.0)
    if mix.sum() <= 0.0:
      mix[left] = generator.dirichlet(np.full(left.sum(), alpha, np.float64))
    mix = mix / mix.sum()
    counts += generator.multinomial(size - counts.sum(), mix)
    counts = np.minimum(counts, available)
  taken = []
  for i, count in enumerate(counts):
    taken.append(pools[i][:count])
    pools[i] = pools[i][count:]
  return taken


def _shuffled_pools(classes: list[np.ndarray], seed: int) -> list[np.ndarray]:
  return [
      random_streams.stream(
          seed, random_streams.PARTITION, 'dirichlet_per_client', 'pool', i
      ).permutation(rows)
      for i, rows in enumerate(classes)
  ]


def _client_sizes(
    num_examples: int, num_clients: int, examples_per_client: Optional[Sizes]
) -> list[int]:
  """Returns how many rows every client is to get."""
  _check_positive('num_clients', num_clients)
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
    _check_positive('examples_per_client', size)
  return [int(size) for size in sizes]


def _check_labels(labels: np.ndarray) -> np.ndarray:
  labels = np.asarray(labels)
  if labels.ndim != 1 or not labels.size:
    raise ValueError(
        f'`labels` must be a vector of classes, found shape {labels.shape}.'
    )
  if not np.issubdtype(labels.dtype, np.integer):
    raise TypeError(f'`labels` must be integers, found {labels.dtype}.')
  return labels


def _check_positive(name: str, value: int) -> None:
  if isinstance(value, bool) or not isinstance(value, numbers.Integral):
    raise TypeError(f'`{name}` must be an integer, found {value!r}.')
  if value <= 0:
    raise ValueError(f'`{name}` must be positive, found {value}.')


def _check_enough(sizes: list[int], num_examples: int) -> None:
  if sum(sizes) > num_examples:
    raise ValueError(
        f'{len(sizes)} clients would need {sum(sizes)} examples without '
        f'replacement, found {num_examples}.'
    )


def _name_clients(clients: list[np.ndarray]) -> ClientIndices:
  """Names clients by number, so that ids sort in order."""
  width = max(3, len(str(len(clients) - 1)))
  return collections.OrderedDict(
      (f'client_{i:0{width}d}', rows) for i, rows in enumerate(clients)
  )
