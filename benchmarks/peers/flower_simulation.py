# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Federated averaging by Flower's simulation on Ray, a core for each client.

Flower samples the clients of a round itself.
"""

import os
import sys

os.environ.update(
    FLWR_TELEMETRY_ENABLED='0', RAY_USAGE_STATS_ENABLED='0', OMP_NUM_THREADS='1'
)
# pylint: disable=wrong-import-position
from federation import Federation
from federation import Stopwatch
import flower_client
import flwr
from flwr import app
from flwr import serverapp
from flwr import simulation
from flwr.serverapp import strategy as strategies
import torch_models


def _build_strategy(federation, stopwatch):
  """Returns FedAvg with the optimizer of the server, which takes the time."""
  base, arguments = {
      'adam': (strategies.FedAdam, {'beta_1': 0.9, 'beta_2': 0.999}),
      'adagrad': (strategies.FedAdagrad, {}),
      'sgd': (strategies.FedAvg, {}),
  }[federation.server_optimizer]
  if base is not strategies.FedAvg:
    arguments |= {'eta': federation.server_learning_rate, 'tau': 1e-5}

  class Timed(base):

    def configure_train(self, *args, **kwargs):
      self.round = stopwatch.round()
      self.round.__enter__()
      return super().configure_train(*args, **kwargs)

    def aggregate_train(self, server_round, replies):
      result = super().aggregate_train(server_round, list(replies))
      self.round.__exit__(None, None, None)
      return result

  return Timed(
      fraction_train=federation.cohorts.shape[1] / federation.num_clients,
      fraction_evaluate=0.0,
      min_available_nodes=federation.num_clients,
      **arguments,
  )


def main(path: str, variant: str) -> None:
  """Trains the federation of a file."""
  federation, stopwatch = Federation(path), Stopwatch()
  model = torch_models.build_model(federation)
  before = torch_models.weights(model)
  server_app = serverapp.ServerApp()

  @server_app.main()
  def run(grid, context):
    del context  # Unused.
    result = _build_strategy(federation, stopwatch).start(
        grid=grid,
        initial_arrays=app.ArrayRecord(model.state_dict()),
        num_rounds=len(federation.cohorts),
        train_config=app.ConfigRecord({'path': path}),
    )
    model.load_state_dict(result.arrays.to_torch_state_dict())

  simulation.run_simulation(
      server_app=server_app,
      client_app=flower_client.client_app,
      num_supernodes=federation.num_clients,
      backend_config={
          'client_resources': {'num_cpus': 1, 'num_gpus': 0.0},
          'init_args': {'num_cpus': os.cpu_count(), 'log_to_driver': False},
      },
  )
  stopwatch.report(
      federation,
      'Flower',
      flwr.__version__,
      variant,
      before,
      torch_models.weights(model),
  )


if __name__ == '__main__':
  main(*sys.argv[1:])
