# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Privacy accounting: the epsilon of a number of rounds at a given delta."""

import enum

import dp_accounting
from dp_accounting import rdp as rdp_lib
import numpy as np

from tff_adaptive import ranges
from tff_adaptive.optimizers import arguments

# The bound of fixed-size cohorts is computed at integer orders, in seconds at
# the largest ones, and interpolated.
_FRACTIONS = tuple(1.0 + tenths / 10 for tenths in range(1, 10))
_FIXED_ORDERS = (*_FRACTIONS, *range(2, 65), 128, 256)


class CohortSampling(enum.Enum):
  """The sampling of the cohort, independently in every round.

  The sampling determines which data sets are neighbours, that is, cannot be
  told apart from a run. The values are those of a flag.

  Attributes:
    POISSON: Samples every client independently, with probability
      clients_per_round / num_clients. Neighbours differ by one additional
      client.
    FIXED: Samples clients_per_round clients, uniformly without replacement.
      Neighbours differ by the replacement of one client.
  """

  POISSON = 'poisson'
  FIXED = 'fixed'


def default_delta(num_clients: int) -> float:
  """Returns the delta of McMahan et al. 2018, num_clients^-1.1.

  Args:
    num_clients: The number of all clients, at least 2.

  Returns:
    The delta.

  Raises:
    ValueError: If there is one client, for which the delta would be 1.
  """
  if num_clients < 2:
    raise ValueError(
        f'Privacy needs at least 2 clients, found {num_clients}: nothing hides '
        'a client that is alone.'
    )
  return num_clients**-1.1


def _compute_rdp(
    noise_multiplier: float,
    num_clients: int,
    clients_per_round: int,
    sampling: CohortSampling,
) -> tuple[np.ndarray, np.ndarray]:
  """Returns Renyi orders, and the divergence of a round at each of them."""
  relations = dp_accounting.NeighboringRelation
  if sampling is CohortSampling.POISSON:
    accountant = rdp_lib.RdpAccountant(
        neighboring_relation=relations.ADD_OR_REMOVE_ONE
    )
    event: dp_accounting.DpEvent = dp_accounting.PoissonSampledDpEvent(
        clients_per_round / num_clients,
        dp_accounting.GaussianDpEvent(noise_multiplier),
    )
  else:
    accountant = rdp_lib.RdpAccountant(
        _FIXED_ORDERS, neighboring_relation=relations.REPLACE_ONE
    )
    # Replacing a client changes the sum by up to twice the bound, and the
    # accountant expects the noise relative to that.
    event = dp_accounting.SampledWithoutReplacementDpEvent(
        num_clients,
        clients_per_round,
        dp_accounting.GaussianDpEvent(noise_multiplier / 2),
    )
  accountant.compose(event)
  return np.asarray(accountant.orders), np.asarray(accountant.rdp)


class RoundAccountant:
  """Computes the epsilon of a number of equal rounds.

  The Renyi divergence of one round is computed once; that of n rounds is n
  times as large, and is converted to epsilon. The guarantee is client-level: it
  covers all data of a client in all rounds together.

  With `CohortSampling.POISSON` a round is the Poisson-subsampled Gaussian
  mechanism, and neighbours differ by one additional client. With
  `CohortSampling.FIXED` it is the Gaussian mechanism subsampled without
  replacement, and neighbours differ by the replacement of one client. The sum
  then changes by up to twice the bound, so the same noise protects less, and
  the known bound of the subsampling is loose. The two epsilons are different
  guarantees and cannot be compared.

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
      noise_multiplier: As in `DifferentialPrivacy`; not negative.
      num_clients: The number of all clients, a positive integer.
      clients_per_round: The number of clients in a round, or its mean; a
        positive integer, at most `num_clients`.
      sampling: The sampling of the cohort.

    Raises:
      TypeError: If a number of clients is not an integer, or `sampling` is not
        a `CohortSampling`.
      ValueError: If a number is out of its range.
    """
    owner = 'Accounting'
    arguments.check('num_clients', num_clients, owner, ranges.Count)
    arguments.check('clients_per_round', clients_per_round, owner, ranges.Count)
    if clients_per_round > num_clients:
      raise ValueError(
          f'`clients_per_round` must be at most {num_clients}, the number of '
          f'clients, found {clients_per_round}.'
      )
    if not isinstance(sampling, CohortSampling):
      raise TypeError(
          f'`sampling` must be a `CohortSampling`, found {sampling!r}.'
      )
    arguments.check(
        'noise_multiplier', noise_multiplier, owner, ranges.NotNegative
    )
    if noise_multiplier > 0:
      self.orders, self.rdp_per_round = _compute_rdp(
          noise_multiplier, num_clients, clients_per_round, sampling
      )
    else:
      self.orders = np.asarray(_FIXED_ORDERS)
      self.rdp_per_round = np.full(len(_FIXED_ORDERS), np.inf)

  def get_epsilon(self, num_rounds: int, delta: float) -> float:
    """Returns the epsilon of a number of rounds.

    Args:
      num_rounds: The number of released rounds, not negative.
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
