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
"""Pachinko allocation: mixes of coarse classes, and of fine classes in them."""

from typing import Optional

import numpy as np

from tff_adaptive.data import random_streams
from tff_adaptive.data.partition import _common


def pachinko_allocation(
    labels: np.ndarray,
    coarse_labels: np.ndarray,
    num_clients: int,
    seed: int,
    *,
    coarse_alpha: float = 0.1,
    fine_alpha: float = 10.0,
    examples_per_client: Optional[_common.Sizes] = None,
) -> _common.ClientIndices:
  """Gives every client a mix of coarse classes, and of fine ones in each.

  ```
  q_i ~ Dirichlet(coarse_alpha * ones)      for every client i
  r_ic ~ Dirichlet(fine_alpha * ones)       for every coarse class c
  ```

  Client i draws n_i times a coarse class c from q_i, a class from r_ic, and a
  row of that class, without replacement. A class that has no row left is left
  out and r_ic is normalized again, and so are a coarse class and q_i; where
  nothing of q_i is left, it is drawn anew over the coarse classes that remain.
  Later clients thus get more of what is left. This is a true partition.

  Args:
    labels: The class of every row, integers of shape [num_rows]. The classes
      are the values that occur.
    coarse_labels: The coarse class of every row, integers of shape [num_rows];
      one for all rows of a class.
    num_clients: Number of clients, a positive integer.
    seed: The seed of the partition, a non-negative integer.
    coarse_alpha: Concentration of the coarse classes, positive. Defaults to
      0.1, where a client has a few of CIFAR-100's twenty.
    fine_alpha: Concentration of the classes in a coarse one, positive. Defaults
      to 10, where it has all of them about equally.
    examples_per_client: n_i, the number of rows of a client: one number for
      all, or one for each. None (the default) divides the number of rows as
      evenly as possible.

  Returns:
    For every client id its rows in random order, int64 of shape [n_i].

  Raises:
    TypeError: If labels, a number of clients or examples is not an integer.
    ValueError: If labels are empty or not vectors of the same size, a class
      has two coarse ones, a concentration or a number is not positive, or
      clients would need more rows than there are.

  Example:

    >>> parts = pachinko_allocation(
    ...     [0, 0, 1, 1, 2, 2], [0, 0, 0, 0, 1, 1], 3, seed=1)
    >>> sorted(np.concatenate(list(parts.values())).tolist())
    [0, 1, 2, 3, 4, 5]

  References:
    Li and McCallum, Pachinko Allocation, ICML 2006; Reddi et al., Adaptive
    Federated Optimization, ICLR 2021, https://arxiv.org/abs/2003.00295,
    Appendix F (500 clients of 100 images of CIFAR-100, with these
    concentrations), of whose code `tff.simulation.datasets.cifar100` comes.
    It does not say what happens when nothing of a mix is left.
  """
  labels = _common.check_labels(labels)
  coarse_alpha = _common.check_alpha(coarse_alpha, 'coarse_alpha')
  fine_alpha = _common.check_alpha(fine_alpha, 'fine_alpha')
  sizes = _common.client_sizes(len(labels), num_clients, examples_per_client)
  _common.check_enough(sizes, len(labels))
  families = _families(labels, coarse_labels, seed)
  clients = []
  for i, size in enumerate(sizes):
    generator = random_streams.stream(
        seed, random_streams.PARTITION, 'pachinko', i
    )
    rows = _draw(families, size, coarse_alpha, fine_alpha, generator)
    clients.append(generator.permutation(rows))
  return _common.name_clients(clients)


def _draw(
    families: list[list[np.ndarray]],
    size: int,
    coarse_alpha: float,
    fine_alpha: float,
    generator: np.random.Generator,
) -> np.ndarray:
  """Takes a client's rows out of the pools of all classes, which shrink."""
  available = [np.array([len(p) for p in family]) for family in families]
  # A coarse class is empty when all its classes are, so that its draws can be
  # counted before they are made in it.
  counts = _common.draw_class_counts(
      size,
      np.array([sum(pools) for pools in available]),
      coarse_alpha,
      generator,
  )
  taken = [np.zeros(0, np.int64)]
  for c in np.flatnonzero(counts):
    fine_counts = _common.draw_class_counts(
        counts[c], available[c], fine_alpha, generator
    )
    taken += _common.take_from_pools(families[c], fine_counts)
  return np.concatenate(taken)


def _families(
    labels: np.ndarray, coarse_labels: np.ndarray, seed: int
) -> list[list[np.ndarray]]:
  """Returns the rows of every class in random order, by coarse class."""
  coarse_labels = _common.check_labels(coarse_labels, 'coarse_labels')
  if coarse_labels.shape != labels.shape:
    raise ValueError(
        f'`coarse_labels` must have an entry for each of the {len(labels)} '
        f'labels, found {len(coarse_labels)}.'
    )
  pools: dict[int, list[np.ndarray]] = {c: [] for c in np.unique(coarse_labels)}
  for i, label in enumerate(np.unique(labels)):
    rows = np.flatnonzero(labels == label)
    coarse = np.unique(coarse_labels[rows])
    if len(coarse) > 1:
      raise ValueError(
          f'`coarse_labels` must be the same for all rows of a class, found '
          f'{coarse.tolist()} for class {label}.'
      )
    generator = random_streams.stream(
        seed, random_streams.PARTITION, 'pachinko', 'pool', i
    )
    pools[coarse[0]].append(generator.permutation(rows))
  return list(pools.values())
