# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trains rounds one by one, keeping the clients' states between rounds."""

import collections
from collections.abc import Sequence
from typing import Any, Optional

import tensorflow_federated as tff

from tff_adaptive import simulation
from tff_adaptive.data import cohort as cohort_lib
from tff_adaptive.simulation import client_states


class Rounds:
  """The rounds of a learning process.

  Attributes:
    process: The process.
    state: Its state before the next round; None for the initial one.
    round_num: The number of finished rounds.
    store: The store of client states; None if clients keep no state.
    client_states: Adds client states to cohorts and stores the new ones; None
      if clients keep no state.

  Example:

    >>> rounds = Rounds(process)
    >>> metrics = rounds.train(client_datasets)
  """

  def __init__(
      self,
      process: tff.learning.templates.LearningProcess,
      store: Optional[simulation.ClientStateStore] = None,
  ):
    """Initializes the rounds without computing anything.

    Args:
      process: The process.
      store: The store of client states. Default: in memory.
    """
    if client_states.get_state_spec(process) is None:
      store = None
    elif store is None:
      store = simulation.ClientStateStore()
    self.process = process
    self.state: Any = None
    self.round_num = 0
    self.store = store
    self.client_states = client_states.bind(process, store, None)

  def train(self, clients: Any, client_ids: Sequence[Any] = ()) -> Any:
    """Trains the next round.

    Args:
      clients: A `Cohort`, or a list with the batches of each client.
      client_ids: The client ids of such a list; unused if clients keep no
        state.

    Returns:
      The metrics of the round, without client states.

    Raises:
      ValueError: If clients that keep states have no ids.
    """
    if self.state is None:
      self.state = self.process.initialize()
    brought = clients
    if self.client_states is not None:
      if isinstance(clients, cohort_lib.Cohort):
        client_ids = clients.client_ids
        brought = self.client_states.add_to(clients)
      else:
        if len(client_ids) != len(clients):
          raise ValueError(
              f'`client_ids` must name the {len(clients)} clients, found '
              f'{len(client_ids)} ids.'
          )
        brought = list(map(self._bring, map(str, client_ids), clients))
    output = self.process.next(self.state, brought)
    self.state = output.state
    self.round_num += 1
    if self.client_states is None:
      return output.metrics
    rejected = [
        (str(client_ids[int(place)]), reason)
        for place, reason in simulation.find_rejected((), output.metrics)
    ]
    return self.client_states.keep(self.round_num, output.metrics, rejected)

  def _bring(self, client_id: str, batches: Any) -> Any:
    """Returns the batches of a client with its id and state."""
    assert self.store is not None
    state = self.store.get(client_id)
    return collections.OrderedDict(
        data=batches,
        client_id=[client_id],
        client_state=[] if state is None else [state],
    )
