# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Derives clients from other clients: maps, selects, splits, concatenates."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from absl import logging
import numpy as np

from tff_adaptive.data import client_data
from tff_adaptive.data import feature_arrays
from tff_adaptive.data import held_out
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
    # A copy of the mapping, which `fn` may change.
    features = collections.OrderedDict(source.values)
    mapped = feature_arrays.as_examples(fn(features), owner)
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
    return collections.OrderedDict(packed.values)
  return feature_arrays.take(packed.values, packed.indices)


def sample_client_ids(
    client_ids: Iterable[str], num_clients: int, seed: int
) -> tuple[str, ...]:
  """Samples a fixed subset of clients, for training or testing on them only.

  `split_clients` holds out such a subset.

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


def split_clients(
    source: client_data.ClientArrays, test_ids: Iterable[str]
) -> tuple[client_data.ClientArrays, client_data.ClientArrays]:
  """Holds out whole clients for testing.

  The held-out clients keep all their examples. Copies of these are left out of
  the other clients, so that nothing that is tested on is trained on; a logged
  warning counts them, unless the clients are lazy.

  Args:
    source: The clients. Of lazy ones, only the held-out clients are read here;
      the numbers of examples of the others become known when they are read.
    test_ids: The ids of the clients to hold out.

  Returns:
    The remaining clients, and the held-out clients. The former leave out
    clients of which nothing remains; lazy ones become empty instead.

  Raises:
    KeyError: If a client is unknown.
    ValueError: If `test_ids` is empty, names a client twice or names all
      clients, or the others have no other examples.

  Example:

    >>> clients = client_data.PackedClientArrays.from_clients(
    ...     {'a': {'x': np.arange(3)}, 'b': {'x': np.arange(2, 4)}})
    >>> train, test = split_clients(clients, ['b'])
    >>> train.examples('a')['x'].tolist(), test.examples('b')['x'].tolist()
    ([0, 1], [2, 3])
  """
  test = select_clients(source, test_ids)
  dropped = set(test.client_ids)
  rest = [name for name in source.client_ids if name not in dropped]
  is_packed = isinstance(source, client_data.PackedClientArrays)
  digests = _digests(source, source.client_ids if is_packed else dropped)
  test_rows = np.unique(np.concatenate([digests[name] for name in dropped]))
  if is_packed:
    is_copy = {name: np.isin(digests[name], test_rows) for name in rest}
    num_copies = sum(int(part.sum()) for part in is_copy.values())
    num_train = sum(map(len, is_copy.values()))
    if num_copies == num_train:
      raise ValueError(
          f'All {num_train} examples of the other clients equal an example of '
          'the held-out clients, so that none remains to train on; hold out '
          'fewer clients, or use a partition without replacement.'
      )
    if num_copies:
      logging.warning(
          '%d of %d training examples equal an example of a held-out client '
          'and are left out.',
          num_copies,
          num_train,
      )
    return _train_part(source, is_copy), test

  def load(name):
    examples = source.examples(name)
    is_copy = np.isin(held_out.row_digests(examples), test_rows)
    return feature_arrays.take(examples, ~is_copy)

  train = client_data.LazyClientArrays(
      rest, load, source.element_spec, cache_bytes=0
  )
  return train, test


def split_examples(
    source: client_data.ClientArrays, test_fraction: float, seed: int
) -> tuple[client_data.ClientArrays, client_data.ClientArrays]:
  """Holds out a part of each client's examples for testing.

  Equal examples are on the same side, in whichever clients they are: see
  `held_out.choose_examples`.

  Args:
    source: The clients. Lazy ones are all read once here, which takes long for
      a large file: select clients first. Eight bytes per example are kept.
    test_fraction: The fraction of a client's examples to hold out, in (0, 1);
      its number of examples is rounded down, so a small client may have none.
      Clients with many repeated examples deviate, as these are sampled.
    seed: The seed of the split, which also depends on the client id.

  Returns:
    The clients with their training examples, and the clients with their test
    examples, both in stored order. Both leave out clients without such
    examples, but clients that had none at all remain in the former.

  Raises:
    ValueError: If `test_fraction` is out of range, or there are too few
      different examples for it.

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

  digests = _digests(source, source.client_ids)
  is_test = held_out.choose_examples(digests, test_fraction, seed)
  num_test = sum(int(part.sum()) for part in is_test.values())
  num_all = sum(map(len, is_test.values()))
  if num_test in (0, num_all):
    num_rows = len(np.unique(np.concatenate(list(digests.values()))))
    raise ValueError(
        f'The examples are too few to hold out a fraction of {test_fraction}: '
        f'the largest client has {max(map(len, is_test.values()))}, and '
        f'{num_rows} of all {num_all} are different; choose another fraction.'
    )
  test = {n: np.flatnonzero(part) for n, part in is_test.items() if part.any()}
  return _train_part(source, is_test), _take_positions(source, test)


def _digests(
    source: client_data.ClientArrays, client_ids: Iterable[str]
) -> dict[str, np.ndarray]:
  """Returns the digests of the examples of some clients."""
  if isinstance(source, client_data.PackedClientArrays):
    digests = held_out.row_digests(source.values)
    return {name: digests[source.rows(name)] for name in client_ids}
  return {
      name: held_out.row_digests(source.examples(name)) for name in client_ids
  }


def _train_part(
    source: client_data.ClientArrays, is_left_out: Mapping[str, np.ndarray]
) -> client_data.ClientArrays:
  """Returns clients without some examples, and without those left with none."""
  kept = {
      name: np.flatnonzero(~part)
      for name, part in is_left_out.items()
      if not part.size or not part.all()
  }
  if len(kept) < len(is_left_out):
    logging.warning(
        '%d of %d clients have no training examples left and are dropped.',
        len(is_left_out) - len(kept),
        len(is_left_out),
    )
  return _take_positions(source, kept)


def _take_positions(
    source: client_data.ClientArrays, positions: Mapping[str, np.ndarray]
) -> client_data.ClientArrays:
  """Returns clients with the examples at some positions."""
  if isinstance(source, client_data.PackedClientArrays):
    return client_data.PackedClientArrays.from_partition(
        source.values,
        {name: source.rows(name, part) for name, part in positions.items()},
    )
  return client_data.LazyClientArrays(
      positions,
      lambda name: source.take(name, positions[name]),
      source.element_spec,
      cache_bytes=0,
      client_sizes={name: len(part) for name, part in positions.items()},
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
