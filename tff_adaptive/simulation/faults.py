# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Faults of clients: some drop out, and others stop before they are done."""

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from tff_adaptive.data import cohort as cohort_lib
from tff_adaptive.data import random_streams
from tff_adaptive.simulation import callbacks

CohortFn = Callable[[int], cohort_lib.Cohort]


def _sample_faulty(
    cohort: cohort_lib.Cohort, use: str, probability: float
) -> set[str]:
  """Samples the faulty clients of a cohort independently."""
  streams = random_streams.StreamFamily(cohort.seed, use, cohort.round_num)
  return {
      client_id
      for client_id in cohort.client_ids
      if streams.start(client_id).random() < probability
  }


def _drop_out(
    cohort: cohort_lib.Cohort, dropped: set[str]
) -> cohort_lib.Cohort:
  """Returns the cohort without some of its clients."""
  ids = cohort.client_ids
  return attrs.evolve(
      cohort,
      packed=None,
      client_ids=[name for name in ids if name not in dropped],
      dropped_out=[
          *cohort.dropped_out,
          *(name for name in ids if name in dropped),
      ],
  )


def _slow_down(
    cohort: cohort_lib.Cohort, stragglers: set[str]
) -> cohort_lib.Cohort:
  """Returns the cohort with step limits for stragglers."""
  streams = random_streams.StreamFamily(
      cohort.seed, random_streams.STRAGGLING, cohort.round_num, 'num_steps'
  )
  limits, dropped = {}, set()
  for index, client_id in enumerate(cohort.client_ids):
    if client_id not in stragglers:
      continue
    num_steps = cohort.num_steps(index)
    if num_steps > 1:
      limits[client_id] = int(streams.start(client_id).integers(1, num_steps))
    elif num_steps == 1:
      dropped.add(client_id)
  limits = {**cohort.step_limits, **limits}
  cohort = attrs.evolve(cohort, packed=None, step_limits=limits)
  return _drop_out(cohort, dropped)


def inject_faults(
    cohort_fn: CohortFn,
    *,
    drop_clients: float = 0.0,
    straggler_fraction: float = 0.0,
) -> CohortFn:
  """Makes clients of each round drop out, or finish only a part of their steps.

  A client that drops out does not participate: its data are not read, it sends
  nothing, and it counts only in the metric `clients/num_dropped_out`. If all
  clients of a round drop out, its cohort is empty: the state of the process
  does not change, except for counts of rounds, means over clients are NaN, and
  the metrics in `train/` are those of no example, such as an accuracy of 0.

  A straggler trains only on the first of its k batches; their number is sampled
  uniformly from 1 to k - 1. A straggler with a single batch drops out. The work
  of stragglers counts: if clients are weighted by examples, with the number of
  examples trained on, and otherwise like that of any other client.

  A client's faults depend only on the seed of the cohort, the round and the
  client id, and do not change other random draws: sampling, shuffling,
  augmentation and dropout. The faulty clients at a smaller probability are a
  subset of those at a larger one.

  Args:
    cohort_fn: Maps the number of finished rounds to the next round's clients.
    drop_clients: The probability that a sampled client drops out, in [0, 1].
      Defaults to 0.
    straggler_fraction: The probability that a participating client is a
      straggler, in [0, 1]. Defaults to 0.

  Returns:
    A function like `cohort_fn`, pure if `cohort_fn` is.

  Raises:
    ValueError: If a probability is not in [0, 1].

  Example:

    >>> result = run_training(
    ...     process,
    ...     cohort_fn=inject_faults(cohort_fn, drop_clients=0.1),
    ...     total_rounds=3,
    ...     callbacks=[FaultCounts()],
    ... )

  References:
    Li et al., Federated Optimization in Heterogeneous Networks, MLSys 2020,
    https://arxiv.org/abs/1812.06127, section 5.2, simulates stragglers by "x
    epochs (chosen uniformly at random between [1, E])". Deviations: steps are
    sampled instead, so that runs of one epoch have stragglers, too; a straggler
    never finishes all; and each client is a straggler independently, where the
    paper has a fixed share of each cohort. As in FedProx, partial work counts;
    that paper's FedAvg drops stragglers, which corresponds to `drop_clients`.
  """
  for name, probability in (
      ('drop_clients', drop_clients),
      ('straggler_fraction', straggler_fraction),
  ):
    if not 0.0 <= probability <= 1.0:
      raise ValueError(f'`{name}` must be in [0, 1], found {probability}.')

  def faulty_cohort_fn(round_index: int) -> cohort_lib.Cohort:
    cohort = cohort_fn(round_index)
    for use, probability, harm in (
        (random_streams.CLIENT_DROP_OUT, drop_clients, _drop_out),
        (random_streams.STRAGGLING, straggler_fraction, _slow_down),
    ):
      if probability:
        cohort = harm(cohort, _sample_faulty(cohort, use, probability))
    return cohort

  return faulty_cohort_fn


class FaultCounts(callbacks.Callback):
  """Counts the clients of each round that dropped out, and its stragglers.

  The counts are in each round's row as `clients/num_dropped_out` and
  `clients/num_stragglers`. `clients/num_clients` counts the participants,
  including stragglers. Cohorts must be `tff_adaptive.data.Cohort`s; lists raise
  a `TypeError`.
  """

  def measure(self, round_end: callbacks.RoundEnd) -> Mapping[str, Any]:
    """Returns both counts; see the base class."""
    cohort = round_end.cohort
    if not isinstance(cohort, cohort_lib.Cohort):
      raise TypeError(
          '`FaultCounts` needs a `cohort_fn` that returns `Cohort`s, found '
          f'{type(cohort).__name__}.'
      )
    stragglers = [name in cohort.step_limits for name in cohort.client_ids]
    return {
        'clients/num_dropped_out': len(cohort.dropped_out),
        'clients/num_stragglers': sum(stragglers),
    }
