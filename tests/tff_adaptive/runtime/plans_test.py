# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of plans."""

import re
from typing import Any
from unittest import mock

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests import page_testing
from tests.tff_adaptive import testing
from tests.tff_adaptive.runtime import compiled_testing
from tests.tff_adaptive.runtime import sequence_testing
from tff_adaptive import runtime
from tff_adaptive.runtime import plans
from tff_adaptive.runtime.accelerators import devices

# Some clients with one batch, some with several, some with a short one, one
# without examples.
_RAGGED = tuple((7 * place) % 19 for place in range(20))
# An assertion that shows floats is put into a branch of its own.
_CHECKS = (
    ('shown', lambda value: tf.debugging.assert_less(value, 10.0)),
    ('alone', lambda value: tf.debugging.Assert(value < 10.0, ['large'])),
)


def _build_checked_sum(add: Any) -> tff.framework.ConcreteComputation:
  """Returns a new sum of numbers that clients add up in steps."""
  return sequence_testing.over_clients(
      lambda numbers: add(tf.constant(1.0), numbers.reduce(0.0, add)),
      tff.SequenceType(np.float32),
  )


class PlansTest(compiled_testing.TestCase):

  def _train_by(self, number: int, process: Any, *rounds: Any) -> Any:
    with compiled_testing.installed(number):
      weights = compiled_testing.train(process, *rounds)
    plan = compiled_testing.context(number).plan_of(process.next)
    self.assertEqual(plan, plans.Plan('CPU:0', number))
    return weights

  @parameterized.parameters('functional', 'variable')
  @pytest.mark.sample(1)
  def test_clients_at_once_have_the_bits_of_one_by_one_every_time(self, kind):
    process, clients = compiled_testing.process(kind), testing.clients(_RAGGED)
    rounds = [clients, clients[3:10], clients[::-1]]
    expected = self._train_by(1, process, *rounds)
    for _ in range(10):
      found = self._train_by(4, process, *rounds)
      self.assert_same_bits(found, expected)

  def test_asserts_what_nothing_waits_for(self):
    def add(total, number):
      tf.debugging.assert_less(number, 10.0)
      return total + number

    with compiled_testing.installed():
      with self.assertRaisesRegex(ValueError, 'An assertion of'):
        _build_checked_sum(add)([[1.0, 2.0], [3.0, 12.0]])

  @parameterized.product(
      [{'check': check} for _, check in _CHECKS], number=[1, None]
  )
  def test_asserts_in_branches_that_are_taken(self, check, number):
    def add_checked(total, number):
      with tf.control_dependencies([check(total)]):
        return total - number

    def add(total, number):
      return tf.cond(
          number < 0.0,
          lambda: add_checked(total, number),
          lambda: total + number,
      )

    add_up = _build_checked_sum(add)
    with compiled_testing.installed(number):
      self.assertEqual(add_up([[20.0, 5.0], [5.0, -1.0]]), 33.0)
      with self.assertRaisesRegex(ValueError, 'An assertion of'):
        add_up([[20.0, -5.0], [5.0, -1.0]])

  @parameterized.parameters(
      (1, 1, 1),
      (10, 1, 10),
      (17, 2, 9),
      (100, 7, 15),
      (128, 8, 16),
      (1000, 8, 125),
      (10_000, 79, 127),
  )
  def test_large_cohorts_have_chunks_for_many_workers(
      self, num_clients, expected, num_chunks
  ):
    size = plans.choose('CPU:0').chunk_size_of(num_clients)
    self.assertEqual(size, expected)
    self.assertEqual(-(-num_clients // size), num_chunks)

  def test_chunks_on_accelerators_fill_them(self):
    plan = plans.choose('XLA:GPU:0').for_model({'MatMul'}, 1000)
    self.assertEqual(plan.chunk_size_of(10), 16)
    self.assertEqual(plan.chunk_size_of(10_000), 79)
    large = plans.choose('XLA:GPU:0').for_model({'MatMul', 'Conv2D'}, 1000)
    self.assertEqual(large.chunk_size_of(10), 1)

  @parameterized.parameters(
      ('CPU:0', plans.num_cores()), ('XLA:CPU:0', 0), ('XLA:GPU:1', 0)
  )
  def test_number_of_clients_at_once_that_suits(self, device, expected):
    self.assertEqual(plans.choose(device), plans.Plan(device, expected))
    self.assertEqual(plans.choose(device, 3), plans.Plan(device, 3))

  def test_the_plan_of_a_process(self):
    process = compiled_testing.process()
    with runtime.CompiledContext(devices='CPU', strict=True) as context:
      self.assertIsNone(context.plan_of(process.next))
      process.next(process.initialize(), [])
      self.assertEqual(
          context.plan_of(process.next), runtime.choose_plan('CPU')
      )
      self.assertIsNone(context.plan_of(process.initialize))

  def test_the_guide_has_every_path(self):
    page = page_testing.read('docs/guide/the_runtime.md')
    told = page.split('`context.path_of(process.next)` tells')[1]
    found = re.findall(r"`'(\w+)'`", told.split('\n\n')[0])
    self.assertEqual(found, list(plans.PATHS))

  def test_plan_and_device_are_logged_once(self):
    with self.assertLogs('absl', 'INFO') as logs:
      with runtime.CompiledContext(devices='CPU', strict=True):
        for add_up in (
            compiled_testing.build_sum(),
            compiled_testing.build_sum(),
        ):
          add_up([1.0])
          add_up([1.0, 2.0])
    said = [line for line in logs.output if 'runs on' in line]
    self.assertLen(said, 1)
    self.assertIn(f'CPU:0, {plans.num_cores()} at once', said[0])


def _round_function(context: runtime.CompiledContext, process: Any) -> Any:
  """Returns the one function that was built for the rounds of a process."""
  program = context._programs[id(process.next)]
  (function,) = program._functions.values()
  return function


def _checked_process() -> tff.learning.templates.LearningProcess:
  """Returns a process whose loss asserts, as Keras' loss of a sequence does."""
  model = testing.functional_model()

  def loss(output, label, sample_weight=None):
    del sample_weight  # Unused.
    tf.debugging.assert_non_negative(label)
    return model.loss(output, label)

  checked = tff.learning.models.FunctionalModel(
      initial_weights=model.initial_weights,
      predict_on_batch_fn=model.predict_on_batch,
      loss_fn=loss,
      input_spec=model.input_spec,
  )
  return tff.learning.algorithms.build_fed_sgd(
      checked, tff.learning.optimizers.build_sgdm(0.1)
  )


def _parallel_iterations(function: Any) -> int:
  """Returns the largest number of steps of a loop that may run at once."""
  return max(
      operation.get_attr('parallel_iterations')
      for operation in function.graph.get_operations()
      if operation.type == 'Enter'
  )


def _devices_of_calls(function: Any) -> set[str]:
  """Returns the devices of a round's calls, which are its clients' steps."""
  return {
      operation.device
      for operation in function.graph.get_operations()
      # Operations outside of loops run at the server.
      if 'PartitionedCall' in operation.type and '/while/' in operation.name
  }


class StepsTest(compiled_testing.TestCase):

  @parameterized.parameters(
      ('functional', None), ('checked', None), ('variable', 1)
  )
  def test_steps_overlap_unless_they_have_effects(self, kind, expected):
    if kind == 'checked':
      process = _checked_process()
    else:
      process = compiled_testing.process(kind)
    with compiled_testing.installed(1):
      compiled_testing.train(process, testing.clients([5, 9]))
    function = _round_function(compiled_testing.context(1), process)
    self.assertEqual(
        _parallel_iterations(function), expected or plans.num_cores()
    )


class DevicesTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.parameters('CPU', 'cpu', 'cpu:0', 'CPU:0', '/device:CPU:0')
  def test_names_of_the_cpu(self, name):
    context = runtime.CompiledContext(devices=name)
    self.assertEqual(context.device, 'CPU:0')

  def test_gpu_where_there_is_none(self):
    with mock.patch.object(tf.config, 'list_physical_devices', return_value=[]):
      with self.assertRaisesRegex(ValueError, "'GPU'. names no device .* sees"):
        runtime.CompiledContext(devices='GPU')
      self.assertEqual(runtime.CompiledContext().device, 'CPU:0')

  def test_gpus_of_tensorflow_leave_memory_and_are_not_used(self):
    gpus = ['first', 'second']
    with (
        mock.patch.object(
            tf.config, 'list_physical_devices', return_value=gpus
        ),
        mock.patch.object(
            tf.config.experimental, 'set_memory_growth'
        ) as set_growth,
        mock.patch.object(devices, 'find_accelerator', return_value=None),
        self.assertLogs('absl', 'WARNING') as logs,
    ):
      self.assertEqual(plans.choose_plan().device, 'CPU:0')
    self.assertEqual(
        set_growth.mock_calls, [mock.call(gpu, True) for gpu in gpus]
    )
    self.assertRegex(logs.output[0], r'sees a GPU.*pip install "jax\[cuda13')

  def test_clients_work_on_the_device(self):
    process = compiled_testing.process()
    with compiled_testing.installed(1):
      compiled_testing.train(process, testing.clients([5, 9]))
    function = _round_function(compiled_testing.context(1), process)
    self.assertEqual(_devices_of_calls(function), {'/device:CPU:0'})


class AcceleratorTest(tf.test.TestCase):

  @pytest.mark.slow
  def test_trains_there_with_the_same_result(self):
    if devices.find_accelerator() is None:
      self.skipTest('It needs an accelerator and TFF_ADAPTIVE_TEST_GPU=1.')
    layers, sgd = tf.keras.layers, tff.learning.optimizers.build_sgdm
    process = tff.learning.algorithms.build_weighted_fed_avg(
        compiled_testing.image_model(
            layers.Conv2D(4, 3, activation='relu'),
            layers.MaxPool2D(),
            layers.Flatten(),
        ),
        sgd(0.1),
        sgd(1.0),
    )
    clients = compiled_testing.images([(4, 4), (3,), (4, 1)])
    with runtime.CompiledContext(devices='CPU', strict=True):
      expected = compiled_testing.train(process, clients)
    with runtime.CompiledContext(strict=True) as context:
      found = compiled_testing.train(process, clients)
    self.assertIn(context.device, ('XLA:GPU:0', 'XLA:TPU:0'))
    self.assertEqual(context.path_of(process.next), 'xla')
    self.assertAllClose(found, expected, rtol=1e-3, atol=1e-3)
