# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The data of a simulation's clients, held as arrays.

A `tf.data` pipeline for each client and round costs 10 to 30 ms of set-up and
leaks some memory. Here a client is an ordered mapping from feature names to
NumPy arrays with one row per example, read once; shuffling, repeating and
batching are done by index (see `batching` and `cohort`).
"""

import abc
import collections
from collections.abc import Callable, Iterable, Mapping
import difflib
import threading
from typing import Any, Optional

import numpy as np

from tff_adaptive.data import feature_arrays
from tff_adaptive.data import specs

DEFAULT_CACHE_BYTES = 1 << 28


class ClientArrays(abc.ABC):
  """The examples of all clients of a simulation, as arrays.

  Client ids are strings in a fixed order, on which sampling depends. Arrays are
  read-only: they may be views of data that clients share.
  """

  def __init__(
      self,
      client_ids: Iterable[str],
      element_spec: feature_arrays.ElementSpec,
  ):
    """Checks and stores the attributes that all sources have.

    Args:
      client_ids: The ids, in the order that sampling uses.
      element_spec: Feature names and the `tf.TensorSpec` of one example.

    Raises:
      TypeError: If an id is not a string.
      ValueError: If there are no clients, an id occurs twice, or UTF-8 does not
        have its text.
    """
    self._client_ids = tuple(client_ids)
    self._positions = {name: i for i, name in enumerate(self._client_ids)}
    self._element_spec = collections.OrderedDict(element_spec)
    if not self._client_ids:
      raise ValueError(
          '`client_ids` must name at least one client, found none.'
      )
    for client_id in self._client_ids:
      if not isinstance(client_id, str):
        raise TypeError(f'A client id must be a string, found {client_id!r}.')
      if not specs.is_encodable(client_id):
        raise ValueError(
            f'A client id must be text, found {client_id!r} with half of a '
            'surrogate pair.'
        )
    if len(self._positions) != len(self._client_ids):
      counts = collections.Counter(self._client_ids)
      raise ValueError(
          'Client ids must be unique, found '
          f'{counts.most_common(1)[0][0]!r} more than once.'
      )

  @property
  def client_ids(self) -> tuple[str, ...]:
    """The ids of all clients, in a fixed order."""
    return self._client_ids

  @property
  def element_spec(self) -> feature_arrays.ElementSpec:
    """Feature names and `tf.TensorSpec`s of one example, without batch size."""
    return self._element_spec.copy()  # The caller may change it.

  @property
  def total_examples(self) -> int:
    """The total number of examples of all clients."""
    return sum(self.num_examples(name) for name in self._client_ids)

  @abc.abstractmethod
  def num_examples(self, client_id: str) -> int:
    """Returns the number of a client's examples.

    Args:
      client_id: The client; KeyError if unknown.
    """

  def known_num_examples(self, client_id: str) -> Optional[int]:
    """Returns the number of a client's examples; None if it must be read first.

    Args:
      client_id: The client; KeyError if unknown.
    """
    return self.num_examples(client_id)

  @abc.abstractmethod
  def examples(self, client_id: str) -> feature_arrays.Examples:
    """Returns a client's features, arrays of shape [num_examples, ...].

    Args:
      client_id: The client; KeyError if unknown.
    """

  def take(
      self, client_id: str, positions: np.ndarray
  ) -> feature_arrays.Examples:
    """Returns some of a client's examples.

    Args:
      client_id: The client.
      positions: Integers in [0, num_examples).

    Returns:
      Feature names and new arrays of shape [len(positions), ...].

    Raises:
      IndexError: If a position is out of range.
      KeyError: If the client is unknown.
    """
    return feature_arrays.take(self.examples(client_id), positions)

  def position(self, client_id: str) -> int:
    """Returns the index of a client in `client_ids`.

    Args:
      client_id: The client.

    Returns:
      Its index, from 0.

    Raises:
      KeyError: If the client is unknown; suggests the most similar ids.
    """
    if client_id in self._positions:
      return self._positions[client_id]
    near = difflib.get_close_matches(str(client_id), self._client_ids, n=3)
    hint = f'the most similar ids are {near}' if near else 'no id is similar'
    raise KeyError(
        f'There is no client {client_id!r} among {len(self._client_ids)}; '
        f'{hint}.'
    )


class PackedClientArrays(ClientArrays):
  """Clients that share one set of arrays, laid out like a CSR matrix.

  Client i holds the rows `offsets[i]` to `offsets[i + 1]` or, if `indices` is
  given, the rows `indices[offsets[i]:offsets[i + 1]]`. A partition of a central
  data set, even one with replacement, therefore copies no examples.
  """

  def __init__(
      self,
      values: Mapping[str, np.ndarray],
      offsets: np.ndarray,
      client_ids: Iterable[str],
      *,
      indices: Optional[np.ndarray] = None,
  ):
    """Initializes the clients; see also `from_partition` and `from_clients`.

    Args:
      values: Feature names and arrays of shape [num_rows, ...].
      offsets: Integers of shape [num_clients + 1], starting at 0,
        non-decreasing.
      client_ids: The client ids, one for each gap between offsets.
      indices: Rows of `values`, integers of shape [offsets[-1]]; a row may
        occur several times. None (the default) uses the rows in order; then
        there must be offsets[-1] of them.

    Raises:
      TypeError: If `offsets` or `indices` are not integers, or `values` is not
        a flat mapping.
      ValueError: If the shapes do not match, offsets decrease, an index is out
        of range, or an id occurs twice.

    Example:

      >>> source = PackedClientArrays(
      ...     {'x': np.array([5.0, 6.0, 7.0])}, [0, 1, 3], ['a', 'b'])
      >>> source.examples('b')['x'].tolist()
      [6.0, 7.0]
    """
    self._values = feature_arrays.as_examples(values, 'The shared data')
    super().__init__(client_ids, feature_arrays.spec_of(self._values))
    num_rows = feature_arrays.num_rows(self._values)
    self._offsets = _as_integers(offsets, 'offsets')
    self._indices = None
    num_entries = num_rows
    if indices is not None:
      used = self._indices = _as_integers(indices, 'indices')
      num_entries = len(used)
      if used.size and not (0 <= used.min() and used.max() < num_rows):
        raise ValueError(
            f'`indices` must be in [0, {num_rows}), found {used.min()} to '
            f'{used.max()}.'
        )
    _check_offsets(self._offsets, len(self._client_ids), num_entries)

  @classmethod
  def from_partition(
      cls,
      values: Mapping[str, np.ndarray],
      client_indices: Mapping[str, np.ndarray],
  ) -> 'PackedClientArrays':
    """Builds the clients of a partition from shared values.

    Args:
      values: Feature names and arrays of shape [num_rows, ...].
      client_indices: The rows of each client by id, integers of shape
        [num_examples]; the result of a function of `partition`.

    Returns:
      The clients, in the order of the mapping.

    Raises:
      TypeError: If rows are not integers.
      ValueError: If there are no clients, or a row is out of range.

    Example:

      >>> source = PackedClientArrays.from_partition(
      ...     {'x': np.array([5.0, 6.0])}, {'a': [1, 0, 1], 'b': []})
      >>> source.examples('a')['x'].tolist()
      [6.0, 5.0, 6.0]
    """
    rows = [
        _as_integers(rows, f'client_indices[{client_id!r}]')
        for client_id, rows in client_indices.items()
    ]
    offsets = np.cumsum([0] + [len(part) for part in rows])
    indices = np.concatenate(rows) if rows else None
    return cls(values, offsets, client_indices.keys(), indices=indices)

  @classmethod
  def from_clients(
      cls, clients: Mapping[str, Mapping[str, np.ndarray]]
  ) -> 'PackedClientArrays':
    """Builds clients from their own arrays, which are concatenated.

    Args:
      clients: The features of each client by id, arrays of shape
        [num_examples, ...] with any number of examples, also 0. The features'
        order is that of the first client.

    Returns:
      The clients, in the order of the mapping.

    Raises:
      TypeError: If the features of a client are not a flat mapping.
      ValueError: If there are no clients, or a client's features, types or
        shapes differ from those of the first client.

    Example:

      >>> source = PackedClientArrays.from_clients(
      ...     {'a': {'x': np.ones([2, 3])}, 'b': {'x': np.ones([1, 3])}})
      >>> source.total_examples
      3
    """
    parts = []
    spec = None
    for client_id, features in clients.items():
      owner = f'Client {client_id!r}'
      examples = feature_arrays.as_examples(features, owner)
      spec = spec or feature_arrays.spec_of(examples)
      parts.append(feature_arrays.check_match(examples, spec, owner))
    if spec is None:
      raise ValueError('`clients` must hold at least one client, found none.')
    values = feature_arrays.concatenate(parts, spec)
    sizes = [feature_arrays.num_rows(part) for part in parts]
    return cls(values, np.cumsum([0] + sizes), clients.keys())

  @property
  def values(self) -> feature_arrays.Examples:
    """The shared arrays, of shape [num_rows, ...]."""
    return self._values

  @property
  def offsets(self) -> np.ndarray:
    """The start of each client, int64 of shape [num_clients + 1]."""
    return self._offsets

  @property
  def indices(self) -> Optional[np.ndarray]:
    """Rows of `values`, int64 of shape [offsets[-1]]; None for all in order."""
    return self._indices

  @property
  def total_examples(self) -> int:
    """The total number of examples of all clients."""
    return int(self._offsets[-1])

  def num_examples(self, client_id: str) -> int:
    """Returns the number of a client's examples; KeyError if unknown."""
    start, end = self._bounds(client_id)
    return end - start

  def rows(
      self, client_id: str, positions: Optional[np.ndarray] = None
  ) -> np.ndarray:
    """Returns the rows of `values` that hold a client's examples.

    Args:
      client_id: The client; KeyError if unknown.
      positions: Positions among its examples, int64 in [0, num_examples).
        Defaults to all.

    Returns:
      The row numbers, int64 of the shape of `positions`.
    """
    start, end = self._bounds(client_id)
    if self._indices is None:
      rows = np.arange(start, end, dtype=np.int64)
    else:
      rows = self._indices[start:end]
    return rows if positions is None else rows[positions]

  def examples(self, client_id: str) -> feature_arrays.Examples:
    """Returns a client's features, arrays of shape [num_examples, ...]."""
    if self._indices is not None:
      return feature_arrays.take(self._values, self.rows(client_id))
    # A slice does not copy.
    return feature_arrays.take(self._values, slice(*self._bounds(client_id)))

  def take(
      self, client_id: str, positions: np.ndarray
  ) -> feature_arrays.Examples:
    """Returns some of a client's examples, without copying all of them."""
    return feature_arrays.take(self._values, self.rows(client_id, positions))

  def _bounds(self, client_id: str) -> tuple[int, int]:
    position = self.position(client_id)
    return int(self._offsets[position]), int(self._offsets[position + 1])


class BoundedCache:
  """A mapping that keeps the most recently used values, up to a size.

  Attributes:
    num_bytes: The current size of the values.
  """

  def __init__(self, max_bytes: int):
    """Initializes an empty cache.

    Args:
      max_bytes: The total size of the values. A larger value is not kept.
    """
    self.num_bytes = 0
    self._max_bytes = max_bytes
    self._kept: collections.OrderedDict[str, tuple[Any, int]] = (
        collections.OrderedDict()
    )
    self._lock = threading.Lock()

  def __reduce__(self) -> Any:
    """Pickles as an empty cache."""
    return BoundedCache, (self._max_bytes,)

  def get(self, key: str) -> Any:
    """Returns the value of a key, or None."""
    with self._lock:
      if key not in self._kept:
        return None
      self._kept.move_to_end(key)
      return self._kept[key][0]

  def put(self, key: str, value: Any, num_bytes: int) -> Any:
    """Stores a value unless the key has one; returns the stored value.

    Args:
      key: The key.
      value: The value.
      num_bytes: Its size.
    """
    with self._lock:
      if key in self._kept or num_bytes > self._max_bytes:
        return self._kept.get(key, (value, 0))[0]
      self._kept[key] = (value, num_bytes)
      self.num_bytes += num_bytes
      while self.num_bytes > self._max_bytes:
        _, (_, dropped) = self._kept.popitem(last=False)
        self.num_bytes -= dropped
      return value


class LazyClientArrays(ClientArrays):
  """Clients that are read on demand, and cached.

  The most recently used clients are cached, up to a number of bytes, so that
  memory is bounded. A client larger than the cache is read each time.
  """

  def __init__(
      self,
      client_ids: Iterable[str],
      load_fn: Callable[[str], Mapping[str, np.ndarray]],
      element_spec: feature_arrays.ElementSpec,
      *,
      cache_bytes: int = DEFAULT_CACHE_BYTES,
      client_sizes: Optional[Mapping[str, int]] = None,
  ):
    """Initializes the clients; nothing is read yet.

    Args:
      client_ids: The ids of the clients, in a fixed order.
      load_fn: Returns a client's features, arrays of shape [num_examples, ...];
        must return the same result every time.
      element_spec: Feature names and the `tf.TensorSpec` of one example.
      cache_bytes: The size of the cache; 0 disables it. Defaults to 256 MiB,
        the size of the training images of EMNIST's digits.
      client_sizes: The number of examples of the clients for which it is known
        without reading. For others, `num_examples` reads the client, and
        `total_examples` reads all of them once. None (the default) for none.

    Raises:
      TypeError: If an id is not a string, or `cache_bytes` not an integer.
      ValueError: If `cache_bytes` is negative, there are no clients, or an id
        occurs twice.

    Example:

      >>> source = LazyClientArrays(
      ...     ['a'], lambda client_id: {'x': np.ones([2], np.float32)},
      ...     {'x': tf.TensorSpec([], tf.float32)})
      >>> source.num_examples('a')
      2
    """
    super().__init__(client_ids, element_spec)
    specs.check_not_negative('cache_bytes', cache_bytes)
    self._load_fn = load_fn
    self._known_sizes = client_sizes or {}
    self._read_sizes: dict[str, int] = {}
    self._cache = BoundedCache(cache_bytes)

  def num_examples(self, client_id: str) -> int:
    """Returns the number of a client's examples; KeyError if unknown."""
    known = self.known_num_examples(client_id)
    if known is None:
      self.examples(client_id)
      known = self._read_sizes[client_id]
    return known

  def known_num_examples(self, client_id: str) -> Optional[int]:
    """Returns the number of a client's examples; None if it must be read."""
    self.position(client_id)
    if client_id in self._read_sizes:
      return self._read_sizes[client_id]
    return self._known_sizes.get(client_id)

  def examples(self, client_id: str) -> feature_arrays.Examples:
    """Returns a client's features, arrays of shape [num_examples, ...].

    Args:
      client_id: The client.

    Raises:
      KeyError: If the client is unknown.
      TypeError: If `load_fn` does not return a mapping.
      ValueError: If its result does not match `element_spec`, or has another
        size than in `client_sizes`; names the client.
    """
    self.position(client_id)
    kept = self._cache.get(client_id)
    if kept is not None:
      return collections.OrderedDict(kept)  # The caller may change it.
    owner = f'Client {client_id!r}'
    loaded = feature_arrays.as_examples(self._load_fn(client_id), owner)
    examples = feature_arrays.check_match(loaded, self.element_spec, owner)
    found = feature_arrays.num_rows(examples)
    known = self._known_sizes.get(client_id, found)
    if found != known:
      raise ValueError(
          f'Client {client_id!r} must have {known} examples, the number known '
          f'before it was read, found {found}; correct `client_sizes` or '
          '`keeps_sizes`.'
      )
    self._read_sizes[client_id] = found
    size = feature_arrays.num_bytes(examples)
    return collections.OrderedDict(self._cache.put(client_id, examples, size))


def _as_integers(values, name: str) -> np.ndarray:
  """Returns a read-only int64 vector, or raises and names the argument."""
  array = np.asarray(values)
  if array.size == 0:
    array = array.astype(np.int64)
  if not np.issubdtype(array.dtype, np.integer):
    raise TypeError(f'`{name}` must be integers, found {array.dtype}.')
  if array.ndim != 1:
    raise ValueError(f'`{name}` must be a vector, found shape {array.shape}.')
  array = array.astype(np.int64, copy=False).view()
  array.setflags(write=False)
  return array


def _check_offsets(
    offsets: np.ndarray, num_clients: int, num_entries: int
) -> None:
  """Raises unless the offsets cut the entries into one part per client."""
  if (
      len(offsets) != num_clients + 1
      or (offsets[0], offsets[-1]) != (0, num_entries)
      or np.any(np.diff(offsets) < 0)
  ):
    raise ValueError(
        f'`offsets` must be {num_clients + 1} non-decreasing numbers from 0 to '
        f'{num_entries}, found {offsets}.'
    )
