# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The data of a cohort as arrays of JAX, in shapes that seldom change.

XLA compiles a program for each shape. So rows that stay are put on the device
once, and where they do not fit, those of a cohort travel; what changes from
round to round (the rows of a cohort that does not stay, row numbers, numbers of
batches and clients) is padded to powers of two, which grow but never fall, and
the true numbers are inputs.
"""

import collections
from collections.abc import Hashable, Sequence
from typing import Any, Optional
import weakref

import attrs
import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf

from tff_adaptive.data import batching
from tff_adaptive.runtime.accelerators import client_rows
from tff_adaptive.runtime.accelerators import lowerings
from tff_adaptive.runtime.accelerators import tokens

# What of a sequence changes from round to round, see `client_rows.ClientRows`.
NUMBERS = ('order', 'begins', 'lengths', 'starts', 'counts')
# The fewest entries to which arrays are padded.
_MIN_SIZE = 16
# How many times the numbers of a cohort fit in the arrays of the first one.
_SPARE = 8
# Rows of more bytes are padded by an eighth at most.
_LARGE_BYTES = 2**26
# How often the sizes of batches may change before there is one for all.
_MAX_CHANGES = 2
# Branches for batches of fewer rows than this are not worth their compiling.
_MIN_ROOM = 8
# The most rows for which there is room, as a share of those that there are.
_MAX_SHARE = 1.75
# The share of a device's memory for rows that stay there.
_ROWS_SHARE = 0.5
# The arrays of rows that stay, which rounds share: by device, and by the id of
# the tensor that lives elsewhere.
_resident = collections.defaultdict[Any, dict[int, Any]](dict)


@attrs.frozen
class _Leaf:
  """What is known of a leaf: for a sequence, the sizes of its elements.

  Attributes:
    is_sequence: Whether it is a sequence; else it is a tensor.
    sizes: The sizes of batches; empty if elements are single rows.
    is_padded: Whether batches may be smaller.
  """

  is_sequence: bool
  sizes: tuple[int, ...] = ()
  is_padded: bool = False


@attrs.frozen
class Layout:
  """What a program is compiled for, besides the shapes of its inputs.

  Attributes:
    leaves: The leaves of a client's value.
    num_clients: The number of clients to which seeds are padded.
    num_side_by_side: The number of clients that train at once.
  """

  leaves: tuple[_Leaf, ...]
  num_clients: int
  num_side_by_side: int

  def client(self, rows: Any, numbers: Any, number: Any) -> list[Any]:
    """Returns the value of a client, while JAX traces.

    Args:
      rows: The rows of each leaf.
      numbers: The numbers of each leaf.
      number: The number of the client.
    """
    return [
        client_rows.ClientRows(
            tuple(leaf_rows),
            order,
            begins,
            lengths,
            starts[number],
            counts[number],
            leaf.sizes,
            leaf.is_padded,
        )
        if leaf.is_sequence
        else leaf_rows[number]
        for leaf, leaf_rows, (order, begins, lengths, starts, counts) in zip(
            self.leaves, rows, numbers
        )
    ]

  def lengths(self, numbers: Any) -> Any:
    """Returns the number of elements that each client has, [num_clients]."""
    total = jnp.zeros([self.num_clients], jnp.int32)
    for leaf, (*_, counts) in zip(self.leaves, numbers):
      if leaf.is_sequence:
        total += counts
    return total

  def pad_clients(self, values: np.ndarray) -> np.ndarray:
    """Returns an array padded along its first axis, that of the clients."""
    return pad(values, self.num_clients)


def bucket(size: int, step: int = 1) -> int:
  """Returns the size to which arrays of a size are padded.

  Args:
    size: The size.
    step: In how many steps sizes double. Defaults to 1.
  """
  if size <= _MIN_SIZE:
    return _MIN_SIZE
  width = max((1 << (size - 1).bit_length()) // 2 // step, 1)
  return -(-size // width) * width


def pad(values: np.ndarray, size: int) -> np.ndarray:
  """Returns an array padded by zeros along its first axis."""
  padded = np.zeros([size, *values.shape[1:]], values.dtype)
  padded[: len(values)] = values
  return padded


class _Sizes:
  """The sizes of batches for which a program has branches."""

  def __init__(self):
    self._found: set[int] = set()
    self._branches: tuple[int, ...] = ()
    self._num_changes = 0

  def add(
      self, lengths: np.ndarray, pads: bool
  ) -> tuple[tuple[int, ...], bool]:
    """Returns the sizes, and whether batches may be smaller than these.

    Args:
      lengths: The number of rows of each batch of a cohort.
      pads: Whether batches may be smaller.
    """
    self._found.update(np.unique(lengths).tolist())
    sizes = self._found - {0} or {1}
    is_padded = pads and len(sizes) > 1
    has_room = max(self._branches, default=0) >= max(sizes)
    missing = self._found.difference(self._branches)
    is_enough = has_room and (is_padded and 0 not in missing or not missing)
    if not is_enough:
      self._num_changes += 1
      is_late = self._num_changes > _MAX_CHANGES
      if is_padded:
        largest = bucket(max(sizes)) if is_late else max(sizes)
        sizes = _rooms(largest, lengths[lengths > 0])
      elif is_late:
        sizes = set(range(1, max(sizes) + 1))
      self._branches = tuple(sorted(sizes | self._found & {0}))
    return self._branches, is_padded


def _rooms(largest: int, lengths: np.ndarray) -> set[int]:
  """Returns sizes of branches that do not leave too much room unused."""
  found = [largest]
  while found[0] > _MIN_ROOM:
    places = np.searchsorted(found, lengths)
    if np.take(found, places).sum() <= _MAX_SHARE * lengths.sum():
      break
    found.insert(0, -(-found[0] // 2))
  return set(found)


def find_max_bytes(device: Any) -> Optional[int]:
  """Returns the most bytes of rows that stay on a device; None for no limit."""
  known = device.memory_stats() or {}
  limit = known.get('bytes_limit')
  return None if limit is None else int(_ROWS_SHARE * limit)


class CohortArrays:
  """Puts cohorts on a device."""

  def __init__(
      self, device: Any, num_side_by_side: int, max_bytes: Optional[int] = None
  ):
    """Initializes the arrays.

    Args:
      device: The device, or JAX's placement on several.
      num_side_by_side: The number of clients that train at once, if all batches
        have one size.
      max_bytes: See `find_max_bytes`. Defaults to None.
    """
    self._device = device
    self._max_bytes = max_bytes
    self._num_side_by_side = num_side_by_side
    # Whether a program has room for batches that are smaller than others.
    self.pads = True
    # The sizes to which arrays are padded, by what they hold.
    self._rooms: dict[Hashable, int] = {}
    # By the place of a leaf.
    self._sizes = collections.defaultdict[int, _Sizes](_Sizes)
    self._resident = _resident[device]

  def of(
      self, leaves: Sequence[Any], num_clients: int, is_exact: bool
  ) -> tuple[Layout, Any, Any]:
    """Returns the layout of a cohort, its rows, and its numbers.

    Args:
      leaves: The leaves, see `client_tensors.Clients`.
      num_clients: The number of clients.
      is_exact: Whether a program is for so many clients alone.
    """
    num_padded = num_clients
    if not is_exact:
      num_padded = self._room('clients', bucket(num_clients))
    described, rows, numbers = [], [], []
    for place, leaf in enumerate(leaves):
      if isinstance(leaf, batching.PackedClients):
        leaf, stays = self._fitting(leaf)
        one, of_leaf = self._of_sequence(place, leaf, num_padded)
        rows.append(
            [
                self._rows((place, n), table, stays)
                for n, table in enumerate(leaf.rows)
            ]
        )
      else:
        one, of_leaf = _Leaf(False), ((),) * len(NUMBERS)
        rows.append(pad(self._numbers_of(leaf), num_padded))
      described.append(one)
      numbers.append(of_leaf)
    # Side by side, clients would take all branches of a switch.
    is_one_branch = all(sum(map(bool, leaf.sizes)) <= 1 for leaf in described)
    num_side_by_side = self._num_side_by_side if is_one_branch else 1
    layout = Layout(tuple(described), num_padded, num_side_by_side)
    return layout, rows, numbers

  def _of_sequence(
      self, place: int, leaf: batching.PackedClients, num_padded: int
  ) -> tuple[_Leaf, Any]:
    """Returns what is known of a sequence, and its numbers."""
    starts, ends = leaf.starts.numpy(), leaf.ends.numpy()
    if starts.ndim > 1:
      raise lowerings.NoLoweringError(
          "the clients' work reads a dataset in several orders"
      )
    bounds = (pad(starts, num_padded), pad(ends - starts, num_padded))
    if isinstance(leaf.order, tuple):
      return _Leaf(True), ((), (), (), *bounds)
    lengths = leaf.sizes.numpy().ravel().astype(np.int32)
    sizes, is_padded = self._sizes[place].add(lengths, self.pads)
    num_elements = self._room(
        ('elements', place), bucket(_SPARE * len(lengths))
    )
    num_picks = self._room(
        ('picks', place), bucket(_SPARE * (len(leaf.order) + max(sizes)))
    )
    order = leaf.order.numpy().astype(np.int32)
    return _Leaf(True, sizes, is_padded), (
        pad(order, num_picks),
        pad(leaf.begins.numpy().ravel().astype(np.int32), num_elements),
        pad(lengths, num_elements),
        *bounds,
    )

  def _numbers_of(self, tensor: Any) -> np.ndarray:
    """Returns a tensor as an array of numbers."""
    array = tensor.numpy()
    return tokens.encode(array) if array.dtype == object else array

  def _room(self, what: Hashable, size: int) -> int:
    """Returns a size to which arrays are padded, which never falls."""
    self._rooms[what] = max(size, self._rooms.get(what, 0))
    return self._rooms[what]

  def _fitting(
      self, leaf: batching.PackedClients
  ) -> tuple[batching.PackedClients, bool]:
    """Returns a sequence, and whether its rows may stay on the device.

    If they would not fit beside those that are there, it is one of those rows
    alone that the cohort takes.
    """
    if self._max_bytes is None:
      return leaf, True
    new = [table for table in leaf.rows if id(table) not in self._resident]
    num_bytes = sum(
        table.shape.num_elements() * table.dtype.size for table in new
    )
    # Copied, since those of tensors that end leave at any moment.
    num_bytes += sum(rows.nbytes for rows in list(self._resident.values()))
    fits = not new or num_bytes <= self._max_bytes
    if fits or isinstance(leaf.order, tuple):
      return leaf, fits
    picks, order = np.unique(leaf.order.numpy(), return_inverse=True)
    rows = [tf.gather(table, picks) for table in leaf.rows]
    return leaf._replace(rows=rows, order=tf.constant(order)), False

  def _rows(self, place: tuple[int, int], tensor: Any, stays: bool) -> Any:
    """Returns rows on the device; those of a tensor that stays, once."""
    found = self._resident.get(id(tensor))
    if found is None:
      rows = self._numbers_of(tensor)
      is_large = rows.nbytes > _LARGE_BYTES
      room = bucket(len(rows), 8 if is_large else 1)
      if not is_large or not stays:
        room = self._room(('rows', stays, *place), room)
      found = jax.device_put(pad(rows, room), self._device)
      if stays:
        self._resident[id(tensor)] = found
        weakref.finalize(tensor, self._resident.pop, id(tensor), None)
    return found
