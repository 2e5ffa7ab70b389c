# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Measures the parts of rounds on workers, and predicts rounds on many."""

from collections.abc import Mapping, Sequence
import functools
import math
import pathlib
import statistics
from typing import Any, NamedTuple

import attrs

from experiments import pages
from experiments.benchmark import measurement
from experiments.benchmark import models
from experiments.benchmark import reports
from experiments.benchmark import workloads
from tff_adaptive import analysis
from tff_adaptive.runtime import scale_out


@attrs.frozen
class Prediction:
  """The predicted time of a round.

  Attributes:
    num_workers: The number of workers, each on its own machine.
    num_clients: The number of clients.
    work_seconds: The time until the last worker has finished its chunks.
    network_seconds: The time of the driver's network traffic.
    driver_seconds: The time of the driver's own work: prepare, distribute,
      merge, report and update.
    num_bytes: The driver's network traffic.
  """

  num_workers: int
  num_clients: int
  work_seconds: float
  network_seconds: float
  driver_seconds: float
  num_bytes: int

  @property
  def seconds(self) -> float:
    """The time of the round, assuming that no parts overlap."""
    return self.work_seconds + self.network_seconds + self.driver_seconds


@attrs.frozen
class ScalingModel:
  """A model of the time of a round, from the parts of one on one worker.

  Attributes:
    costs: The costs of a measured round, or medians over several rounds.
    num_clients: The number of clients in the measured round.
    bytes_per_second: The bandwidth of the driver's network.
  """

  costs: scale_out.RoundCosts
  num_clients: int
  bytes_per_second: float

  def predict(
      self, num_workers: int, num_clients: int, num_chunks: int
  ) -> Prediction:
    """Predicts a round of clients like the measured ones.

    The model assumes that all traffic passes through the driver's single
    network interface, that a worker has one core, and that work, network and
    merging do not overlap. The remaining time of the measured round is the
    packing and unpacking of messages, which grows with their bytes. The
    prediction therefore errs on the slow side, provided that all workers are as
    fast as the measured one.

    Args:
      num_workers: The number of workers.
      num_clients: The number of clients.
      num_chunks: The number of chunks of the cohort.
    """
    costs = self.costs
    clients_ratio = num_clients / self.num_clients
    chunks_ratio = num_chunks / costs.num_chunks
    work = costs.work_seconds * clients_ratio / num_chunks
    overhead = max(
        0.0,
        costs.seconds
        - costs.server_seconds
        - costs.merge_seconds
        - costs.work_seconds,
    )
    num_bytes = self._bytes(num_workers, clients_ratio, chunks_ratio)
    return Prediction(
        num_workers,
        num_clients,
        work * math.ceil(num_chunks / num_workers),
        num_bytes / self.bytes_per_second,
        costs.server_seconds
        + costs.merge_seconds * chunks_ratio
        + overhead * num_bytes / self._bytes(1, 1.0, 1.0),
        num_bytes,
    )

  def _bytes(
      self, num_workers: int, clients_ratio: float, chunks_ratio: float
  ) -> int:
    """Returns the bytes that pass through the driver's network."""
    return round(
        self.costs.broadcast_bytes * num_workers
        + self.costs.chunk_bytes * clients_ratio
        + self.costs.sum_bytes * chunks_ratio
    )


class Measured(NamedTuple):
  """The measurements of several runtimes.

  Attributes:
    lines: One line per runtime; see `measurement.report`.
    costs: The median costs of a round, by the number of workers.
    plan: The plan for running clients.
  """

  lines: list[reports.Line]
  costs: Mapping[int, scale_out.RoundCosts]
  plan: Any


class _Trainer(measurement.Trainer):
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
    counted = self._costs[2 * self.num_warm_up_turns + 1 :: 2]
    return scale_out.RoundCosts(*map(statistics.median, zip(*counted)))


def measure(
    workload: workloads.Workload,
    runtimes: Sequence[workloads.Runtime],
    settings: measurement.Settings,
) -> Measured:
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
        (_Trainer if _num_workers(runtime) else measurement.Trainer)(
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
    return Measured(
        [measurement.report(num_clients, trainer) for trainer in trainers],
        {
            _num_workers(trainer.runtime): trainer.median_costs()
            for trainer in trainers
            if isinstance(trainer, _Trainer)
        },
        trainers[-1].plan,
    )


def _num_workers(runtime: workloads.Runtime) -> int:
  """Returns the number of workers; 0 for the compiled runtime."""
  return runtime.arguments.get('num_workers', 0)


def predict(
    measured: Measured,
    model: ScalingModel,
    num_workers: Sequence[int],
    num_clients: int,
) -> list[Prediction]:
  """Predicts the rounds of a large cohort.

  Args:
    measured: The measurements; their plan cuts the cohort into chunks.
    model: The model, from the measurement with one worker.
    num_workers: The numbers of workers.
    num_clients: The number of clients.

  Returns:
    One prediction for each number of workers.
  """
  size = measured.plan.chunk_size_of(num_clients)
  num_chunks = -(-num_clients // size)
  return [
      model.predict(number, num_clients, num_chunks) for number in num_workers
  ]


def write_csv(predictions: Sequence[Prediction], path: pathlib.Path):
  """Writes one row per prediction.

  Args:
    predictions: The predictions.
    path: The file.

  Raises:
    OSError: If the file cannot be written; names it.
  """
  parts = ('seconds', 'work_seconds', 'network_seconds', 'driver_seconds')
  pages.write_csv(
      path,
      ['num_workers', 'num_clients', *parts, 'num_bytes'],
      [
          [
              p.num_workers,
              p.num_clients,
              *(f'{getattr(p, part):.6f}' for part in parts),
              p.num_bytes,
          ]
          for p in predictions
      ],
  )


def draw(
    predictions: Sequence[Prediction],
    path: pathlib.Path,
    title: str,
):
  """Plots the speed-up of a round over the first prediction.

  Args:
    predictions: The predictions for one cohort.
    path: The picture to write.
    title: The title of the picture.

  Raises:
    OSError: If the picture cannot be written; names the file.
  """
  first = predictions[0]
  numbers = [p.num_workers for p in predictions]

  analysis.plot_band_curves(
      {
          'a round': {
              'predicted': measurement.curve(
                  numbers, [first.seconds / p.seconds for p in predictions]
              ),
              'ideal': measurement.curve(
                  numbers, [number / first.num_workers for number in numbers]
              ),
          }
      },
      path,
      title=title,
      x_label='workers',
      y_label='times faster',
      log_x=True,
      log_y=True,
  )
