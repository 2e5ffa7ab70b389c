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
"""Runs a workload with several algorithms, in turns, and takes the time."""

from collections.abc import Mapping, Sequence
import contextlib
from typing import Any

import numpy as np
import tensorflow_federated as tff

from experiments import command_line
from experiments.benchmark import algorithms as algorithms_lib
from experiments.benchmark import measurement
from experiments.benchmark import models
from experiments.benchmark import reports
from experiments.benchmark import workloads


class _Trainer(measurement.Trainer):
  """The training of a workload with one algorithm."""

  # There are many of them, and the runtime is warm after the first.
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
    """Trains a round; the states of clients are a part of its time."""
    metrics = self._rounds.train(cohort_fn(round_num))
    self._measured.append(metrics['client_work']['clients'])

  def costs(self) -> dict[str, float]:
    """Returns what a step has evaluated, in the rounds whose time counts."""
    counted = self._measured[2 * self.num_warm_up_turns + 1 :: 2]

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


def measure(
    workload: workloads.Workload,
    clients_per_round: int,
    algorithms: Sequence[algorithms_lib.Algorithm],
    settings: measurement.Settings,
) -> list[reports.Line]:
  """Trains a workload with all algorithms, two rounds of each in turn.

  Args:
    workload: The workload.
    clients_per_round: How many clients take part in a round.
    algorithms: The algorithms; the first is what the others are compared with.
    settings: How it is measured.

  Returns:
    A line for every algorithm, its name as `variant`, with `gradients_per_step`
    and `trials_per_step` (step sizes that a line search tried) from the
    metrics, `ratio`, that of the medians to the first, and `explained_ratio`,
    what it would be if all time went into evaluations, of which one without its
    gradient takes a third. What is above that is the algorithm's own.

  Raises:
    UserError: If the plan is not known.
    RuntimeError: If an algorithm did not train.
  """
  source, cohort_fn = measurement.build_cohort_fn(workload, clients_per_round)
  with contextlib.ExitStack() as stack:
    with command_line.errors_as(command_line.UserError, ValueError):
      context = stack.enter_context(
          measurement.open_context(workloads.RUNTIMES['compiled'], settings)
      )
    trainers = [
        _Trainer(algorithm, context, workload, source.element_spec)
        for algorithm in algorithms
    ]
    measurement.take_turns(trainers, cohort_fn, settings)
    return _compare(clients_per_round, trainers)


def _compare(
    clients_per_round: int, trainers: Sequence[_Trainer]
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
