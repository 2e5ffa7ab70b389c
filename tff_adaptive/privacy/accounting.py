# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The privacy that a number of rounds leaves, epsilon at a given delta."""

import enum

import dp_accounting
from dp_accounting import rdp as rdp_lib
import numpy as np

from tff_adaptive.optimizers import optimizer

# The bound of fixed-size cohorts is computed at integers and interpolated, and
# takes seconds at the largest orders.
_FRACTIONS = tuple(1.0 + tenths / 10 for tenths in range(1, 10))
_FIXED_ORDERS = (*_FRACTIONS, *range(2, 65), 128, 256)


class CohortSampling(enum.Enum):
  """How the cohort of a round is drawn, anew in every round.

  It decides between which data sets a run does not tell the difference, the
  neighbours. The values are those of a flag.

  Attributes:
    POISSON: Every client independently, with probability clients_per_round /
      num_clients. Neighbours: one client more or less.
    FIXED: Exactly clients_per_round clients, all such sets equally likely.
      Neighbours: one client replaced by another.
  """

  POISSON = 'poisson'
  FIXED = 'fixed'


def default_delta(num_clients: int) -> float:
  """The delta of McMahan et al. 2018: one over the number of clients^1.1.

  Args:
    num_clients: The number of all clients.

  Returns:
    The delta.
  """
  return num_clients**-1.1


def _round_event(
    noise_multiplier: float,
    num_clients: int,
    clients_per_round: int,
    sampling: CohortSampling,
) -> dp_accounting.DpEvent:
  """What happens in a round, in the terms of the accountant."""
  if sampling is CohortSampling.POISSON:
    return dp_accounting.PoissonSampledDpEvent(
        clients_per_round / num_clients,
        dp_accounting.GaussianDpEvent(noise_multiplier),
    )
  # Where a client is replaced, the sum moves by twice the bound. The accountant
  # wants the noise relative to what the sum moves by.
  return dp_accounting.SampledWithoutReplacementDpEvent(
      num_clients,
      clients_per_round,
      dp_accounting.GaussianDpEvent(noise_multiplier / 2),
  )


def _compute_rdp(
    event: dp_accounting.DpEvent, sampling: CohortSampling
) -> tuple[np.ndarray, np.ndarray]:
  """Orders, and the Renyi divergence of an event at each of them."""
  relations = dp_accounting.NeighboringRelation
  if sampling is CohortSampling.POISSON:
    accountant = rdp_lib.RdpAccountant(
        neighboring_relation=relations.ADD_OR_REMOVE_ONE
    )
  else:
    accountant = rdp_lib.RdpAccountant(
        _FIXED_ORDERS, neighboring_relation=relations.REPLACE_ONE
    )
  accountant.compose(event)
  return np.asarray(accountant.orders), np.asarray(accountant.rdp)


class RoundAccountant:
  """Computes the epsilon of a number of equal rounds.

  The Renyi divergence of one round is computed once; that of n rounds is n
  times as large, and is turned into epsilon. It is client-level: all the data
  of a client, and all that it ever sent, are protected together.

  With `CohortSampling.POISSON` a round is the Poisson-subsampled Gaussian
  mechanism, and neighbours differ by one client more or less. With
  `CohortSampling.FIXED` it is the Gaussian mechanism subsampled without
  replacement, and one client is replaced by another: the sum then moves by
  twice the bound, so that the same noise protects less, and the known bound of
  the subsampling is loose, too. The two epsilons are of different promises, and
  not to be compared as numbers.

  Attributes:
    orders: The Renyi orders.
    rdp_per_round: The Renyi divergence of one round, by order.

  Example:

    >>> accountant = RoundAccountant(
    ...     noise_multiplier=1.0, num_clients=1000, clients_per_round=10,
    ...     sampling=CohortSampling.POISSON)
    >>> round(accountant.get_epsilon(1000, delta=1e-5), 2)
    2.1

  References:
    Mironov, Renyi Differential Privacy, CSF 2017,
    https://arxiv.org/abs/1702.07476, Propositions 1 and 3.
    Mironov, Talwar, Zhang, Renyi Differential Privacy of the Sampled Gaussian
    Mechanism, 2019, https://arxiv.org/abs/1908.10530.
    Wang, Balle, Kasiviswanathan, Subsampled Renyi Differential Privacy and
    Analytical Moments Accountant, AISTATS 2019,
    https://arxiv.org/abs/1808.00087, Theorem 27.
    Canonne, Kamath, Steinke, The Discrete Gaussian for Differential Privacy,
    NeurIPS 2020, https://arxiv.org/abs/2004.00010, Proposition 12: from Renyi
    divergence to epsilon. All as in Google's `dp_accounting`.
  """

  def __init__(
      self,
      *,
      noise_multiplier: float,
      num_clients: int,
      clients_per_round: int,
      sampling: CohortSampling,
  ):
    """Initializes the accountant.

    Args:
      noise_multiplier: That of `DifferentialPrivacy`, of all that a round
        releases together; not negative.
      num_clients: The number of all clients, a positive integer.
      clients_per_round: The number of clients in a round, or its mean; a
        positive integer, at most `num_clients`.
      sampling: How the cohort is drawn.

    Raises:
      TypeError: If a number of clients is not an integer, or `sampling` no
        `CohortSampling`.
      ValueError: If a number is out of its range.
    """
    owner = 'Accounting'
    optimizer.check_count('num_clients', num_clients, owner)
    optimizer.check_count('clients_per_round', clients_per_round, owner)
    if clients_per_round > num_clients:
      raise ValueError(
          f'`clients_per_round` must be at most {num_clients}, the number of '
          f'clients, found {clients_per_round}.'
      )
    if not isinstance(sampling, CohortSampling):
      raise TypeError(
          f'`sampling` must be a `CohortSampling`, found {sampling!r}.'
      )
    optimizer.check_rate('noise_multiplier', noise_multiplier, owner)
    if noise_multiplier > 0:
      event = _round_event(
          noise_multiplier, num_clients, clients_per_round, sampling
      )
      self.orders, self.rdp_per_round = _compute_rdp(event, sampling)
    else:
      self.orders = np.asarray(_FIXED_ORDERS)
      self.rdp_per_round = np.full(len(_FIXED_ORDERS), np.inf)

  def get_epsilon(self, num_rounds: int, delta: float) -> float:
    """Returns the epsilon of some rounds.

    Args:
      num_rounds: How many rounds were released, not negative.
      delta: The probability with which epsilon may be exceeded, in (0, 1).

    Returns:
      The epsilon; infinity without noise.

    Raises:
      ValueError: If a number is out of its range.
    """
    if num_rounds < 0:
      raise ValueError(
          f'`num_rounds` must not be negative, found {num_rounds}.'
      )
    if not 0 < delta < 1:
      raise ValueError(f'`delta` must be between 0 and 1, found {delta}.')
    if num_rounds == 0:
      return 0.0
    epsilon, _ = rdp_lib.compute_epsilon(
        self.orders, num_rounds * self.rdp_per_round, delta
    )
    return float(epsilon)
