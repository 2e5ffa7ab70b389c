# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that rounds as programs of XLA have the compiled runtime's results."""

import functools
from unittest import mock
import warnings

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import client_state_testing
from tests.tff_adaptive import testing
from tests.tff_adaptive.runtime import compiled_testing
from tff_adaptive import aggregators
from tff_adaptive import algorithms
from tff_adaptive import optimizers
from tff_adaptive import runtime
from tff_adaptive.runtime import values
from tff_adaptive.runtime.accelerators import device_values
from tff_adaptive.runtime.accelerators import devices
from tff_adaptive.runtime.accelerators import xla_rounds

_keras = tf.keras.layers
_SIZES = ((4, 4, 4), (4, 2), (), (1,), (4, 4))


@functools.cache
def _drawing_process():
  """Returns a process with convolutions, pooling and dropout."""
  model = compiled_testing.image_model(
      _keras.Conv2D(4, 3, activation='relu'),
      _keras.MaxPool2D(),
      _keras.Flatten(),
      _keras.Dropout(0.4),
  )
  return algorithms.build_fed_opt(
      model, optimizers.build_sgd(0.1), optimizers.build_adam(0.01, epsilon=0.1)
  )


@functools.cache
def _dense_process():
  return algorithms.build_fed_opt(
      compiled_testing.image_model(_keras.Flatten(), _keras.Dense(5, 'relu')),
      optimizers.build_delta_sgd(previous_gradient='reuse'),
  )


def _leaves(process, output):
  """Returns the leaves of an output of `process.next`."""
  return values.build_flatten(process.next.type_signature.result)(output)


@functools.cache
def _context(**options):
  """Returns a context that tests share: it compiles a process once."""
  return runtime.CompiledContext(seed=0, strict=True, **options)


class XlaRoundsTest(compiled_testing.TestCase):

  def _train(self, process, rounds, seed=3, state=None, **options):
    """Returns the outputs of rounds, and the context."""
    outputs, context = [], _context(**options)
    with tff.framework.get_context_stack().install(context):
      state = process.initialize() if state is None else state
      for number, clients in enumerate(rounds):
        context.begin_round(seed, number)
        outputs.append(process.next(state, clients))
        state = outputs[-1].state
    return outputs, context

  def assert_plan(self, context, process, num_parallel_clients):
    """Fails unless the model lets as many clients train at once."""
    plan = context.plan_of(process.next)
    self.assertEqual(plan.num_parallel_clients, num_parallel_clients)
    self.assertEqual(plan.device, 'XLA:CPU:0')

  def _assert_as_on_tensorflow(self, process, rounds, tolerance=1e-5):
    expected, _ = self._train(process, rounds, devices='CPU')
    found, context = self._train(process, rounds, devices='XLA:CPU')
    self.assertEqual(context.path_of(process.next), 'xla')
    for one, other in zip(found, expected, strict=True):
      for a, b in zip(*(_leaves(process, output) for output in (one, other))):
        self.assertEqual(np.asarray(a).dtype, np.asarray(b).dtype)
        if np.asarray(a).dtype == object:
          self.assertAllEqual(a, b)
        else:
          np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)
    return found, context

  def test_clients_of_several_sizes_with_dropout(self):
    clients = compiled_testing.images(_SIZES)
    process = _drawing_process()
    _, context = self._assert_as_on_tensorflow(
        process, [clients, clients[:3]], tolerance=2e-4
    )
    self.assert_plan(context, process, 1)

  @parameterized.parameters(3, 1, 16)
  @pytest.mark.slow
  def test_clients_side_by_side(self, number):
    clients = compiled_testing.images([(4,), (4, 4), (4, 4, 4), (), (4,)])
    process = _dense_process()
    expected, _ = self._train(process, [clients], devices='CPU')
    found, context = self._train(
        process, [clients], devices='XLA:CPU', num_parallel_clients=number
    )
    self.assertEqual(context.plan_of(process.next).num_parallel_clients, number)
    self.assertAllClose(
        _leaves(process, found[0]), _leaves(process, expected[0]), 1e-5, 1e-5
    )

  @pytest.mark.slow
  def test_cohorts_without_a_batch(self):
    clients = compiled_testing.images([(), ()])
    self._assert_as_on_tensorflow(
        _dense_process(), [clients, compiled_testing.images(_SIZES)]
    )

  @pytest.mark.slow
  def test_results_wait_in_limited_room(self):
    clients = compiled_testing.images([(4,), (4, 4, 2), (3,), (), (4, 1)])
    process = _dense_process()
    expected, _ = self._train(process, [clients], devices='CPU')
    with mock.patch.object(xla_rounds, '_MAX_RESULT_BYTES', 1):
      found, _ = self._train(
          process, [clients], devices='XLA:CPU', num_parallel_clients=2
      )
    self.assertAllClose(
        _leaves(process, found[0]), _leaves(process, expected[0]), 1e-5, 1e-5
    )

  @parameterized.named_parameters(
      ('apart', lambda x: x, (4,), True),
      ('mixed', lambda x: x + tf.reverse(x, [0]), (1, 2, 4), False),
  )
  @pytest.mark.sample(1)
  def test_batches_are_padded_where_rows_stay_apart(
      self, layer, sizes, is_padded
  ):
    process = algorithms.build_fed_opt(
        compiled_testing.image_model(_keras.Flatten(), _keras.Lambda(layer)),
        optimizers.build_sgd(0.1),
    )
    layouts = []
    of_layout = xla_rounds.XlaRound._program

    def note(program, layout):
      layouts.append(layout)
      return of_layout(program, layout)

    with mock.patch.object(xla_rounds.XlaRound, '_program', note):
      if is_padded:  # Other tests compare the results of such batches.
        self._train(
            process, [compiled_testing.images(_SIZES)], devices='XLA:CPU'
        )
      else:
        self._assert_as_on_tensorflow(
            process, [compiled_testing.images(_SIZES)]
        )
    (leaf,) = layouts[-1].leaves
    self.assertEqual((leaf.sizes, leaf.is_padded), (sizes, is_padded))

  @pytest.mark.slow
  def test_continues_with_the_same_bits(self):
    rounds = [compiled_testing.images(_SIZES)] * 3
    process = _dense_process()
    whole, context = self._train(process, rounds, devices='XLA:CPU')
    self.assert_plan(context, process, 16)
    weights = tf.nest.map_structure(
        np.array, whole[0].state.global_model_weights
    )
    copied = process.set_model_weights(whole[0].state, weights)
    rest, _ = self._train(process, rounds[1:], state=copied, devices='XLA:CPU')
    self.assert_same_bits(
        _leaves(process, rest[-1]), _leaves(process, whole[-1])
    )

  def test_a_state_whose_memory_a_round_took_can_be_used_again(self):
    rounds = [compiled_testing.images([(4,), (4, 2)])] * 2
    process = _dense_process()
    # On an accelerator NumPy arrays are copies; on a CPU they keep the memory.
    copying = mock.Mock(wraps=np, asarray=np.array)
    with mock.patch.object(device_values, 'np', copying):
      whole, _ = self._train(process, rounds, devices='XLA:CPU')
      state = whole[0].state
      first, *_ = state.global_model_weights.trainable
      self.assertTrue(device_values._on_devices[id(first)][1].is_deleted())
      again, _ = self._train(
          process, rounds[1:], state=state, devices='XLA:CPU'
      )
    self.assert_same_bits(
        _leaves(process, again[-1]), _leaves(process, whole[-1])
    )

  @pytest.mark.slow
  def test_cohorts_of_many_sizes_have_few_programs(self):
    rng = np.random.default_rng(0)
    clients = compiled_testing.images(
        [4] * (size // 4) + [size % 4] * bool(size % 4)
        for size in rng.integers(1, 30, 60)
    )
    cohorts = [
        [clients[place] for place in rng.choice(60, rng.integers(8, 17))]
        for _ in range(12)
    ]
    process = _dense_process()
    compiled = []
    of_layout = xla_rounds.XlaRound._program

    def note(program, layout):
      compiled.append(of_layout(program, layout))
      return compiled[-1]

    with mock.patch.object(xla_rounds.XlaRound, '_program', note):
      self._train(process, cohorts, devices='XLA:CPU')
    programs = {id(one): one for one in compiled}.values()
    self.assertLessEqual(sum(p._cache_size() for p in programs), 6)

  @pytest.mark.slow
  def test_models_with_variables(self):
    self._assert_as_on_tensorflow(
        compiled_testing.process('variable'), [testing.clients([5, 0, 9])]
    )

  def test_clients_that_keep_a_state(self):
    process = client_state_testing.process()
    rounds = [
        client_state_testing.stateful_cohort(ids, {})
        for ids in (('b', 'a'), ('short', 'bad', 'a'), ())
    ]
    found, _ = self._assert_as_on_tensorflow(process, rounds)
    kept = found[1].metrics['client_work']['client_states']
    self.assertEqual(kept['client_id'].tolist(), [b'short', b'a'])

  @parameterized.named_parameters(('all', False), ('kept', True))
  def test_a_server_that_computes_with_what_clients_report(self, keeps_some):
    def square(values):
      return tf.reduce_sum(values * values, 0)

    rows_type = tff.TensorType(np.float32, [2, 3])

    @tff.federated_computation(tff.FederatedType(rows_type, tff.CLIENTS))
    def sum_squares(rows):
      keep = None
      if keeps_some:
        is_kept = tff.tensorflow.computation(lambda r: r[0, 0] > 0, rows_type)
        keep = tff.federated_map(is_kept, rows)
      stacked = aggregators.stack_at_server(rows, keep)
      stacked_type = stacked.type_signature.member
      return tff.federated_map(
          tff.tensorflow.computation(square, stacked_type), stacked
      )

    rng = np.random.default_rng(0)
    for number in (3, 5):
      values = list(rng.normal(size=(number, 2, 3)).astype(np.float32))
      kept = [v for v in values if v[0, 0] > 0 or not keeps_some]
      with runtime.CompiledContext(devices='XLA:CPU') as context:
        with warnings.catch_warnings():
          # There is no program for a sum over rows of an unknown number.
          warnings.filterwarnings('ignore', 'TensorFlow runs the round')
          found = sum_squares(values)
        path = context.path_of(sum_squares)
      self.assertAllClose(found, np.sum(np.square(kept), (0, 1)), 1e-5)
      self.assertEqual(path, 'compiled' if keeps_some else 'xla')

  def test_what_has_no_form_runs_on_tensorflow(self):
    def fourier(x):
      return tf.math.real(tf.signal.rfft(tf.reshape(x, [-1, 36])))

    process = algorithms.build_fed_opt(
        compiled_testing.image_model(_keras.Lambda(fourier)),
        optimizers.build_sgd(0.1),
    )
    clients = compiled_testing.images([(4,)])
    with runtime.CompiledContext(devices='XLA:CPU') as context:
      state = process.initialize()
      with self.assertWarnsRegex(RuntimeWarning, 'XLA has no form of .*FFT'):
        process.next(state, clients)
      self.assertEqual(context.path_of(process.next), 'compiled')
      with warnings.catch_warnings():
        warnings.simplefilter('error')
        process.next(state, clients)
    with self.assertRaisesRegex(
        runtime.UnsupportedComputationError,
        "cannot be a program of XLA, because .*FFT.*pass `devices='CPU'`",
    ):
      self._train(process, [clients], devices='XLA:CPU')


class DevicesTest(parameterized.TestCase):

  @parameterized.parameters('XLA:CPU', 'xla:cpu', 'XLA:CPU:0')
  def test_names_of_the_cpu(self, name):
    self.assertEqual(devices.choose(name), 'XLA:CPU:0')
