# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The models of the workloads in PyTorch, for the peers that build on it."""

from federation import Federation
import numpy as np
import torch
from torch import nn
from torch.nn import functional


class ChannelsFirst(nn.Module):
  """Brings images from channels last to channels first."""

  def forward(self, images):
    return images.permute(0, 3, 1, 2)


class Recurrent(nn.Module):
  """Two LSTMs of 256 on embedded characters."""

  def __init__(self):
    super().__init__()
    self.embedding = nn.Embedding(90, 8)
    self.lstm = nn.LSTM(8, 256, num_layers=2, batch_first=True)
    self.dense = nn.Linear(256, 90)

  def forward(self, tokens):
    return self.dense(self.lstm(self.embedding(tokens))[0])


class BagOfWords(nn.Module):
  """Logistic regression on the mean of the words' rows."""

  def __init__(self):
    super().__init__()
    self.rows = nn.EmbeddingBag(10_000, 500, mode='mean', sparse=True)
    self.bias = nn.Parameter(torch.zeros(500))

  def forward(self, words):
    return self.rows(words) + self.bias


def _cnn(size, channels, num_classes):
  pooled = (size - 4) // 2
  return nn.Sequential(
      ChannelsFirst(),
      nn.Conv2d(channels, 32, 3),
      nn.ReLU(),
      nn.Conv2d(32, 64, 3),
      nn.ReLU(),
      nn.MaxPool2d(2),
      nn.Dropout(0.25),
      nn.Flatten(),
      nn.Linear(pooled * pooled * 64, 128),
      nn.ReLU(),
      nn.Dropout(0.5),
      nn.Linear(128, num_classes),
  )


_MODELS = {
    'logistic': lambda: nn.Linear(784, 10),
    'cnn': lambda: _cnn(28, 1, 62),
    'color_cnn': lambda: _cnn(32, 3, 10),
    'lstm': Recurrent,
    'word_tags': BagOfWords,
}


def build_model(federation: Federation) -> nn.Module:
  """Returns the model of a workload, with seeded weights."""
  torch.manual_seed(0)
  return _MODELS[federation.model]()


def loss(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
  """Returns the mean loss of a batch."""
  logits = model(x)
  if y.is_floating_point():
    return functional.binary_cross_entropy_with_logits(logits, y)
  return functional.cross_entropy(logits.flatten(0, -2), y.flatten())


def to_tensors(
    client: tuple[np.ndarray, np.ndarray],
) -> tuple[torch.Tensor, torch.Tensor]:
  """Returns a client's examples; integers have 64 bits, as PyTorch's labels."""
  tensors = map(torch.from_numpy, client)
  return tuple(t if t.is_floating_point() else t.long() for t in tensors)


def build_server_optimizer(federation, parameters):
  """Returns the optimizer of the server."""
  rate = federation.server_learning_rate
  if federation.server_optimizer == 'adam':
    return torch.optim.Adam(parameters, lr=rate, eps=1e-5)
  if federation.server_optimizer == 'adagrad':
    return torch.optim.Adagrad(parameters, lr=rate, eps=1e-7)
  return torch.optim.SGD(parameters, lr=rate)


def weights(model: nn.Module) -> list[np.ndarray]:
  """Returns copies of a model's weights."""
  return [p.detach().cpu().numpy().copy() for p in model.parameters()]
