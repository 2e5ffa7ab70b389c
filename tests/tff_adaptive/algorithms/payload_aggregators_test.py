# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of aggregators on what clients send besides the change of the model."""

import functools

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff
import tensorflow_privacy as tfp

from tests.tff_adaptive import payloads_testing
from tests.tff_adaptive import testing
from tests.tff_adaptive.runtime import compiled_testing
from tff_adaptive import algorithms
from tff_adaptive import optimizers
from tff_adaptive.simulation import metrics_writers

_UNIFORM = tff.learning.ClientWeighting.UNIFORM
_PAYLOADS = {
    'fedcada': ('first_moment', 'second_moment', 'squared_norm'),
    'fedli_lu': ('mean_loss',),
}


def _private(noise_multiplier, clip):
  return tff.aggregators.DifferentiallyPrivateFactory.gaussian_fixed(
      noise_multiplier, clients_per_round=2.0, clip=clip
  )


def _secure():
  return tff.aggregators.MeanFactory(
      tff.aggregators.SecureSumFactory(100.0),
      tff.aggregators.SecureSumFactory(100.0, 0.0),
  )


def _clipping(norm):
  return tff.aggregators.clipping_factory(norm, tff.aggregators.MeanFactory())


def _build(algorithm, **kwargs):
  """Builds FedCAda's rule with FedExP, or FedLi-LU; both unweighted."""
  if algorithm == 'fedcada':
    client = optimizers.build_fedcada_adam(0.01)
    server = optimizers.build_fedexp()
  else:
    client = optimizers.build_sgd(0.1)
    server = optimizers.build_frank_wolfe(learning_rate=3.0, momentum=0.5)
    # Losses below 1, where the clipping of TFF's aggregators starts.
    kwargs['loss_term'] = lambda *_: tf.constant(-1.3)
  kwargs.setdefault('client_weighting', _UNIFORM)
  return algorithms.build_fed_opt(
      testing.functional_model(), client, server, **kwargs
  )


def _run_round(algorithm, **kwargs):
  """Returns the state after a round, and the server's measurements."""
  with compiled_testing.installed(1):
    process = _build(algorithm, **kwargs)
    output = process.next(process.initialize(), testing.clients([10, 7]))
  return output.state, output.metrics['finalizer']


@functools.cache
def _plain(algorithm):
  """Returns the same without aggregators."""
  return _run_round(algorithm)


def _moment(state, name):
  """Returns a moment that the server shares, a flat array."""
  parts = state.client_work['shared'][f'{name}_moment']
  return np.concatenate([part.ravel() for part in parts])


@pytest.mark.filterwarnings('ignore:Secure sums are computed in the clear')
class PayloadAggregatorsTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.product(
      algorithm=list(_PAYLOADS),
      build=[
          lambda: _private(1e-6, 100.0),
          _secure,
          lambda: tff.learning.robust_aggregator(),
          lambda: _clipping(100.0),
      ],
  )
  @pytest.mark.slow
  def test_aggregator_of_everything_sent(self, algorithm, build):
    # None of them has anything to do but quantization and very little noise.
    state, measured = _run_round(
        algorithm,
        model_aggregator=build(),
        payload_aggregators={n: build() for n in _PAYLOADS[algorithm]},
    )
    plain_state, plain_measured = _plain(algorithm)
    self.assertAllClose(
        testing.trainable(state), testing.trainable(plain_state), atol=2e-3
    )
    for name in measured:
      self.assertAllClose(measured[name], plain_measured[name], rtol=2e-2)
    shared, plain_shared = (
        tf.nest.flatten(s.client_work.get('shared', ()))
        for s in (state, plain_state)
    )
    for part, plain_part in zip(shared, plain_shared, strict=True):
      self.assertAllClose(part, plain_part, atol=2e-3)

  @parameterized.parameters(
      name
      for name, (_, _, *payloads) in payloads_testing.RULES.items()
      if any(payloads)
  )
  @pytest.mark.slow
  def test_secure_sums_of_everything_sent(self, name):
    client, server, shared, reports = payloads_testing.RULES[name]
    sent = (*shared, *reports)
    secure = _secure()
    processes = [
        algorithms.build_fed_opt(
            testing.functional_model(),
            client(),
            server(),
            client_weighting=_UNIFORM,
            **kwargs,
        )
        for kwargs in (
            {},
            dict(model_aggregator=secure),
            dict(
                model_aggregator=secure,
                payload_aggregators={payload: secure for payload in sent},
            ),
        )
    ]
    # The steps of the secure sums are finer than those of float32, so that the
    # numbers of the states may be equal.
    plain, model_only, everything = (
        str(process.next.to_building_block()).count('federated_secure_sum')
        for process in processes
    )
    self.assertEqual(plain, 0)
    self.assertEqual(everything, model_only * (1 + len(sent)))
    states = []
    for process in processes[::2]:
      clients = testing.with_ids(process, testing.clients([10, 7]))
      with compiled_testing.installed(1):
        states.append(process.next(process.initialize(), clients).state)
    plain, summed = states
    self.assertAllClose(
        testing.trainable(plain), testing.trainable(summed), atol=5e-5
    )
    if shared:
      self.assertAllClose(
          *(tf.nest.flatten(s.client_work['shared']) for s in states), atol=5e-5
      )

  @pytest.mark.slow
  def test_aggregator_of_one_payload_leaves_the_others(self):
    state, _ = _run_round(
        'fedcada', payload_aggregators={'second_moment': _clipping(1e-5)}
    )
    plain_state, _ = _plain('fedcada')
    self.assertGreater(np.linalg.norm(_moment(plain_state, 'second')), 1e-4)
    self.assertLess(np.linalg.norm(_moment(state, 'second')), 1.001e-5)
    self.assertAllEqual(_moment(state, 'first'), _moment(plain_state, 'first'))
    for w, v in zip(testing.trainable(state), testing.trainable(plain_state)):
      self.assertAllEqual(w, v)

  @pytest.mark.slow
  def test_noise_that_makes_squares_negative_rejects_nobody(self):
    cohort = testing.clients([10, 7])
    with compiled_testing.installed(1):
      process = _build(
          'fedcada', payload_aggregators={'second_moment': _private(1.0, 1.0)}
      )
      noisy = process.next(process.initialize(), cohort).state
      self.assertLess(_moment(noisy, 'second').min(), -0.1)
      output = process.next(noisy, cohort)
    measured = output.metrics['client_work']['clients']
    self.assertEqual(measured['num_rejected'], 0)
    for w, v in zip(testing.trainable(noisy), testing.trainable(output.state)):
      self.assertNotAllClose(w, v)

  @pytest.mark.slow
  def test_clipped_report_reaches_the_server_rule(self):
    _, measured = _run_round(
        'fedli_lu', payload_aggregators={'mean_loss': _clipping(0.05)}
    )
    _, plain_measured = _plain('fedli_lu')
    self.assertGreater(plain_measured['objective'], 0.4)
    self.assertAllClose(measured['objective'], 0.05)

  def test_aggregators_of_shared_parts_are_measured(self):
    factory = tff.aggregators.clipping_factory(
        1e-5,
        tff.aggregators.MeanFactory(),
        clipped_count_sum_factory=tff.aggregators.SumFactory(),
    )
    process = _build('fedcada', payload_aggregators={'second_moment': factory})
    with compiled_testing.installed(1):
      output = process.next(process.initialize(), testing.clients([10, 7]))
    measured = output.metrics['client_work']['shared']
    self.assertEqual(list(measured), ['first_moment', 'second_moment'])
    columns = metrics_writers.flatten_metrics(output.metrics)
    self.assertEqual(columns['shared/second_moment/clipped_count'], 2)


def _build_with_sum(aggregator):
  """Builds a process whose clients report ones, which are summed."""
  server = optimizers.build_frank_wolfe()
  server.client_reports = {
      'mean_loss': optimizers.Report(reduction='sum'),
  }
  return algorithms.build_fed_opt(
      testing.functional_model(),
      optimizers.build_sgd(0.1),
      server,
      client_weighting=_UNIFORM,
      payload_aggregators={'mean_loss': aggregator},
  )


class PrivateSumTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.parameters(
      lambda: _private(1.0, 1.0),
      lambda: tff.learning.dp_aggregator(0.1, 10.0),
  )
  def test_private_mean_for_a_sum_is_refused(self, build):
    with self.assertRaisesRegex(ValueError, "'mean_loss'.* a mean.*`priv"):
      _build_with_sum(build())

  def test_private_sum_is_taken_as_it_is(self):
    process = _build_with_sum(
        tff.aggregators.DifferentiallyPrivateFactory(
            tfp.GaussianSumQuery(l2_norm_clip=1.0, stddev=0.0)
        )
    )
    with compiled_testing.installed(1):
      output = process.next(process.initialize(), testing.clients([10, 7, 3]))
    self.assertEqual(output.metrics['finalizer']['objective'], 3.0)


class BuildErrorsTest(tf.test.TestCase, parameterized.TestCase):

  def test_a_rule_says_its_weighting(self):
    def build(rule):
      return algorithms.build_fed_opt(
          testing.functional_model(),
          rule,
          model_aggregator=tff.aggregators.UnweightedMeanFactory(),
      )

    self.assertIsNotNone(build(optimizers.build_scaffold_sgd(4)))
    with self.assertRaisesRegex(ValueError, 'ignore the number of examples'):
      build(optimizers.build_sgd(0.1))
