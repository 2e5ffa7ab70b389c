# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The sum over some of a round's clients, as one program of XLA."""

from collections.abc import Mapping, Sequence
import threading
from typing import Any

import numpy as np
import tensorflow_federated as tff

from tff_adaptive.runtime import computations
from tff_adaptive.runtime import plans
from tff_adaptive.runtime import round_keys
from tff_adaptive.runtime import rounds
from tff_adaptive.runtime import values
from tff_adaptive.runtime.accelerators import xla_rounds
from tff_adaptive.runtime.datasets import client_tensors
from tff_adaptive.runtime.datasets import dataset_cache


class _SummingRound(xla_rounds.XlaRound):
  """A round whose state is what clients get, and whose result is their sum."""

  def __init__(self, form: computations.RoundForm, setting: rounds.Setting):
    super().__init__(form, setting)
    self._returns_state = False  # The next sum starts from the same.

  def _prepare(self, state: Any, seed: Any) -> Any:
    return state

  def _finish(self, state: Any, total: Any, seed: Any) -> Any:
    return total


class XlaSum:
  """Sums the results of clients by JAX.

  Attributes:
    pipelines: Why clients' `tf.data` pipelines run; None if they do not.
  """

  pipelines = None

  def __init__(
      self,
      parts: Mapping[str, tff.framework.ConcreteComputation],
      clients_type: tff.Type,
      plan: plans.Plan,
  ):
    """Reads the parts; the program is compiled for the first clients.

    Args:
      parts: The parts `work`, `zero` and `accumulate` of a round.
      clients_type: The type at one client.
      plan: The device, one of JAX.

    Raises:
      UnsupportedComputationError: If a part cannot be read.
      NoLoweringError: If an op has no form in XLA.
    """
    _, broadcast_type = parts['work'].type_signature.parameter
    form = computations.RoundForm(
        parts,
        split=lambda argument: argument,
        state_type=broadcast_type,
        clients_type=clients_type,
        result_type=parts['accumulate'].type_signature.result,
        returns_state=False,
    )
    setting = rounds.Setting(
        plan, dataset_cache.DatasetCache(), lambda reason: None
    )
    self._round = _SummingRound(form, setting)
    self._pack = values.build_pack(broadcast_type)
    # Several threads may sum.
    self._lock = threading.Lock()

  def __call__(
      self,
      broadcast: Sequence[np.ndarray],
      clients: client_tensors.Clients,
      num_clients: int,
      seeds: round_keys.Seeds,
  ) -> list[np.ndarray]:
    """Returns the leaves of the sum, see `XlaRound.run`.

    Args:
      broadcast: The leaves of what the clients get.
      clients: Their data.
      num_clients: The number of clients.
      seeds: The seeds of the sum's zero and of the clients.
    """
    with self._lock:
      return self._round.run(
          self._pack(iter(broadcast)), clients, num_clients, seeds
      )
