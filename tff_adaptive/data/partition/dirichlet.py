# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Dirichlet partitions over labels."""

import collections
from collections.abc import Sequence
from typing import Any, Optional, Union

import numpy as np

from tff_adaptive.data import random_streams
from tff_adaptive.data import specs

# The rows of each client by id, int64.
ClientIndices = collections.OrderedDict[str, np.ndarray]
# One number for all clients, or one for each client.
Sizes = Union[int, Sequence[int], np.ndarray]

# Below, NumPy retries forever to draw a non-zero mix; above, sums overflow.
_MIN_ALPHA = 1e-6
_MAX_ALPHA = 1e100


def client_sizes(
    num_examples: int, num_clients: int, examples_per_client: Optional[Sizes]
) -> list[int]:
  """Returns the number of rows of each client."""
  specs.check_positive('num_clients', num_clients)
  if examples_per_client is None:
    each, rest = divmod(num_examples, num_clients)
    return [each + (i < rest) for i in range(num_clients)]
  given: Any = examples_per_client
  sizes = [given] * num_clients if np.ndim(given) == 0 else list(given)
  if len(sizes) != num_clients:
    raise ValueError(
        '`examples_per_client` must have one entry for each of the '
        f'{num_clients} clients, found {len(sizes)}.'
    )
  for size in sizes:
    specs.check_positive('examples_per_client', size)
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
  if not _MIN_ALPHA <= alpha <= _MAX_ALPHA:
    raise ValueError(
        f'`{name}` must be from {_MIN_ALPHA:g} to {_MAX_ALPHA:g}, the range '
        f'that NumPy can draw from, found {alpha}.'
    )
  return float(alpha)


def check_enough(sizes: Sequence[int], num_examples: int) -> None:
  """Raises if disjoint clients would need more rows than there are."""
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


def draw_mixed_counts(
    size: int,
    available: np.ndarray,
    alpha: float,
    generator: np.random.Generator,
) -> np.ndarray:
  """Returns the number of rows of each class for a client, by a Dirichlet mix.

  Draws of a class beyond its last row are repeated without that class: this has
  the same distribution as stopping at the draw that empties it.
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


def dirichlet_per_client(
    labels: np.ndarray,
    num_clients: int,
    alpha: float,
    seed: int,
    *,
    examples_per_client: Optional[Sizes] = None,
    with_replacement: bool = False,
) -> ClientIndices:
  """Gives each client its own mix of classes, sampled from a Dirichlet.

  ```
  q_i ~ Dirichlet(alpha * ones(num_classes))     for every client i
  ```

  Without replacement (the default) this is a true partition: n_i classes are
  sampled from q_i. A class without remaining rows is left out and q_i is
  renormalized; if nothing of q_i is left, it is sampled again over the
  remaining classes. Later clients therefore get more of what is left.

  With replacement, client i gets round(n_i * q_i[c]) rows of every class except
  the last, which gets the rest (or nothing if rounding up has used more than
  n_i rows; sizes may then exceed n_i by a few). Each client samples from all
  rows of the class, and with `examples_per_client` client i does not depend on
  `num_clients`.

  Args:
    labels: The class of each row, integers of shape [num_rows]. The classes are
      the values that occur.
    num_clients: The number of clients, positive.
    alpha: The concentration, positive; small is heterogeneous (at 0.01 a client
      has one or two classes), large is nearly i.i.d.
    seed: The seed of the partition, non-negative.
    examples_per_client: n_i, the number of rows of a client: one number for
      all, or one for each. None (the default) divides the rows as evenly as
      possible.
    with_replacement: Whether clients sample rows independently and with
      replacement, as in the Delta-SGD experiments. Defaults to False.

  Returns:
    The rows of each client by id, in random order, int64 of shape [n_i].

  Raises:
    TypeError: If `labels` or a number of clients or examples is not an integer.
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
    The text writes Dirichlet(alpha * p) with the prior p of the classes, which
    is more heterogeneous; the figures follow from the code.
    Without: Reddi et al., Adaptive Federated Optimization, ICLR 2021,
    https://arxiv.org/abs/2003.00295, Appendix C (CIFAR-10), after Hsu et al.,
    https://arxiv.org/abs/1909.06335. They renormalize the mixes of all clients
    when a class runs out, which is equivalent, and do not say what happens when
    nothing of a mix is left.
  """
  labels = check_labels(labels)
  alpha = check_alpha(alpha)
  sizes = client_sizes(len(labels), num_clients, examples_per_client)
  classes = [np.flatnonzero(labels == label) for label in np.unique(labels)]
  take = _draw_with_replacement
  if not with_replacement:
    check_enough(sizes, len(labels))
    classes = _shuffled_pools(classes, seed)
    take = draw_from_pools
  clients = []
  for i, size in enumerate(sizes):
    generator = random_streams.stream(
        seed, random_streams.PARTITION, 'dirichlet_per_client', i
    )
    rows = np.concatenate(take(classes, size, alpha, generator))
    clients.append(generator.permutation(rows))
  return name_clients(clients)


def _draw_with_replacement(
    pools: list[np.ndarray],
    size: int,
    alpha: float,
    generator: np.random.Generator,
) -> list[np.ndarray]:
  """Samples a client's rows of every class, with replacement."""
  mix = generator.dirichlet(np.full(len(pools), alpha, np.float64))
  counts = np.round(size * mix).astype(np.int64)
  counts[-1] = max(size - counts[:-1].sum(), 0)
  return [
      generator.choice(rows, count, replace=True)
      for rows, count in zip(pools, counts)
  ]


def draw_from_pools(
    pools: list[np.ndarray],
    size: int,
    alpha: float,
    generator: np.random.Generator,
) -> list[np.ndarray]:
  """Removes a client's rows from the pools and returns them."""
  available = np.array([len(pool) for pool in pools])
  taken = []
  for i, count in enumerate(
      draw_mixed_counts(size, available, alpha, generator)
  ):
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


def dirichlet_per_class(
    labels: np.ndarray,
    num_clients: int,
    alpha: float,
    seed: int,
    *,
    min_size: int = 0,
    cap: bool = False,
    max_tries: int = 1000,
) -> ClientIndices:
  """Divides each class among the clients, in Dirichlet shares.

  ```
  p_c ~ Dirichlet(alpha * ones(num_clients))     for every class c
  ```

  Client i gets the share p_c[i] of the rows of class c, in random order; the
  cuts are at floor(cumulative sum of p_c * rows of c). This is a true partition
  of all rows, in which clients differ in size as well as in their classes.

  Args:
    labels: The class of each row, integers of shape [num_rows]. The classes are
      the values that occur, in ascending order.
    num_clients: M, the number of clients, positive.
    alpha: The concentration, positive; small gives a class to few clients,
      large to all of them evenly.
    seed: The seed of the partition, non-negative.
    min_size: The minimum number of rows of each client, non-negative. All
      shares are sampled again until it is reached. Defaults to 0: clients may
      be empty.
    cap: Whether a client with num_rows / M rows or more gets nothing of the
      remaining classes; the shares of the others are renormalized. Defaults to
      False.
    max_tries: The maximum number of times that shares are sampled, positive.
      Defaults to 1000.

  Returns:
    The rows of each client by id, in random order, int64 of shape [n_i].

  Raises:
    TypeError: If `labels` or a number is not an integer.
    ValueError: If `labels` is empty or not a vector, a number is out of range,
      or a client has fewer than `min_size` rows in each of the tries.

  Example:

    >>> parts = dirichlet_per_class([0, 0, 1, 1, 2], 2, 1.0, seed=1, min_size=1)
    >>> sorted(np.concatenate(list(parts.values())).tolist())
    [0, 1, 2, 3, 4]

  References:
    Yurochkin et al., Bayesian Nonparametric Federated Learning of Neural
    Networks, ICML 2019, https://arxiv.org/abs/1905.12022, Section 4; its
    published code and FedML's partition "hetero" set `cap=True` and
    `min_size=10`, and retry forever. Where every client that is not full has
    the share 0, they divide by 0; here these shares are sampled again.
  """
  labels = check_labels(labels)
  alpha = check_alpha(alpha)
  specs.check_positive('num_clients', num_clients)
  specs.check_not_negative('min_size', min_size)
  specs.check_positive('max_tries', max_tries)
  if min_size * num_clients > len(labels):
    raise ValueError(
        f'`min_size` must be at most {len(labels) // num_clients} for '
        f'{len(labels)} rows and {num_clients} clients, found {min_size}.'
    )
  classes = [np.flatnonzero(labels == label) for label in np.unique(labels)]
  class_sizes = [len(rows) for rows in classes]
  limit = len(labels) / num_clients if cap else np.inf
  for i in range(max_tries):
    generator = random_streams.stream(
        seed, random_streams.PARTITION, 'dirichlet_per_class', i
    )
    counts = _draw_class_counts(
        class_sizes, num_clients, alpha, limit, generator
    )
    if counts.sum(axis=0).min() >= min_size:
      return _deal_classes(classes, counts, generator)
  raise ValueError(
      f'No partition with `min_size`={min_size} rows for each client was found '
      f'for `num_clients`={num_clients} and `alpha`={alpha:g} in `max_tries`='
      f'{max_tries} tries; decrease `min_size` or `num_clients`, or increase '
      '`alpha`.'
  )


def _draw_class_counts(
    class_sizes: list[int],
    num_clients: int,
    alpha: float,
    limit: float,
    generator: np.random.Generator,
) -> np.ndarray:
  """Returns each client's number of rows per class, [classes, clients]."""
  counts = np.zeros([len(class_sizes), num_clients], np.int64)
  concentration = np.full(num_clients, alpha, np.float64)
  for i, size in enumerate(class_sizes):
    is_open = counts.sum(axis=0) < limit
    shares = np.where(is_open, generator.dirichlet(concentration), 0.0)
    if shares.sum() <= 0.0:
      shares[is_open] = generator.dirichlet(concentration[is_open])
    ends = (np.cumsum(shares / shares.sum()) * size).astype(np.int64)
    # The last client with a share gets the rows that rounding leaves.
    ends[np.flatnonzero(shares)[-1] :] = size
    counts[i] = np.diff(ends, prepend=0)
  return counts


def _deal_classes(
    classes: list[np.ndarray],
    counts: np.ndarray,
    generator: np.random.Generator,
) -> ClientIndices:
  """Deals `counts` random rows of each class to the clients."""
  parts = [
      np.split(generator.permutation(rows), np.cumsum(row_counts)[:-1])
      for rows, row_counts in zip(classes, counts)
  ]
  clients = [
      generator.permutation(np.concatenate(rows)) for rows in zip(*parts)
  ]
  return name_clients(clients)
