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
import tensorflow as tf
import tensorflow_federated as tff

from experiments import registry
from experiments.audit import quadratics
from experiments.conformance import processes
from tasks import golden_problems
from tff_adaptive import optimizers
from tff_adaptive import runtime
from tff_adaptive import simulation
from tff_adaptive.optimizers import optimizer as optimizer_lib
from tff_adaptive.simulation import client_states


class Path(NamedTuple):
  """What a few steps gave.

  Attributes:
    points: The weights before each step, and the last ones, [steps + 1, size].
    states: The states after the steps, as one with a leading axis.
    reports: What the rule reports of the steps, [steps] each.
  """

  points: np.ndarray
  states: Any
  reports: Any

  @property
  def step_sizes(self) -> np.ndarray:
    return self.reports[optimizer_lib.STEP_SIZE_KEY]


def build_rule(name: str, **arguments: Any) -> Any:
  """Builds a rule by the name of its flag, or by 'module:function'."""
  builders = {
      row.name: row.builder
      for kind in (registry.CLIENT_OPTIMIZER, registry.SERVER_OPTIMIZER)
      for row in registry.ROWS[kind].values()
      if row.builder
  }
  return registry.resolve(builders.get(name, name))(**arguments)


def run(
    rule: str,
    batches: quadratics.Batches,
    start: Any,
    *,
    round_num: int = 0,
    **arguments: Any,
) -> Path:
  """Steps on one batch after the other.

  Args:
    rule: See `build_rule`.
    batches: The batches.
    start: The weights, [size].
    round_num: The number of rounds before.
    **arguments: Of the rule's builder.

  Returns:
    What the steps gave, in numpy.
  """
  steps = _compile(rule, len(start), tuple(sorted(arguments.items())))
  arrays = [np.asarray(a, np.float64) for a in (*batches, start)]
  path = steps(*map(tf.constant, arrays), tf.constant(round_num))
  return tf.nest.map_structure(lambda tensor: tensor.numpy(), path)


@functools.cache
def _compile(rule: str, size: int, arguments: tuple[tuple[str, Any], ...]):
  """The steps of a rule as a function."""
  weights = tf.TensorSpec([size], tf.float64)
  signature = (
      tf.TensorSpec([None, size, size], tf.float64),
      tf.TensorSpec([None, size], tf.float64),
      weights,
      tf.TensorSpec([], tf.int32),
  )

  # Rules are written in graph operations: AutoGraph would only cost time.
  @functools.partial(tf.function, input_signature=signature, autograph=False)
  def steps(hessians, slopes, start, round_num):
    optimizer = build_rule(rule, **dict(arguments))
    state = _start(optimizer, weights, round_num)

    def step(before, batch):
      state, x, _ = before
      state, x = _next(optimizer, state, x, *batch)
      state = tf.nest.map_structure(tf.convert_to_tensor, state)
      return state, x, _report(optimizer, state)

    states, points, reports = tf.scan(
        step, (hessians, slopes), (state, start, _report(optimizer, state))
    )
    points = tf.concat([start[tf.newaxis], points], axis=0)
    return Path(points, states, reports)

  return steps.get_concrete_function()


def _start(optimizer, weights, round_num):
  """The state at the start of a round, on a client or on the server."""
  state = optimizer.initialize(weights)
  if isinstance(optimizer, optimizers.FederatedOptimizer):
    shared = optimizer.initialize_shared(weights)
    kept = optimizer.initialize_kept(weights)
    state = optimizer.start_round(state, shared, kept, round_num)
  return tf.nest.map_structure(tf.convert_to_tensor, state)


def _next(optimizer, state, x, hessian, slope):
  """A step on a batch."""

  def value_and_grad_fn(x):
    curved = tf.linalg.matvec(hessian, x)
    return tf.reduce_sum(x * (0.5 * curved + slope)), curved + slope

  value, gradient = value_and_grad_fn(x)
  if not optimizer_lib.takes_extra_args(optimizer):
    return optimizer.next(state, x, gradient)
  return optimizer.next(
      state, x, gradient, value=value, value_and_grad_fn=value_and_grad_fn
  )


def _report(optimizer, state):
  if not optimizer_lib.takes_extra_args(optimizer):
    return {}
  return optimizer.report(state)


def server_step(
    rule: str, changes: np.ndarray, loss: float = 0.0, **arguments: Any
) -> float:
  """Takes one step of a server rule that sees reports of clients.

  Args:
    rule: See `build_rule`.
    changes: What the clients send, [clients, size]; all count the same.
    loss: The mean of the clients' losses.
    **arguments: Of the rule's builder.

  Returns:
    How far the server went along the mean change; 1 is FedAvg.
  """
  optimizer = build_rule(rule, **arguments)
  mean = changes.mean(axis=0)
  known = {'squared_norm': np.mean(np.sum(changes**2, axis=1))}
  reports = {
      report.value: tf.constant(known.get(report.value, loss), tf.float32)
      for report in optimizer.client_reports
  }
  state = optimizer.initialize(tf.TensorSpec(mean.shape, tf.float64))
  _, moved = optimizer.next(
      state, tf.zeros(mean.shape, tf.float64), -mean, reports=reports
  )
  return float(moved.numpy() @ mean / (mean @ mean))


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
    clients: Sequence[quadratics.Client],
    start: float,
    *,
    num_rounds: int = 1,
    num_local_steps: int = 1,
) -> Training:
  """Trains with all clients in every round.

  Args:
    config: The process, see `quadratics.fedavg`.
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
    clients: Sequence[quadratics.Client], start: float
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
