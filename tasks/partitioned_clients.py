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
"""Clients that share the examples of a central data set."""

from collections.abc import Mapping
from typing import Optional

import numpy as np

from tff_adaptive.data import client_data
from tff_adaptive.data import partition as partition_lib

_DEFAULT_SIZE = '500'
# They take no sizes, since they divide all examples.
_DIVIDE_ALL = ('dirichlet_per_class', 'shards')


def to_clients(
    examples: Mapping[str, np.ndarray],
    num_clients: int,
    seed: int,
    *,
    partition: str,
    alpha: float,
    examples_per_client: Optional[str],
    shards_per_client: int,
    min_size: int,
    cap: bool,
    coarse_labels: Optional[np.ndarray] = None,
    fine_alpha: float = 10.0,
) -> client_data.PackedClientArrays:
  """Splits examples among clients, by default as the Delta-SGD experiments do.

  Args:
    examples: Feature names and arrays of shape [num_examples, ...], among them
      the classes 'y'.
    num_clients: Number of clients, a positive integer.
    seed: The seed of the partition, a non-negative integer.
    partition: As for `partition.by_scheme`, like all arguments that follow.
    alpha: The concentration of the Dirichlet partitions.
    examples_per_client: None for '500', but for all examples where the
      partition divides all of them.
    shards_per_client: Of 'shards'.
    min_size: Of 'dirichlet_per_class'.
    cap: Of 'dirichlet_per_class'.
    coarse_labels: The coarse class of every example, for 'pachinko'. None (the
      default) where there is none.
    fine_alpha: Of 'pachinko'. Defaults to 10.

  Returns:
    The clients, which copy no example: `values` are `examples`.

  Raises:
    TypeError: If a number is not an integer.
    ValueError: If the partition is unknown, or an argument out of range.

  Example:

    >>> train = {'x': np.zeros([50_000, 2]), 'y': np.arange(50_000) % 10}
    >>> clients = to_clients(
    ...     train, 100, seed=0, partition='iid', alpha=0.1,
    ...     examples_per_client=None, shards_per_client=2, min_size=1,
    ...     cap=False)
    >>> clients.num_examples('client_000')
    500
  """
  if examples_per_client is None and partition not in _DIVIDE_ALL:
    examples_per_client = _DEFAULT_SIZE
  rows = partition_lib.by_scheme(
      partition,
      examples['y'],
      num_clients,
      seed,
      alpha=alpha,
      examples_per_client=examples_per_client,
      shards_per_client=shards_per_client,
      min_size=min_size,
      cap=cap,
      coarse_labels=coarse_labels,
      fine_alpha=fine_alpha,
  )
  return client_data.PackedClientArrays.from_partition(examples, rows)
