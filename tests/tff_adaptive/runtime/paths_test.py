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


class PathsTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    self.context = self.enter_context(
        runtime.CompiledContext(devices='CPU', seed=1)
    )

  def test_path_is_that_of_the_latest_run(self):
    digest = sequence_testing.over_clients(
        sequence_testing.digest, sequence_testing.ROWS
    )
    dataset = tf.data.Dataset.from_tensor_slices(np.ones([5], 'f')).batch(2)
    # It calls Python.
    generated = tf.data.Dataset.from_generator(
        lambda: iter(_ROWS), output_signature=tf.TensorSpec([None], tf.float32)
    )
    self.assertIsNone(self.context.path_of(digest))
    for path, clients in (
        ('compiled', [_ROWS, _ROWS]),
        ('cached', [dataset, dataset]),
        ('cached', [dataset]),
        ('threads', [generated, dataset]),
        ('compiled', [_ROWS]),
    ):
      digest(clients)
      self.assertEqual(self.context.path_of(digest), path)

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
