# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the native runtime; `processes_test` has how its programs end."""

import gc
import os
import select
import sys
import tempfile
from unittest import mock

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive.runtime import sequence_testing
from tests.tff_adaptive.runtime import worker_testing
from tff_adaptive import data
from tff_adaptive import runtime
from tff_adaptive.runtime import native


class NativeTest(tf.test.TestCase, parameterized.TestCase):

  def test_computes_ends_its_worker_and_restores_the_context(self):
    @tff.federated_computation(tff.FederatedType(np.int32, tff.CLIENTS))
    def add_up(values):
      return tff.federated_sum(values)

    stack, before = tff.framework.get_context_stack(), worker_testing.workers()
    default = stack.current
    with runtime.NativeContext() as context:
      self.assertIs(stack.current, context)
      self.assertEqual(add_up([1, 2, 3]), 6)
      started = worker_testing.workers() - before
      self.assertLen(started, 1)
    self.assertIs(stack.current, default)
    self.assertFalse(any(worker_testing.is_alive(worker) for worker in started))

  def test_a_fork_does_not_keep_the_worker(self):
    context = runtime.NativeContext()
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
      os.close(writing)
      # Until the end of the test, or of its patience.
      ended, _, _ = select.select([reading], [], [], 20.0)
      os._exit(0 if ended else 1)
    context.close()
    os.close(writing)
    os.close(reading)
    _, status = os.waitpid(child, 0)
    self.assertEqual(status, 0)

  def test_a_closed_context_says_so(self):
    with runtime.NativeContext() as context:
      pass
    with context, self.assertRaisesRegex(RuntimeError, 'context is closed'):
      tff.tensorflow.computation(lambda: 1)()

  def test_worker_that_ends_at_its_start_is_not_waited_for(self):
    with mock.patch.object(native, '_worker_binary', lambda: sys.executable):
      with self.assertRaisesRegex(
          RuntimeError, r'exited at startup(.|\n)*unknown option --port'
      ):
        runtime.NativeContext()

  @parameterized.named_parameters(
      ('given', lambda path: tf.data.TFRecordDataset(path)),
      (
          'named_in_a_dataset',
          lambda path: tf.data.Dataset.from_tensors(path).interleave(
              tf.data.TFRecordDataset
          ),
      ),
  )
  @pytest.mark.usefixtures('native_runtime')
  def test_reads_records(self, open_file):
    folder = self.enter_context(tempfile.TemporaryDirectory())
    path = os.path.join(folder, 'numbers.tfrecord')
    with tf.io.TFRecordWriter(path) as writer:
      for number in range(3):
        writer.write(str(number))

    def add_up(records):
      return records.reduce(
          0, lambda total, text: total + tf.strings.to_number(text, tf.int32)
      )

    of_argument = sequence_testing.over_clients(
        add_up, tff.SequenceType(np.str_)
    )
    of_path = tff.tensorflow.computation(
        lambda path: add_up(open_file(path)), np.str_
    )
    self.assertEqual(of_argument([open_file(path), open_file(path)]), 6)
    self.assertEqual(of_path(path), 3)

  @pytest.mark.usefixtures('native_runtime')
  def test_takes_cohorts_in_any_position(self):
    source = data.PackedClientArrays.from_clients(
        {name: {'x': np.float32([size])} for name, size in (('a', 1), ('b', 2))}
    )
    cohort = data.Cohort(source, ['a', 'b'], 0, 1, data.BatchPlan(1))

    @tff.tensorflow.computation(
        tff.SequenceType(tff.types.tensorflow_to_type(cohort[0].element_spec))
    )
    def add_up(batches):
      return batches.reduce(0.0, lambda x, batch: x + tf.reduce_sum(batch['x']))

    clients_type = tff.FederatedType(
        add_up.type_signature.parameter, tff.CLIENTS
    )

    @tff.federated_computation(clients_type)
    def add_up_clients(clients):
      return tff.federated_sum(tff.federated_map(add_up, clients))

    @tff.federated_computation(
        tff.FederatedType(np.float32, tff.SERVER), clients_type
    )
    def pass_on(state, clients):
      return state, add_up_clients(clients)

    self.assertEqual(add_up_clients(cohort), 3.0)
    self.assertEqual(pass_on(5.0, cohort)[1], 3.0)
    self.assertEqual(pass_on(5.0, clients=cohort)[1], 3.0)

  @parameterized.parameters('native', 'fallback')
  @pytest.mark.slow
  def test_no_descriptor_or_file_stays_open(self, kind):
    # It keeps a state, so that the compiled runtime hands it on.
    @tff.tensorflow.computation(np.float32)
    def enqueue(number):
      queue = tf.queue.FIFOQueue(10, [tf.float32], [[]])
      with tf.control_dependencies([queue.enqueue(number)]):
        return queue.size()

    def run():
      if kind == 'native':
        with runtime.NativeContext():
          enqueue(1.0)
      else:
        with runtime.CompiledContext(), self.assertWarns(RuntimeWarning):
          enqueue(1.0)

    run()
    gc.collect()
    before = len(os.listdir('/proc/self/fd'))
    for _ in range(5):
      run()
    # Leftovers of other tests may come and go, but not one in each run.
    self.assertLess(len(os.listdir('/proc/self/fd')), before + 5)
