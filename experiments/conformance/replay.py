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

import collections
from collections.abc import Mapping, Sequence
from typing import Any, Optional

import numpy as np
import tensorflow_federated as tff

from experiments.conformance import adapters
from experiments.conformance import goldens
from experiments.conformance import processes
from tasks import golden_problems
from tff_adaptive import simulation
from tff_adaptive.simulation import client_states


def replay_process(
    process: tff.learning.templates.LearningProcess, run: adapters.GoldenRun
) -> list[np.ndarray]:
  """Trains a process whose clients bring batches and nothing else.

  Args:
    process: The process of the run's configuration.
    run: The run.

  Returns:
    The flat trainable weights after each round.
  """
  batches = golden_problems.create_client_batches(
      run.problem, run.configuration['batch_size'], run.configuration['epochs']
  )
  state = process.initialize()
  iterates = []
  for cohort in run.cohorts:
    state = process.next(state, [batches[client] for client in cohort]).state
    weights = process.get_model_weights(state)
    iterates.append(golden_problems.flatten_weights(weights.trainable))
  return iterates


class Library:
  """The processes that `tff_adaptive` builds, see `adapters.Adapter`."""

  name = 'tff_adaptive'

  def supports(self, configuration: Mapping[str, Any]) -> Optional[str]:
    del configuration  # Whatever is not known is a failure.
    return None

  def replay(self, run: adapters.GoldenRun) -> Sequence[Any]:
    process = processes.build_process(
        dict(run.configuration),
        golden_problems.create_functional_model(run.problem),
        golden_problems.create_representation_fn(run.problem),
        len(run.problem['clients']),
    )
    if client_states.get_state_spec(process) is not None:
      raise adapters.UnsupportedError(
          'its clients keep state, which a replay without --adapter has'
      )
    return replay_process(process, run)


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


def _compare_round(reference: Mapping[str, Any], output: Any) -> float:
  """The largest difference of one round: server fields and step sizes."""
  differences = [0.0]
  held = _server_fields(output.state)
  for name in set(held) & set(reference['server']):
    expected = np.asarray(reference['server'][name])
    if expected.ndim:
      differences.append(np.max(np.abs(held[name] - expected)))
    else:
      differences.append(_scalar_difference(held[name], expected))
  reported = output.metrics['client_work']['clients']
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


class _Clients:
  """The clients of a problem, with their states if the process keeps any."""

  def __init__(self, batches: list[list[Any]], process: Any):
    self._batches = batches
    spec = client_states.get_state_spec(process)
    self._store = None if spec is None else simulation.ClientStateStore()

  def cohort(self, reference: Mapping[str, Any]) -> list[Any]:
    """What the clients of a round bring."""
    ids = [client['id'] for client in reference['clients']]
    return [self._bring(client_id) for client_id in ids]

  def _bring(self, client_id: int) -> Any:
    batches = self._batches[client_id]
    if self._store is None:
      return batches
    state = self._store.get(str(client_id))
    return collections.OrderedDict(
        data=batches,
        client_id=[str(client_id)],
        client_state=[] if state is None else [state],
    )

  def keep(self, round_num: int, metrics: Any):
    """Takes the states of clients out of the metrics of a round."""
    if self._store is None:
      return
    states = metrics['client_work']['client_states']
    ids = [client_id.decode() for client_id in states['client_id']]
    self._store.update(round_num, ids, states['client_state'])


def _replay(run: dict[str, Any], problem: dict[str, Any], model: Any) -> float:
  """The largest difference of a run's rounds; see `replay`."""
  rounds = goldens.find_trajectory(run)
  config = run['config']
  process = processes.build_process(
      config,
      model or golden_problems.create_functional_model(problem),
      golden_problems.create_representation_fn(problem),
      len(problem['clients']),
  )
  batches = golden_problems.create_client_batches(
      problem, config['batch_size'], config['epochs']
  )
  clients = _Clients(batches, process)
  state = process.initialize()
  max_error = 0.0
  for round_num, reference in enumerate(rounds, start=1):
    output = process.next(state, clients.cohort(reference))
    state = output.state
    clients.keep(round_num, output.metrics)
    # `fmax` would drop a NaN; `maximum` keeps it.
    max_error = float(np.maximum(max_error, _compare_round(reference, output)))
  return max_error


def replay(
    run: dict[str, Any], problems: dict[str, Any], model: Any = None
) -> goldens.Result:
  """Trains one run and compares it.

  Args:
    run: An entry of `runs`: `config`, `float32_error` and `trajectory`.
    problems: The entries of `problems`, by name.
    model: The model; by default the functional model of the problem.

  Returns:
    A `Result`. Whatever keeps a run from being trained is a failure of that run
    alone, and its reason.
  """
  result = goldens.begin_result(run)
  try:
    if result.problem not in problems:
      raise processes.UnknownConfigurationError(
          f'unknown problem {result.problem!r}'
      )
    result = result._replace(tolerance=goldens.find_tolerance(run))
    max_error = _replay(run, problems[result.problem], model)
  except processes.UnknownConfigurationError as error:
    return result._replace(reason=str(error))
  except Exception as error:  # pylint: disable=broad-exception-caught
    # The file is somebody else's: one odd run must not hide the others.
    first_line = (str(error).splitlines() or [''])[0]
    return result._replace(reason=f'{type(error).__name__}: {first_line}')
  return result._replace(max_error=max_error)
