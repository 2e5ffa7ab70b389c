# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The server rules of a framework, run on given mean changes of the weights.

`python server_rules.py FRAMEWORK` reads a JSON object with `changes`, a list of
weights' changes for each round, and `hparams`, by method, from stdin. It prints
`version`, and by method a list of [call, weights after each round]: the rule
with the paper's hyperparameters, as far as there are arguments, and, where a
rule can be changed to it, the paper's own. It imports nothing of this project,
as the environment of a framework has no TensorFlow.
"""

from importlib import metadata
import json
import sys

import numpy as np


def _run_optax(name, changes, make):
  """Runs optax rules; FedJAX wraps the same ones."""
  import jax  # pylint: disable=import-outside-toplevel

  jax.config.update('jax_enable_x64', True)
  import jax.numpy as jnp  # pylint: disable=import-outside-toplevel
  import optax  # pylint: disable=import-outside-toplevel

  def iterate(rule):
    x = jnp.zeros(len(changes[0]), jnp.float64)
    state, iterates = rule.init(x), []
    for change in changes:
      gradient = -jnp.asarray(change, jnp.float64)
      if name == 'fedjax':
        state, x = rule.apply(gradient, state, x)
      else:
        updates, state = rule.update(gradient, state, x)
        x = optax.apply_updates(x, updates)
      iterates.append(np.asarray(x).tolist())
    return iterates

  return {
      method: [[call, iterate(rule)] for call, rule in rules]
      for method, rules in make.items()
  }


def _paper_in_optax(method, h):
  """Returns Algorithm 2 as an optax rule."""
  import jax.numpy as jnp  # pylint: disable=import-outside-toplevel
  import optax  # pylint: disable=import-outside-toplevel

  accumulate = {
      'FedAdam': lambda v, g: h['beta_2'] * v + (1 - h['beta_2']) * g**2,
      'FedYogi': lambda v, g: v - (1 - h['beta_2']) * g**2 * jnp.sign(v - g**2),
      'FedAdagrad': lambda v, g: v + g**2,
  }[method]

  def init(x):
    return jnp.zeros_like(x), jnp.full_like(x, h['epsilon'] ** 2)

  def update(g, state, x=None):
    del x  # Unused.
    m, v = state
    m = h['beta_1'] * m + (1 - h['beta_1']) * g
    v = accumulate(v, g)
    return -h['learning_rate'] * m / (jnp.sqrt(v) + h['epsilon']), (m, v)

  return optax.GradientTransformation(init, update)


def _optax(changes, hparams):
  import optax  # pylint: disable=import-outside-toplevel

  a, y, g = (hparams[m] for m in ('FedAdam', 'FedYogi', 'FedAdagrad'))
  rules = {
      'FedAdam': [
          (
              '`optax.adam`',
              optax.adam(
                  a['learning_rate'], a['beta_1'], a['beta_2'], a['epsilon']
              ),
          )
      ],
      'FedYogi': [
          (
              '`optax.yogi`',
              optax.yogi(
                  y['learning_rate'], y['beta_1'], y['beta_2'], y['epsilon']
              ),
          )
      ],
      'FedAdagrad': [
          (
              '`optax.adagrad`',
              optax.adagrad(
                  g['learning_rate'], g['epsilon'] ** 2, g['epsilon']
              ),
          )
      ],
  }
  for method, found in rules.items():
    paper = _paper_in_optax(method, hparams[method])
    found.append(('a `GradientTransformation` of the formula', paper))
  return _run_optax('optax', changes, rules)


def _fedjax(changes, hparams):
  import fedjax  # pylint: disable=import-outside-toplevel

  a, y, g = (hparams[m] for m in ('FedAdam', 'FedYogi', 'FedAdagrad'))
  build = fedjax.optimizers
  rules = {
      'FedAdam': [
          (
              '`fedjax.optimizers.adam`',
              build.adam(
                  a['learning_rate'], a['beta_1'], a['beta_2'], a['epsilon']
              ),
          )
      ],
      'FedYogi': [
          (
              '`fedjax.optimizers.yogi`',
              build.yogi(
                  y['learning_rate'], y['beta_1'], y['beta_2'], y['epsilon']
              ),
          )
      ],
      'FedAdagrad': [
          (
              '`fedjax.optimizers.adagrad`',
              build.adagrad(
                  g['learning_rate'], g['epsilon'] ** 2, g['epsilon']
              ),
          )
      ],
  }
  for method, found in rules.items():
    paper = build.create_optimizer_from_optax(
        _paper_in_optax(method, hparams[method])
    )
    found.append(('`create_optimizer_from_optax` of the formula', paper))
  return _run_optax('fedjax', changes, rules)


def _pytorch(changes, hparams):
  import torch  # pylint: disable=import-outside-toplevel

  def iterate(build):
    x = torch.zeros(len(changes[0]), dtype=torch.float64, requires_grad=True)
    rule, iterates = build([x]), []
    for change in changes:
      x.grad = -torch.tensor(change, dtype=torch.float64)
      rule.step()
      iterates.append(x.detach().tolist())
    return iterates

  a, g = hparams['FedAdam'], hparams['FedAdagrad']
  return {
      'FedAdam': [
          [
              '`torch.optim.Adam`',
              iterate(
                  lambda x: torch.optim.Adam(
                      x,
                      a['learning_rate'],
                      (a['beta_1'], a['beta_2']),
                      a['epsilon'],
                  )
              ),
          ]
      ],
      'FedAdagrad': [
          [
              '`torch.optim.Adagrad`',
              iterate(
                  lambda x: torch.optim.Adagrad(
                      x,
                      g['learning_rate'],
                      initial_accumulator_value=g['epsilon'] ** 2,
                      eps=g['epsilon'],
                  )
              ),
          ]
      ],
  }


def _flower(changes, hparams):
  # pylint: disable=import-outside-toplevel
  from flwr import common
  from flwr.server import strategy as strategies
  # pylint: enable=import-outside-toplevel

  def iterate(method, is_paper=False):
    h = hparams[method]
    betas = {} if method == 'FedAdagrad' else {'beta_1': h['beta_1']}
    if method != 'FedAdagrad':
      betas['beta_2'] = h['beta_2']
    x = np.zeros(len(changes[0]))
    rule = getattr(strategies, method)(
        initial_parameters=common.ndarrays_to_parameters([x]),
        eta=h['learning_rate'],
        tau=h['epsilon'],
        **betas,
    )
    if is_paper:
      rule.v_t = [np.full_like(x, h['epsilon'] ** 2)]
    iterates = []
    for number, change in enumerate(changes, start=1):
      if is_paper and method == 'FedAdam':
        # It multiplies eta by the correction of the next round.
        decays = (h[beta] ** (number + 1.0) for beta in ('beta_1', 'beta_2'))
        first, second = (1 - decay for decay in decays)
        rule.eta = h['learning_rate'] * first / np.sqrt(second)
      sent = common.ndarrays_to_parameters([x + np.asarray(change)])
      status = common.Status(common.Code.OK, '')
      result = common.FitRes(status, sent, num_examples=1, metrics={})
      parameters, _ = rule.aggregate_fit(number, [(None, result)], [])
      (x,) = common.parameters_to_ndarrays(parameters)
      iterates.append(x.tolist())
    return iterates

  set_eta = {'FedAdam': ', and `eta` divided by its correction, each round'}
  found = {}
  for method in hparams:
    name = f'`flwr.server.strategy.{method}`'
    changed = f'the same, `v_t` set to tau^2{set_eta.get(method, "")}'
    found[method] = [
        [name, iterate(method)],
        [changed, iterate(method, is_paper=True)],
    ]
  return found


# The function of a framework, and the package with its version.
_FRAMEWORKS = {
    'optax': (_optax, 'optax'),
    'fedjax': (_fedjax, 'fedjax'),
    'pytorch': (_pytorch, 'torch'),
    'flower': (_flower, 'flwr'),
}


if __name__ == '__main__':
  run, package = _FRAMEWORKS[sys.argv[1]]
  reply = run(**json.load(sys.stdin))
  print(json.dumps({'version': metadata.version(package), 'methods': reply}))
