# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the order of reads of variables."""

import collections
import functools

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tests.tff_adaptive.runtime import equality_testing
from tff_adaptive import runtime
from tff_adaptive.runtime import computations
from tff_adaptive.runtime.graphs import variables


def _computation(assign):
  """Returns the computation that reads a variable that a function assigns."""

  @tff.tensorflow.computation(np.float32)
  def run(value):
    variable = tf.Variable(1.0)
    derived = 2.0 * variable.read_value()

    @tf.function(autograph=False)
    def call():
      return assign(variable, value, derived)

    return call()

  return run


def _assign(variable, value, derived):
  variable.assign(value)
  return tf.identity(derived)


def _assign_in_a_call(variable, value, derived):
  tf.function(lambda: variable.assign(value), autograph=False)()
  return tf.identity(derived)


def _count(variable, value, derived):
  variable.assign(derived + value)
  return variable.read_value()


def _move_after_use(variable, value, derived):
  variable.assign(value)
  variable.assign(derived + 1.0)
  return variable.read_value()


def _count_batches(dataset, variable):
  """Adds a sequence to a variable, and returns its sum."""

  @tf.function
  def add(total, batch):
    variable.assign_add(batch)
    return total + batch

  return dataset.reduce(0.0, add)


def _count_in_a_loop(dataset, variable):
  """Does the same in another kind of loop."""
  stacked = dataset.reduce(
      tf.zeros([0]), lambda rows, row: tf.concat([rows, [row]], 0)
  )

  def add(i, total):
    variable.assign_add(stacked[i])
    return i + 1, total + stacked[i]

  return tf.while_loop(lambda i, _: i < tf.size(stacked), add, (0, 0.0))[1]


@functools.cache
def _normalizing_process():
  """Returns stock averaging of a linear model of normalized features."""
  build = lambda: tf.keras.Sequential(
      [
          tf.keras.layers.InputLayer((2,)),
          tf.keras.layers.Normalization(),
          tf.keras.layers.Dense(2, kernel_initializer='ones'),
      ]
  )
  spec = collections.OrderedDict(
      x=tf.TensorSpec([None, 2], tf.float32), y=tf.TensorSpec([None], tf.int32)
  )
  return tff.learning.algorithms.build_weighted_fed_avg(
      lambda: tff.learning.models.from_keras_model(
          build(), testing.loss(), spec
      ),
      tff.learning.optimizers.build_sgdm(0.0),
  )


@functools.cache
def _context(number):
  return runtime.CompiledContext(num_parallel_clients=number)


class ReadOrderTest(equality_testing.TestCase):

  @parameterized.named_parameters(
      ('in_a_function', _assign, 14.0),
      ('in_a_nested_function', _assign_in_a_call, 14.0),
      # The assigned value depends on the read.
      ('count', _count, 9.0),
      ('later_assignment', _move_after_use, 15.0),
  )
  def test_a_read_follows_the_assignment(self, assign, expected):
    run = _computation(assign)
    with runtime.CompiledContext(strict=True):
      self.assertEqual({float(run(7.0)) for _ in range(20)}, {expected})

  def test_a_gather_is_a_read(self):

    @tff.tensorflow.computation(np.float32)
    def run(value):
      variable = tf.Variable([1.0, 2.0])
      derived = tf.gather(variable, [1])

      @tf.function
      def call():
        variable.assign([0.0, value])
        return tf.identity(derived)

      return call()

    with runtime.CompiledContext(strict=True):
      self.assertAllEqual(run(7.0), [7.0])

  @parameterized.parameters(_count_batches, _count_in_a_loop)
  @pytest.mark.usefixtures('native_runtime')
  def test_a_read_precedes_the_loop_as_in_native_runs(self, count):
    batches = tff.SequenceType(np.float32)

    @tff.tensorflow.computation(batches, np.float32)
    def train(dataset, start):
      variable = tf.Variable(start)
      initialize = tf.compat.v1.global_variables_initializer()
      with tf.control_dependencies([initialize]):
        total = count(dataset, variable)
      return variable, total

    @tff.federated_computation(
        tff.FederatedType(batches, tff.CLIENTS),
        tff.FederatedType(np.float32, tff.SERVER),
    )
    def train_all(datasets, start):
      at_clients = tff.federated_broadcast(start)
      trained = tff.federated_map(train, (datasets, at_clients))
      return tff.federated_sum(trained[0]), tff.federated_sum(trained[1])

    for _ in range(5):
      found = self.assert_equals(train_all, [[1.0, 2.0, 3.0]] * 2, 5.0)
      self.assertEqual(tuple(found), (10.0, 12.0))

  def test_ordered_graphs_do_not_change(self):
    process = tff.learning.algorithms.build_weighted_fed_avg(
        testing.variable_model_fn(batch_norm=True),
        tff.learning.optimizers.build_sgdm(0.1),
    )
    work = computations.get_round_form(process.next).parts['work']
    serialized = computations.read(work)
    before = computations.read(work).graph_def
    variables.read_assigned_values(serialized)
    self.assertEqual(serialized.graph_def, before)

  @parameterized.product(number=[1, 4], data=['batches', 'pipeline'])
  def test_stock_processes_use_the_received_statistics(self, number, data):
    features = np.float32([[1.0, -2.0], [4.0, 3.0], [0.5, 6.0]])
    labels = np.int32([0, 1, 1])
    kernel = np.float32([[1.0, -1.0], [0.5, 2.0]])
    mean, variance = np.float32([1.0, 2.0]), np.float32([4.0, 9.0])
    weights = tff.learning.models.ModelWeights(
        [kernel, np.zeros(2, np.float32)], [mean, variance, np.int64(3)]
    )
    client = [collections.OrderedDict(x=features, y=labels)]
    if data == 'pipeline':
      rows = tf.data.Dataset.from_tensor_slices(client[0])
      client = rows.shuffle(3).batch(3)
    process, losses = _normalizing_process(), []
    with tff.framework.get_context_stack().install(_context(number)):
      state = process.set_model_weights(process.initialize(), weights)
      for _ in range(4):
        metrics = process.next(state, [client] * 3).metrics
        losses.append(metrics['client_work']['train']['loss'])
    scores = (features - mean) / np.sqrt(variance) @ kernel
    errors = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    expected = -np.log(errors[range(3), labels]).mean()
    self.assertAllClose(losses, [expected] * 4, rtol=1e-5)
