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
"""Takes the parts of rounds on workers, and says what many would take."""

from collections.abc import Mapping, Sequence
import csv
import functools
import io
import pathlib
import statistics
from typing import Any, NamedTuple

import numpy as np

from experiments.benchmark import measurement
from experiments.benchmark import models
from experiments.benchmark import reports
from experiments.benchmark import workloads
from experiments.scaling import model as model_lib
from tff_adaptive import _files
from tff_adaptive import analysis
from tff_adaptive.runtime import scale_out


class Measured(NamedTuple):
  """What was measured.

  Attributes:
    lines: A line for every runtime, see `measurement.report`.
    costs: The medians of the parts of a round, by the number of workers.
    plan: How the clients worked.
  """

  lines: list[reports.Line]
  costs: Mapping[int, scale_out.RoundCosts]
  plan: Any


class _Trainer(measurement.Trainer):
  """The training of a workload that keeps the parts of its rounds."""

  def __init__(self, *args: Any):
    super().__init__(*args)
    self._costs: list[scale_out.RoundCosts] = []

  def _train(self, round_num: int, cohort_fn: measurement.CohortFn) -> None:
    super()._train(round_num, cohort_fn)
    costs = self.context.costs_of(self._rounds.process.next)
    self._costs.append(costs)

  def median_costs(self) -> scale_out.RoundCosts:
    """Returns the medians of the parts, of the rounds whose time counts."""
    counted = self._costs[2 * self.num_warm_up_turns + 1 :: 2]
    return scale_out.RoundCosts(*map(statistics.median, zip(*counted)))


def measure(
    workload: workloads.Workload,
    runtimes: Sequence[workloads.Runtime],
    settings: measurement.Settings,
) -> Measured:
  """Trains a workload with several numbers of workers, in turns.

  Args:
    workload: The workload; its first size of cohort counts.
    runtimes: The compiled runtime, to compare with, and those on Ray.
    settings: How it is measured.

  Returns:
    The times, and their parts.

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
    model: model_lib.ScalingModel,
    num_workers: Sequence[int],
    num_clients: int,
) -> list[model_lib.Prediction]:
  """Predicts rounds of a large cohort.

  Args:
    measured: What was measured; its plan cuts the cohort.
    model: What it was with one worker.
    num_workers: The numbers of workers.
    num_clients: How many clients take part.

  Returns:
    A prediction for each number of workers.
  """
  size = measured.plan.chunk_size_of(num_clients)
  num_chunks = -(-num_clients // size)
  return [
      model.predict(number, num_clients, num_chunks) for number in num_workers
  ]


def write_csv(predictions: Sequence[model_lib.Prediction], path: pathlib.Path):
  """Writes a row a prediction.

  Args:
    predictions: The predictions.
    path: The file.

  Raises:
    OSError: If it cannot be written; names it.
  """
  text = io.StringIO()
  writer = csv.writer(text, lineterminator='\n')
  writer.writerow(
      [
          'num_workers',
          'num_clients',
          'seconds',
          'work_seconds',
          'network_seconds',
          'driver_seconds',
          'num_bytes',
      ]
  )
  for p in predictions:
    seconds = (
        p.seconds,
        p.work_seconds,
        p.network_seconds,
        p.driver_seconds,
    )
    writer.writerow(
        [
            p.num_workers,
            p.num_clients,
            *(f'{number:.6f}' for number in seconds),
            p.num_bytes,
        ]
    )
  with _files.replacing(path) as file:
    file.write(text.getvalue().encode())


def draw(
    predictions: Sequence[model_lib.Prediction],
    path: pathlib.Path,
    title: str,
):
  """Draws how many times faster a round is than with the first of them.

  Args:
    predictions: The predictions, of one cohort.
    path: The picture.
    title: What was measured.

  Raises:
    OSError: If it cannot be written; names it.
  """
  first = predictions[0]
  numbers = np.asarray([p.num_workers for p in predictions])

  def curve(values: Sequence[float]) -> analysis.BandCurve:
    line = np.asarray(values, float)
    return analysis.BandCurve(numbers, line, line, line)

  analysis.plot_band_curves(
      {
          'a round': {
              'predicted': curve(
                  [first.seconds / p.seconds for p in predictions]
              ),
              'ideal': curve(list(numbers / first.num_workers)),
          }
      },
      path,
      title=title,
      x_label='workers',
      y_label='times faster',
      log_x=True,
      log_y=True,
  )
