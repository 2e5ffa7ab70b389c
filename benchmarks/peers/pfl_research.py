# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Federated averaging by Apple's pfl-research; the variant is the threads."""

import sys

from federation import Federation
from federation import Stopwatch
from pfl.aggregate import simulate
from pfl.algorithm import base
from pfl.algorithm import federated_averaging
from pfl.callback import base as callback
from pfl.data import dataset
from pfl.data import federated_dataset
from pfl.hyperparam import base as hyperparams
from pfl.model import pytorch
import pfl.version
import torch
import torch_models


class Rounds(callback.TrainingProcessCallback):
  """Takes the time from one central iteration to the next."""

  def __init__(self, stopwatch: Stopwatch):
    self._stopwatch = stopwatch
    self.start()

  def start(self):
    """Starts the stopwatch."""
    self._round = self._stopwatch.round()
    self._round.__enter__()

  def after_central_iteration(
      self, aggregate_metrics, model, *, central_iteration
  ):
    self._round.__exit__(None, None, None)
    self.start()
    return False, type(aggregate_metrics)()


def main(path: str, num_threads: str) -> None:
  """Trains the federation of a file."""
  torch.set_num_threads(int(num_threads))
  federation, stopwatch = Federation(path), Stopwatch()
  clients = list(map(torch_models.to_tensors, federation.clients()))
  module = torch_models.build_model(federation).train()
  module.loss = lambda x, y: torch_models.loss(module, x, y)
  module.metrics = lambda x, y: {}
  before = torch_models.weights(module)

  def read_client(number):
    x, y = clients[number]
    order = torch.randperm(len(x))
    return dataset.Dataset(raw_data=[x[order], y[order]])

  numbers = iter(federation.cohorts.ravel().tolist())
  data = federated_dataset.FederatedDataset(read_client, lambda: next(numbers))
  model = pytorch.PyTorchModel(
      module,
      torch.optim.SGD,
      torch_models.build_server_optimizer(
          federation, list(module.parameters())
      ),
  )
  num_rounds, cohort_size = federation.cohorts.shape
  federated_averaging.FederatedAveraging().run(
      algorithm_params=base.NNAlgorithmParams(
          central_num_iterations=num_rounds,
          evaluation_frequency=10**9,
          train_cohort_size=cohort_size,
          val_cohort_size=0,
      ),
      backend=simulate.SimulatedBackend(training_data=data, val_data=data),
      model=model,
      model_train_params=hyperparams.NNTrainHyperParams(
          local_num_epochs=1,
          local_learning_rate=federation.client_learning_rate,
          local_batch_size=federation.batch_size,
      ),
      model_eval_params=None,
      callbacks=[Rounds(stopwatch)],
  )
  stopwatch.report(
      federation,
      'pfl-research',
      pfl.version.__version__,
      f'{num_threads} threads',
      before,
      torch_models.weights(module),
  )


if __name__ == '__main__':
  main(*sys.argv[1:])
