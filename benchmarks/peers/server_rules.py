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

import importlib
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


def _torch_rules(hparams):
  """Returns calls, names and arguments of PyTorch rules by method."""
  a, g = hparams['FedAdam'], hparams['FedAdagrad']
  adam = {
      'lr': a['learning_rate'],
      'betas': (a['beta_1'], a['beta_2']),
      'eps': a['epsilon'],
  }
  adagrad = {
      'lr': g['learning_rate'],
      'initial_accumulator_value': g['epsilon'] ** 2,
      'eps': g['epsilon'],
  }
  rules = {
      'FedAdam': [('`torch.optim.Adam`', 'torch.optim.Adam', adam)],
      'FedYogi': [],
      'FedAdagrad': [('`torch.optim.Adagrad`', 'torch.optim.Adagrad', adagrad)],
  }
  for method, found in rules.items():
    arguments = {'method': method, **hparams[method]}
    call = 'an `Optimizer` of the formula'
    found.append((call, 'torch_rules.Reddi', arguments))
  return rules


def _run_torch(changes, hparams, make_step):
  """Runs PyTorch rules.

  Args:
    changes: The changes of each round.
    hparams: The hyperparameters by method.
    make_step: Maps a model with one vector `weight`, a rule's name and its
      arguments to a function that takes a change and changes the model.
  """
  import torch  # pylint: disable=import-outside-toplevel

  def iterate(name, arguments):
    model = torch.nn.Module()
    x = torch.zeros(len(changes[0]), dtype=torch.float64)
    model.weight = torch.nn.Parameter(x)
    step, iterates = make_step(model, name, arguments), []
    for change in changes:
      step(torch.tensor(change, dtype=torch.float64))
      iterates.append(model.weight.detach().tolist())
    return iterates

  return {
      method: [[call, iterate(name, args)] for call, name, args in found]
      for method, found in _torch_rules(hparams).items()
  }


def _build_torch_rule(model, name, arguments):
  module, _, class_name = name.rpartition('.')
  build = getattr(importlib.import_module(module), class_name)
  return build(model.parameters(), **arguments)


def _pytorch(changes, hparams):
  def make_step(model, name, arguments):
    rule = _build_torch_rule(model, name, arguments)

    def step(change):
      model.weight.grad = -change
      rule.step()

    return step

  return _run_torch(changes, hparams, make_step)


def _pfl(changes, hparams):
  # pylint: disable=import-outside-toplevel
  from pfl import stats
  from pfl.model import pytorch
  # pylint: enable=import-outside-toplevel

  def make_step(model, name, arguments):
    model.loss = model.metrics = None  # It is not trained.
    rule = _build_torch_rule(model, name, arguments)
    wrapped = pytorch.PyTorchModel(model, None, central_optimizer=rule)
    return lambda change: wrapped.apply_model_update(
        stats.MappedVectorStatistics({'weight': change})
    )

  return _run_torch(changes, hparams, make_step)


def _nvflare(changes, hparams):
  # pylint: disable=import-outside-toplevel
  from nvflare.apis import event_type
  from nvflare.apis import fl_constant
  from nvflare.apis import fl_context
  from nvflare.app_opt.pt import fedopt
  from nvflare.fuel.utils import component_builder
  # pylint: enable=import-outside-toplevel

  class Engine(component_builder.ComponentBuilder):

    def get_module_scanner(self):
      return None  # Classes are given with their modules.

  def make_step(model, name, arguments):
    generator = fedopt.PTFedOptModelShareableGenerator(
        {'path': name, 'args': arguments}, source_model=model, device='cpu'
    )
    context = fl_context.FLContext()
    context.set_prop(fl_constant.ReservedKey.ENGINE, Engine(), private=True)
    generator.handle_event(event_type.EventType.START_RUN, context)
    return lambda change: generator.server_update({'weight': change.numpy()})

  return _run_torch(changes, hparams, make_step)


def _fluke(changes, hparams):
  import torch_rules  # pylint: disable=import-outside-toplevel

  torch_rules.import_torchvision()
  # pylint: disable=import-outside-toplevel
  from fluke.algorithms import fedopt
  import torch
  # pylint: enable=import-outside-toplevel

  def make_model(x):
    model = torch.nn.Module()
    model.weight = torch.nn.Parameter(torch.tensor(x, dtype=torch.float64))
    return model

  def iterate(method, is_paper=False):
    h = hparams[method]
    # The rule multiplies changes by `lr` before it accumulates them.
    tau = h['epsilon'] * (h['learning_rate'] if is_paper else 1)
    server = fedopt.FedOptServer(
        make_model(np.zeros(len(changes[0]))),
        None,
        [None],
        mode=method.removeprefix('Fed').lower(),
        lr=h['learning_rate'],
        beta1=h['beta_1'],
        beta2=h['beta_2'],
        tau=tau,
        weighted=False,
    )
    if is_paper:
      server.v_t = {
          k: torch.full_like(v, tau**2) for k, v in server.v_t.items()
      }
    iterates = []
    for change in changes:
      x = server.model.weight.detach().numpy()
      server.aggregate([None], [make_model(x + np.asarray(change))])
      iterates.append(server.model.weight.tolist())
    return iterates

  call = '`fluke.algorithms.fedopt.FedOptServer`'
  changed = 'the same, `tau` set to eta tau, and `v_t` to its square'
  return {
      method: [[call, iterate(method)], [changed, iterate(method, True)]]
      for method in hparams
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
    'pfl': (_pfl, 'pfl'),
    'nvflare': (_nvflare, 'nvflare'),
    'fluke': (_fluke, 'fluke-fl'),
    'flower': (_flower, 'flwr'),
}


if __name__ == '__main__':
  run, package = _FRAMEWORKS[sys.argv[1]]
  reply = run(**json.load(sys.stdin))
  print(json.dumps({'version': metadata.version(package), 'methods': reply}))
