# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""A round as one jitted JAX program; a variant is scan or vmap over clients."""

import functools
import sys

from federation import Federation
from federation import Stopwatch
import jax
from jax import lax
import jax.numpy as jnp
import jax_models
import numpy as np
import optax


def _build_server_optimizer(federation):
  rate = federation.server_learning_rate
  return {
      'adam': lambda: optax.adam(rate, eps=1e-5),
      'adagrad': lambda: optax.adagrad(rate, 0.0, eps=1e-7),
      'sgd': lambda: optax.sgd(rate),
  }[federation.server_optimizer]()


def build_round(federation, loss, optimizer, variant):
  """Returns the jitted round."""
  rate = federation.client_learning_rate

  def change_of(weights, batches):
    def step(local, batch):
      gradients = jax.grad(loss)(local, *batch)
      return jax.tree.map(lambda w, g: w - rate * g, local, gradients), None

    local, _ = lax.scan(step, weights, batches)
    return jax.tree.map(jnp.subtract, weights, local)

  def mean_by_scan(weights, batches):
    def add(total, client):
      return jax.tree.map(jnp.add, total, change_of(weights, client)), None

    zeros = jax.tree.map(jnp.zeros_like, weights)
    total, _ = lax.scan(add, zeros, batches)
    return jax.tree.map(lambda t: t / len(batches[0]), total)

  def mean_by_vmap(weights, batches):
    changes = jax.vmap(change_of, (None, 0))(weights, batches)
    return jax.tree.map(lambda change: change.mean(0), changes)

  mean_change = {'scan': mean_by_scan, 'vmap': mean_by_vmap}[variant]

  @functools.partial(jax.jit, donate_argnums=(0, 1))
  def run_round(weights, state, batches):
    updates, state = optimizer.update(
        mean_change(weights, batches), state, weights
    )
    return optax.apply_updates(weights, updates), state

  return run_round


def main(path: str, variant: str) -> None:
  """Trains the federation of a file."""
  federation, stopwatch = Federation(path), Stopwatch()
  clients = federation.clients()
  rng = np.random.default_rng(0)
  weights, loss = jax_models.build_model(federation)
  before = [np.array(leaf) for leaf in jax.tree.leaves(weights)]
  optimizer = _build_server_optimizer(federation)
  state = optimizer.init(weights)
  run_round = build_round(federation, loss, optimizer, variant)
  shape = (federation.cohorts.shape[1], federation.num_steps)

  def batch_up(arrays):
    stacked = np.stack(arrays)
    return stacked.reshape(*shape, federation.batch_size, *stacked.shape[2:])

  for number, cohort in enumerate(federation.cohorts):
    with stopwatch.round():
      order = [rng.permutation(federation.examples_per_client) for _ in cohort]
      x, y = (
          batch_up([clients[c][place][o] for c, o in zip(cohort, order)])
          for place in (0, 1)
      )
      keys = jax.random.split(jax.random.PRNGKey(number), shape)
      weights, state = run_round(weights, state, (x, y, keys))
      jax.block_until_ready(weights)
  stopwatch.report(
      federation,
      'JAX, one program',
      jax.__version__,
      variant,
      before,
      [np.asarray(leaf) for leaf in jax.tree.leaves(weights)],
  )


if __name__ == '__main__':
  main(*sys.argv[1:])
