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
"""Clients that drop out of a round, and clients that are too slow for it."""

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from tff_adaptive.data import cohort as cohort_lib
from tff_adaptive.data import random_streams
from tff_adaptive.simulation import callbacks

NUM_DROPPED_OUT_KEY = 'clients/num_dropped_out'
NUM_STRAGGLERS_KEY = 'clients/num_stragglers'

CohortFn = Callable[[int], cohort_lib.Cohort]


def _check_probability(name: str, value: float) -> None:
  if not 0.0 <= value <= 1.0:
    raise ValueError(f'`{name}` must be from 0 to 1, found {value}.')


def _sample_faulty(
    cohort: cohort_lib.Cohort, use: str, probability: float
) -> set[str]:
  """The clients of a cohort to which something happens, each by itself."""
  streams = random_streams.StreamFamily(cohort.seed, use, cohort.round_num)
  return {
      client_id
      for client_id in cohort.client_ids
      if streams.start(client_id).random() < probability
  }


def _drop_out(
    cohort: cohort_lib.Cohort, dropped: set[str]
) -> cohort_lib.Cohort:
  """The cohort without some of its clients."""
  ids = cohort.client_ids
  return attrs.evolve(
      cohort,
      client_ids=[name for name in ids if name not in dropped],
      dropped_out=[
          *cohort.dropped_out,
          *(name for name in ids if name in dropped),
      ],
  )


def _slow_down(
    cohort: cohort_lib.Cohort, stragglers: set[str]
) -> cohort_lib.Cohort:
  """The cohort whose stragglers finish a part of their batches."""
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
  cohort = attrs.evolve(cohort, step_limits={**cohort.step_limits, **limits})
  return _drop_out(cohort, dropped)


def inject_faults(
    cohort_fn: CohortFn,
    *,
    drop_clients: float = 0.0,
    straggler_fraction: float = 0.0,
) -> CohortFn:
  """Makes clients of every round drop out, or finish a part of their steps.

  A client that drops out takes no part in the round: nothing is read of it, it
  sends nothing, and it counts in no metric but `NUM_DROPPED_OUT_KEY`. If all
  clients of a round drop out, its cohort is empty: the round leaves the state
  of the process as it was, but for counts of rounds, and its means are NaN.

  A straggler trains on the first of its batches only. Of k batches it finishes
  a number that is drawn uniformly from 1 to k - 1; one with a single batch
  finishes none in time, and drops out. What stragglers have done counts: in
  the mean with as many examples as they have trained on, where clients are
  weighted by examples, and like any other client where they are not.

  What happens to a client depends on the seed of the cohort, the round and the
  id of the client alone, and changes no other draw: who is sampled, how the
  examples are shuffled, augmented and masked. With a larger probability, those
  of a smaller one are among the faulty clients.

  Args:
    cohort_fn: From the number of finished rounds to the clients of the next.
    drop_clients: The probability that a sampled client drops out, from 0 to 1.
      Default 0: none does.
    straggler_fraction: The probability that a client that takes part is a
      straggler, from 0 to 1. Default 0: none is.

  Returns:
    A function like `cohort_fn`, pure if that is.

  Raises:
    ValueError: If a probability is not from 0 to 1.

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
    epochs (chosen uniformly at random between [1, E])". Deviations: here steps
    are drawn, so that runs of one epoch have stragglers, too; a straggler never
    finishes all; and each client is a straggler with the probability, where the
    paper has a fixed share of every cohort. As in FedProx, partial work counts;
    that paper's FedAvg drops stragglers, which is `drop_clients`.
  """
  _check_probability('drop_clients', drop_clients)
  _check_probability('straggler_fraction', straggler_fraction)

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
  """Counts who has dropped out of a round, and who was a straggler.

  The counts are in the row of every round, by `NUM_DROPPED_OUT_KEY` and
  `NUM_STRAGGLERS_KEY`. Beside them, `clients/num_clients` counts those that
  have taken part, stragglers among them.
  """

  def measure(self, round_end: callbacks.RoundEnd) -> Mapping[str, Any]:
    """Returns both counts; see the base class."""
    cohort = round_end.cohort
    stragglers = [name in cohort.step_limits for name in cohort.client_ids]
    return {
        NUM_DROPPED_OUT_KEY: len(cohort.dropped_out),
        NUM_STRAGGLERS_KEY: sum(stragglers),
    }
