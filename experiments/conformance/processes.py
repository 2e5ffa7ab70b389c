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
"""The learning processes of files of reference numbers.

A file configures a run by the names and keys of the published algorithms. Here
these are those of the library's builders; whatever else a file has is unknown.
"""

from typing import Any, Optional

import tensorflow_federated as tff

from experiments import registry
from experiments.conformance import adapters
from tff_adaptive import algorithms
from tff_adaptive.optimizers import schedules


class UnknownConfigurationError(adapters.AdapterError):
  """A run asks for something that the library does not have."""


# Names in files that are not those of the registry.
_NAMES = {
    registry.CLIENT_OPTIMIZER: {
        'fedcada': 'fedcada_adam',
        'scaffold': 'scaffold_sgd',
    },
    registry.SERVER_OPTIMIZER: {
        'fedli_ls': 'line_search_step',
        'fedli_lu': 'frank_wolfe',
    },
    registry.LOSS_TERM: {},
}
# Keys in files that are not the names of arguments.
_KEYS = {
    'b0sq': 'initial_second_moment',
    'beta1': 'beta_1',
    'beta2': 'beta_2',
    'eps': 'epsilon',
    'eta': 'learning_rate',
    'eta0': 'learning_rate',
    'eta_max': 'max_step_size',
    'f_star': 'optimal_value',
    'fallback': 'fallback_step_size',
    'init_step': 'initial_step_size',
    'lr': 'learning_rate',
    'n_batches': 'batches_per_epoch',
    'tau': 'epsilon',
    'theta0': 'theta',
    'v0': 'initial_second_moment',
}


def _build(kind: str, config: dict[str, Any], **supplied: Any) -> Any:
  """Calls the builder of a part of a configuration.

  Args:
    kind: The kind of its row in the registry.
    config: The part, such as the client's: its `name` and other keys.
    **supplied: Arguments that are in no file.

  Returns:
    What the builder returns.

  Raises:
    UnknownConfigurationError: If the name or a key is not known.
  """
  what = kind.partition('_')[0]
  name = _NAMES[kind].get(config['name'], config['name'])
  row = registry.ROWS[kind].get(name)
  if row is None or row.builder is None:
    raise UnknownConfigurationError(f'unknown {what} {config["name"]!r}')
  arguments = {_KEYS.get(k, k): v for k, v in config.items() if k != 'name'}
  known = {argument.name for argument in row.arguments}
  unknown = [k for k in config if k != 'name' and _KEYS.get(k, k) not in known]
  if unknown:
    raise UnknownConfigurationError(
        f'unknown {what} key {unknown[0]!r} of {config["name"]!r}'
    )
  given = {name: supplied[name] for name in row.supplied}
  return registry.resolve(row.builder)(**arguments, **given)


def _build_client_optimizer(config: dict[str, Any], num_clients: int) -> Any:
  config = dict(config)
  if config['name'] == 'delta_sgd':
    batch = config.pop('batch', 'same')
    if batch not in ('same', 'different'):
      raise UnknownConfigurationError(f'unknown delta_sgd batch {batch!r}')
    if batch == 'different':
      config['previous_gradient'] = 'reuse'
  if config['name'] == 'sps':
    config = _name_sps(config)
  return _build(registry.CLIENT_OPTIMIZER, config, num_clients=num_clients)


def _name_sps(config: dict[str, Any]) -> dict[str, Any]:
  """The configuration under the name of its variant."""
  if config.get('eta_max', 0) is None:
    del config['eta_max']
  variant = config.pop('variant', 'constant')
  limited = 'sps_max' if 'eta_max' in config else 'sps'
  names = {'constant': limited, 'smooth': 'sps_smooth'}
  if variant not in names:
    raise UnknownConfigurationError(f'unknown sps variant {variant!r}')
  return {**config, 'name': names[variant]}


def _build_server_optimizer(config: dict[str, Any]) -> Any:
  if config['name'] == 'fedadagrad':
    # Adagrad forgets nothing.
    config = {k: v for k, v in config.items() if k != 'beta2'}
  if config['name'] == 'sgd':
    if config.get('momentum'):
      config = {**config, 'name': 'fedavgm'}
    else:
      rest = {k: v for k, v in config.items() if k != 'momentum'}
      config = {**rest, 'name': 'fedavg'}
  return _build(registry.SERVER_OPTIMIZER, config)


def _build_loss_term(
    config: Optional[dict[str, Any]], representation_fn: Any
) -> Any:
  if config is None:
    return None
  if representation_fn is None and config['name'] == 'moon':
    raise UnknownConfigurationError("'moon' needs a representation")
  return _build(registry.LOSS_TERM, config, representation_fn=representation_fn)


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


def build_process(
    config: dict[str, Any], model: Any, representation_fn: Any, num_clients: int
) -> tff.learning.templates.LearningProcess:
  """Builds the learning process of a run.

  Args:
    config: The run's configuration, a mapping as it stands in the file.
    model: The problem's model.
    representation_fn: The model's representation of examples, for MOON; or
      `None` if it has none.
    num_clients: How many clients the problem has.

  Returns:
    A `tff.learning.templates.LearningProcess`.

  Raises:
    UnknownConfigurationError: If a name or a key is not known.
  """
  known = {*adapters.COMMON_KEYS, 'loss', 'schedule', 'decay_every'}
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
      _build_client_optimizer(config['client'], num_clients),
      _build_server_optimizer(config['server']),
      client_weighting=weightings[config['weighting']],
      loss_term=_build_loss_term(config.get('loss'), representation_fn),
      client_schedule=_build_schedule(config),
  )
