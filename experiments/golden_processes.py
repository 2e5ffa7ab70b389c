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

import inspect
from typing import Any, Optional

import tensorflow_federated as tff

from experiments.conformance_kit import adapters
from tff_adaptive import algorithms
from tff_adaptive import client_works
from tff_adaptive import finalizers
from tff_adaptive import optimizers
from tff_adaptive.optimizers import schedules


class UnknownConfigurationError(ValueError):
  """A run asks for something that the library does not have."""


_ADAM_KEYS = {
    'lr': 'learning_rate',
    'beta1': 'beta_1',
    'beta2': 'beta_2',
    'eps': 'epsilon',
}
_ADAPTIVE_KEYS = {
    **_ADAM_KEYS,
    'tau': 'epsilon',
    'v0': 'initial_second_moment',
    'second_moment_of': 'second_moment_of',
    'bias_correction': 'bias_correction',
}
_SGD = (
    optimizers.build_sgd,
    {'lr': 'learning_rate', 'momentum': 'momentum'},
)
_SPS_KEYS = {
    'c': 'c',
    'eps': 'epsilon',
    'f_star': 'optimal_value',
    'eta_max': 'max_step_size',
    'gamma': 'gamma',
    'init_step': 'initial_step_size',
    'n_batches': 'batches_per_epoch',
}

# Name to (builder, keys of the file to arguments of the builder).
_CLIENTS: dict[str, tuple[Any, dict[str, str]]] = {
    'sgd': _SGD,
    'adam': (optimizers.build_adam, _ADAPTIVE_KEYS),
    'adagrad': (optimizers.build_adagrad, _ADAPTIVE_KEYS),
    'yogi': (optimizers.build_yogi, _ADAPTIVE_KEYS),
    'delta_sgd': (
        optimizers.build_delta_sgd,
        {
            'eta0': 'learning_rate',
            'theta0': 'theta',
            'gamma': 'gamma',
            'delta': 'delta',
            'amplify_first': 'amplify_first',
            'previous_gradient': 'previous_gradient',
        },
    ),
    'sps': (optimizers.build_sps, _SPS_KEYS),
    'sps_max': (optimizers.build_sps_max, _SPS_KEYS),
    'sps_smooth': (optimizers.build_sps_smooth, _SPS_KEYS),
    'armijo': (
        optimizers.build_armijo,
        {
            'c': 'c',
            'beta': 'beta',
            'eta_max': 'max_step_size',
            'gamma': 'gamma',
            'reset': 'reset',
            'n_batches': 'batches_per_epoch',
            'max_trials': 'max_trials',
            'fallback': 'fallback_step_size',
        },
    ),
    'fedcada': (
        optimizers.build_fedcada_adam,
        {**_ADAM_KEYS, 'option': 'option', 'time': 'time'},
    ),
    'fafed': (
        optimizers.build_fafed,
        {'lr': 'learning_rate', 'alpha': 'alpha', 'beta': 'beta', 'rho': 'rho'},
    ),
    'adaalter': (
        optimizers.build_adaalter,
        {
            'lr': 'learning_rate',
            'eps': 'epsilon',
            'b0sq': 'initial_second_moment',
        },
    ),
    'scaffold': (optimizers.build_scaffold_sgd, {'lr': 'learning_rate'}),
}
_SERVERS: dict[str, tuple[Any, dict[str, str]]] = {
    'sgd': _SGD,
    'fedadagrad': (optimizers.build_fedadagrad, _ADAPTIVE_KEYS),
    'fedadam': (optimizers.build_fedadam, _ADAPTIVE_KEYS),
    'fedyogi': (optimizers.build_fedyogi, _ADAPTIVE_KEYS),
    'fedams': (
        optimizers.build_fedams,
        {
            **_ADAM_KEYS,
            'option': 'option',
            'bias_correction': 'bias_correction',
        },
    ),
    'fedexp': (finalizers.build_fedexp, {'eps': 'epsilon'}),
    'fedli_ls': (finalizers.build_line_search_step, {'scale': 'scale'}),
    'fedli_lu': (
        finalizers.build_frank_wolfe,
        {
            'eta': 'learning_rate',
            'weight_decay': 'weight_decay',
            'momentum': 'momentum',
            'eps': 'epsilon',
            'objective_at': 'objective_at',
        },
    ),
}


def _build(
    config: dict[str, Any], what: str, builders: Any, **supplied: Any
) -> Any:
  """Calls the builder of a part of a configuration.

  Args:
    config: The part, such as the client's: its `name` and other keys.
    what: The part's name, for messages.
    builders: Names to builders and keys.
    **supplied: Arguments that are in no file.

  Returns:
    What the builder returns.

  Raises:
    UnknownConfigurationError: If the name or a key is not known.
  """
  if config['name'] not in builders:
    raise UnknownConfigurationError(f'unknown {what} {config["name"]!r}')
  build, keys = builders[config['name']]
  unknown = sorted(set(config) - set(keys) - {'name'})
  if unknown:
    raise UnknownConfigurationError(
        f'unknown {what} key {unknown[0]!r} of {config["name"]!r}'
    )
  arguments = {keys[k]: v for k, v in config.items() if k != 'name'}
  lacking = sorted(set(arguments) - set(inspect.signature(build).parameters))
  if lacking:
    raise UnknownConfigurationError(
        f'{config["name"]!r} has no argument {lacking[0]!r}'
    )
  return build(**arguments, **supplied)


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
  supplied = {}
  if config['name'] == 'scaffold':
    supplied['num_clients'] = num_clients
  return _build(config, 'client', _CLIENTS, **supplied)


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
  return _build(config, 'server', _SERVERS)


def _build_loss_term(
    config: Optional[dict[str, Any]], representation_fn: Any
) -> Any:
  if config is None:
    return None
  builders: dict[str, tuple[Any, dict[str, str]]] = {
      'fedprox': (client_works.build_fedprox, {'mu': 'mu'})
  }
  if representation_fn is not None:
    builders['moon'] = (
        client_works.build_moon,
        {'mu': 'mu', 'temperature': 'temperature'},
    )
  supplied = {}
  if config['name'] == 'moon':
    supplied['representation_fn'] = representation_fn
  return _build(config, 'loss', builders, **supplied)


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
