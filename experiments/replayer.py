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

import inspect
import json
import os
from typing import Any, NamedTuple, Optional, Union

import numpy as np
import tensorflow_federated as tff

from tasks import golden_problems
from tff_adaptive import algorithms
from tff_adaptive import client_works
from tff_adaptive import optimizers
from tff_adaptive.optimizers import schedules

# A float32 run may be off by this much, or by this many times what rounding the
# reference itself to float32 has cost.
_TOLERANCE = 2e-5
_ROUNDING_FACTOR = 50.0


class UnknownConfigurationError(ValueError):
  """A run asks for something that the library does not have."""


class Result(NamedTuple):
  """How a run compares.

  Attributes:
    name: The run's name.
    problem: The problem's name.
    max_error: The largest absolute difference, `None` if it could not run.
    tolerance: The largest difference that passes.
    reason: Why it could not run, or an empty string.
  """

  name: str
  problem: str
  max_error: Optional[float]
  tolerance: float
  reason: str

  @property
  def passed(self) -> bool:
    return self.max_error is not None and self.max_error <= self.tolerance

  def __str__(self) -> str:
    if self.max_error is None:
      return (
          f'{self.name} {self.problem} - {self.tolerance:.2g} FAIL '
          f'({self.reason})'
      )
    verdict = 'ok' if self.passed else 'FAIL'
    return (
        f'{self.name} {self.problem} {self.max_error:.3g} {self.tolerance:.2g} '
        f'{verdict}'
    )


def _take(
    config: dict[str, Any], what: str, renames: dict[str, str]
) -> dict[str, Any]:
  """The builder's arguments for a part of a configuration.

  Args:
    config: The part, such as the client's, with its `name`.
    what: The part's name, for messages.
    renames: The file's keys to the builder's arguments; the file's values are
      the builder's.

  Returns:
    The arguments.

  Raises:
    UnknownConfigurationError: If the part has another key.
  """
  unknown = sorted(set(config) - set(renames) - {'name'})
  if unknown:
    raise UnknownConfigurationError(
        f'unknown {what} key {unknown[0]!r} of {config["name"]!r}'
    )
  return {renames[k]: v for k, v in config.items() if k != 'name'}


def _call(build: Any, arguments: dict[str, Any], config: dict[str, Any]) -> Any:
  """Calls a builder; an argument that it lacks is an unknown configuration."""
  unknown = sorted(set(arguments) - set(inspect.signature(build).parameters))
  if unknown:
    raise UnknownConfigurationError(
        f'{config["name"]!r} has no argument {unknown[0]!r}'
    )
  return build(**arguments)


_ADAPTIVE_KEYS = {
    'lr': 'learning_rate',
    'beta1': 'beta_1',
    'beta2': 'beta_2',
    'eps': 'epsilon',
    'tau': 'epsilon',
    'v0': 'initial_second_moment',
    'second_moment_of': 'second_moment_of',
    'bias_correction': 'bias_correction',
}


def _build_client_optimizer(config: dict[str, Any]) -> Any:
  if config['name'] in ('adam', 'adagrad', 'yogi'):
    build = getattr(optimizers, f'build_{config["name"]}')
    return _call(build, _take(config, 'client', _ADAPTIVE_KEYS), config)
  if config['name'] == 'sgd':
    return optimizers.build_sgd(
        **_take(
            config, 'client', {'lr': 'learning_rate', 'momentum': 'momentum'}
        )
    )
  if config['name'] == 'delta_sgd':
    config = dict(config)
    batch = config.pop('batch', 'same')
    if batch not in ('same', 'different'):
      raise UnknownConfigurationError(f'unknown delta_sgd batch {batch!r}')
    return optimizers.build_delta_sgd(
        previous_gradient='recompute' if batch == 'same' else 'reuse',
        **_take(
            config,
            'client',
            {
                'eta0': 'learning_rate',
                'theta0': 'theta',
                'gamma': 'gamma',
                'delta': 'delta',
                'amplify_first': 'amplify_first',
            },
        ),
    )
  raise UnknownConfigurationError(f'unknown client {config["name"]!r}')


def _build_server_optimizer(config: dict[str, Any]) -> Any:
  if config['name'] in ('fedadagrad', 'fedadam', 'fedyogi'):
    build = getattr(optimizers, f'build_{config["name"]}')
    arguments = _take(config, 'server', _ADAPTIVE_KEYS)
    if config['name'] == 'fedadagrad':
      arguments.pop('beta_2', None)  # Adagrad forgets nothing.
    return _call(build, arguments, config)
  if config['name'] == 'sgd':
    return optimizers.build_sgd(
        **_take(
            config, 'server', {'lr': 'learning_rate', 'momentum': 'momentum'}
        )
    )
  raise UnknownConfigurationError(f'unknown server {config["name"]!r}')


def _build_loss_term(config: Optional[dict[str, Any]]) -> Any:
  if config is None:
    return None
  if config['name'] == 'fedprox':
    return client_works.build_fedprox(**_take(config, 'loss', {'mu': 'mu'}))
  raise UnknownConfigurationError(f'unknown loss {config["name"]!r}')


def _build_schedule(config: dict[str, Any]) -> Any:
  name = config.get('schedule', 'constant')
  if 'decay_every' in config and name != 'exp_decay':
    raise UnknownConfigurationError(f"'decay_every' of the schedule {name!r}")
  if name == 'constant':
    return None
  if name == 'step_decay':
    return schedules.build_step_decay(config['rounds'])
  if name == 'exp_decay':
    return schedules.build_exp_decay(rounds_per_decay=config['decay_every'])
  raise UnknownConfigurationError(f'unknown schedule {name!r}')


def build_process(config: dict[str, Any], model: Any) -> Any:
  """Builds the learning process of a run.

  Args:
    config: The run's configuration, a mapping as it stands in the file.
    model: The problem's model.

  Returns:
    A `tff.learning.templates.LearningProcess`.

  Raises:
    UnknownConfigurationError: If a name or a key is not known.
  """
  known = {
      'name',
      'client',
      'server',
      'loss',
      'weighting',
      'rounds',
      'participants',
      'problem',
      'batch_size',
      'epochs',
      'schedule',
      'decay_every',
  }  # pyformat: disable
  unknown = sorted(set(config) - known)
  if unknown:
    raise UnknownConfigurationError(f'unknown key {unknown[0]!r}')
  weightings = {
      'uniform': tff.learning.ClientWeighting.UNIFORM,
      'examples': tff.learning.ClientWeighting.NUM_EXAMPLES,
  }
  if config['weighting'] not in weightings:
    raise UnknownConfigurationError(
        f'unknown weighting {config["weighting"]!r}'
    )
  return algorithms.build_fed_opt(
      model,
      _build_client_optimizer(config['client']),
      _build_server_optimizer(config['server']),
      client_weighting=weightings[config['weighting']],
      loss_term=_build_loss_term(config.get('loss')),
      client_schedule=_build_schedule(config),
  )


def _server_fields(state: Any) -> dict[str, Any]:
  """The server's state under the names of the file, as flat vectors."""
  fields = {
      'x': golden_problems.flatten_weights(state.global_model_weights.trainable)
  }
  optimizer_state = state.finalizer
  if 'accumulator' in optimizer_state:
    # A server optimizer descends along minus the mean change. The file calls
    # the momentum of gradient descent `buf` and that of adaptive rules `m`.
    momentum = -golden_problems.flatten_weights(optimizer_state['accumulator'])
    fields['m'] = fields['buf'] = momentum
  if 'preconditioner' in optimizer_state:
    fields['v'] = golden_problems.flatten_weights(
        optimizer_state['preconditioner']
    )
  return fields


def _compare_round(reference: dict[str, Any], output: Any) -> float:
  """The largest difference of one round: server fields and step sizes."""
  differences = [0.0]
  held = _server_fields(output.state)
  for name in set(held) & set(reference['server']):
    expected = np.asarray(reference['server'][name])
    differences.append(np.max(np.abs(held[name] - expected)))
  reported = output.metrics['client_work']['clients']
  for key, name in (('etas', 'step_size'), ('thetas', 'theta')):
    values = [v for c in reference['clients'] for v in c.get(key, ())]
    if values and f'{name}_mean' in reported:
      for reduction in ('mean', 'min', 'max'):
        expected = getattr(np, reduction)(values)
        differences.append(abs(reported[f'{name}_{reduction}'] - expected))
  # A NaN must not hide behind a smaller number.
  return float('nan') if np.isnan(differences).any() else max(differences)


def _replay(run: dict[str, Any], problem: dict[str, Any], model: Any) -> float:
  """The largest difference of a run's rounds; see `replay`."""
  config = run['config']
  process = build_process(
      config, model or golden_problems.create_functional_model(problem)
  )
  clients = golden_problems.create_client_batches(
      problem, config['batch_size'], config['epochs']
  )
  state = process.initialize()
  max_error = 0.0
  for reference in run['trajectory']:
    cohort = [clients[client['id']] for client in reference['clients']]
    output = process.next(state, cohort)
    state = output.state
    # `fmax` would drop a NaN; `maximum` keeps it.
    max_error = float(np.maximum(max_error, _compare_round(reference, output)))
  return max_error


def replay(
    run: dict[str, Any], problems: dict[str, Any], model: Any = None
) -> Result:
  """Trains one run and compares it.

  Args:
    run: An entry of `runs`: `config`, `float32_error` and `trajectory`.
    problems: The entries of `problems`, by name.
    model: The model; by default the functional model of the problem.

  Returns:
    A `Result`. Whatever keeps a run from being trained is a failure of that run
    alone, and its reason.
  """
  config = run.get('config', {})
  name, problem_name = (
      str(config.get(key, '?')) for key in ('name', 'problem')
  )
  result = Result(name, problem_name, None, _TOLERANCE, '')
  try:
    if problem_name not in problems:
      raise UnknownConfigurationError(f'unknown problem {problem_name!r}')
    tolerance = max(_TOLERANCE, _ROUNDING_FACTOR * run['float32_error'])
    result = result._replace(tolerance=tolerance)
    max_error = _replay(run, problems[problem_name], model)
  except UnknownConfigurationError as error:
    return result._replace(reason=str(error))
  except Exception as error:  # pylint: disable=broad-exception-caught
    # The file is somebody else's: one odd run must not hide the others.
    first_line = (str(error).splitlines() or [''])[0]
    return result._replace(reason=f'{type(error).__name__}: {first_line}')
  return result._replace(max_error=max_error)


def read_goldens(
    path: Union[str, os.PathLike],
) -> tuple[list[Any], dict[str, Any]]:
  """Reads a file of reference numbers.

  Args:
    path: A JSON file with `runs` and `problems`.

  Returns:
    The runs, and the problems by name.

  Raises:
    OSError: If the file cannot be read.
    ValueError: If it is no such file.
  """
  with open(path, encoding='utf-8') as file:
    try:
      goldens = json.load(file)
    except ValueError as error:
      raise ValueError(f'{path} is not a JSON file: {error}') from error
  for key in ('problems', 'runs'):
    if key not in goldens:
      raise ValueError(
          f'{path} has no {key!r}; a file of reference numbers has both '
          "'problems' and 'runs'"
      )
  problems = {problem['name']: problem for problem in goldens['problems']}
  return goldens['runs'], problems
