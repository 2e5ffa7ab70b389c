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
"""Partitions by name, with the options that a task's flags have."""

import re
from typing import Optional, Union

import numpy as np

from tff_adaptive.data.partition import _common
from tff_adaptive.data.partition import dirichlet
from tff_adaptive.data.partition import pachinko
from tff_adaptive.data.partition import simple
from tff_adaptive.data.partition import sizes

_WITH_REPLACEMENT = 'dirichlet_with_replacement'
_WITHOUT_REPLACEMENT = 'dirichlet_without_replacement'
_PER_CLASS = 'dirichlet_per_class'
_SHARDS = 'shards'
_IID = 'iid'
_PACHINKO = 'pachinko'

# The names that `by_scheme` takes of any data set with classes.
SCHEMES = (
    _WITH_REPLACEMENT,
    _WITHOUT_REPLACEMENT,
    _PER_CLASS,
    _SHARDS,
    _IID,
)
# With those that need coarse classes, too.
COARSE_SCHEMES = SCHEMES + (_PACHINKO,)


def by_scheme(
    scheme: str,
    labels: np.ndarray,
    num_clients: int,
    seed: int,
    *,
    alpha: float = 0.1,
    examples_per_client: Optional[Union[str, _common.Sizes]] = None,
    shards_per_client: int = 2,
    min_size: int = 1,
    cap: bool = False,
    coarse_labels: Optional[np.ndarray] = None,
    fine_alpha: float = 10.0,
) -> _common.ClientIndices:
  """Splits a data set by a scheme that is chosen by its name.

  Args:
    scheme: One of `COARSE_SCHEMES`: 'dirichlet_with_replacement' and
      'dirichlet_without_replacement' are `dirichlet_per_client`, 'pachinko' is
      `pachinko_allocation`; the others are the functions of their names.
      `SCHEMES` are those that do without coarse classes.
    labels: The class of every row, integers of shape [num_rows].
    num_clients: Number of clients, a positive integer.
    seed: The seed of the partition and of its sizes, a non-negative integer.
    alpha: The concentration of the Dirichlet schemes, for `pachinko_allocation`
      that of the coarse classes. Defaults to 0.1.
    examples_per_client: The sizes of the clients, but for
      `dirichlet_per_class` and `shards`, which divide all rows: numbers, or one
      of the strings '500' (all equal) and '100-500' (`uniform_sizes`). None
      (the default) divides all rows evenly.
    shards_per_client: Of `shards`. Defaults to 2.
    min_size: Of `dirichlet_per_class`. Defaults to 1, so that no client is
      empty.
    cap: Of `dirichlet_per_class`. Defaults to False.
    coarse_labels: The coarse class of every row, for `pachinko_allocation`.
      None (the default) where there is none.
    fine_alpha: Of `pachinko_allocation`. Defaults to 10.

  Returns:
    For every client id its rows, int64 of shape [n_i].

  Raises:
    TypeError: If `labels` or a number is not an integer.
    ValueError: If the scheme is unknown, does not take `examples_per_client`,
      is 'pachinko' without `coarse_labels`, or an argument is out of range.

  Example:

    >>> parts = by_scheme(
    ...     'iid', np.zeros([9], np.int32), 3, seed=1, examples_per_client='2')
    >>> [len(rows) for rows in parts.values()]
    [2, 2, 2]
  """
  known = SCHEMES if coarse_labels is None else COARSE_SCHEMES
  if scheme not in known:
    raise ValueError(
        f'`partition` must be one of {", ".join(known)}, found {scheme!r}.'
    )
  if scheme in (_PER_CLASS, _SHARDS):
    if examples_per_client is not None:
      raise ValueError(
          f'`examples_per_client` cannot be given for `partition`={scheme!r}, '
          f'which divides all rows, found {examples_per_client!r}.'
      )
    if scheme == _SHARDS:
      return simple.shards(labels, num_clients, shards_per_client, seed)
    return dirichlet.dirichlet_per_class(
        labels, num_clients, alpha, seed, min_size=min_size, cap=cap
    )
  if isinstance(examples_per_client, str):
    examples_per_client = _parse_sizes(examples_per_client, num_clients, seed)
  if scheme == _IID:
    return simple.iid(
        len(labels),
        num_clients,
        seed,
        examples_per_client=examples_per_client,
    )
  if scheme == _PACHINKO:
    return pachinko.pachinko_allocation(
        labels,
        coarse_labels,
        num_clients,
        seed,
        coarse_alpha=alpha,
        fine_alpha=fine_alpha,
        examples_per_client=examples_per_client,
    )
  return dirichlet.dirichlet_per_client(
      labels,
      num_clients,
      alpha,
      seed,
      examples_per_client=examples_per_client,
      with_replacement=scheme == _WITH_REPLACEMENT,
  )


def _parse_sizes(text: str, num_clients: int, seed: int) -> _common.Sizes:
  """Returns the sizes of '500' or '100-500'."""
  match = re.fullmatch(r'(\d+)(?:-(\d+))?', text)
  if match is None:
    raise ValueError(
        "`examples_per_client` must be a number such as '500' or a range such "
        f"as '100-500', found {text!r}."
    )
  low, high = match.groups()
  if high is None:
    return int(low)
  return sizes.uniform_sizes(num_clients, int(low), int(high), seed)
