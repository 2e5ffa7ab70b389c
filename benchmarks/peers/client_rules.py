# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""FedProx and SCAFFOLD of a framework, on a given least-squares problem.

`python client_rules.py FRAMEWORK` reads a JSON object from stdin: `problem`,
with `x0` and `clients`, each with examples `X` and labels `y`; `cohorts`, the
clients of each round; `num_steps` of full batches; `learning_rate`; and `mu`.
It prints `version`, and by method a list of [call, weights after each round].
It imports nothing of this project, as the environment of a framework has no
TensorFlow.
"""

import copy
import functools
from importlib import metadata
import json
import sys

import numpy as np


def _half_squared_error(prediction, label):
  return 0.5 * ((prediction.squeeze(-1) - label) ** 2).mean()


def _make_torch_problem(asked):
  """Returns the model and the clients' batches."""
  import torch  # pylint: disable=import-outside-toplevel

  to_tensor = functools.partial(torch.tensor, dtype=torch.float64)
  x0 = to_tensor([asked['problem']['x0']])
  model = torch.nn.Linear(x0.numel(), 1, bias=False, dtype=torch.float64)
  model.weight.data = x0
  clients = asked['problem']['clients']
  return model, [(to_tensor(c['X']), to_tensor(c['y'])) for c in clients]


def _weights(model):
  return model.weight.detach().numpy().ravel().tolist()


def _pfl(asked):
  # pylint: disable=import-outside-toplevel
  from pfl.aggregate import simulate
  from pfl.algorithm import fedprox
  from pfl.algorithm import scaffold
  from pfl.callback import base as callback
  from pfl.data import dataset
  from pfl.data import federated_dataset
  from pfl.data import user_state
  from pfl.hyperparam import base as hyperparams
  from pfl.internal.bridge.pytorch import scaffold as bridge
  from pfl.model import pytorch
  import torch
  # pylint: enable=import-outside-toplevel

  class Iterates(callback.TrainingProcessCallback):

    def __init__(self):
      self.found = []

    def after_central_iteration(
        self, aggregate_metrics, model, *, central_iteration
    ):
      self.found.append(_weights(model.pytorch_model))
      return False, type(aggregate_metrics)()

  def iterate(algorithm, make_params, **arguments):
    model, clients = _make_torch_problem(asked)
    model.loss = lambda x, y: _half_squared_error(model(x), y)
    model.metrics = lambda x, y: {}
    numbers = iter(np.ravel(asked['cohorts']).tolist())
    data = federated_dataset.FederatedDataset(
        lambda i: dataset.Dataset(clients[i], user_id=str(i)),
        lambda: next(numbers),
    )
    iterates = Iterates()
    algorithm.run(
        algorithm_params=make_params(
            central_num_iterations=len(asked['cohorts']),
            evaluation_frequency=10**9,
            train_cohort_size=len(asked['cohorts'][0]),
            val_cohort_size=0,
            **arguments,
        ),
        backend=simulate.SimulatedBackend(training_data=data, val_data=data),
        model=pytorch.PyTorchModel(
            model, torch.optim.SGD, torch.optim.SGD(model.parameters(), 1.0)
        ),
        model_train_params=hyperparams.NNTrainHyperParams(
            local_num_epochs=asked['num_steps'],
            local_learning_rate=asked['learning_rate'],
            local_batch_size=None,
        ),
        model_eval_params=None,
        callbacks=[iterates],
    )
    return iterates.found

  class CopyingStorage(user_state.InMemoryUserStateStorage):
    """Keeps the clients' controls apart, which are one tensor in option I."""

    def save_state(self, state, *args):
      super().save_state(copy.deepcopy(state), *args)

  def iterate_scaffold(is_option_1):
    return iterate(
        scaffold.SCAFFOLD(),
        scaffold.SCAFFOLDParams,
        population=len(asked['problem']['clients']),
        use_gradient_as_control_variate=is_option_1,
        user_state_storage=CopyingStorage(),
    )

  prox = iterate(fedprox.FedProx(), fedprox.FedProxParams, mu=asked['mu'])
  name = '`pfl.algorithm.scaffold.SCAFFOLD`'
  found = [[name, iterate_scaffold(False)]]
  gradient = (
      'the same, `use_gradient_as_control_variate`, a storage that copies'
  )
  found.append([gradient, iterate_scaffold(True)])
  bridges = bridge.PyTorchSCAFFOLDBridge
  train = bridges.do_control_variate_sgd

  def exchange(model, user_dataset, train_params, *, local_c, server_c):
    train(model, user_dataset, train_params, local_c=server_c, server_c=local_c)

  bridges.do_control_variate_sgd = staticmethod(exchange)
  exchanged = ', `local_c` and `server_c` of its local step exchanged'
  found.append([name + exchanged, iterate_scaffold(False)])
  found.append([gradient + exchanged, iterate_scaffold(True)])
  return {
      'FedProx': [['`pfl.algorithm.fedprox.FedProx`', prox]],
      'SCAFFOLD': found,
  }


def _nvflare(asked):
  # pylint: disable=import-outside-toplevel
  from nvflare.apis import fl_context
  from nvflare.app_common.abstract import fl_model
  from nvflare.app_common.app_constant import AlgorithmConstants
  from nvflare.app_common.workflows import base_fedavg
  from nvflare.app_common.workflows import scaffold
  from nvflare.app_opt.pt import fedproxloss
  from nvflare.app_opt.pt import scaffold as helpers
  import torch
  # pylint: enable=import-outside-toplevel

  x0, clients = _make_torch_problem(asked)
  rate = asked['learning_rate']
  control = AlgorithmConstants.SCAFFOLD_CTRL_GLOBAL
  change = AlgorithmConstants.SCAFFOLD_CTRL_DIFF
  sizes = [len(y) for _, y in clients]

  def train(i, model, params, loss_term=None, after_step=None):
    """Trains a client as NVFlare's examples do; returns the model received."""
    model.load_state_dict({k: torch.tensor(v) for k, v in params.items()})
    start, rule = copy.deepcopy(model), torch.optim.SGD(
        model.parameters(), rate
    )
    for _ in range(asked['num_steps']):
      rule.zero_grad()
      loss = _half_squared_error(model(clients[i][0]), clients[i][1])
      if loss_term:
        loss = loss + loss_term(model, start)
      loss.backward()
      rule.step()
      if after_step:
        after_step()
    return start

  def to_params(model):
    return {k: v.numpy().copy() for k, v in model.state_dict().items()}

  def reply(i, model, weight, **meta):
    meta |= {'NUM_STEPS_CURRENT_ROUND': weight, 'client_name': str(i)}
    return fl_model.FLModel(params=to_params(model), meta=meta)

  def iterate_prox(weights):
    term = fedproxloss.PTFedProxLoss(asked['mu'])
    params, iterates = to_params(x0), []
    for cohort in asked['cohorts']:
      results = []
      for i in cohort:
        model = copy.deepcopy(x0)
        train(i, model, params, loss_term=term)
        results.append(reply(i, model, weights[i]))
      params = base_fedavg.BaseFedAvg.aggregate_fn(results).params
      iterates.append(params['weight'].ravel().tolist())
    return iterates

  class Server(scaffold.Scaffold):
    """The controller, with clients in this process."""

    def __init__(self, is_paper):
      super().__init__(num_rounds=len(asked['cohorts']))
      self.fl_ctx = fl_context.FLContext()
      self.model = fl_model.FLModel(params=to_params(x0))
      self._global_ctrl_weights = {
          k: np.zeros_like(v) for k, v in self.model.params.items()
      }
      self._models = [copy.deepcopy(x0) for _ in clients]
      self._helpers = [helpers.PTScaffoldHelper() for _ in clients]
      for helper, model in zip(self._helpers, self._models):
        helper.init(model)
      self._is_paper, self.iterates = is_paper, []

    def event(self, event_type):
      pass  # No component listens.

    def fire_event_with_data(self, *args, **kwargs):
      pass

    def sample_clients(self, num_clients=None):
      del num_clients  # Unused.
      return asked['cohorts'][self.current_round]

    def send_model_and_wait(self, targets, data):
      scale = len(targets) / len(clients) if self._is_paper else 1
      return [self._train(i, data, scale) for i in targets]

    def _train(self, i, data, scale):
      helper, model = self._helpers[i], self._models[i]
      helper.load_global_controls(data.meta[control])
      both = helper.get_params()
      step = functools.partial(helper.model_update, model, rate, *both)
      start = train(i, model, data.params, after_step=step)
      helper.terms_update(model, rate, *both, start)
      found = helper.get_delta_controls()
      found = {k: scale * v for k, v in found.items()}
      return reply(i, model, asked['num_steps'], **{change: found})

    def save_model(self, model):
      self.iterates.append(model.params['weight'].ravel().tolist())

  def iterate_scaffold(is_paper):
    server = Server(is_paper)
    server._run_rounds()
    return server.iterates

  loss_name = (
      '`PTFedProxLoss` and `BaseFedAvg`, weights from `NUM_STEPS_CURRENT_ROUND`'
  )
  name = '`PTScaffoldHelper` and `Scaffold`'
  scaled = 'the same, clients multiply `SCAFFOLD_CTRL_DIFF` by |S| / N'
  steps = [asked['num_steps']] * len(clients)
  return {
      'FedProx': [
          [f'{loss_name}: local steps', iterate_prox(steps)],
          [f'{loss_name}: examples', iterate_prox(sizes)],
      ],
      'SCAFFOLD': [
          [name, iterate_scaffold(False)],
          [scaled, iterate_scaffold(True)],
      ],
  }


def _fluke(asked):
  import torch_rules  # pylint: disable=import-outside-toplevel

  torch_rules.import_torchvision()
  # pylint: disable=import-outside-toplevel
  from fluke import config
  from fluke import server as servers
  from fluke.algorithms import fedprox
  from fluke.algorithms import scaffold
  from fluke.data import FastDataLoader
  # pylint: enable=import-outside-toplevel

  def iterate(make_client, make_server, is_weighted, **arguments):
    model, batches = _make_torch_problem(asked)
    clients = [
        make_client(
            index=i,
            train_set=FastDataLoader(*batch, num_labels=1, batch_size=0),
            test_set=None,
            optimizer_cfg=config.OptimizerConfigurator(
                {'name': 'SGD', 'lr': asked['learning_rate']}
            ),
            loss_fn=_half_squared_error,
            local_epochs=asked['num_steps'],
            **arguments,
        )
        for i, batch in enumerate(batches)
    ]
    server, iterates = make_server(model, None, clients, is_weighted), []
    for client in clients:
      client.set_channel(server.channel)
    for number, cohort in enumerate(asked['cohorts'], start=1):
      chosen = [clients[i] for i in cohort]
      server.broadcast_model(chosen)
      for client in chosen:
        client.local_update(number)
      models = server.receive_client_models(chosen, state_dict=False)
      server.aggregate(chosen, models)
      iterates.append(_weights(server.model))
    return iterates

  def iterate_both(name, *makers, **arguments):
    return [
        [f'{name}, `weighted={value}`', iterate(*makers, value, **arguments)]
        for value in (True, False)
    ]

  return {
      'FedProx': iterate_both(
          '`FedProxClient`',
          fedprox.FedProxClient,
          servers.Server,
          mu=asked['mu'],
      ),
      'SCAFFOLD': iterate_both(
          '`SCAFFOLDServer`', scaffold.SCAFFOLDClient, scaffold.SCAFFOLDServer
      ),
  }


def _fedlab(asked):
  import torch_rules  # pylint: disable=import-outside-toplevel

  torch_rules.import_torchvision()
  # pylint: disable=import-outside-toplevel
  from fedlab.contrib.algorithm import fedprox
  from fedlab.contrib.algorithm import scaffold
  # pylint: enable=import-outside-toplevel

  def iterate(make_trainer, make_server, *arguments):
    model, clients = _make_torch_problem(asked)

    class Data:

      def get_dataloader(self, i, batch_size):
        del batch_size  # Full batches.
        return [clients[i]]

    trainer = make_trainer(model, len(clients))
    trainer.setup_dataset(Data())
    rate = asked['learning_rate']
    trainer.setup_optim(asked['num_steps'], None, rate, *arguments)
    trainer.criterion = _half_squared_error
    ratio = len(asked['cohorts'][0]) / len(clients)
    server = make_server(model, len(asked['cohorts']), ratio)
    server.num_clients = len(clients)
    if make_server is scaffold.ScaffoldServerHandler:
      server.setup_optim(1.0)
    iterates = []
    for cohort in asked['cohorts']:
      trainer.local_process(server.downlink_package, cohort)
      for package in trainer.uplink_package:
        server.load(package)
      iterates.append(_weights(server.model))
    return iterates

  prox = iterate(
      fedprox.FedProxSerialClientTrainer,
      fedprox.FedProxServerHandler,
      asked['mu'],
  )
  found = iterate(
      scaffold.ScaffoldSerialClientTrainer, scaffold.ScaffoldServerHandler
  )
  return {
      'FedProx': [['`FedProxSerialClientTrainer`', prox]],
      'SCAFFOLD': [['`ScaffoldSerialClientTrainer`', found]],
  }


def _fedjax(asked):
  import jax  # pylint: disable=import-outside-toplevel

  jax.config.update('jax_enable_x64', True)
  import fedjax  # pylint: disable=import-outside-toplevel
  import jax.numpy as jnp  # pylint: disable=import-outside-toplevel

  datasets = [
      fedjax.ClientDataset({'x': np.array(c['X']), 'y': np.array(c['y'])})
      for c in asked['problem']['clients']
  ]

  def loss(x, batch, rng):
    del rng  # Unused.
    return 0.5 * (batch['x'] @ x - batch['y']) ** 2

  algorithm = fedjax.algorithms.fed_prox.fed_prox(
      loss,
      fedjax.optimizers.sgd(asked['learning_rate']),
      fedjax.optimizers.sgd(1.0),
      # A batch has each example of a smaller client several times.
      fedjax.ShuffleRepeatBatchHParams(
          max(map(len, datasets)),
          num_epochs=None,
          num_steps=asked['num_steps'],
      ),
      asked['mu'],
  )
  state, iterates = algorithm.init(jnp.array(asked['problem']['x0'])), []
  for cohort in asked['cohorts']:
    key = jax.random.PRNGKey(0)
    chosen = [(str(i), datasets[i], key) for i in cohort]
    state, _ = algorithm.apply(state, chosen)
    iterates.append(np.asarray(state.params).tolist())
  name = '`fedjax.algorithms.fed_prox.fed_prox`'
  return {'FedProx': [[name, iterates]]}


# The function of a framework, and the package with its version.
_FRAMEWORKS = {
    'pfl': (_pfl, 'pfl'),
    'nvflare': (_nvflare, 'nvflare'),
    'fluke': (_fluke, 'fluke-fl'),
    'fedlab': (_fedlab, 'fedlab'),
    'fedjax': (_fedjax, 'fedjax'),
}


if __name__ == '__main__':
  run, package = _FRAMEWORKS[sys.argv[1]]
  reply = run(json.load(sys.stdin))
  print(json.dumps({'version': metadata.version(package), 'methods': reply}))
