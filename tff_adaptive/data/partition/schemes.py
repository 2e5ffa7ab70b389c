# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Partitions: i.i.d., by shards, by natural ids, by sizes; and all by name."""

import collections
import re
from typing import Optional, Union

import numpy as np

from tff_adaptive.data import feature_arrays
from tff_adaptive.data import random_streams
from tff_adaptive.data import specs
from tff_adaptive.data.partition import dirichlet
from tff_adaptive.data.partition import pachinko


def iid(
    num_examples: int,
    num_clients: int,
    seed: int,
    *,
    examples_per_client: Optional[dirichlet.Sizes] = None,
) -> dirichlet.ClientIndices:
  """Splits a data set uniformly at random, without replacement.

  Args:
    num_examples: The number of rows of the data set, positive.
    num_clients: The number of clients, positive.
    seed: The seed of the partition, non-negative.
    examples_per_client: The number of rows of a client: one number for all, or
      one for each. Together at most `num_examples`; other rows are unused. None
      (the default) uses all rows, divided as evenly as possible.

  Returns:
    The rows of each client by id, int64 of shape [number of rows].

  Raises:
    TypeError: If a number is not an integer.
    ValueError: If a number is out of range.

  Example:

    >>> parts = iid(10, 3, seed=1)
    >>> [len(rows) for rows in parts.values()]
    [4, 3, 3]
  """
  specs.check_positive('num_examples', num_examples)
  sizes = dirichlet.client_sizes(num_examples, num_clients, examples_per_client)
  dirichlet.check_enough(sizes, num_examples)
  generator = random_streams.stream(seed, random_streams.PARTITION, 'iid')
  order = generator.permutation(num_examples)
  ends = np.cumsum(sizes)
  return dirichlet.name_clients(
      [order[end - size : end] for size, end in zip(sizes, ends)]
  )


def shards(
    labels: np.ndarray, num_clients: int, shards_per_client: int, seed: int
) -> dirichlet.ClientIndices:
  """Sorts rows by class, cuts them into shards and deals these to clients.

  With two shards per client, most clients have two classes. This is a true
  partition of all rows; if they do not divide evenly, the first shards are
  larger by one.

  Args:
    labels: The class of each row, integers of shape [num_rows].
    num_clients: The number of clients, positive.
    shards_per_client: The number of shards of a client, positive.
    seed: The seed of the partition, non-negative.

  Returns:
    The rows of each client by id, in random order, int64 of shape [n_i].

  Raises:
    TypeError: If `labels` or a number is not an integer.
    ValueError: If `labels` is empty or not a vector, a number is not positive,
      or there are more shards than rows.

  Example:

    >>> parts = shards([0, 1, 0, 1], 2, 1, seed=1)
    >>> [sorted(rows.tolist()) for rows in parts.values()]
    [[1, 3], [0, 2]]

  References:
    McMahan et al., Communication-Efficient Learning of Deep Networks from
    Decentralized Data, AISTATS 2017, https://arxiv.org/abs/1602.05629, Section
    3: MNIST sorted by digit, 200 shards of 300, two for each of 100 clients.
  """
  labels = dirichlet.check_labels(labels)
  specs.check_positive('num_clients', num_clients)
  specs.check_positive('shards_per_client', shards_per_client)
  num_shards = num_clients * shards_per_client
  if num_shards > len(labels):
    raise ValueError(
        f'`num_clients` * `shards_per_client` must be at most {len(labels)}, '
        f'the number of rows, found {num_shards}.'
    )
  parts = np.array_split(np.argsort(labels, kind='stable'), num_shards)
  generator = random_streams.stream(seed, random_streams.PARTITION, 'shards')
  order = generator.permutation(num_shards).reshape(num_clients, -1)
  clients = [np.concatenate([parts[i] for i in chosen]) for chosen in order]
  return dirichlet.name_clients(
      [generator.permutation(rows) for rows in clients]
  )


def by_natural_id(ids: np.ndarray) -> dirichlet.ClientIndices:
  """Groups rows by the client that produced them.

  Args:
    ids: The owner of each row (writer, user, device), integers or strings of
      shape [num_rows].

  Returns:
    The rows of each client by id, in order, int64 of shape [n_i]. Ids become
    strings; clients are sorted by id, integers as numbers.

  Raises:
    TypeError: If `ids` are neither integers nor strings.
    ValueError: If `ids` is empty or not a vector.

  Example:

    >>> parts = by_natural_id(['bob', 'ann', 'bob'])
    >>> {name: rows.tolist() for name, rows in parts.items()}
    {'ann': [1], 'bob': [0, 2]}
  """
  ids = np.asarray(feature_arrays.unboxed(ids))
  if ids.ndim != 1 or not ids.size:
    raise ValueError(f'`ids` must be a vector, found shape {ids.shape}.')
  if ids.dtype.kind == 'O' and all(isinstance(name, str) for name in ids):
    ids = ids.astype(str)
  if ids.dtype.kind not in 'iuU':
    raise TypeError(f'`ids` must be integers or strings, found {ids.dtype}.')
  names, owners = np.unique(ids, return_inverse=True)
  order = np.argsort(owners, kind='stable')
  ends = np.cumsum(np.bincount(owners))[:-1]
  return collections.OrderedDict(
      (str(name), rows) for name, rows in zip(names, np.split(order, ends))
  )


def equal_sizes(num_clients: int, total: int) -> np.ndarray:
  """Divides a number of examples as evenly as possible.

  Args:
    num_clients: The number of clients, positive.
    total: The total number of examples, at least one per client.

  Returns:
    The clients' sizes, int64 of shape [num_clients]; the first ones are larger
    by one if there is a remainder.

  Raises:
    TypeError: If a number is not an integer.
    ValueError: If there are fewer examples than clients, or no clients.

  Example:

    >>> equal_sizes(3, 10).tolist()
    [4, 3, 3]
  """
  _check_total(num_clients, total, 1)
  return np.array(dirichlet.client_sizes(total, num_clients, None), np.int64)


def uniform_sizes(
    num_clients: int, low: int, high: int, seed: int
) -> np.ndarray:
  """Samples each size uniformly from a range of integers.

  Args:
    num_clients: The number of clients, positive.
    low: The smallest size, positive.
    high: The largest size (inclusive), at least `low`.
    seed: The seed of the partition, non-negative.

  Returns:
    The clients' sizes, int64 of shape [num_clients]. A client's size does not
    depend on `num_clients`.

  Raises:
    TypeError: If a number is not an integer.
    ValueError: If a number is not positive, or `high` is less than `low`.

  Example:

    >>> sizes = uniform_sizes(100, 100, 500, seed=1)
    >>> bool(sizes.min() >= 100), bool(sizes.max() <= 500)
    (True, True)

  References:
    Kim et al., Adaptive Federated Learning with Auto-Tuned Clients, ICLR 2024,
    https://arxiv.org/abs/2306.11201, Appendix B.3: n_i from 100 to 500, and an
    example-weighted mean.
  """
  specs.check_positive('num_clients', num_clients)
  specs.check_positive('low', low)
  specs.check_integer('high', high)
  if high < low:
    raise ValueError(f'`high` must be at least `low` = {low}, found {high}.')
  return _stream(seed, 'uniform').integers(
      low, high, num_clients, np.int64, endpoint=True
  )


def skewed_sizes(
    num_clients: int,
    total: int,
    seed: int,
    *,
    sigma: float = 1.0,
    min_size: int = 1,
) -> np.ndarray:
  """Divides a number of examples in log-normal shares: few clients have many.

  ```
  n_i = min_size + (total - min_size * num_clients) * w_i / sum(w)
  w_i = exp(sigma * z_i),  z_i ~ Normal(0, 1)
  ```

  rounded down; the largest fractions are rounded up so that the sizes add up to
  `total`.

  Args:
    num_clients: The number of clients, positive.
    total: The total number of examples, at least `min_size` per client.
    seed: The seed of the partition, non-negative.
    sigma: The inequality of the sizes, non-negative; 0 makes them equal.
      Defaults to 1: the largest tenth of many clients has 39% of the examples.
    min_size: The smallest size, positive. Defaults to 1.

  Returns:
    The clients' sizes, int64 of shape [num_clients].

  Raises:
    TypeError: If a number is not an integer.
    ValueError: If a number is out of range.

  Example:

    >>> int(skewed_sizes(100, 60_000, seed=1).sum())
    60000
  """
  specs.check_positive('min_size', min_size)
  _check_total(num_clients, total, min_size)
  if not (sigma >= 0 and np.isfinite(sigma)):
    raise ValueError(f'`sigma` must be finite and not negative, found {sigma}.')
  exponents = sigma * _stream(seed, 'skewed').standard_normal(num_clients)
  weights = np.exp(exponents - exponents.max())
  shares = (total - min_size * num_clients) * (weights / weights.sum())
  sizes = np.floor(shares).astype(np.int64) + min_size
  fractions = shares - np.floor(shares)
  order = np.argsort(-fractions, kind='stable')
  sizes[order[: total - int(sizes.sum())]] += 1
  return sizes


def _stream(seed: int, name: str) -> np.random.Generator:
  return random_streams.stream(seed, random_streams.PARTITION, 'sizes', name)


def _check_total(num_clients: int, total: int, min_size: int) -> None:
  specs.check_positive('num_clients', num_clients)
  specs.check_positive('total', total)
  if total < min_size * num_clients:
    raise ValueError(
        f'`total` must be at least {min_size * num_clients} for {num_clients} '
        f'clients, found {total}.'
    )


# The names that `by_scheme` accepts for any data set with classes.
SCHEMES = (
    'dirichlet_with_replacement',
    'dirichlet_without_replacement',
    'dirichlet_per_class',
    'shards',
    'iid',
)
# Also the names that need coarse classes.
COARSE_SCHEMES = SCHEMES + ('pachinko',)


def by_scheme(
    scheme: str,
    labels: np.ndarray,
    num_clients: int,
    seed: int,
    *,
    alpha: float = 0.1,
    examples_per_client: Optional[Union[str, dirichlet.Sizes]] = None,
    shards_per_client: int = 2,
    min_size: int = 1,
    cap: bool = False,
    coarse_labels: Optional[np.ndarray] = None,
    fine_alpha: float = 10.0,
) -> dirichlet.ClientIndices:
  """Splits a data set by the named scheme.

  Args:
    scheme: One of `COARSE_SCHEMES`: 'dirichlet_with_replacement' and
      'dirichlet_without_replacement' are `dirichlet_per_client`, 'pachinko' is
      `pachinko_allocation`; the others have the names of their functions.
      `SCHEMES` are those that need no coarse classes.
    labels: The class of each row, integers of shape [num_rows].
    num_clients: The number of clients, positive.
    seed: The seed of the partition and of its sizes, non-negative.
    alpha: The concentration of the Dirichlet schemes, and of the coarse classes
      in `pachinko_allocation`. Defaults to 0.1.
    examples_per_client: The sizes of the clients, not for `dirichlet_per_class`
      and `shards`, which divide all rows: numbers, or a string such as '500'
      (all equal) or '100-500' (`uniform_sizes`). None (the default) divides all
      rows evenly.
    shards_per_client: See `shards`. Defaults to 2.
    min_size: See `dirichlet_per_class`. Defaults to 1: no client is empty.
    cap: See `dirichlet_per_class`. Defaults to False.
    coarse_labels: The coarse class of each row, for `pachinko_allocation`. None
      (the default) without coarse classes.
    fine_alpha: See `pachinko_allocation`. Defaults to 10.

  Returns:
    The rows of each client by id, int64 of shape [n_i].

  Raises:
    TypeError: If `labels` or a number is not an integer.
    ValueError: If the scheme is unknown, does not take `examples_per_client`,
      is 'pachinko' without `coarse_labels`, or an argument is out of range.

  Example:

    >>> parts = by_scheme(
    ...     'iid', np.zeros([9], np.int32), 3, seed=1, examples_per_client='2')
    >>> [len(rows) for rows in parts.values()]
    [2, 2, 2]
  """
  known = SCHEMES if coarse_labels is None else COARSE_SCHEMES
  if scheme not in known:
    raise ValueError(
        f'`partition` must be one of {", ".join(known)}, found {scheme!r}.'
    )
  if scheme in ('dirichlet_per_class', 'shards'):
    if examples_per_client is not None:
      raise ValueError(
          f'`examples_per_client` does not apply to `partition`={scheme!r}, '
          f'which divides all rows; found {examples_per_client!r}.'
      )
    if scheme == 'shards':
      return shards(labels, num_clients, shards_per_client, seed)
    return dirichlet.dirichlet_per_class(
        labels, num_clients, alpha, seed, min_size=min_size, cap=cap
    )
  if isinstance(examples_per_client, str):
    examples_per_client = _parse_sizes(examples_per_client, num_clients, seed)
  if scheme == 'iid':
    return iid(
        len(labels),
        num_clients,
        seed,
        examples_per_client=examples_per_client,
    )
  if scheme == 'pachinko':
    return pachinko.pachinko_allocation(
        labels,
        coarse_labels,
        num_clients,
        seed,
        coarse_alpha=alpha,
        fine_alpha=fine_alpha,
        examples_per_client=examples_per_client,
    )
  return dirichlet.dirichlet_per_client(
      labels,
      num_clients,
      alpha,
      seed,
      examples_per_client=examples_per_client,
      with_replacement=scheme == 'dirichlet_with_replacement',
  )


def _parse_sizes(text: str, num_clients: int, seed: int) -> dirichlet.Sizes:
  """Parses sizes such as '500' or '100-500'."""
  match = re.fullmatch(r'(\d+)(?:-(\d+))?', text)
  if match is None:
    raise ValueError(
        "`examples_per_client` must be a number such as '500' or a range such "
        f"as '100-500', found {text!r}."
    )
  low, high = match.groups()
  if high is None:
    return int(low)
  return uniform_sizes(num_clients, int(low), int(high), seed)
