# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Derives clients from other clients: maps, selects, splits, concatenates."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from tff_adaptive.data import client_data
from tff_adaptive.data import feature_arrays
from tff_adaptive.data import random_streams

if TYPE_CHECKING:
  import tensorflow as tf


def map_clients(
    source: client_data.ClientArrays,
    fn: Callable[[feature_arrays.Examples], Mapping[str, np.ndarray]],
    element_spec: Mapping[str, tf.TensorSpec],
    *,
    keeps_sizes: bool,
    cache_bytes: int = client_data.DEFAULT_CACHE_BYTES,
) -> client_data.ClientArrays:
  """Preprocesses every client.

  Args:
    source: The clients.
    fn: Maps features, arrays of shape [n, ...], to new features. It must treat
      examples one by one if `keeps_sizes` is set.
    element_spec: Names and `tf.TensorSpec`s of the new features of one example.
    keeps_sizes: Whether `fn` keeps the number and the order of examples. Shared
      arrays are then mapped at once, and a lazy source stays lazy with the
      sizes it knows.
    cache_bytes: The size of the cache of lazily mapped clients. Defaults to 256
      MiB.

  Returns:
    The clients with their new features, in the same order: shared arrays if
    `source` has them and `keeps_sizes` is set, else clients that are mapped on
    demand.

  Raises:
    ValueError: If the result of `fn` does not match `element_spec`, or changes
      the sizes despite `keeps_sizes`; for lazy clients, when they are read.

  Example:

    >>> clients = client_data.PackedClientArrays.from_clients(
    ...     {'a': {'pixels': np.array([0, 255], np.uint8)}})
    >>> scaled = map_clients(
    ...     clients,
    ...     lambda raw: {'x': (raw['pixels'] / 255).astype(np.float32)},
    ...     {'x': tf.TensorSpec([], tf.float32)},
    ...     keeps_sizes=True)
    >>> scaled.examples('a')['x'].tolist()
    [0.0, 1.0]
  """
  spec = collections.OrderedDict(element_spec)
  if keeps_sizes and isinstance(source, client_data.PackedClientArrays):
    owner = 'The result of `fn`'
    mapped = feature_arrays.as_examples(fn(source.values), owner)
    before, after = map(feature_arrays.num_rows, (source.values, mapped))
    if before != after:
      raise ValueError(
          '`fn` must keep the number of examples with `keeps_sizes=True`, but '
          f'turned {before} into {after}.'
      )
    return client_data.PackedClientArrays(
        feature_arrays.check_match(mapped, spec, owner),
        source.offsets,
        source.client_ids,
        indices=source.indices,
    )
  return client_data.LazyClientArrays(
      source.client_ids,
      lambda client_id: fn(source.examples(client_id)),
      spec,
      cache_bytes=cache_bytes,
      client_sizes=_Sizes(source) if keeps_sizes else None,
  )


def materialize(
    source: client_data.ClientArrays,
) -> client_data.PackedClientArrays:
  """Reads all clients into memory.

  Args:
    source: The clients.

  Returns:
    The same clients as shared arrays, which the compiled runtime need not copy;
    `source` itself if it has them already.

  Example:

    >>> lazy_clients = client_data.LazyClientArrays(
    ...     ['a', 'b'], lambda client_id: {'x': np.ones([2], np.float32)},
    ...     {'x': tf.TensorSpec([], tf.float32)})
    >>> materialize(lazy_clients).values['x'].shape
    (4,)
  """
  if isinstance(source, client_data.PackedClientArrays):
    return source
  return client_data.PackedClientArrays.from_clients(
      {name: source.examples(name) for name in source.client_ids}
  )


def concatenate(source: client_data.ClientArrays) -> feature_arrays.Examples:
  """Concatenates the examples of all clients to a central data set.

  Args:
    source: The clients.

  Returns:
    Feature names and arrays of shape [total_examples, ...], client by client.

  Example:

    >>> clients = client_data.PackedClientArrays.from_clients(
    ...     {'a': {'x': np.ones([2])}, 'b': {'x': np.zeros([1])}})
    >>> concatenate(clients)['x'].tolist()
    [1.0, 1.0, 0.0]
  """
  packed = materialize(source)
  if packed.indices is None:
    return packed.values
  return feature_arrays.take(packed.values, packed.indices)


def sample_client_ids(
    client_ids: Iterable[str], num_clients: int, seed: int
) -> tuple[str, ...]:
  """Samples a fixed subset of clients, for training or testing on them only.

  Args:
    client_ids: The ids of all clients.
    num_clients: The number of clients, at least 1.
    seed: The seed of the sample. Samples of different sizes are unrelated.

  Returns:
    The sampled ids, in the order of `client_ids`.

  Raises:
    TypeError: If `seed` is not an integer.
    ValueError: If there are fewer clients.

  Example:

    >>> len(sample_client_ids(['a', 'b', 'c'], 2, seed=0))
    2
  """
  ids = tuple(client_ids)
  if not 1 <= num_clients <= len(ids):
    raise ValueError(
        f'`num_clients` must be between 1 and {len(ids)}, the number of '
        f'clients, found {num_clients}.'
    )
  stream = random_streams.stream(seed, random_streams.CLIENT_SUBSET)
  chosen = stream.choice(len(ids), num_clients, replace=False, shuffle=False)
  return tuple(ids[place] for place in np.sort(chosen))


def select_clients(
    source: client_data.ClientArrays, client_ids: Iterable[str]
) -> client_data.ClientArrays:
  """Returns a subset of the clients, in the given order.

  Args:
    source: The clients.
    client_ids: The ids of the clients to keep.

  Returns:
    The clients. Nothing is copied: shared arrays stay shared, lazy clients
    lazy.

  Raises:
    KeyError: If a client is unknown.
    ValueError: If `client_ids` is empty, or names a client twice.

  Example:

    >>> clients = client_data.PackedClientArrays.from_clients(
    ...     {'a': {'x': np.ones([2])}, 'b': {'x': np.zeros([1])}})
    >>> select_clients(clients, ['b']).client_ids
    ('b',)
  """
  ids = tuple(client_ids)
  for client_id in ids:
    source.position(client_id)
  if not isinstance(source, client_data.PackedClientArrays):
    return client_data.LazyClientArrays(
        ids,
        source.examples,
        source.element_spec,
        cache_bytes=0,
        client_sizes=_Sizes(source),
    )
  parts = {name: source.rows(name) for name in ids}
  if len(parts) < len(ids):
    raise ValueError('`client_ids` must not name a client twice.')
  return client_data.PackedClientArrays.from_partition(source.values, parts)


def split_examples(
    source: client_data.ClientArrays, test_fraction: float, seed: int
) -> tuple[client_data.ClientArrays, client_data.ClientArrays]:
  """Holds out a part of each client's examples for testing.

  Args:
    source: The clients.
    test_fraction: The fraction of a client's examples to hold out, in (0, 1);
      its number of examples is rounded down, so a small client may have none.
    seed: The seed of the split, which also depends on the client id.

  Returns:
    The clients with their training examples, and the clients with their test
    examples, both in stored order. The latter leaves out clients without test
    examples.

  Raises:
    ValueError: If `test_fraction` is out of range, or no client has enough
      examples.

  Example:

    >>> clients = client_data.PackedClientArrays.from_clients(
    ...     {'a': {'x': np.arange(8.0)}})
    >>> train, test = split_examples(clients, 0.25, seed=0)
    >>> train.num_examples('a'), test.num_examples('a')
    (6, 2)
  """
  if not 0.0 < test_fraction < 1.0:
    raise ValueError(
        'The fraction of examples to hold out must be between 0 and 1, found '
        f'{test_fraction}.'
    )

  sizes = {name: source.num_examples(name) for name in source.client_ids}
  test_sizes = {name: int(sizes[name] * test_fraction) for name in sizes}
  if not any(test_sizes.values()):
    raise ValueError(
        f'No client has enough examples to hold out a fraction of '
        f'{test_fraction}; the largest has {max(sizes.values())}.'
    )

  def order(name):
    generator = random_streams.stream(seed, random_streams.DATA_SPLIT, name)
    return generator.permutation(sizes[name])

  def train_part(name):
    return np.sort(order(name)[test_sizes[name] :])

  def test_part(name):
    return np.sort(order(name)[: test_sizes[name]])

  return (
      _parts(source, {n: sizes[n] - test_sizes[n] for n in sizes}, train_part),
      _parts(source, {n: k for n, k in test_sizes.items() if k}, test_part),
  )


def _parts(
    source: client_data.ClientArrays,
    sizes: Mapping[str, int],
    choose: Callable[[str], np.ndarray],
) -> client_data.ClientArrays:
  """Returns clients with the examples that a function selects."""
  if isinstance(source, client_data.PackedClientArrays):
    return client_data.PackedClientArrays.from_partition(
        source.values,
        {name: source.rows(name, choose(name)) for name in sizes},
    )
  return client_data.LazyClientArrays(
      sizes,
      lambda name: source.take(name, choose(name)),
      source.element_spec,
      cache_bytes=0,
      client_sizes=sizes,
  )


class _Sizes(Mapping):
  """The clients' numbers of examples, as far as the source knows them."""

  def __init__(self, source: client_data.ClientArrays):
    self._source = source

  def __getitem__(self, client_id: str) -> int:
    size = self._source.known_num_examples(client_id)
    if size is None:
      raise KeyError(client_id)
    return size

  def __iter__(self):
    return iter(self._source.client_ids)

  def __len__(self) -> int:
    return len(self._source.client_ids)
