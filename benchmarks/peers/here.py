# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs the rules of this library, TFF and Keras on the peers' problems."""

from collections.abc import Iterator
from importlib import metadata
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from benchmarks.peers import client_formulas
from benchmarks.peers import server_formulas
from experiments.conformance import adapters
from experiments.conformance import replay
from experiments.conformance import stock_tff
from tff_adaptive import optimizers

# Framework, method, weights after each round, and call.
Found = tuple[str, str, Any, str]
_TFF = f'TFF {metadata.version("tensorflow-federated")}'
_KERAS = f'Keras {metadata.version("tf-keras")}'
_H = server_formulas.HPARAMS['FedAdam']
_ADAPTIVE = (_H['learning_rate'], _H['beta_1'], _H['beta_2'], _H['epsilon'])
# The initial v where a rule asks for it.
_V = _H['epsilon'] ** 2

# What TFF and this library are asked for, in the words of the files of
# reference trajectories: framework, method, adapter, call, and what differs.
_PROX = {'loss': {'name': 'fedprox', 'mu': client_formulas.MU}}
_SCAFFOLD = {
    'client': {'name': 'scaffold', 'lr': client_formulas.LEARNING_RATE}
}
_TERM = '`build_fed_opt`, `loss_term=build_fedprox(mu)`'
_RULE = '`build_fed_opt`, `build_scaffold_sgd`'
_UNIFORM = ', `client_weighting=UNIFORM`'
_EXAMPLES = ', `client_weighting=NUM_EXAMPLES`'
_CLIENT_RULES = (
    ('tff_adaptive', 'FedProx', 'examples', _TERM, _PROX),
    ('tff_adaptive', 'FedProx', 'uniform', f'{_TERM}{_UNIFORM}', _PROX),
    (
        'TFF',
        'FedProx',
        'examples',
        '`tff.learning.algorithms.build_weighted_fed_prox`',
        _PROX,
    ),
    ('tff_adaptive', 'SCAFFOLD', 'uniform', _RULE, _SCAFFOLD),
    ('tff_adaptive', 'SCAFFOLD', 'examples', f'{_RULE}{_EXAMPLES}', _SCAFFOLD),
)


def _run(rule: Any) -> list[Any]:
  """Returns the weights after each round of an optimizer of TFF."""
  changes = tf.constant(server_formulas.CHANGES, tf.float64)
  x = tf.zeros_like(changes[0])
  state, iterates = rule.initialize(tf.TensorSpec(x.shape, x.dtype)), []
  for change in changes:
    state, x = rule.next(state, x, -change)
    iterates.append(x.numpy())
  return iterates


def _run_keras(rule: Any) -> list[Any]:
  """Returns the weights after each round of an optimizer of Keras."""
  changes = tf.constant(server_formulas.CHANGES, tf.float64)
  x, iterates = tf.Variable(tf.zeros_like(changes[0])), []
  for change in changes:
    rule.apply_gradients([(-change, x)])
    iterates.append(x.numpy())
  return iterates


def run_server_rules() -> Iterator[Found]:
  """Runs FedAdam, FedYogi and FedAdagrad of this library, TFF and Keras."""
  name, rate, epsilon = 'tff_adaptive', _H['learning_rate'], _H['epsilon']
  for method, rule in (
      ('FedAdam', optimizers.build_fedadam(*_ADAPTIVE)),
      ('FedYogi', optimizers.build_fedyogi(*_ADAPTIVE)),
      ('FedAdagrad', optimizers.build_fedadagrad(rate, epsilon=epsilon)),
  ):
    yield name, method, _run(rule), f'`build_{method.lower()}`'
  stock = tff.learning.optimizers
  for method, call, rule in (
      ('FedAdam', 'build_adam', stock.build_adam(*_ADAPTIVE)),
      ('FedYogi', 'build_yogi', stock.build_yogi(*_ADAPTIVE, _V)),
      ('FedAdagrad', 'build_adagrad', stock.build_adagrad(rate, _V, epsilon)),
  ):
    yield _TFF, method, _run(rule), f'`tff.learning.optimizers.{call}`'
  keras = tf.keras.optimizers
  for method, rule in (
      ('FedAdam', keras.Adam(*_ADAPTIVE)),
      ('FedAdagrad', keras.Adagrad(rate, _V, epsilon)),
  ):
    call = f'`tf.keras.optimizers.{type(rule).__name__}`'
    yield _KERAS, method, _run_keras(rule), call


def run_client_rules() -> Iterator[Found]:
  """Runs FedProx and SCAFFOLD of this library and of TFF."""
  frameworks: dict[str, tuple[str, adapters.Adapter]] = {
      'tff_adaptive': ('tff_adaptive', replay.Library()),
      'TFF': (_TFF, stock_tff.StockTff()),
  }
  for framework, method, weighting, call, configuration in _CLIENT_RULES:
    name, adapter = frameworks[framework]
    asked = {
        'name': method,
        'problem': 'quadratic',
        'client': {'name': 'sgd', 'lr': client_formulas.LEARNING_RATE},
        'server': {'name': 'sgd', 'lr': 1.0},
        'weighting': weighting,
        'batch_size': max(client_formulas.SIZES),
        'epochs': client_formulas.NUM_STEPS,
        'rounds': len(client_formulas.COHORTS),
        **configuration,
    }
    problem = client_formulas.create_problem()
    run = adapters.GoldenRun(asked, problem, client_formulas.COHORTS)
    yield name, method, adapter.replay(run), call
