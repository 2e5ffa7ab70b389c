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
"""A few rounds of the library's learning processes on least squares."""

import collections
from collections.abc import Mapping, Sequence
import functools
import json
from typing import Any, NamedTuple

import numpy as np
import tensorflow_federated as tff

from experiments.claims import least_squares
from experiments.conformance import processes
from tasks import golden_problems
from tff_adaptive import runtime
from tff_adaptive import simulation
from tff_adaptive.simulation import client_states

# The model of the small problem of least squares has four weights.
_SIZE = 4


class Training(NamedTuple):
  """What a few rounds gave.

  Attributes:
    points: The first weight before each round, and the last one.
    clients: What the clients of the last round have cost, by name.
    keeps_state: Whether clients keep state from one round to the next.
  """

  points: list[float]
  clients: Mapping[str, float]
  keeps_state: bool


def train(
    config: Mapping[str, Any],
    clients: Sequence[least_squares.Client],
    start: float,
    *,
    num_rounds: int = 1,
    num_local_steps: int = 1,
) -> Training:
  """Trains with all clients in every round.

  Args:
    config: The process, see `least_squares.fedavg`.
    clients: The clients; all count the same.
    start: The first weight; the others stay 0.
    num_rounds: The number of rounds.
    num_local_steps: The steps of a client in a round, on its whole loss.

  Returns:
    What the rounds gave.
  """
  problem = _problem(clients, start)
  data = golden_problems.create_client_batches(problem, 1, num_local_steps)
  store = simulation.ClientStateStore()
  points = [start]
  with tff.framework.get_context_stack().install(_context()):
    process = _build_process(json.dumps(config), start, len(clients))
    keeps_state = client_states.get_state_spec(process) is not None
    state = process.initialize()
    for round_num in range(1, num_rounds + 1):
      brought = _with_states(data, store) if keeps_state else data
      state, metrics = process.next(state, brought)
      if keeps_state:
        _keep(store, round_num, metrics['client_work']['client_states'])
      weights = state.global_model_weights.trainable
      points.append(float(golden_problems.flatten_weights(weights)[0]))
  measured = metrics['client_work']['clients']
  costs = {name: float(np.asarray(v)) for name, v in measured.items()}
  return Training(points, costs, keeps_state)


@functools.cache
def _context() -> Any:
  """One runtime for all checks, which keeps what it has compiled."""
  return runtime.create_compiled_context(plan='loop')


@functools.cache
def _build_process(config: str, start: float, num_clients: int) -> Any:
  """The process of a configuration, which takes longer than its rounds."""
  return processes.build_process(
      {'weighting': 'uniform', **json.loads(config)},
      golden_problems.create_functional_model(_problem([], start)),
      None,
      num_clients,
  )


def _problem(
    clients: Sequence[least_squares.Client], start: float
) -> dict[str, Any]:
  """The clients as a problem of a file of reference numbers."""
  rest = [0.0] * (_SIZE - 1)
  roots = [np.sqrt(client.curvature) for client in clients]
  return {
      'name': 'quadratic',
      'x0': [start, *rest],
      'clients': [
          {'X': [[root, *rest]], 'y': [root * client.center]}
          for root, client in zip(roots, clients)
      ],
  }


def _with_states(data: list[Any], store: Any) -> list[Any]:
  """What clients bring that keep state."""
  brought = []
  for client_id, batches in enumerate(map(list, data)):
    kept = store.get(str(client_id))
    brought.append(
        collections.OrderedDict(
            data=batches,
            client_id=[str(client_id)],
            client_state=[] if kept is None else [kept],
        )
    )
  return brought


def _keep(store: Any, round_num: int, states: Any):
  ids = [client_id.decode() for client_id in states['client_id']]
  store.update(round_num, ids, states['client_state'])
