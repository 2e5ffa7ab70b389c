# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what a client reports, sends and keeps, in TensorFlow alone."""

import collections
import functools

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf

from tests.tff_adaptive import testing
from tests.tff_adaptive.client_works import training_testing
from tff_adaptive import optimizers
from tff_adaptive.client_works import local_training
from tff_adaptive.optimizers import optimizer as optimizer_lib

_RULES = (
    optimizers.build_fedexp(),
    optimizers.build_fedexprox_stops(),
    optimizers.build_fednova(tau_eff='steps'),
    optimizers.build_line_search_step('max'),
    optimizers.build_frank_wolfe(objective_at='local_mean'),
    optimizers.build_frank_wolfe(objective_at='received_model'),
    optimizers.build_frank_wolfe(objective_at='last'),
)
_REPORTS = {
    **{k: v for rule in _RULES for k, v in rule.client_reports.items()},
    'num_clients': optimizers.Report(reduction='count'),
}
_Start = local_training.RoundStart


def _reports(*names):
  return {name: _REPORTS[name] for name in names}


def _zeros():
  """Returns a structure like the weights of the classifier."""
  kernel = np.zeros([testing.NUM_FEATURES, testing.NUM_CLASSES], np.float32)
  return kernel, np.zeros([testing.NUM_CLASSES], np.float32)


def _norm(structure):
  return tf.linalg.global_norm(tf.nest.flatten(structure)).numpy()


class _Sends(optimizer_lib.HparamsInState, optimizers.FederatedOptimizer):
  """A rule that does not move, and sends and keeps a number."""

  def __init__(self, sent=1.0, kept=1.0):
    super().__init__({'learning_rate': 0.1})
    self._sent = sent
    self._kept = kept

  def initialize(self, specs):
    return collections.OrderedDict(
        learning_rate=0.1, round_num=0, shared=0.0, kept=0.0
    )

  def initialize_shared(self, specs):
    return collections.OrderedDict(number=tf.zeros([]))

  def initialize_kept(self, specs):
    return collections.OrderedDict(number=tf.zeros([]))

  def start_round(self, state, shared, kept, round_num):
    return collections.OrderedDict(
        state, round_num=round_num, shared=shared['number'], kept=kept['number']
    )

  def finish_round(self, state):
    return (
        collections.OrderedDict(number=state['shared'] + self._sent),
        collections.OrderedDict(number=state['kept'] + self._kept),
    )

  def next(
      self, state, weights, gradients, *, value=None, value_and_grad_fn=None
  ):
    return state, weights

  def report(self, state):
    return collections.OrderedDict(round_num=state['round_num'])


class _Skips(_Sends):
  """A rule that skips the first batch, and reports a scalar of the others."""

  def next(
      self, state, weights, gradients, *, value=None, value_and_grad_fn=None
  ):
    next_state = collections.OrderedDict(state, kept=state['kept'] + 1.0)
    return next_state, weights

  def report(self, state):
    is_step = tf.cast(state['kept'] > 1.0, tf.float32)
    return collections.OrderedDict(
        gradient_evaluations=is_step, size=is_step * (1.0 + state['kept'])
    )


def _start(shared=0.0, kept=0.0, round_num=0):
  part = lambda value: collections.OrderedDict(number=value)
  return _Start(part(shared), {'optimizer': part(kept)}, round_num)


class ReportsTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.parameters('functional', 'variable')
  @pytest.mark.sample(1)
  def test_equal_a_plain_loop(self, kind):
    batches = testing.client(10, seed=0)
    result = training_testing.train(
        testing.either_model(kind),
        optimizers.build_sgd(0.5),
        batches,
        reports=_reports(
            # The other two are tested with FedExProx and FedNova.
            *_REPORTS.keys()
            - {'final_loss', 'normalizer'}
        ),
    )
    update, losses = training_testing.plain_loop(batches, [0.5] * 3)
    _, received = training_testing.plain_loop(batches, [0.0] * 3)
    self.assertAllClose(
        result.reports,
        {
            'squared_norm': sum(np.sum(u**2) for u in update),
            # Batches count the same, also the short one.
            'mean_loss': np.mean(losses),
            'received_model_loss': np.mean(received),
            'last_loss': losses[-1],
            'last_step_size': 0.5,
            'num_steps': 3,
            'num_clients': 1,
        },
    )
    # The received model's loss leaves no trace: neither examples nor costs.
    sums = result.statistics['sum']
    self.assertEqual(sums['num_gradient_evaluations'], 3)
    self.assertEqual(result.metrics['accuracy'][1], 10.0)
    self.assertAllClose(result.update, update, atol=1e-6)

  @parameterized.parameters('functional', 'variable')
  @pytest.mark.sample(1)
  def test_received_model_is_evaluated_with_the_mask_of_the_step(self, kind):
    # A model that stands still is the received one in every step.
    result = training_testing.train(
        testing.either_model(kind, dropout=0.5),
        optimizers.build_sgd(0.0),
        testing.client(10, seed=3),
        reports=_reports('mean_loss', 'received_model_loss'),
    )
    self.assertEqual(*result.reports.values())

  def test_received_model_has_the_loss_term_too(self):
    result = training_testing.train(
        testing.functional_model(),
        optimizers.build_sgd(0.1),
        testing.client(10, seed=3),
        loss_term=lambda *_: tf.constant(10.0),
        reports=_reports('received_model_loss'),
    )
    self.assertGreater(result.reports['received_model_loss'], 10.0)

  def test_a_report_of_a_users_own_sees_steps_and_the_end(self):
    batches = testing.client(10, seed=0)
    result = training_testing.train(
        testing.functional_model(),
        optimizers.build_sgd(0.5),
        batches,
        reports={
            'largest_loss': optimizers.Report(
                at_end=lambda end: end.gathered + 0.0 * end.num_steps,
                on_step=lambda before, step: tf.maximum(before, step.loss),
            ),
            'distance': optimizers.Report(
                lambda end: tf.linalg.global_norm(
                    [r - t for r, t in zip(end.received, end.trained)]
                )
            ),
        },
    )
    update, losses = training_testing.plain_loop(batches, [0.5] * 3)
    self.assertAllClose(
        result.reports,
        {'largest_loss': max(losses), 'distance': _norm(update)},
        atol=1e-6,
    )

  def test_a_report_that_the_optimizer_does_not_make_is_named(self):
    with self.assertRaisesRegex(ValueError, "'theta'.*'step_size'"):
      training_testing.train(
          testing.functional_model(),
          optimizers.build_sgd(0.5),
          testing.client(4, seed=0),
          reports={
              'theta': optimizers.Report(
                  lambda end: end.gathered, lambda _, step: step.report['theta']
              )
          },
      )

  @parameterized.parameters(
      (lambda: None, 'None'), (lambda: tf.ones([3]), 'Tensor.*shape=.3,')
  )
  def test_what_is_not_one_number_is_refused(self, build, found):
    train = functools.partial(
        training_testing.train,
        testing.functional_model(),
        optimizers.build_sgd(0.5),
        testing.client(4, seed=0),
    )
    with self.assertRaisesRegex(ValueError, f"'own' must .* one .*{found}"):
      train(reports={'own': optimizers.Report(lambda end: build())})
    with self.assertRaisesRegex(ValueError, 'loss term must be one number'):
      train(loss_term=lambda *_: build())

  @parameterized.parameters('empty', 'not_finite')
  @pytest.mark.sample(1)
  def test_unhealthy_client_reports_zeros(self, client):
    batches = [] if client == 'empty' else testing.unhealthy_client()
    result = training_testing.train(
        testing.functional_model(),
        optimizers.build_sgd(0.5),
        batches,
        reports=_REPORTS,
    )
    self.assertAllEqual(list(result.reports.values()), np.zeros(len(_REPORTS)))

  def test_report_that_overflows_makes_a_client_unhealthy(self):
    # The change is finite in float32, its square is not.
    result = training_testing.train(
        testing.functional_model(),
        optimizers.build_sgd(1e25),
        testing.client(4, seed=0),
        reports=_reports('squared_norm'),
    )
    self.assertFalse(result.is_healthy)
    self.assertAllEqual(_norm(result.update), 0.0)
    self.assertEqual(result.reports['squared_norm'], 0.0)

  @parameterized.parameters('functional', 'variable')
  @pytest.mark.slow
  def test_skipped_step_counts_nowhere(self, kind):
    batches = testing.client(10, seed=0)
    result = training_testing.train(
        testing.either_model(kind),
        optimizers.build_fafed(0.5),
        batches,
        reports=_reports('mean_loss', 'last_loss'),
        start=_Start(
            collections.OrderedDict(momentum=_zeros(), second_moment=_zeros())
        ),
    )
    update, losses = training_testing.plain_loop(batches[:1], [0.5])
    self.assertAllClose(result.update, update, atol=1e-6)
    self.assertAllClose(list(result.reports.values()), losses * 2)
    sums = result.statistics['sum']
    self.assertEqual(sums['num_steps'], 1)
    self.assertEqual(sums['num_gradient_evaluations'], 1)

  def test_skipped_step_is_no_extremum(self):
    result = training_testing.train(
        testing.functional_model(),
        _Skips(),
        testing.client(10, seed=0),
        start=_start(),
    )
    found = [result.statistics[key]['size'] for key in ('sum', 'min', 'max')]
    self.assertAllEqual(found, [3.0 + 4.0, 3.0, 4.0])


class SentAndKeptTest(tf.test.TestCase, parameterized.TestCase):

  def test_a_rule_may_send_and_keep_numbers_of_python(self):
    rule = _Sends()
    part = lambda number: collections.OrderedDict(number=number)
    rule.finish_round = lambda state: (part(2.0), part(3.0))
    result = training_testing.train(
        testing.functional_model(),
        rule,
        testing.client(4, seed=0),
        start=_start(),
    )
    self.assertEqual(result.sent['number'], 2.0)
    self.assertEqual(result.kept['optimizer']['number'], 3.0)

  def test_optimizer_starts_from_what_it_is_given(self):
    result = training_testing.train(
        testing.functional_model(),
        _Sends(sent=2.0, kept=3.0),
        testing.client(4, seed=0),
        start=_start(shared=10.0, kept=20.0, round_num=7),
    )
    self.assertEqual(result.sent['number'], 12.0)
    self.assertEqual(result.kept['optimizer']['number'], 23.0)
    self.assertEqual(result.statistics['max']['round_num'], 7.0)

  @parameterized.parameters(
      dict(sent=np.nan), dict(sent=np.inf), dict(kept=np.nan)
  )
  @pytest.mark.sample(1)
  def test_payload_that_is_not_finite_makes_a_client_unhealthy(self, **numbers):
    result = training_testing.train(
        testing.functional_model(),
        _Sends(**numbers),
        testing.client(4, seed=0),
        start=_start(),
    )
    self.assertFalse(result.is_healthy)
    self.assertEqual(result.sent['number'], 0.0)
    self.assertEqual(result.num_examples, 0)
    self.assertEqual(result.statistics['sum']['num_healthy'], 0)
    self.assertEqual(result.statistics['sum']['num_clients'], 1)
