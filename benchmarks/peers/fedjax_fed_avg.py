# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Federated averaging by FedJAX, whose clients are trained by jitted steps."""

from importlib import metadata
import sys

from federation import Federation
from federation import Stopwatch
import fedjax
import jax
import jax_models
import numpy as np


def _build_server_optimizer(federation):
  rate = federation.server_learning_rate
  return {
      'adam': lambda: fedjax.optimizers.adam(rate, eps=1e-5),
      'adagrad': lambda: fedjax.optimizers.adagrad(rate, 0.0, eps=1e-7),
      'sgd': lambda: fedjax.optimizers.sgd(rate),
  }[federation.server_optimizer]()


def main(path: str, variant: str) -> None:
  """Trains the federation of a file."""
  federation, stopwatch = Federation(path), Stopwatch()
  clients = [
      fedjax.ClientDataset({'x': x, 'y': y}) for x, y in federation.clients()
  ]
  weights, loss = jax_models.build_model(federation)
  before = [np.array(leaf) for leaf in jax.tree_util.tree_leaves(weights)]
  with fedjax.for_each_client_backend(variant):
    algorithm = fedjax.algorithms.fed_avg.federated_averaging(
        jax.grad(lambda w, batch, key: loss(w, batch['x'], batch['y'], key)),
        fedjax.optimizers.sgd(federation.client_learning_rate),
        _build_server_optimizer(federation),
        fedjax.ShuffleRepeatBatchHParams(
            batch_size=federation.batch_size, num_epochs=1, seed=0
        ),
    )
  state = algorithm.init(weights)
  for number, cohort in enumerate(federation.cohorts):
    with stopwatch.round():
      keys = jax.random.split(jax.random.PRNGKey(number), len(cohort))
      state, _ = algorithm.apply(
          state, [(int(c), clients[c], key) for c, key in zip(cohort, keys)]
      )
      jax.block_until_ready(state.params)
  stopwatch.report(
      federation,
      'FedJAX',
      metadata.version('fedjax'),
      variant,
      before,
      [np.asarray(leaf) for leaf in jax.tree_util.tree_leaves(state.params)],
  )


if __name__ == '__main__':
  main(*sys.argv[1:])
