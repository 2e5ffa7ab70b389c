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
"""The sequences of several clients, as rows and numbers of rows."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tff_adaptive.data import feature_arrays


class PackedClients(NamedTuple):
  """What clients hold, from `Cohort.pack` to the graph of a round.

  Arrays of NumPy become tensors on the way; the layout stays.

  Attributes:
    rows: Arrays of rows, [num_rows, ...]: one for each feature by its name, or
      one for each component of an element.
    order: The row numbers of all elements one after the other, int64 of shape
      [num_picks]; `()` where elements are no batches, but each is a row.
    begins: Where in `order` each element begins, int64 of shape
      [num_elements, 1]; `()` as `order`.
    sizes: How many rows each element has, likewise.
    starts: The number of each client's first element, int32 of shape
      [num_clients]; a scalar where one client was picked.
    ends: The number after each client's last element, likewise.
  """

  rows: Any
  order: Any
  begins: Any
  sizes: Any
  starts: Any
  ends: Any


def of_batches(
    rows: Any, order: Any, sizes: Sequence[int], counts: Sequence[int]
) -> PackedClients:
  """Returns clients that hold batches.

  Args:
    rows: As in `PackedClients`.
    order: As in `PackedClients`.
    sizes: How many rows each batch has.
    counts: How many batches each client has.
  """
  bounds = offsets(sizes)
  return PackedClients(
      rows,
      order,
      bounds[:-1, np.newaxis],
      np.diff(bounds)[:, np.newaxis],
      *_bounds_of_clients(counts),
  )


def of_rows(rows: Any, counts: Sequence[int]) -> PackedClients:
  """Returns clients each element of which is a row.

  Args:
    rows: As in `PackedClients`, in the order of the clients.
    counts: How many elements each client has.
  """
  return PackedClients(rows, (), (), (), *_bounds_of_clients(counts))


def _bounds_of_clients(counts: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
  bounds = offsets(counts).astype(np.int32)
  return bounds[:-1], bounds[1:]


def examples_of(packed: PackedClients, client: int) -> feature_arrays.Examples:
  """Returns the examples of all batches of one of the clients.

  Args:
    packed: The batches of several clients, their rows by feature name.
    client: Which of them.

  Returns:
    Feature names and new arrays, the batches one after the other.
  """
  batches = slice(packed.starts[client], packed.ends[client])
  first = packed.begins[batches][:1].sum()
  last = first + packed.sizes[batches].sum()
  return feature_arrays.take(packed.rows, packed.order[first:last])


def offsets(lengths: Sequence[int]) -> np.ndarray:
  """Returns where parts of these lengths begin, and where the last one ends."""
  return np.cumsum([0, *lengths], dtype=np.int64)
