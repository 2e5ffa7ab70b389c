# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that `path_of` names the way that a computation took."""

from absl.testing import absltest
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tests.tff_adaptive.runtime import sequence_testing
from tff_adaptive import runtime

_ROWS = [np.ones([2], np.float32), np.ones([3], np.float32)]


def _digest():
  """Returns a new computation over clients' sequences."""
  return sequence_testing.over_clients(
      sequence_testing.digest, sequence_testing.ROWS
  )


def _dataset():
  return tf.data.Dataset.from_tensor_slices(np.ones([5], np.float32)).batch(2)


class PathsTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    self.context = self.enter_context(
        runtime.CompiledContext(devices='CPU', seed=1)
    )

  def test_computation_that_has_not_run_has_none(self):
    self.assertIsNone(self.context.path_of(_digest()))

  def test_arrays_are_compiled(self):
    digest = _digest()
    digest([_ROWS, _ROWS])
    self.assertEqual(self.context.path_of(digest), 'compiled')

  def test_tensorflow_is_compiled(self):
    double = tff.tensorflow.computation(lambda value: 2 * value, np.int32)
    double(1)
    self.assertEqual(self.context.path_of(double), 'compiled')

  def test_datasets_are_cached_from_the_first_run(self):
    digest, clients = _digest(), [_dataset(), _dataset()]
    for _ in range(2):
      digest(clients)
      self.assertEqual(self.context.path_of(digest), 'cached')

  def test_path_is_that_of_the_latest_run(self):
    digest = _digest()
    digest([_dataset()])
    digest([_ROWS])
    self.assertEqual(self.context.path_of(digest), 'compiled')

  def test_datasets_that_call_python_run_in_each_round(self):
    generated = tf.data.Dataset.from_generator(
        lambda: iter(_ROWS), output_signature=tf.TensorSpec([None], tf.float32)
    )
    digest = _digest()
    digest([generated, _dataset()])
    self.assertEqual(self.context.path_of(digest), 'threads')

  def test_computation_with_a_queue_is_native(self):
    @tff.tensorflow.computation(np.int32)
    def enqueue(number):
      queue = tf.queue.FIFOQueue(10, [tf.int32], [[]])
      with tf.control_dependencies([queue.enqueue(number)]):
        return queue.size()

    @tff.federated_computation(testing.at_clients(np.int32))
    def total(numbers):
      return tff.federated_sum(tff.federated_map(enqueue, numbers))

    self.assertEqual(total([3, 4]), 2)
    self.assertEqual(self.context.path_of(total), 'native')
