# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Federated averaging as a plain PyTorch loop; the variant is the threads.

It uses the GPU that PyTorch sees, if any.
"""

import copy
import sys

from federation import Federation
from federation import Stopwatch
import torch
import torch_models


def main(path: str, num_threads: str) -> None:
  """Trains the federation of a file."""
  torch.set_num_threads(int(num_threads))
  device = 'cuda' if torch.cuda.is_available() else 'cpu'
  federation, stopwatch = Federation(path), Stopwatch()
  clients = [
      [tensor.to(device) for tensor in torch_models.to_tensors(client)]
      for client in federation.clients()
  ]
  server = torch_models.build_model(federation).to(device)
  model = copy.deepcopy(server).train()
  before = torch_models.weights(server)
  optimizer = torch_models.build_server_optimizer(
      federation, list(server.parameters())
  )
  for cohort in federation.cohorts:
    with stopwatch.round():
      total = [torch.zeros_like(p) for p in server.parameters()]
      for client in cohort:
        train_client(federation, server, model, *clients[client])
        with torch.no_grad():
          for sum_, old, new in zip(
              total, server.parameters(), model.parameters()
          ):
            sum_.add_(old - new)
      for parameter, sum_ in zip(server.parameters(), total):
        parameter.grad = sum_ / len(cohort)
      optimizer.step()
      if device == 'cuda':
        torch.cuda.synchronize()
  stopwatch.report(
      federation,
      'PyTorch loop',
      torch.__version__,
      f'{device}, {num_threads} threads',
      before,
      torch_models.weights(server),
  )


def train_client(federation, server, model, x, y):
  """Trains the model from the server's weights on a client's batches."""
  with torch.no_grad():
    for new, old in zip(model.parameters(), server.parameters()):
      new.copy_(old)
  optimizer = torch.optim.SGD(
      model.parameters(), lr=federation.client_learning_rate
  )
  order = torch.randperm(len(x), device=x.device)
  for rows in order.split(federation.batch_size):
    optimizer.zero_grad()
    torch_models.loss(model, x[rows], y[rows]).backward()
    optimizer.step()


if __name__ == '__main__':
  main(*sys.argv[1:])
