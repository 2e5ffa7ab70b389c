# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Times algorithms against each other, tasks, and numbers of workers."""

from collections.abc import Mapping, Sequence
import contextlib
import functools
import operator
import statistics
from typing import Any, NamedTuple, Optional

import attrs
import numpy as np
import tensorflow_federated as tff

from experiments import hparams
from experiments import registry
from experiments.benchmark import algorithms as algorithms_lib
from experiments.benchmark import measurement
from experiments.benchmark import models
from experiments.benchmark import reports
from experiments.benchmark import workloads
from experiments.train import run_parts
from tff_adaptive.runtime import scale_out
from tff_adaptive.simulation import cohorts
from tff_adaptive.simulation import task as task_lib


class _AlgorithmTrainer(measurement.Trainer):
  """The training of a workload with one algorithm."""

  # There are many algorithms, and the runtime is warm after the first.
  num_warm_up_turns = 1

  def __init__(
      self,
      algorithm: algorithms_lib.Algorithm,
      context: tff.framework.SyncContext,
      workload: workloads.Workload,
      element_spec: Any,
  ):
    super().__init__(
        workloads.RUNTIMES['compiled'],
        context,
        workload,
        lambda: models.build_algorithm(algorithm, workload, element_spec),
    )
    self.algorithm = algorithm
    self._measured: list[Mapping[str, Any]] = []

  def _train(self, round_num: int, cohort_fn: measurement.CohortFn) -> None:
    """Trains a round; its time includes that of the client states."""
    metrics = self._rounds.train(cohort_fn(round_num))
    self._measured.append(metrics['client_work']['clients'])

  def costs(self) -> dict[str, float]:
    """Returns the mean evaluations per step in the timed rounds."""
    counted = self.timed(self._measured)

    def mean(name):
      return float(np.mean([clients[name] for clients in counted]))

    gradients = mean('num_gradient_evaluations') / mean('num_steps')
    trials = 0.0
    if 'backtracks_mean' in counted[0]:
      trials = 1.0 + mean('backtracks_mean')
    return {
        'gradients_per_step': gradients,
        'trials_per_step': trials,
        'explained_cost': self.algorithm.explained_cost(gradients, trials),
    }


def measure_algorithms(
    workload: workloads.Workload,
    clients_per_round: int,
    algorithms: Sequence[algorithms_lib.Algorithm],
    settings: measurement.Settings,
) -> list[reports.Line]:
  """Trains a workload with all algorithms, two rounds each in turn.

  Args:
    workload: The workload.
    clients_per_round: The number of clients in a round.
    algorithms: The algorithms; the first is the baseline.
    settings: The settings of the measurement.

  Returns:
    One line per algorithm, with its name as `variant`, `gradients_per_step` and
    `trials_per_step` (step sizes tried by a line search) from the metrics,
    `ratio`, of its median to that of the first algorithm, and
    `explained_ratio`, the ratio if all time went into evaluations, where a loss
    costs a third of a gradient. The rest is the algorithm's own overhead.

  Raises:
    RuntimeError: If an algorithm did not train.
  """
  source, cohort_fn = measurement.build_cohort_fn(workload, clients_per_round)
  runtimes = [workloads.RUNTIMES['compiled']]
  with measurement.open_contexts(runtimes, settings) as (context,):
    trainers = [
        _AlgorithmTrainer(algorithm, context, workload, source.element_spec)
        for algorithm in algorithms
    ]
    measurement.take_turns(trainers, cohort_fn, settings)
    return _compare(clients_per_round, trainers)


def _compare(
    clients_per_round: int, trainers: Sequence[_AlgorithmTrainer]
) -> list[reports.Line]:
  """Returns the lines, with ratios to the first."""
  lines = []
  for trainer in trainers:
    line = measurement.report(clients_per_round, trainer)
    line['variant'] = trainer.algorithm.name
    lines.append({**line, **trainer.costs()})
  median, cost = (
      lines[0][key] for key in ('sec_per_round_median', 'explained_cost')
  )
  for line in lines:
    line['ratio'] = round(line['sec_per_round_median'] / median, 4)
    line['explained_ratio'] = round(line.pop('explained_cost') / cost, 4)
  return lines


# Tasks whose models take minutes per round on a few cores, with the clients per
# round and steps per client that are measured instead of their protocol.
CAPS = {
    'cifar10': (2, 2),
    'cifar100': (2, 2),
}


class _TaskTrainer(measurement.Trainer):
  """The training of a task on one runtime with prefetched cohorts."""

  # There are many tasks.
  num_warm_up_turns = 1

  def __init__(
      self,
      runtime: workloads.Runtime,
      context: tff.framework.SyncContext,
      workload: workloads.Workload,
      task: task_lib.Task,
      prefetcher: cohorts.CohortPrefetcher,
  ):
    super().__init__(
        runtime, context, workload, functools.partial(_build_process, task)
    )
    self._prefetcher = prefetcher
    self._waits: list[float] = []

  def _train(self, round_num: int, cohort_fn: measurement.CohortFn) -> None:
    """Trains a round; its time includes waiting for its clients."""
    del cohort_fn  # Unused.
    waited = self._prefetcher.seconds_waited
    clients = self._prefetcher.get(round_num)
    self._waits.append(self._prefetcher.seconds_waited - waited)
    super()._train(round_num, lambda _: clients)

  def wait_share(self) -> float:
    """Returns the median share of a round spent waiting for its clients."""
    waits, seconds = self.timed(self._waits), self.timed(self.seconds)
    return statistics.median(map(operator.truediv, waits, seconds))


def _build_process(
    task: task_lib.Task,
) -> tff.learning.templates.LearningProcess:
  return algorithms_lib.ALGORITHMS['fedavg'].build(
      task.model,
      len(task.train_data.client_ids),
      lambda: task.representation_fn,
  )


def _build_task(row: registry.Row, data_dir: Optional[str]) -> task_lib.Task:
  """Returns a task with its defaults, capped by `CAPS`."""
  protocol = row.definition.protocol
  if row.name in CAPS:
    clients, steps = CAPS[row.name]
    protocol = attrs.evolve(
        protocol,
        clients_per_round=clients,
        max_examples=steps * protocol.client_batch_size,
    )
  return hparams.Choice(row, {}).build(
      data_dir=data_dir, protocol=protocol, seed=measurement.SEED
  )


def measure_task(
    row: registry.Row,
    runtimes: Sequence[workloads.Runtime],
    settings: measurement.Settings,
    *,
    data_dir: Optional[str],
    synthetic_dir: str,
) -> list[reports.Line]:
  """Trains a task with FedAvg on all runtimes, two rounds each in turn.

  Args:
    row: The row of the task.
    runtimes: The runtimes, in order.
    settings: The settings of the measurement.
    data_dir: The folder of the data sets; None for synthetic data.
    synthetic_dir: The folder for synthetic data, used if `data_dir` lacks the
      data set; the lines say so.

  Returns:
    One line per runtime; `wait_share` is the share of a round spent waiting for
    prefetched clients.

  Raises:
    RuntimeError: If a runtime did not train.
  """
  variant, task = 'real data', None
  if data_dir or not row.reads_files:
    with contextlib.suppress(FileNotFoundError):
      task = _build_task(row, data_dir)
  if task is None:
    variant = 'synthetic data'
    row.definition.write_synthetic_data(synthetic_dir)
    task = _build_task(row, synthetic_dir)
  num_rounds = 2 * (_TaskTrainer.num_warm_up_turns + settings.num_rounds)
  fed_opt = registry.ROWS[registry.ALGORITHM]['fed_opt']
  cohort_fn = run_parts.build_cohort_fn(
      {registry.ALGORITHM: hparams.Choice(fed_opt, {})},
      hparams.Settings(seed=measurement.SEED),
      task,
  )
  workload = attrs.evolve(
      workloads.WORKLOADS['tasks'], name=f'tasks/{task.name}'
  )
  with contextlib.ExitStack() as stack:
    contexts = stack.enter_context(
        measurement.open_contexts(runtimes, settings)
    )
    trainers = [
        _TaskTrainer(
            runtime,
            context,
            workload,
            task,
            stack.enter_context(
                cohorts.CohortPrefetcher(cohort_fn, num_rounds)
            ),
        )
        for runtime, context in zip(runtimes, contexts)
    ]
    measurement.take_turns(trainers, cohort_fn, settings)
    return [
        {
            **measurement.report(task.protocol.clients_per_round, trainer),
            'variant': variant,
            'wait_share': round(trainer.wait_share(), 4),
        }
        for trainer in trainers
    ]


class MeasuredWorkers(NamedTuple):
  """The measurements of several numbers of workers.

  Attributes:
    lines: One line per runtime; see `measurement.report`.
    costs: The median costs of a round, by the number of workers.
    plan: The plan for running clients.
  """

  lines: list[reports.Line]
  costs: Mapping[int, scale_out.RoundCosts]
  plan: Any


class _WorkersTrainer(measurement.Trainer):
  """The training of a workload that records the costs of its rounds."""

  def __init__(self, *args: Any):
    super().__init__(*args)
    self._costs: list[scale_out.RoundCosts] = []

  def _train(self, round_num: int, cohort_fn: measurement.CohortFn) -> None:
    super()._train(round_num, cohort_fn)
    costs = self.context.costs_of(self._rounds.process.next)
    self._costs.append(costs)

  def median_costs(self) -> scale_out.RoundCosts:
    """Returns the median costs of the timed rounds."""
    counted = zip(*self.timed(self._costs))
    return scale_out.RoundCosts(*map(statistics.median, counted))


def measure_workers(
    workload: workloads.Workload,
    runtimes: Sequence[workloads.Runtime],
    settings: measurement.Settings,
) -> MeasuredWorkers:
  """Trains a workload with several numbers of workers, in turns.

  Args:
    workload: The workload, with the first of its cohort sizes.
    runtimes: The compiled runtime, as the baseline, and those on Ray.
    settings: The settings of the measurement.

  Returns:
    The times and their parts.

  Raises:
    RuntimeError: If a runtime did not train.
  """
  num_clients = workload.clients_per_round[0]
  source, cohort_fn = measurement.build_cohort_fn(workload, num_clients)
  with measurement.open_contexts(runtimes, settings) as contexts:
    trainers = [
        (_WorkersTrainer if _num_workers(runtime) else measurement.Trainer)(
            runtime,
            context,
            workload,
            functools.partial(
                models.build_process, workload, source.element_spec
            ),
        )
        for runtime, context in zip(runtimes, contexts)
    ]
    measurement.take_turns(trainers, cohort_fn, settings)
    return MeasuredWorkers(
        [measurement.report(num_clients, trainer) for trainer in trainers],
        {
            _num_workers(trainer.runtime): trainer.median_costs()
            for trainer in trainers
            if isinstance(trainer, _WorkersTrainer)
        },
        trainers[-1].plan,
    )


def _num_workers(runtime: workloads.Runtime) -> int:
  """Returns the number of workers; 0 for the compiled runtime."""
  return runtime.arguments.get('num_workers', 0)
