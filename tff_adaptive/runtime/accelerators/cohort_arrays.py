# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The data of a cohort as arrays of JAX, in shapes that seldom change.

XLA compiles a program for each shape. So rows that stay are put on the device
once; what changes from round to round (the rows of a cohort that does not stay,
row numbers, numbers of batches and clients) is padded to sizes that grow by
powers of two, and the true numbers are inputs.
"""

from collections.abc import Sequence
from typing import Any, Optional
import weakref

import attrs
import jax
import numpy as np

from tff_adaptive.data import batching
from tff_adaptive.runtime.accelerators import client_rows

# The fewest entries to which arrays are padded.
_MIN_SIZE = 16


@attrs.frozen
class _Leaf:
  """What is known of a leaf: for a sequence, the sizes of its elements.

  Attributes:
    is_sequence: Whether it is a sequence; else it is a tensor.
    sizes: The sizes of batches; empty if elements are single rows.
  """

  is_sequence: bool
  sizes: tuple[int, ...] = ()


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
            places,
            starts[number],
            counts[number],
            leaf.sizes,
        )
        if leaf.is_sequence
        else leaf_rows[number]
        for leaf, leaf_rows, (order, begins, places, starts, counts) in zip(
            self.leaves, rows, numbers
        )
    ]

  def pad_clients(self, values: np.ndarray) -> np.ndarray:
    """Returns an array padded along its first axis, that of the clients."""
    return pad(values, self.num_clients)


def bucket(size: int) -> int:
  """Returns the size to which arrays of a size are padded."""
  return max(_MIN_SIZE, 1 << (size - 1).bit_length())


def pad(values: np.ndarray, size: int) -> np.ndarray:
  """Returns an array padded by zeros along its first axis."""
  padded = np.zeros([size, *values.shape[1:]], values.dtype)
  padded[: len(values)] = values
  return padded


class CohortArrays:
  """Puts cohorts on a device."""

  def __init__(self, device: Any):
    self._device = device
    # By the id of a tensor that lives elsewhere: its array on the device.
    self._resident: dict[int, Any] = {}

  def of(
      self, leaves: Sequence[Any], num_clients: int, is_exact: bool
  ) -> tuple[Layout, Any, Any]:
    """Returns the layout of a cohort, its rows, and its numbers.

    Args:
      leaves: The leaves, see `client_tensors.Clients`.
      num_clients: The number of clients.
      is_exact: Whether a program is for so many clients alone.
    """
    num_padded = num_clients if is_exact else bucket(num_clients)
    described, rows, numbers = [], [], []
    for leaf in leaves:
      if isinstance(leaf, batching.PackedClients):
        one, of_leaf = self._of_sequence(leaf, num_padded)
        rows.append([self._rows(table) for table in leaf.rows])
      else:
        one, of_leaf = _Leaf(False), ((),) * 5
        rows.append(pad(leaf.numpy(), num_padded))
      described.append(one)
      numbers.append(of_leaf)
    layout = Layout(tuple(described), num_padded, 1)
    return layout, rows, numbers

  def _of_sequence(
      self, leaf: batching.PackedClients, num_padded: int
  ) -> tuple[_Leaf, Any]:
    starts, ends = leaf.starts.numpy(), leaf.ends.numpy()
    bounds = (pad(starts, num_padded), pad(ends - starts, num_padded))
    if isinstance(leaf.order, tuple):
      return _Leaf(True), ((), (), (), *bounds)
    sizes, places = np.unique(leaf.sizes.numpy(), return_inverse=True)
    num_elements = bucket(len(places))
    order = leaf.order.numpy().astype(np.int32)
    longest = int(sizes.max()) if len(sizes) else 0
    return _Leaf(True, tuple(sizes.tolist())), (
        pad(order, bucket(len(order) + longest)),
        pad(leaf.begins.numpy().ravel().astype(np.int32), num_elements),
        pad(places.ravel().astype(np.int32), num_elements),
        *bounds,
    )

  def _rows(self, tensor: Any) -> Any:
    """Returns rows on the device; those of a tensor that stays, once."""
    found = self._resident.get(id(tensor))
    if found is None:
      found = jax.device_put(tensor.numpy(), self._device)
      self._resident[id(tensor)] = found
      weakref.finalize(tensor, self._resident.pop, id(tensor), None)
    return found
