# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of centralized training.

The oracle is a plain loop of the same optimizer over the same batches of a
least squares problem, in float64, without rounds.
"""

from collections.abc import Callable
import functools
from typing import Any
from unittest import mock

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from experiments import registry
from tests.tff_adaptive import testing
from tests.tff_adaptive.optimizers import rules_testing
from tests.tff_adaptive.runtime import compiled_testing
from tff_adaptive import algorithms
from tff_adaptive import optimizers
from tff_adaptive.algorithms import fed_opt
from tff_adaptive.optimizers import schedules

_OPTIMIZERS: dict[str, Callable[..., Any]] = {
    name: build
    for name, build in rules_testing.builders(registry.CLIENT_OPTIMIZER).items()
    if not isinstance(build(), optimizers.FederatedOptimizer)
}
_OPTIMIZERS |= {
    'adam': functools.partial(optimizers.build_adam, 0.05),
    'sgdm': functools.partial(optimizers.build_sgd, momentum=0.9),
    **{
        # With their defaults these hardly move in six steps.
        name: functools.partial(_OPTIMIZERS[name], initial_scale=0.01)
        for name in ('mechanic_adam', 'mechanic_sgd')
    },
}


@functools.cache
def _build(name, **options):
  model = testing.least_squares_model(np.float64, num_outputs=1)
  return algorithms.build_centralized(model, _OPTIMIZERS[name](), **options)


def _rounds(num_rounds=3, num_batches=2):
  """Returns batches of 4 examples, for each round."""
  generator = np.random.default_rng(0)
  return [
      [
          (generator.normal(size=[4, 3]), generator.normal(size=[4, 1]))
          for _ in range(num_batches)
      ]
      for _ in range(num_rounds)
  ]


def _run(process, rounds):
  """Returns the output of every round, on the compiled runtime."""
  outputs = []
  with compiled_testing.installed(1):
    state = process.initialize()
    for batches in rounds:
      outputs.append(process.next(state, [batches]))
      state = outputs[-1].state
  return outputs


def _run_without_rounds(optimizer, weights, rounds):
  """Returns the weights and the optimizer's state after all batches."""
  weights = tuple(map(tf.constant, weights))
  state = optimizer.initialize(
      tuple(tf.TensorSpec(w.shape, w.dtype) for w in weights)
  )
  for x, y in sum(rounds, []):

    def value_and_grad(point, x=x, y=y):
      with tf.GradientTape() as tape:
        tape.watch(point)
        kernel, bias = point
        loss = tf.reduce_mean(tf.square(x @ kernel + bias - y))
      return loss, tape.gradient(loss, point)

    value, gradients = value_and_grad(weights)
    extra_args = {}
    if getattr(optimizer, 'takes_extra_args', False):
      extra_args = dict(value=value, value_and_grad_fn=value_and_grad)
    state, weights = optimizer.next(state, weights, gradients, **extra_args)
  return weights, state


class CentralizedTest(compiled_testing.TestCase):

  @parameterized.parameters(*_OPTIMIZERS)
  @pytest.mark.sample(1)
  def test_optimizer_is_that_of_a_plain_loop(self, name):
    rounds = _rounds()
    process = _build(name)
    outputs = _run(process, rounds)
    state = outputs[-1].state
    initial = testing.trainable(process.initialize())
    weights, optimizer_state = _run_without_rounds(
        _OPTIMIZERS[name](), initial, rounds
    )
    self.assertNotAllClose(weights[0], initial[0])
    self.assertAllClose(testing.trainable(state), weights, rtol=1e-6)
    for part, value in state.client_work['shared'].items():
      self.assertAllClose(value, optimizer_state[part], rtol=1e-6)
    measured = outputs[-1].metrics['client_work']['clients']
    self.assertEqual(measured['num_clients'], 1)
    self.assertEqual(measured['num_examples'], 8)
    self.assertEqual(measured['num_steps'], 2)
    self.assertEqual(state.client_work['round_num'], 3)

  @pytest.mark.slow
  def test_round_that_is_not_finite_leaves_model_and_state(self):
    first, bad, last = _rounds()
    bad[1][0][2, 1] = np.nan
    outputs = _run(_build('adam'), [first, bad, last])
    before, after = outputs[0].state, outputs[1].state
    self.assert_same_bits(testing.trainable(after), testing.trainable(before))
    self.assert_same_bits(
        after.client_work['shared'], before.client_work['shared']
    )
    metrics = outputs[1].metrics
    self.assertEqual(metrics['finalizer']['update_non_finite'], 1)
    self.assertEqual(metrics['client_work']['clients']['num_rejected'], 1)
    # Training continues as if that round had not been.
    without = _run(_build('adam'), [first, last])
    self.assert_same_bits(
        testing.trainable(outputs[2].state), testing.trainable(without[1].state)
    )

  @pytest.mark.slow
  def test_schedule_holds_by_round_and_keeps_the_momentum(self):
    schedule = schedules.build_table({0: 1.0, 1: 0.0})
    process = _build('sgdm', client_schedule=schedule)
    states = [output.state for output in _run(process, _rounds())]
    first, *later = map(testing.trainable, states)
    for weights in later:
      self.assert_same_bits(weights, first)
    accumulators = [
        s.client_work['inner']['shared']['accumulator'] for s in states
    ]
    self.assertNotAllClose(accumulators[0][0], accumulators[1][0])

  def test_options_reach_the_clients_work(self):
    options = dict(
        clip_norm=0.5,
        weight_decay=0.1,
        trace_steps=True,
        client_schedule=schedules.build_table({0: 1.0}),
        loop_implementation=tff.learning.LoopImplementation.DATASET_ITERATOR,
    )
    with mock.patch.object(fed_opt, 'build_fed_opt') as build:
      _build('adam', **options)
    self.assertEqual(
        {**build.call_args.kwargs, **options}, build.call_args.kwargs
    )
