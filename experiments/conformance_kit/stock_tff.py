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
"""Stock TFF as an adapter: `tff.learning` where it claims to have a method.

Every argument that stands for a hyperparameter of the paper gets its value,
also where the formula around it is another: this shows what comes out if TFF's
optimizer is taken by its name.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Optional

import tensorflow_federated as tff

from experiments.conformance_kit import adapters
from experiments.conformance_kit import process_replay
from tasks import golden_problems


class _Rule(NamedTuple):
  """An optimizer of TFF under a name of the file.

  Attributes:
    build: Its builder.
    arguments: Keys of the file to arguments of the builder.
    defaults: The values of keys that a configuration leaves out.
    always: What the optimizer does without having an argument for it.
  """

  build: Callable[..., tff.learning.optimizers.Optimizer]
  arguments: Mapping[str, str]
  defaults: Mapping[str, Any] = {}
  always: Mapping[str, Any] = {}


def _build_adagrad(
    learning_rate: float, epsilon: float, initial: Optional[float] = None
) -> tff.learning.optimizers.Optimizer:
  return tff.learning.optimizers.build_adagrad(
      learning_rate,
      initial_preconditioner_value=epsilon**2 if initial is None else initial,
      epsilon=epsilon,
  )


def _build_client_adagrad(
    learning_rate: float, epsilon: float
) -> tff.learning.optimizers.Optimizer:
  return _build_adagrad(learning_rate, epsilon, initial=0.0)


def _build_yogi(
    learning_rate: float,
    beta_1: float,
    beta_2: float,
    epsilon: float,
    initial: Optional[float] = None,
) -> tff.learning.optimizers.Optimizer:
  return tff.learning.optimizers.build_yogi(
      learning_rate,
      beta_1,
      beta_2,
      epsilon,
      initial_preconditioner_value=epsilon**2 if initial is None else initial,
  )


_SGD = _Rule(
    tff.learning.optimizers.build_sgdm,
    {'lr': 'learning_rate', 'momentum': 'momentum'},
)
_BETAS = {'beta1': 'beta_1', 'beta2': 'beta_2'}
_FROM_ZERO = {'v0': 0.0, 'bias_correction': True, 'second_moment_of': 'update'}
_SERVER_KEYS = {'lr': 'learning_rate', 'tau': 'epsilon'}
_CLIENT_KEYS = {'lr': 'learning_rate', 'eps': 'epsilon'}
_PAPER = {'beta1': 0.9, 'beta2': 0.99, 'tau': 1e-3}

_CLIENTS = {
    'sgd': _SGD,
    'adam': _Rule(
        tff.learning.optimizers.build_adam,
        {**_CLIENT_KEYS, **_BETAS},
        always=_FROM_ZERO,
    ),
    'adagrad': _Rule(_build_client_adagrad, _CLIENT_KEYS),
}
_SERVERS = {
    'sgd': _SGD,
    'fedadam': _Rule(
        tff.learning.optimizers.build_adam,
        {**_SERVER_KEYS, **_BETAS},
        defaults=_PAPER,
        always=_FROM_ZERO,
    ),
    'fedyogi': _Rule(
        _build_yogi,
        {**_SERVER_KEYS, **_BETAS, 'v0': 'initial'},
        defaults=_PAPER,
        always={'bias_correction': True, 'second_moment_of': 'update'},
    ),
    'fedadagrad': _Rule(
        _build_adagrad,
        {**_SERVER_KEYS, 'v0': 'initial'},
        defaults={'tau': 1e-3},
        always={
            'beta1': 0.0,
            'bias_correction': False,
            'second_moment_of': 'update',
        },
    ),
}


def _find_gap(
    part: Mapping[str, Any], what: str, rules: Mapping[str, _Rule]
) -> Optional[str]:
  """Why TFF cannot be told a part of a configuration, or `None` if it can."""
  if part['name'] not in rules:
    return f'tff.learning has no {what} optimizer {part["name"]!r}'
  rule = rules[part['name']]
  for key, value in part.items():
    if key == 'name' or key in rule.arguments:
      continue
    if key not in rule.always or rule.always[key] != value:
      return f'{part["name"]!r} of tff.learning has no {key}={value!r}'
  return None


def _build(
    part: Mapping[str, Any], rules: Mapping[str, _Rule]
) -> tff.learning.optimizers.Optimizer:
  rule = rules[part['name']]
  values = {**rule.defaults, **part}
  return rule.build(
      **{rule.arguments[k]: values[k] for k in values if k in rule.arguments}
  )


class StockTff:
  """The processes of `tff.learning.algorithms`, see `adapters.Adapter`."""

  name = 'stock_tff'

  def supports(self, configuration: Mapping[str, Any]) -> Optional[str]:
    loss = configuration.get('loss')
    if loss is not None and loss['name'] != 'fedprox':
      return f'tff.learning has no loss term {loss["name"]!r}'
    if 'schedule' in configuration:
      return f'no schedule is replayed, found {configuration["schedule"]!r}'
    return _find_gap(configuration['client'], 'client', _CLIENTS) or _find_gap(
        configuration['server'], 'server', _SERVERS
    )

  def replay(self, run: adapters.GoldenRun) -> Sequence[Any]:
    config = run.configuration
    weightings = {
        'uniform': tff.learning.ClientWeighting.UNIFORM,
        'examples': tff.learning.ClientWeighting.NUM_EXAMPLES,
    }
    arguments = {
        'model_fn': golden_problems.create_functional_model(run.problem),
        'client_optimizer_fn': _build(config['client'], _CLIENTS),
        'server_optimizer_fn': _build(config['server'], _SERVERS),
        'client_weighting': weightings[config['weighting']],
    }
    if 'loss' in config:
      process = tff.learning.algorithms.build_weighted_fed_prox(
          proximal_strength=config['loss']['mu'], **arguments
      )
    else:
      process = tff.learning.algorithms.build_weighted_fed_avg(**arguments)
    return process_replay.replay_process(process, run)
