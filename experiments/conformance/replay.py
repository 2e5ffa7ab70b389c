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
"""Replays reference trajectories through the real learning processes.

Each run of a file is a small federated training whose step sizes, weights and
server state are known to ten digits. It is trained again with the process that
the library builds for its configuration, and compared round by round.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Optional

import numpy as np
import tensorflow_federated as tff

from experiments import rounds as rounds_lib
from experiments.conformance import adapters
from experiments.conformance import goldens
from experiments.conformance import processes
from tasks import golden_problems


def train(
    process: tff.learning.templates.LearningProcess, run: adapters.GoldenRun
) -> Iterator[tuple[Any, Any]]:
  """Trains a run.

  Args:
    process: The process of the run's configuration.
    run: The run.

  Yields:
    The state and the metrics after each round.
  """
  batches = golden_problems.create_client_batches(
      run.problem, run.configuration['batch_size'], run.configuration['epochs']
  )
  rounds = rounds_lib.Rounds(process)
  for cohort in run.cohorts:
    metrics = rounds.train([batches[client] for client in cohort], cohort)
    yield rounds.state, metrics


def train_weights(
    process: tff.learning.templates.LearningProcess, run: adapters.GoldenRun
) -> list[np.ndarray]:
  """Trains a run and returns the flat trainable weights after each round."""
  return [
      golden_problems.flatten_weights(
          process.get_model_weights(state).trainable
      )
      for state, _ in train(process, run)
  ]


def _build_process(run: adapters.GoldenRun, model: Any = None) -> Any:
  return processes.build_process(
      dict(run.configuration),
      model or golden_problems.create_functional_model(run.problem),
      golden_problems.create_representation_fn(run.problem),
      len(run.problem['clients']),
  )


class Library:
  """The processes that `tff_adaptive` builds, see `adapters.Adapter`."""

  name = 'tff_adaptive'

  def supports(self, configuration: Mapping[str, Any]) -> Optional[str]:
    del configuration  # Whatever is not known is a failure.
    return None

  def replay(self, run: adapters.GoldenRun) -> Sequence[Any]:
    return train_weights(_build_process(run), run)


def _shared_fields(client_work: Any) -> dict[str, Any]:
  """What the server shares with the clients, under the names of the file."""
  if not isinstance(client_work, Mapping) or 'shared' not in client_work:
    return {}
  shared = client_work['shared']
  names = {
      'first_moment': 'agg_m',
      'momentum': 'agg_m',
      'second_moment': 'agg_v',
      'control': 'c',
  }
  return {
      name: golden_problems.flatten_weights(shared[key])
      for key, name in names.items()
      if key in shared
  }


def _server_fields(state: Any) -> dict[str, Any]:
  """The server's state under the file's names, flat vectors and scalars."""
  fields = {
      'x': golden_problems.flatten_weights(
          state.global_model_weights.trainable
      ),
      **_shared_fields(state.client_work),
  }
  held = state.finalizer
  if 'accumulator' in held:
    # A server optimizer descends along minus the mean change. The file calls
    # the momentum of gradient descent `buf` and that of adaptive rules `m`.
    momentum = -golden_problems.flatten_weights(held['accumulator'])
    fields['m'] = fields['buf'] = momentum
  for key, name in (
      ('preconditioner', 'v'),
      ('max_preconditioner', 'vhat'),
      ('velocity', 'z'),
  ):
    if key in held:
      fields[name] = golden_problems.flatten_weights(held[key])
  for key, name in (
      ('server_step_size', 'eta_g'),
      ('gamma', 'gamma'),
      ('objective', 'fbar'),
  ):
    if key in held:
      fields[name] = held[key]
  return fields


def _scalar_difference(found: Any, expected: Any) -> float:
  """The difference of two step sizes or the like, relative above one.

  Some rules take steps of 50 and more, of which float32 keeps seven digits.
  """
  return abs(found - expected) / max(1.0, abs(expected))


def _compare_round(
    reference: Mapping[str, Any], state: Any, metrics: Any
) -> float:
  """Returns the largest difference of a round: server fields and step sizes."""
  differences = [0.0]
  held = _server_fields(state)
  for name in set(held) & set(reference['server']):
    expected = np.asarray(reference['server'][name])
    if expected.ndim:
      differences.append(np.max(np.abs(held[name] - expected)))
    else:
      differences.append(_scalar_difference(held[name], expected))
  reported = metrics['client_work']['clients']
  for key, name in (
      ('etas', 'step_size'),
      ('thetas', 'theta'),
      ('backtracks', 'backtracks'),
  ):
    values = [v for c in reference['clients'] for v in c.get(key, ())]
    if values and f'{name}_mean' in reported:
      for reduction in ('mean', 'min', 'max'):
        expected = getattr(np, reduction)(values)
        found = reported[f'{name}_{reduction}']
        differences.append(_scalar_difference(found, expected))
  # A NaN must not hide behind a smaller number.
  return float('nan') if np.isnan(differences).any() else max(differences)


def replay(
    run: Mapping[str, Any], problems: Mapping[str, Any], model: Any = None
) -> goldens.Result:
  """Trains a run and compares it: weights, server state and step sizes.

  Args:
    run: An entry of `runs`: `config`, `float32_error` and `trajectory`.
    problems: The entries of `problems`, by name.
    model: The model; by default the functional model of the problem.

  Returns:
    A `Result`. Whatever keeps a run from being trained is a failure of that run
    alone, and its reason.
  """

  def find_error(golden_run, trajectory):
    outputs = train(_build_process(golden_run, model), golden_run)
    errors = [
        _compare_round(reference, state, metrics)
        for reference, (state, metrics) in zip(trajectory, outputs)
    ]
    return float(np.max(errors))  # Unlike Python's `max`, it keeps a NaN.

  return goldens.judge(run, problems, find_error)
