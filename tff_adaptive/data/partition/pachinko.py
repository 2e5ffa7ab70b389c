# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Pachinko allocation: Dirichlet partitions over coarse and fine labels."""

from typing import Optional

import numpy as np

from tff_adaptive.data import random_streams
from tff_adaptive.data.partition import dirichlet


def pachinko_allocation(
    labels: np.ndarray,
    coarse_labels: np.ndarray,
    num_clients: int,
    seed: int,
    *,
    coarse_alpha: float = 0.1,
    fine_alpha: float = 10.0,
    examples_per_client: Optional[dirichlet.Sizes] = None,
) -> dirichlet.ClientIndices:
  """Gives each client a mix of coarse classes, and of fine classes in each.

  ```
  q_i ~ Dirichlet(coarse_alpha * ones)      for every client i
  r_ic ~ Dirichlet(fine_alpha * ones)       for every coarse class c
  ```

  Client i samples n_i times a coarse class c from q_i, a class from r_ic, and a
  row of that class without replacement. A class without remaining rows is left
  out and r_ic is renormalized, and likewise a coarse class and q_i; if nothing
  of q_i is left, it is sampled again over the remaining coarse classes. Later
  clients therefore get more of what is left. This is a true partition.

  Args:
    labels: The class of each row, integers of shape [num_rows]. The classes are
      the values that occur.
    coarse_labels: The coarse class of each row, integers of shape [num_rows];
      the same for all rows of a class.
    num_clients: The number of clients, positive.
    seed: The seed of the partition, non-negative.
    coarse_alpha: The concentration of the coarse classes, positive. Defaults to
      0.1: a client has a few of CIFAR-100's twenty.
    fine_alpha: The concentration of the classes in a coarse class, positive.
      Defaults to 10: a client has all of them about equally.
    examples_per_client: n_i, the number of rows of a client: one number for
      all, or one for each. None (the default) divides the rows as evenly as
      possible.

  Returns:
    The rows of each client by id, in random order, int64 of shape [n_i].

  Raises:
    TypeError: If labels or a number of clients or examples is not an integer.
    ValueError: If labels are empty or not vectors of the same size, a class has
      two coarse classes, a concentration or a number is not positive, or
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
    concentrations), whose code produced `tff.simulation.datasets.cifar100`. It
    does not say what happens when nothing of a mix is left.
  """
  labels = dirichlet.check_labels(labels)
  coarse_alpha = dirichlet.check_alpha(coarse_alpha, 'coarse_alpha')
  fine_alpha = dirichlet.check_alpha(fine_alpha, 'fine_alpha')
  sizes = dirichlet.client_sizes(len(labels), num_clients, examples_per_client)
  dirichlet.check_enough(sizes, len(labels))
  families = _families(labels, coarse_labels, seed)
  clients = []
  for i, size in enumerate(sizes):
    generator = random_streams.stream(
        seed, random_streams.PARTITION, 'pachinko', i
    )
    rows = _draw(families, size, coarse_alpha, fine_alpha, generator)
    clients.append(generator.permutation(rows))
  return dirichlet.name_clients(clients)


def _draw(
    families: list[list[np.ndarray]],
    size: int,
    coarse_alpha: float,
    fine_alpha: float,
    generator: np.random.Generator,
) -> np.ndarray:
  """Removes a client's rows from the pools of all classes and returns them."""
  # A coarse class is empty when all its classes are, so the draws of a coarse
  # class can be counted before any of them is made.
  available = np.array([sum(map(len, pools)) for pools in families])
  counts = dirichlet.draw_mixed_counts(size, available, coarse_alpha, generator)
  taken = [np.zeros(0, np.int64)]
  for c in np.flatnonzero(counts):
    taken += dirichlet.draw_from_pools(
        families[c], counts[c], fine_alpha, generator
    )
  return np.concatenate(taken)


def _families(
    labels: np.ndarray, coarse_labels: np.ndarray, seed: int
) -> list[list[np.ndarray]]:
  """Returns the rows of each class in random order, by coarse class."""
  coarse_labels = dirichlet.check_labels(coarse_labels, 'coarse_labels')
  if coarse_labels.shape != labels.shape:
    raise ValueError(
        f'`coarse_labels` must have one entry for each of the {len(labels)} '
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
