# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""so_logreg_words in PyTorch, where only rows of a client's words are touched.

Gradients are written by hand, for speed.
"""

import sys

from federation import Federation
from federation import Stopwatch
import torch
from torch.nn import functional
import torch_models


def main(path: str, num_threads: str) -> None:
  """Trains the federation of a file."""
  torch.set_num_threads(int(num_threads))
  federation, stopwatch = Federation(path), Stopwatch()
  if federation.model != 'word_tags':
    raise ValueError(f'Expected so_logreg_words, found {federation.workload}.')
  clients = list(map(torch_models.to_tensors, federation.clients()))
  model = torch_models.build_model(federation)
  before = torch_models.weights(model)
  table, bias = model.rows.weight, model.bias
  optimizer = torch_models.build_server_optimizer(federation, [table, bias])
  for cohort in federation.cohorts:
    with stopwatch.round(), torch.no_grad():
      table_sum, bias_sum = torch.zeros_like(table), torch.zeros_like(bias)
      for client in cohort:
        words, change, bias_change = train_client(
            federation, table, bias, *clients[client]
        )
        table_sum.index_add_(0, words, change)
        bias_sum += bias_change
      table.grad, bias.grad = table_sum / len(cohort), bias_sum / len(cohort)
      optimizer.step()
  stopwatch.report(
      federation,
      'PyTorch, sparse rows',
      torch.__version__,
      f'{num_threads} threads',
      before,
      torch_models.weights(model),
  )


def train_client(federation, table, bias, x, y):
  """Returns the client's words, and the changes of their rows and the bias."""
  words, places = torch.unique(x, return_inverse=True)
  first = table[words]
  rows, new_bias = first.clone(), bias.clone()
  num_words = x.shape[1]
  for picked in torch.randperm(len(x)).split(federation.batch_size):
    bags = places[picked]
    logits = functional.embedding_bag(bags, rows, mode='mean') + new_bias
    gradient = (torch.sigmoid(logits) - y[picked]) / logits.numel()
    gradient *= federation.client_learning_rate
    per_word = (gradient / num_words).repeat_interleave(num_words, 0)
    rows.index_add_(0, bags.flatten(), per_word, alpha=-1)
    new_bias -= gradient.sum(0)
  return words, first - rows, bias - new_bias


if __name__ == '__main__':
  main(*sys.argv[1:])
