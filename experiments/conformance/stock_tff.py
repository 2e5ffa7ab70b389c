# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""An adapter of stock TFF, for the methods that `tff.learning` offers by name.

Every hyperparameter of the paper is passed to the argument that stands for it,
even if TFF's formula differs: this shows the effect of choosing TFF's optimizer
by its name.
"""

from collections.abc import Callable, Mapping, Sequence
import functools
from typing import Any, NamedTuple, Optional

import tensorflow_federated as tff

from experiments.conformance import adapters
from experiments.conformance import problems
from experiments.conformance import replay


class _Rule(NamedTuple):
  """TFF's counterpart to a name in the file.

  Attributes:
    build: Its builder.
    arguments: The builder's arguments by the keys of the file.
    defaults: The values of keys that a configuration omits.
    always: Keys for which TFF has no argument, and the values it implements.
  """

  build: Callable[..., Any]
  arguments: Mapping[str, str]
  defaults: Mapping[str, Any] = {}
  always: Mapping[str, Any] = {}


def _with_initial(build: Callable[..., Any]) -> Callable[..., Any]:
  """Returns a builder whose second moments begin at the square of `epsilon`."""

  def build_with_initial(
      *, epsilon: float, initial: Optional[float] = None, **arguments: Any
  ) -> tff.learning.optimizers.Optimizer:
    first = epsilon**2 if initial is None else initial
    return build(
        **arguments, epsilon=epsilon, initial_preconditioner_value=first
    )

  return build_with_initial


_build_adagrad = _with_initial(tff.learning.optimizers.build_adagrad)
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
    'adagrad': _Rule(
        functools.partial(_build_adagrad, initial=0.0), _CLIENT_KEYS
    ),
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
        _with_initial(tff.learning.optimizers.build_yogi),
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
_LOSSES = {
    'fedprox': _Rule(
        tff.learning.algorithms.build_weighted_fed_prox,
        {'mu': 'proximal_strength'},
    )
}
_KEYS = (*adapters.COMMON_KEYS, 'loss')


def _find_gap(
    part: Mapping[str, Any], what: str, rules: Mapping[str, _Rule]
) -> Optional[str]:
  """Returns what TFF lacks for a part of a configuration, or `None`."""
  if part['name'] not in rules:
    return f'tff.learning has no {what} {part["name"]!r}'
  rule = rules[part['name']]
  for key, value in part.items():
    if key == 'name' or key in rule.arguments:
      continue
    if key not in rule.always or rule.always[key] != value:
      return f'{part["name"]!r} of tff.learning has no {key}={value!r}'
  return None


def _build(
    part: Mapping[str, Any], rules: Mapping[str, _Rule], **supplied: Any
) -> Any:
  rule = rules[part['name']]
  values = {**rule.defaults, **part}
  return rule.build(
      **{rule.arguments[k]: values[k] for k in values if k in rule.arguments},
      **supplied,
  )


class StockTff:
  """The adapter of `tff.learning.algorithms`; see `adapters.Adapter`."""

  name = 'stock_tff'

  def supports(self, configuration: Mapping[str, Any]) -> Optional[str]:
    for key, value in configuration.items():
      if key not in _KEYS:
        return f'this adapter has no {key}, found {value!r}'
    if configuration['weighting'] not in replay.WEIGHTINGS:
      return f'tff.learning has no weighting {configuration["weighting"]!r}'
    if 'loss' in configuration:
      gap = _find_gap(configuration['loss'], 'loss term', _LOSSES)
      if gap:
        return gap
    return _find_gap(
        configuration['client'], 'client optimizer', _CLIENTS
    ) or _find_gap(configuration['server'], 'server optimizer', _SERVERS)

  def replay(self, run: adapters.GoldenRun) -> Sequence[Any]:
    config = run.configuration
    arguments = {
        'model_fn': problems.create_functional_model(run.problem),
        'client_optimizer_fn': _build(config['client'], _CLIENTS),
        'server_optimizer_fn': _build(config['server'], _SERVERS),
        'client_weighting': replay.WEIGHTINGS[config['weighting']],
    }
    if 'loss' in config:
      process = _build(config['loss'], _LOSSES, **arguments)
    else:
      process = tff.learning.algorithms.build_weighted_fed_avg(**arguments)
    return replay.train_weights(process, run)
