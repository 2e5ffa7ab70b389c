# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The client of `flower_simulation`, which Ray's workers import."""

import functools

from federation import Federation
from flwr import app
from flwr import clientapp
import torch
import torch_models

client_app = clientapp.ClientApp()


@functools.cache
def _prepare(path):
  """Returns what a worker makes once."""
  torch.set_num_threads(1)
  federation = Federation(path)
  return federation, torch_models.build_model(federation).train()


@client_app.train()
def train(message: app.Message, context: app.Context) -> app.Message:
  """Trains a client."""
  federation, model = _prepare(message.content['config']['path'])
  model.load_state_dict(message.content['arrays'].to_torch_state_dict())
  x, y = torch_models.to_tensors(
      federation.client(context.node_config['partition-id'])
  )
  optimizer = torch.optim.SGD(
      model.parameters(), lr=federation.client_learning_rate
  )
  for rows in torch.randperm(len(x)).split(federation.batch_size):
    optimizer.zero_grad()
    torch_models.loss(model, x[rows], y[rows]).backward()
    optimizer.step()
  content = {
      'arrays': app.ArrayRecord(model.state_dict()),
      'metrics': app.MetricRecord({'num-examples': len(x)}),
  }
  return app.Message(content=app.RecordDict(content), reply_to=message)
