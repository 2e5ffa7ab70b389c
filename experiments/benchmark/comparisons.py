# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Times algorithms against each other, tasks, and numbers of workers."""

from collections.abc import Mapping, Sequence
import contextlib
import functools
import statistics
from typing import Any, NamedTuple, Optional

import attrs
import numpy as np

from experiments import hparams
from experiments import registry
from experiments.benchmark import measurement
from experiments.benchmark import models
from experiments.benchmark import reports
from experiments.benchmark import workloads
from experiments.train import run_parts
from tff_adaptive.runtime import scale_out
from tff_adaptive.simulation import cohorts
from tff_adaptive.simulation import task as task_lib

# There are many algorithms and tasks, and the runtime is warm after the first.
_NUM_WARM_UP_TURNS = 1


def _costs(
    algorithm: workloads.Algorithm, trainer: measurement.Trainer
) -> dict[str, float]:
  """Returns the mean evaluations per step in the timed rounds."""
  counted = trainer.timed(trainer.measured)

  def mean(name):
    return float(np.mean([clients[name] for clients in counted]))

  gradients = mean('num_gradient_evaluations') / mean('num_steps')
  trials = 0.0
  if 'backtracks_mean' in counted[0]:
    trials = 1.0 + mean('backtracks_mean')
  return {
      'variant': algorithm.name,
      'gradients_per_step': gradients,
      'trials_per_step': trials,
      'explained_cost': algorithm.explained_cost(gradients, trials),
  }


def measure_algorithms(
    workload: workloads.Workload,
    clients_per_round: int,
    algorithms: Sequence[workloads.Algorithm],
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
  runtime = workloads.RUNTIMES['compiled']
  with measurement.open_contexts([runtime], settings) as (context,):
    trainers = [
        measurement.Trainer(
            runtime,
            context,
            workload,
            functools.partial(
                models.build_algorithm, algorithm, workload, source.element_spec
            ),
            cohort_fn,
            num_warm_up_turns=_NUM_WARM_UP_TURNS,
            measure=lambda _, metrics: metrics['client_work']['clients'],
        )
        for algorithm in algorithms
    ]
    measurement.take_turns(trainers, settings)
    lines = [
        measurement.report(clients_per_round, trainer)
        | _costs(algorithm, trainer)
        for algorithm, trainer in zip(algorithms, trainers)
    ]
  first = dict(lines[0])
  for line in lines:
    ratio = line['sec_per_round_median'] / first['sec_per_round_median']
    explained = line.pop('explained_cost') / first['explained_cost']
    line.update(ratio=round(ratio, 4), explained_ratio=round(explained, 4))
  return lines


# Tasks whose models take minutes per round on a few cores, with the clients per
# round and steps per client that are measured instead of their protocol.
CAPS = {'cifar10': (2, 2), 'cifar100': (2, 2)}


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


def _seconds_waited(prefetcher: cohorts.CohortPrefetcher, *_: Any) -> float:
  return prefetcher.seconds_waited


def _wait_share(trainer: measurement.Trainer) -> float:
  """Returns the median share of a round spent waiting for its clients."""
  waits = np.diff([0.0, *trainer.measured])
  seconds = np.asarray(trainer.seconds)
  return float(np.median(trainer.timed(waits / seconds)))


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
  num_rounds = 2 * (_NUM_WARM_UP_TURNS + settings.num_rounds)
  fed_opt = registry.ROWS[registry.ALGORITHM]['fed_opt']
  cohort_fn = run_parts.build_cohort_fn(
      {registry.ALGORITHM: hparams.Choice(fed_opt, {})},
      hparams.Settings(seed=measurement.SEED),
      task,
  )
  workload = attrs.evolve(
      workloads.WORKLOADS['tasks'], name=f'tasks/{task.name}'
  )
  build_process = functools.partial(
      workloads.ALGORITHMS['fedavg'].build,
      task.model,
      len(task.train_data.client_ids),
      lambda: task.representation_fn,
  )
  with contextlib.ExitStack() as stack:
    contexts = stack.enter_context(
        measurement.open_contexts(runtimes, settings)
    )
    prefetchers = [
        stack.enter_context(cohorts.CohortPrefetcher(cohort_fn, num_rounds))
        for _ in runtimes
    ]
    trainers = [
        measurement.Trainer(
            runtime,
            context,
            workload,
            build_process,
            prefetcher.get,
            num_warm_up_turns=_NUM_WARM_UP_TURNS,
            measure=functools.partial(_seconds_waited, prefetcher),
        )
        for runtime, context, prefetcher in zip(runtimes, contexts, prefetchers)
    ]
    measurement.take_turns(trainers, settings)
    return [
        {
            **measurement.report(task.protocol.clients_per_round, trainer),
            'variant': variant,
            'wait_share': round(_wait_share(trainer), 4),
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
  with measurement.trained(
      workload, num_clients, runtimes, settings, measure=_read_costs
  ) as trainers:
    return MeasuredWorkers(
        [measurement.report(num_clients, trainer) for trainer in trainers],
        {
            _num_workers(trainer.runtime): _median_costs(trainer)
            for trainer in trainers
            if _num_workers(trainer.runtime)
        },
        trainers[-1].plan,
    )


def _read_costs(
    trainer: measurement.Trainer, metrics: Any
) -> Optional[scale_out.RoundCosts]:
  """Returns the costs of a round on Ray."""
  del metrics  # Unused.
  if not _num_workers(trainer.runtime):
    return None
  return trainer.context.costs_of(trainer.rounds.process.next)


def _median_costs(trainer: measurement.Trainer) -> scale_out.RoundCosts:
  """Returns the median costs of the timed rounds."""
  counted = zip(*trainer.timed(trainer.measured))
  return scale_out.RoundCosts(*map(statistics.median, counted))


def _num_workers(runtime: workloads.Runtime) -> int:
  """Returns the number of workers; 0 for the compiled runtime."""
  return runtime.arguments.get('num_workers', 0)
