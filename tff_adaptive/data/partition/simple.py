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
"""Partitions at random, by shards of classes, and by who the data came from."""

import collections
from typing import Optional

import numpy as np

from tff_adaptive.data import random_streams
from tff_adaptive.data.partition import _common


def iid(
    num_examples: int,
    num_clients: int,
    seed: int,
    *,
    examples_per_client: Optional[_common.Sizes] = None,
) -> _common.ClientIndices:
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
  _common.check_positive('num_examples', num_examples)
  sizes = _common.client_sizes(num_examples, num_clients, examples_per_client)
  _common.check_enough(sizes, num_examples)
  generator = random_streams.stream(seed, random_streams.PARTITION, 'iid')
  order = generator.permutation(num_examples).astype(np.int64, copy=False)
  ends = np.cumsum(sizes)
  return _common.name_clients(
      [order[end - size : end] for size, end in zip(sizes, ends)]
  )


def shards(
    labels: np.ndarray, num_clients: int, shards_per_client: int, seed: int
) -> _common.ClientIndices:
  """Sorts rows by class, cuts them into shards and deals these to the clients.

  With two shards a client, most clients have two classes. This is a true
  partition of all rows; where they do not divide evenly, the first shards are
  larger by one.

  Args:
    labels: The class of every row, integers of shape [num_rows].
    num_clients: Number of clients, a positive integer.
    shards_per_client: How many shards a client gets, a positive integer.
    seed: The seed of the partition, a non-negative integer.

  Returns:
    For every client id its rows in random order, int64 of shape [n_i].

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
  labels = _common.check_labels(labels)
  _common.check_positive('num_clients', num_clients)
  _common.check_positive('shards_per_client', shards_per_client)
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
  return _common.name_clients(
      [
          generator.permutation(rows).astype(np.int64, copy=False)
          for rows in clients
      ]
  )


def by_natural_id(ids: np.ndarray) -> _common.ClientIndices:
  """Groups rows by the client that they came from.

  Args:
    ids: For every row who it belongs to (writer, user, device), integers or
      strings of shape [num_rows].

  Returns:
    For every id, as a string, its rows in their order, int64 of shape [n_i].
    Clients are sorted by id, integers as numbers.

  Raises:
    TypeError: If `ids` are neither integers nor strings.
    ValueError: If `ids` is empty or not a vector.

  Example:

    >>> parts = by_natural_id(['bob', 'ann', 'bob'])
    >>> {name: rows.tolist() for name, rows in parts.items()}
    {'ann': [1], 'bob': [0, 2]}
  """
  ids = np.asarray(ids)
  if ids.ndim != 1 or not ids.size:
    raise ValueError(f'`ids` must be a vector, found shape {ids.shape}.')
  if ids.dtype.kind == 'O' and all(isinstance(name, str) for name in ids):
    ids = ids.astype(str)
  if ids.dtype.kind not in 'iuU':
    raise TypeError(f'`ids` must be integers or strings, found {ids.dtype}.')
  names, owners = np.unique(ids, return_inverse=True)
  order = np.argsort(owners, kind='stable').astype(np.int64, copy=False)
  ends = np.cumsum(np.bincount(owners))[:-1]
  return collections.OrderedDict(
      (str(name), rows) for name, rows in zip(names, np.split(order, ends))
  )
