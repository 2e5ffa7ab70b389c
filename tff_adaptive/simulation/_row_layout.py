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
"""The rows and offsets that say which examples are whose."""

import numpy as np


def as_integers(values, name: str) -> np.ndarray:
  """Returns a read-only int64 vector, or raises naming the argument."""
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


def check_rows(indices: np.ndarray, num_rows: int) -> None:
  """Raises unless every index is a row."""
  if indices.size and not (0 <= indices.min() and indices.max() < num_rows):
    raise ValueError(
        f'`indices` must lie in [0, {num_rows}), found '
        f'{indices.min()} to {indices.max()}.'
    )


def check_offsets(
    offsets: np.ndarray, num_clients: int, num_entries: int
) -> None:
  """Raises unless offsets cut entries into one part a client."""
  if len(offsets) != num_clients + 1:
    raise ValueError(
        f'`offsets` must have {num_clients + 1} entries for {num_clients} '
        f'clients, found {len(offsets)}.'
    )
  if offsets[0] != 0 or offsets[-1] != num_entries:
    raise ValueError(
        f'`offsets` must go from 0 to {num_entries}, found {offsets[0]} to '
        f'{offsets[-1]}.'
    )
  if np.any(np.diff(offsets) < 0):
    place = int(np.argmax(np.diff(offsets) < 0))
    raise ValueError(
        f'`offsets` must not decrease, found {offsets[place]} before '
        f'{offsets[place + 1]} at client {place}.'
    )
