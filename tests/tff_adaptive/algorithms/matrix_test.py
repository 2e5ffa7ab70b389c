# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests client rules with all server rules."""

import functools

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from experiments import registry
from experiments.conformance import problems
from tests.tff_adaptive import testing
from tests.tff_adaptive.optimizers import rules_testing
from tests.tff_adaptive.runtime import compiled_testing
from tff_adaptive import algorithms
from tff_adaptive import optimizers
from tff_adaptive import runtime
from tff_adaptive.optimizers import optimizer as optimizer_lib

_NUM_CLIENTS = 2
_CLIENTS = {
    'sgdm': functools.partial(optimizers.build_sgd, momentum=0.9),
    **rules_testing.builders(registry.CLIENT_OPTIMIZER),
    # With their defaults these move nothing in two steps.
    'dog': functools.partial(optimizers.build_dog, relative_distance=0.01),
    'dowg': functools.partial(
        optimizers.build_dowg, initial_squared_distance=0.01
    ),
    **{
        build.__name__[len('build_') :]: functools.partial(
            build, initial_distance=0.01
        )
        for build in (
            optimizers.build_d_adaptation_adam,
            optimizers.build_d_adaptation_sgd,
            optimizers.build_prodigy,
        )
    },
    'mechanic_adam': functools.partial(
        optimizers.build_mechanic_adam, initial_scale=0.01
    ),
    'mechanic_sgd': functools.partial(
        optimizers.build_mechanic_sgd, initial_scale=0.01
    ),
    'prodigy_kept': functools.partial(
        optimizers.build_prodigy, initial_distance=0.01, carry_state=True
    ),
    # Its duals also correct the server's step.
    'fedspeed_all': functools.partial(
        optimizers.build_fedspeed, _NUM_CLIENTS, dual_mean='all'
    ),
}
_LOSS_TERMS = tuple(registry.ROWS[registry.LOSS_TERM])
_SERVERS = {
    'line_search_step_unit': functools.partial(
        optimizers.build_line_search_step, 'unit'
    ),
    **rules_testing.builders(registry.SERVER_OPTIMIZER),
}


@functools.cache
def _problem():
  """Returns two clients of six examples, for a network with 39 weights."""
  generator = np.random.default_rng(0)
  clients = [
      dict(X=generator.normal(size=[6, 5]), y=generator.integers(0, 3, 6))
      for _ in range(_NUM_CLIENTS)
  ]
  x0 = 0.3 * generator.normal(size=39)
  return dict(name='mlp', x0=x0, clients=clients)


def _build_loss_term(name):
  row = registry.ROWS[registry.LOSS_TERM][name]
  if row.builder is None:
    return None
  representation_fn = problems.create_representation_fn(_problem())
  supplied = {'representation_fn': representation_fn}
  return registry.resolve(row.builder)(
      **{name: supplied[name] for name in row.supplied}
  )


@functools.cache
def _has_step_size(client):
  """Returns whether a step is a size that is reported, times the gradient."""
  optimizer = _CLIENTS[client]()
  weights = tf.constant([1.0, 2.0])
  state = optimizer.initialize(tf.TensorSpec([2]))
  _, (first, second) = rules_testing.next_step(
      optimizer, state, weights, lambda at: at
  )
  is_along = np.isclose(second, 2.0 * first)
  report = optimizer_lib.step_report(optimizer, state)
  return is_along and optimizer_lib.STEP_SIZE_KEY in report


def _build(client, loss_term, server_optimizer):
  weightings = tff.learning.ClientWeighting
  return algorithms.build_fed_opt(
      problems.create_functional_model(_problem()),
      _CLIENTS[client](),
      server_optimizer,
      loss_term=_build_loss_term(loss_term),
      client_weighting=(
          weightings.UNIFORM
          if client in ('feddyn', 'fedspeed_all')
          else weightings.NUM_EXAMPLES
      ),
  )


def _why_not(client, loss_term, server):
  """Returns the error message of a pair that is refused, or `None`."""
  if client == 'mime' and loss_term == 'moon':
    return 'without what they keep, such as previous models.*build_mimelite'
  if server == 'line_search_step' and not _has_step_size(client):
    return "clients' step sizes.*has none"
  if server == 'fednova' and client not in ('sgd', 'sgdm'):
    return 'FedNova needs the number of plain steps'
  if server == 'fedhyper_server_local':
    optimizer = _CLIENTS[client]()
    hparams = optimizer.get_hparams(optimizer.initialize(tf.TensorSpec([])))
    if 'learning_rate' not in hparams:
      return 'no learning rate to scale.*server rule'
  return None


@functools.cache
def _is_federated(client):
  return isinstance(_CLIENTS[client](), optimizers.FederatedOptimizer)


@functools.cache
def _reads_reports(server):
  return isinstance(_SERVERS[server](), optimizers.ServerOptimizer)


def _meet_in_a_round(client, server):
  """Returns whether a round has more of a pair than of each of its halves.

  A TFF optimizer at the server sees the mean update, whoever made it; one at
  the clients sends nothing else. A third of such pairs is built, and rounds of
  them are run with one partner.
  """
  return (
      client == next(iter(_CLIENTS))
      or _is_federated(client)
      or _reads_reports(server)
  )


def _pairs():
  """Yields cells of a client rule, a loss term and a server rule."""
  for i, client in enumerate(_CLIENTS):
    for j, server in enumerate(_SERVERS):
      if (
          (i - j) % 3 == 0
          or _meet_in_a_round(client, server)
          or server == 'fedhyper_server_local'  # It refuses some.
      ):
        yield client, _LOSS_TERMS[(i + j) % len(_LOSS_TERMS)], server


_PAIRS = [('_'.join(pair), *pair) for pair in _pairs()]


def _cohort(process):
  """Returns both clients, in two batches of three examples each."""
  batches = problems.create_client_batches(
      _problem(), batch_size=3, num_epochs=1
  )
  return testing.with_ids(process, batches)


class MatrixTest(tf.test.TestCase, parameterized.TestCase):

  def _run_round(self, process, client):
    """Returns the state after a round, of which no client was left out."""
    # Mime has two exchanges in a round, which only TFF's own runtime can run.
    is_mime = client == 'mime'
    with runtime.NativeContext() if is_mime else compiled_testing.installed(1):
      output = process.next(process.initialize(), _cohort(process))
    measured = output.metrics['client_work']['clients']
    self.assertEqual(measured['num_rejected'], 0)
    self.assertEqual(measured['num_clients'], _NUM_CLIENTS)
    self.assertTrue(np.isfinite(measured['loss']))
    self.assertEqual(output.metrics['finalizer']['update_non_finite'], 0)
    return output.state

  def _assert_moved(self, weights):
    flat = problems.flatten_weights(weights)
    self.assertAllEqual(np.isfinite(flat), np.ones(39, bool))
    # A client's first small step may be the server's step size, too.
    self.assertGreater(np.abs(flat - _problem()['x0']).max(), 1e-8)

  @parameterized.named_parameters(*_PAIRS)
  @pytest.mark.sample(1)
  def test_pair_builds_and_runs_or_is_refused(self, client, loss_term, server):
    server_optimizer = _SERVERS[server]()
    reason = _why_not(client, loss_term, server)
    if reason is not None:
      with self.assertRaisesRegex(ValueError, reason):
        _build(client, loss_term, server_optimizer)
      return
    process = _build(client, loss_term, server_optimizer)
    if _meet_in_a_round(client, server):
      state = self._run_round(process, client)
      self._assert_moved(testing.trainable(state))
