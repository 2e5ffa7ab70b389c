# Copyright 2026 The tff_adaptive Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""Tests that plans change no result, and of which plan is taken."""

from typing import Any
from unittest import mock

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tests.tff_adaptive.runtime import compiled_testing
from tff_adaptive import runtime
from tff_adaptive.runtime import plans

# Some clients with one batch, some with several, some with a short one, one
# without examples.
_RAGGED = tuple((7 * place) % 19 for place in range(20))
# An assertion that shows floats is put into a branch of its own.
_CHECKS = (
    ('shown', lambda value: tf.debugging.assert_less(value, 10.0)),
    ('alone', lambda value: tf.debugging.Assert(value < 10.0, ['large'])),
)


def _build_checked_sum(add: Any) -> tff.framework.ConcreteComputation:
  """A new sum; clients add up numbers in steps, and to another at the end."""

  @tff.tensorflow.computation(tff.SequenceType(np.float32))
  def work(numbers):
    return add(tf.constant(1.0), numbers.reduce(0.0, add))

  @tff.federated_computation(testing.at_clients(work.type_signature.parameter))
  def add_up(clients):
    return tff.federated_sum(tff.federated_map(work, clients))

  return add_up


class PlansTest(compiled_testing.TestCase):

  def _train_by(self, plan: str, process: Any, *rounds: Any) -> Any:
    with compiled_testing.installed(plan):
      weights = compiled_testing.train(process, *rounds)
    chosen = compiled_testing.context(plan).plan_of(process.next)
    self.assertEqual(getattr(chosen, 'name', None), plan)
    return weights

  def _check_bits(self, kind):
    process, clients = compiled_testing.process(kind), testing.clients(_RAGGED)
    rounds = [clients, clients[3:10], clients[::-1]]
    expected = self._train_by('loop', process, *rounds)
    for _ in range(10):
      found = self._train_by('parallel', process, *rounds)
      self.assert_same_bits(found, expected)
    plan = compiled_testing.context('parallel').plan_of(process.next)
    self.assertEqual(plan.num_parallel_clients, plans.num_cores())

  def test_parallel_has_the_bits_of_loop_every_time(self):
    self._check_bits('functional')

  @pytest.mark.slow
  def test_parallel_has_the_bits_of_loop_for_variable_models(self):
    self._check_bits('variable')

  def test_vectorized_works_on_many_clients_at_once(self):
    process, clients = compiled_testing.process(), testing.clients([8] * 10)
    expected = self._train_by('loop', process, clients, clients[:3])
    # What it has built is to be built again.
    compiled_testing.context.cache_clear()
    with mock.patch.object(
        tf, 'vectorized_map', wraps=tf.vectorized_map
    ) as vectorized_map:
      found = self._train_by('vectorized', process, clients, clients[:3])
    vectorized_map.assert_called()
    self.assertAllClose(found, expected, rtol=1e-5, atol=1e-5)

  def test_vectorized_makes_no_arrays_that_stay(self):
    kinds = set()
    vectorized_map = tf.vectorized_map

    def look_into(*args, **kwargs):
      results = vectorized_map(*args, **kwargs)
      graph = tf.compat.v1.get_default_graph()
      kinds.update(operation.type for operation in graph.get_operations())
      return results

    clients = testing.clients([8] * 10)
    compiled_testing.context.cache_clear()
    with mock.patch.object(tf, 'vectorized_map', look_into):
      self._train_by('vectorized', compiled_testing.process(), clients)
    self.assertIn('TensorListReserve', kinds)
    self.assertNoCommonElements(kinds, ['TensorArrayV2', 'TensorArrayV3'])

  @parameterized.named_parameters(*_CHECKS)
  def test_vectorized_asserts(self, check):
    def add(total, number):
      with tf.control_dependencies([check(number)]):
        return total + number

    add_up = _build_checked_sum(add)
    with compiled_testing.installed('vectorized'):
      with mock.patch.object(
          tf, 'vectorized_map', wraps=tf.vectorized_map
      ) as vectorized_map:
        self.assertEqual(add_up([[1.0, 2.0], [3.0, 4.0]]), 12.0)
      vectorized_map.assert_called()
      for fails in ([1.0, 12.0], [4.0, 6.0]):
        with self.assertRaisesRegex(ValueError, 'assertion failed'):
          add_up([[1.0, 2.0], fails])

  def test_vectorized_asserts_what_nothing_waits_for(self):
    def add(total, number):
      tf.debugging.assert_less(number, 10.0)
      return total + number

    with compiled_testing.installed('vectorized'):
      with self.assertRaisesRegex(ValueError, 'assertion failed'):
        _build_checked_sum(add)([[1.0, 2.0], [3.0, 12.0]])

  @parameterized.product(
      [{'check': check} for _, check in _CHECKS], plan=['loop', 'vectorized']
  )
  def test_asserts_in_branches_that_are_taken(self, check, plan):
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
    with compiled_testing.installed(plan):
      self.assertEqual(add_up([[20.0, 5.0], [5.0, -1.0]]), 33.0)
      with self.assertRaisesRegex(ValueError, 'assertion failed'):
        add_up([[20.0, -5.0], [5.0, -1.0]])

  def _check_fall_back(self, process, clients):
    expected = self._train_by('loop', process, clients)
    found = self._train_by('vectorized', process, clients)
    self.assertAllClose(found, expected, rtol=1e-5, atol=1e-5)

  def test_vectorized_falls_back_where_clients_differ(self):
    self._check_fall_back(compiled_testing.process(), testing.clients(_RAGGED))

  @pytest.mark.slow
  def test_vectorized_falls_back_for_variable_models(self):
    self._check_fall_back(
        compiled_testing.process('variable'), testing.clients([8] * 10)
    )

  @pytest.mark.slow
  def test_vectorized_falls_back_for_convolutions(self):
    self._check_fall_back(
        compiled_testing.image_process(),
        compiled_testing.image_clients([8] * 5),
    )

  def test_xla_gives_the_results_of_loop(self):
    process, clients = compiled_testing.process(), testing.clients([8, 4, 7])
    self.assertAllClose(
        self._train_by('xla', process, clients),
        self._train_by('loop', process, clients),
        rtol=1e-5,
        atol=1e-5,
    )

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
    size = plans.choose('parallel', 'CPU:0', 0).chunk_size_of(num_clients)
    self.assertEqual(size, expected)
    self.assertEqual(-(-num_clients // size), num_chunks)

  def test_unknown_plan(self):
    with self.assertRaisesRegex(ValueError, "'vectorized'.*found 'fast'"):
      runtime.create_compiled_context(plan='fast')

  @parameterized.parameters(
      ('CPU:0', 0, 'vectorized'),
      ('CPU:0', 16_384, 'vectorized'),
      ('CPU:0', 16_385, 'parallel'),
      ('GPU:0', 0, 'loop'),
      ('GPU:1', 10**9, 'loop'),
  )
  def test_rule_of_the_plan_that_suits(self, device, num_weights, expected):
    plan = plans.choose(runtime.AUTO, device, num_weights)
    self.assertEqual((plan.name, plan.device), (expected, device))
    for name in plans.PLANS:
      self.assertEqual(plans.choose(name, device, num_weights).name, name)

  @parameterized.parameters((10, 'vectorized'), (10_000, 'parallel'))
  def test_plan_that_suits_the_model(self, num_outputs, expected):
    keras_model = tf.keras.Sequential(
        [tf.keras.layers.Dense(num_outputs, input_shape=(3,))]
    )
    model = tff.learning.models.functional_model_from_keras(
        keras_model,
        tf.keras.losses.MeanSquaredError(),
        (
            tf.TensorSpec([None, 3], tf.float32),
            tf.TensorSpec([None, num_outputs], tf.float32),
        ),
    )
    process = tff.learning.algorithms.build_unweighted_fed_avg(
        model,
        tff.learning.optimizers.build_sgdm(0.1),
        tff.learning.optimizers.build_sgdm(1.0),
    )
    self.assertEqual(runtime.choose_plan(process).name, expected)
    with runtime.compiled_context(devices='CPU', strict=True) as context:
      self.assertIsNone(context.plan_of(process.next))
      state = process.initialize()
      process.next(state, [])
      self.assertEqual(
          context.plan_of(process.next), runtime.choose_plan(process, 'CPU')
      )
      self.assertIsNone(context.plan_of(process.initialize))

  def test_plan_and_device_are_logged_once(self):
    with self.assertLogs('absl', 'INFO') as logs:
      with runtime.compiled_context(devices='CPU', strict=True):
        for add_up in (
            compiled_testing.build_sum(),
            compiled_testing.build_sum(),
        ):
          add_up([1.0])
          add_up([1.0, 2.0])
    said = [line for line in logs.output if 'runs on' in line]
    self.assertLen(said, 1)
    self.assertIn('CPU:0, plan vectorized', said[0])


if __name__ == '__main__':
  tf.test.main()
