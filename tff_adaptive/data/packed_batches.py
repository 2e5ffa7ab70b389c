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
"""Batches of several clients, as rows and numbers of rows."""

import collections
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tff_adaptive.data import feature_arrays


class PackedBatches(NamedTuple):
  """The batches of all clients of a round, as rows and numbers of rows.

  Attributes:
    rows: Feature names and arrays of shape [num_rows, ...].
    order: The row numbers of all batches one after the other, int64 of shape
      [num_examples].
    offsets: Where in `order` each batch starts, int64 of shape
      [num_batches + 1].
    starts: The number of each client's first batch, int64 of shape
      [num_clients + 1].
  """

  rows: Mapping[str, np.ndarray]
  order: np.ndarray
  offsets: np.ndarray
  starts: np.ndarray


def rows_of(packed: PackedBatches, client: int) -> feature_arrays.Examples:
  """Returns the examples of all batches of one of the clients.

  Args:
    packed: The batches of several clients.
    client: Which of them.

  Returns:
    Feature names and new arrays, the batches one after the other.
  """
  first, last = packed.offsets[packed.starts[client : client + 2]]
  return take(packed.rows, packed.order[first:last])


def take(
    rows: Mapping[str, np.ndarray], places: Any
) -> feature_arrays.Examples:
  """Returns some of the rows of every feature.

  Args:
    rows: Feature names and arrays of shape [num_rows, ...].
    places: Row numbers, or a slice.

  Returns:
    Feature names and arrays.
  """
  return collections.OrderedDict(
      (name, array[places]) for name, array in rows.items()
  )


def offsets(lengths: Sequence[int]) -> np.ndarray:
  """Returns where parts of these lengths begin, and where the last one ends."""
  return np.cumsum([0, *lengths], dtype=np.int64)
