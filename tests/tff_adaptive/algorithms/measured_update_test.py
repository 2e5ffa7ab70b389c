# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the finalizer that measures the update."""

import collections

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import optimizers
from tff_adaptive.algorithms import measured_update
from tff_adaptive.optimizers import server_optimizer


class _ReadsAnother(optimizers.ServerOptimizer):
  """A rule that reads a report for which it did not ask."""

  client_reports = optimizers.build_frank_wolfe().client_reports

  def initialize(self, specs):
    return collections.OrderedDict()

  def next(self, state, weights, gradients, *, reports):
    return state, reports['squared_norm']


class UnknownReportTest(tf.test.TestCase):

  def test_a_report_that_was_not_asked_for_is_named(self):
    weights_type = tff.to_type(
        tff.learning.models.ModelWeights((np.float32,), ())
    )
    with self.assertRaisesRegex(ValueError, "'squared_norm'.*'mean_loss'"):
      measured_update.build_measured_update_finalizer(
          _ReadsAnother(), weights_type
      )


class WeightsTypeTest(tf.test.TestCase):

  def test_another_type_is_refused(self):
    weights = tff.learning.models.ModelWeights((np.float32,), ())
    for other in (
        tff.TensorType(np.float32),
        tff.FederatedType(tff.to_type(weights), tff.SERVER),
        weights,
    ):
      with self.assertRaisesRegex(TypeError, 'the unplaced `tff.Type`.*found'):
        measured_update.build_measured_update_finalizer(
            optimizers.build_fedavg(), other
        )


@pytest.mark.usefixtures('native_runtime')
class MeasuredUpdateTest(tf.test.TestCase):

  def setUp(self):
    super().setUp()
    self._weights = tff.learning.models.ModelWeights(
        (np.float32(1.0), np.ones(2, np.float32)), (np.float32(7.0),)
    )
    self._process = measured_update.build_measured_update_finalizer(
        optimizers.build_sgd(0.5, 0.9),
        tff.to_type(
            tff.learning.models.ModelWeights(
                (np.float32, (np.float32, (2,))), (np.float32,)
            )
        ),
    )

  def test_takes_a_step_and_measures_its_norm(self):
    update = (np.float32(3.0), np.array([0.0, 4.0], np.float32))
    output = self._process.next(
        self._process.initialize(), self._weights, update
    )
    self.assertAllClose(output.result.trainable[0], -0.5)
    self.assertAllClose(output.result.trainable[1], [1.0, -1.0])
    self.assertAllClose(output.result.non_trainable[0], 7.0)
    self.assertAllClose(output.measurements['update_norm'], 5.0)
    self.assertEqual(output.measurements['update_non_finite'], 0)

  def test_update_that_is_not_finite_changes_nothing(self):
    state = self._process.next(
        self._process.initialize(),
        self._weights,
        (np.float32(1.0), np.ones(2, np.float32)),
    ).state
    update = (np.float32(1.0), np.array([np.nan, 0.0], np.float32))
    output = self._process.next(state, self._weights, update)
    self.assertAllEqual(output.result.trainable[1], [1.0, 1.0])
    for before, after in zip(
        tf.nest.flatten(state), tf.nest.flatten(output.state)
    ):
      self.assertAllEqual(before, after)
    self.assertEqual(output.measurements['update_non_finite'], 1)
    self.assertEqual(output.measurements['update_norm'], 0.0)


class _Smallest(tff.learning.optimizers.Optimizer):
  """A rule that remembers the smallest entry so far."""

  def initialize(self, specs):
    return collections.OrderedDict(
        smallest=tf.constant(float('inf')), largest=tf.constant(float('inf'))
    )

  def next(self, state, weights, gradients):
    smallest = tf.reduce_min(gradients[0])
    return collections.OrderedDict(state, smallest=smallest), weights


@pytest.mark.usefixtures('native_runtime')
class OverflowTest(tf.test.TestCase, parameterized.TestCase):

  def _next(self, optimizer, update):
    process = measured_update.build_measured_update_finalizer(
        optimizer,
        tff.to_type(
            tff.learning.models.ModelWeights(((np.float32, (2,)),), ())
        ),
    )
    weights = tff.learning.models.ModelWeights((np.ones(2, np.float32),), ())
    state = process.initialize()
    return state, process.next(state, weights, (np.float32(update),))

  @parameterized.named_parameters(
      ('fedadagrad', optimizers.build_fedadagrad),
      ('fedadam', optimizers.build_fedadam),
      ('fedyogi', optimizers.build_fedyogi),
      ('fedams', optimizers.build_fedams),
  )
  def test_update_whose_square_overflows_changes_nothing(self, build):
    state, output = self._next(build(), [1e20, 1.0])
    tf.nest.map_structure(self.assertAllEqual, state, output.state)
    self.assertAllEqual(output.result.trainable[0], [1.0, 1.0])
    self.assertEqual(output.measurements['update_non_finite'], 1)

  def test_values_infinite_from_the_start_hinder_nothing(self):
    _, output = self._next(_Smallest(), [2.0, 1.0])
    self.assertEqual(output.state['smallest'], 1.0)
    self.assertEqual(output.measurements['update_non_finite'], 0)

  def test_without_squares_a_long_update_is_taken(self):
    _, output = self._next(optimizers.build_sgd(1.0), [1e20, 1.0])
    self.assertEqual(output.measurements['update_non_finite'], 0)
    self.assertAllClose(output.result.trainable[0], [-1e20, 0.0])

  def test_step_with_which_weights_overflow_is_not_taken(self):
    _, output = self._next(optimizers.build_sgd(1e30), [1e20, 1.0])
    self.assertEqual(output.measurements['update_non_finite'], 1)
    self.assertAllEqual(output.result.trainable[0], [1.0, 1.0])


@pytest.mark.usefixtures('native_runtime')
class ReportsTest(tf.test.TestCase, parameterized.TestCase):

  def setUp(self):
    super().setUp()
    self._weights = tff.learning.models.ModelWeights(
        (np.ones(2, np.float32),), (np.float32(7.0),)
    )
    self._process = measured_update.build_measured_update_finalizer(
        optimizers.build_frank_wolfe(momentum=0.5),
        tff.to_type(
            tff.learning.models.ModelWeights(
                ((np.float32, (2,)),), (np.float32,)
            )
        ),
    )

  def _next(self, state, change, loss):
    update = collections.OrderedDict(
        change=(np.array(change, np.float32),),
        reports=collections.OrderedDict(mean_loss=np.float32(loss)),
    )
    return self._process.next(state, self._weights, update)

  def test_optimizer_sees_the_reports_and_is_measured(self):
    output = self._next(self._process.initialize(), [3.0, 4.0], 5.0)
    # gamma is 5 / 25, and half of the same step is the velocity's.
    self.assertAllClose(output.result.trainable[0], [0.1, -0.2], atol=1e-5)
    self.assertEqual(output.result.non_trainable[0], 7.0)
    self.assertAllClose(
        output.measurements,
        dict(update_non_finite=0, update_norm=5.0, gamma=0.2, objective=5.0),
        atol=1e-5,
    )

  @parameterized.named_parameters(
      ('change', [np.inf, 0.0], 1.0), ('report', [1.0, 0.0], np.nan)
  )
  def test_values_that_are_not_finite_change_nothing(self, change, loss):
    state = self._next(self._process.initialize(), [3.0, 4.0], 5.0).state
    output = self._next(state, change, loss)
    self.assertAllEqual(output.result.trainable[0], [1.0, 1.0])
    tf.nest.map_structure(self.assertAllEqual, state, output.state)
    self.assertEqual(output.measurements['update_non_finite'], 1)
    self.assertEqual(output.measurements['update_norm'], 0.0)
    # The rule reports before any step.
    self.assertTrue(np.isnan(output.measurements['gamma']))

  @parameterized.parameters(('squared_norm',), ({'squared_norm': 'mean'},))
  def test_reports_that_are_none_are_refused(self, client_reports):
    rule = optimizers.build_frank_wolfe()
    rule.client_reports = client_reports
    with self.assertRaisesRegex(TypeError, 'must map names to .*Report'):
      server_optimizer.to_server_optimizer(rule)

  def test_report_of_a_name_that_is_measured_is_refused(self):
    rule = optimizers.build_fedexp()
    rule.report = lambda state: {'update_norm': state['server_step_size']}
    weights_type = self._process.next.type_signature.parameter[1].member
    with self.assertRaisesRegex(ValueError, "FedExP.*'update_norm'.*another"):
      measured_update.build_measured_update_finalizer(rule, weights_type)

  def test_hyperparameters_pass_through(self):
    state = self._process.initialize()
    hparams = self._process.get_hparams(state)
    self.assertEqual(
        list(hparams), ['learning_rate', 'weight_decay', 'momentum', 'epsilon']
    )
    hparams['learning_rate'] = np.float32(0.0)
    output = self._next(
        self._process.set_hparams(state, hparams), [3.0, 4.0], 5.0
    )
    self.assertAllEqual(output.result.trainable[0], [1.0, 1.0])
