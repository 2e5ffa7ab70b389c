# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Measurements for the checks: rules, processes, published tables and runs."""

from collections.abc import Mapping, Sequence
import functools
import json
import pathlib
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from experiments import published
from experiments import registry
from experiments import rounds as rounds_lib
from experiments.conformance import problems
from experiments.conformance import replay
from experiments.leaderboard import board
from experiments.leaderboard import results as results_lib
from experiments.report import results as table_results
from tff_adaptive import analysis
from tff_adaptive import optimizers
from tff_adaptive import runtime
from tff_adaptive.optimizers import optimizer as optimizer_lib
from tools.audit import quadratics


class Path(NamedTuple):
  """The result of a few local steps.

  Attributes:
    points: The weights before each step and after the last, [steps + 1, size].
    states: The states after each step, stacked along a leading axis.
    reports: The reports of the rule, each [steps].
  """

  points: np.ndarray
  states: Any
  reports: Any

  @property
  def step_sizes(self) -> np.ndarray:
    return self.reports[optimizer_lib.STEP_SIZE_KEY]


class Training(NamedTuple):
  """The result of a few rounds.

  Attributes:
    points: The first weight before each round and after the last.
    clients: The costs of the clients in the last round, by name.
    keeps_state: Whether clients keep state between rounds.
  """

  points: list[float]
  clients: Mapping[str, float]
  keeps_state: bool


class Laboratory:
  """The measurements and files that checks may use.

  Attributes:
    runs_dir: The folder of all runs.
  """

  linear_cka = staticmethod(analysis.linear_cka)
  find_table = staticmethod(published.find_table)

  def __init__(self, runs_dir: pathlib.Path):
    """Initializes the laboratory.

    Args:
      runs_dir: The folder of all runs; it may be missing.
    """
    self.runs_dir = pathlib.Path(runs_dir)
    self._results: dict[tuple[str, ...], table_results.Results] = {}
    self._others: list[Any] = []

  def collect(self, table: published.Table) -> table_results.Results:
    """Returns the results of the cells of a table, and caches them.

    Args:
      table: The table, or a part of it; runs of other cells are not read.

    Raises:
      RunError: If a file of a run is damaged.
      OSError: If a file cannot be read.
    """
    names = (table.place, *(cell.experiment_name for cell in table.cells))
    if names not in self._results:
      self._results[names] = table_results.collect(table, self.runs_dir)
    return self._results[names]

  def tuned(
      self, methods: Sequence[str]
  ) -> dict[str, dict[str, Mapping[int, float]]]:
    """Returns scores of the leaderboard by seed, by task and method.

    Args:
      methods: Some methods of the leaderboard; each is tuned with the most
        trials that they have in common.
    """
    rules = board.load().restrict(methods=methods)
    folder = str(self.runs_dir / 'leaderboard')
    results = results_lib.Results(results_lib.Plan(rules, folder, 'data'))
    found: dict[str, dict[str, Mapping[int, float]]] = {
        task: {
            method: dict(zip(runs.seed, runs.score))
            for method, runs in results.tuned(task).groupby(
                'method', sort=False
            )
        }
        for task in rules.tasks
    }
    self._others += results.runs()
    return found

  @property
  def runs(self) -> list[Any]:
    """The distinct valid runs that were read so far."""
    found = {
        run.path: run
        for results in self._results.values()
        for run in results.runs.run
    }
    found.update((run.path, run) for run in self._others)
    return list(found.values())

  def steps(
      self,
      rule: str,
      batches: quadratics.Batches,
      start: Any,
      *,
      round_num: int = 0,
      **arguments: Any,
  ) -> Path:
    """Takes one local step on each batch.

    Args:
      rule: See `_build_rule`.
      batches: The batches.
      start: The weights, [size].
      round_num: The number of earlier rounds.
      **arguments: Arguments of the rule's builder.

    Returns:
      The steps, as NumPy arrays.
    """
    steps = _compile(rule, len(start), tuple(sorted(arguments.items())))
    arrays = [np.asarray(a, np.float64) for a in (*batches, start)]
    path = steps(*map(tf.constant, arrays), tf.constant(round_num))
    return tf.nest.map_structure(lambda tensor: tensor.numpy(), path)

  def client_steps(
      self, rule: str, client: quadratics.Client, **arguments: Any
  ) -> Path:
    """Takes `quadratics.NUM_LOCAL_STEPS` steps on a client's loss, from 0."""
    batches = quadratics.of_client(client, quadratics.NUM_LOCAL_STEPS)
    return self.steps(rule, batches, np.zeros(1), **arguments)

  def server_step(
      self, rule: str, changes: np.ndarray, loss: float = 0.0, **arguments: Any
  ) -> float:
    """Takes one step of a server rule that receives client reports.

    Args:
      rule: See `_build_rule`.
      changes: The updates of the clients, [clients, size], weighted equally.
      loss: The mean of the clients' losses.
      **arguments: Arguments of the rule's builder.

    Returns:
      The distance moved along the mean update, in units of FedAvg's step.
    """
    optimizer = _build_rule(rule, **arguments)
    mean = changes.mean(axis=0)
    known = {'squared_norm': np.mean(np.sum(changes**2, axis=1))}
    reports = {
        name: tf.constant(known.get(name, loss), tf.float32)
        for name in optimizer.client_reports
    }
    state = optimizer.initialize(tf.TensorSpec(mean.shape, tf.float64))
    _, moved = optimizer.next(
        state, tf.zeros(mean.shape, tf.float64), -mean, reports=reports
    )
    return float(moved.numpy() @ mean / (mean @ mean))

  def train(
      self,
      config: Mapping[str, Any],
      start: float = 0.0,
      clients: Sequence[quadratics.Client] = quadratics.CLIENTS,
      *,
      num_rounds: int = 1,
      num_local_steps: int = 1,
  ) -> Training:
    """Trains with all clients in every round.

    Args:
      config: The configuration of the process; see `quadratics.fedavg`.
      start: The first weight; the other weights stay 0.
      clients: The clients, weighted equally.
      num_rounds: The number of rounds.
      num_local_steps: The steps per client and round, on the client's whole
        loss.

    Returns:
      The result of the training.
    """
    data = problems.create_client_batches(
        _problem(clients, start), 1, num_local_steps
    )
    points = [start]
    with tff.framework.get_context_stack().install(_context()):
      process = _build_process(json.dumps(config), start, len(clients))
      rounds = rounds_lib.Rounds(process)
      for _ in range(num_rounds):
        metrics = rounds.train(data, range(len(data)))
        weights = rounds.state.global_model_weights.trainable
        points.append(float(problems.flatten_weights(weights)[0]))
    measured = metrics['client_work']['clients']
    costs = {name: float(np.asarray(v)) for name, v in measured.items()}
    return Training(points, costs, rounds.store is not None)


def _build_rule(name: str, **arguments: Any) -> Any:
  """Builds a rule from its name in the registry, or from 'module:function'."""
  builders = {
      row.name: row.builder
      for kind in (registry.CLIENT_OPTIMIZER, registry.SERVER_OPTIMIZER)
      for row in registry.ROWS[kind].values()
      if row.builder
  }
  return registry.resolve(builders.get(name, name))(**arguments)


@functools.cache
def _compile(rule: str, size: int, arguments: tuple[tuple[str, Any], ...]):
  """Returns the steps of a rule as a function."""
  weights = tf.TensorSpec([size], tf.float64)
  signature = (
      tf.TensorSpec([None, size, size], tf.float64),
      tf.TensorSpec([None, size], tf.float64),
      weights,
      tf.TensorSpec([], tf.int32),
  )

  # Rules use graph operations alone, so AutoGraph would only cost time.
  @functools.partial(tf.function, input_signature=signature, autograph=False)
  def steps(hessians, slopes, start, round_num):
    optimizer = _build_rule(rule, **dict(arguments))
    takes_loss = optimizer_lib.takes_extra_args(optimizer)
    report = optimizer.report if takes_loss else lambda state: {}
    state = optimizer.initialize(weights)
    if isinstance(optimizer, optimizers.FederatedOptimizer):
      shared = optimizer.initialize_shared(weights)
      kept = optimizer.initialize_kept(weights)
      state = optimizer.start_round(state, shared, kept, round_num)
    state = tf.nest.map_structure(tf.convert_to_tensor, state)

    def step(before, batch):
      state, x, _ = before
      hessian, slope = batch

      def value_and_grad_fn(x):
        curved = tf.linalg.matvec(hessian, x)
        return tf.reduce_sum(x * (0.5 * curved + slope)), curved + slope

      value, gradient = value_and_grad_fn(x)
      extra = dict(value=value, value_and_grad_fn=value_and_grad_fn)
      state, x = optimizer.next(
          state, x, gradient, **(extra if takes_loss else {})
      )
      state = tf.nest.map_structure(tf.convert_to_tensor, state)
      return state, x, report(state)

    states, points, reports = tf.scan(
        step, (hessians, slopes), (state, start, report(state))
    )
    points = tf.concat([start[tf.newaxis], points], axis=0)
    return Path(points, states, reports)

  return steps.get_concrete_function()


@functools.cache
def _context() -> Any:
  """Returns the runtime of all checks, so that they share compiled graphs."""
  return runtime.CompiledContext(num_parallel_clients=1)


@functools.cache
def _build_process(config: str, start: float, num_clients: int) -> Any:
  """Returns the process of a configuration; building takes the most time."""
  return replay.build_process(
      {'weighting': 'uniform', **json.loads(config)},
      problems.create_functional_model(_problem([], start)),
      None,
      num_clients,
  )


# The small least-squares model has four weights.
_SIZE = 4


def _problem(
    clients: Sequence[quadratics.Client], start: float
) -> dict[str, Any]:
  """Returns the clients in the form of a problem of the reference files."""
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
