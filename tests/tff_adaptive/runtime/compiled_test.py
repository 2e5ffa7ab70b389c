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
"""Tests of what the compiled runtime promises beside equal results.

That it says when it cannot compile, that random numbers follow the seed, that
plans change no result, that nothing is built or read twice and nothing is kept
too long, and where it computes.
"""

import asyncio
import collections
from collections.abc import Callable, Iterator, Sequence
import contextlib
import ctypes
import functools
import gc
import threading
from typing import Any
from unittest import mock
import warnings
import weakref

from absl.testing import parameterized
import numpy as np
import psutil
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tff_adaptive import runtime
from tff_adaptive import simulation
from tff_adaptive.runtime import graph_functions
from tff_adaptive.runtime import plans

_Dict = collections.OrderedDict
_sgd = tff.learning.optimizers.build_sgdm
_learning = tff.learning.algorithms


_BATCH_TYPE = tff.types.tensorflow_to_type(testing.INPUT_SPEC)


def _at_clients(member_type: Any = np.float32) -> tff.FederatedType:
  return tff.FederatedType(member_type, tff.CLIENTS)


def _at_server(member_type: Any = np.float32) -> tff.FederatedType:
  return tff.FederatedType(member_type, tff.SERVER)


def _build_sum() -> tff.framework.ConcreteComputation:
  """A new computation that can be compiled."""

  @tff.federated_computation(_at_clients())
  def add_up(values):
    return tff.federated_sum(values)

  return add_up


@functools.cache
def _process(kind: str = 'functional') -> Any:
  """Federated averaging of a linear classifier."""
  return _learning.build_weighted_fed_avg(
      testing.either_model(kind), _sgd(0.1), _sgd(1.0)
  )


def _clients(sizes: Sequence[int]) -> list[list[Any]]:
  """Clients of these numbers of examples, as lists of batches."""
  return [testing.client(size, seed) for seed, size in enumerate(sizes)]


def _dataset(num_examples: int, seed: int = 0) -> tf.data.Dataset:
  """A client as a new dataset."""
  examples = {
      name: np.concatenate(
          [b[name] for b in testing.client(num_examples, seed)]
      )
      for name in testing.INPUT_SPEC
  }
  return tf.data.Dataset.from_tensor_slices(_Dict(examples)).batch(4)


def _train(process: Any, *rounds: Any) -> list[np.ndarray]:
  """The weights after rounds, in the context that is installed."""
  state = process.initialize()
  for clients in rounds:
    state = process.next(state, clients).state
  return testing.trainable(state)


def _installed(context: runtime.CompiledContext) -> Any:
  return tff.framework.get_context_stack().install(context)


@functools.cache
def _context(plan: str = 'parallel') -> runtime.CompiledContext:
  """A context that tests share, so that a process is compiled once."""
  return runtime.create_compiled_context(devices='CPU', plan=plan, strict=True)


def _workers() -> set[psutil.Process]:
  """The processes of native runtimes that this process has started."""
  children = psutil.Process().children(recursive=True)
  return {child for child in children if 'worker' in child.name()}


@contextlib.contextmanager
def _recorded_warnings() -> Iterator[list[str]]:
  """The texts of the runtime's warnings, all of them, in place of errors."""
  texts: list[str] = []
  with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter('always')
    yield texts
  texts += [
      str(warning.message)
      for warning in caught
      if issubclass(warning.category, RuntimeWarning)
  ]


class _Test(tf.test.TestCase, parameterized.TestCase):
  """What all tests compare."""

  def assert_same_bits(self, left: Any, right: Any) -> None:
    tf.nest.map_structure(self.assertAllEqual, left, right)


@tff.tensorflow.computation(np.float32)
def _double(value):
  return 2 * value


@tff.tensorflow.computation(np.float32, np.float32, np.float32)
def _add_three(first, second, third):
  return first + second + third


@tff.federated_computation(_at_clients())
def _double_at_clients(values):
  return tff.federated_map(_double, values)


@tff.federated_computation(_at_server(), _at_server(), _at_clients())
def _take_three(first, second, values):
  return tff.federated_map(
      _add_three, (first, second, tff.federated_sum(values))
  )


# Computations that are no round, their arguments and results, and why not.
_NOT_COMPILED = (
    (
        'result_at_the_clients',
        _double_at_clients,
        ([1.0, 2.5],),
        [2.0, 5.0],
        'it has not the shape of a MapReduce round',
    ),
    (
        'three_arguments',
        _take_three,
        (1.0, 2.0, [3.0, 4.0]),
        10.0,
        'it takes neither a value at the server and one at the clients, nor',
    ),
)


class FallbackTest(_Test):

  @parameterized.named_parameters(*_NOT_COMPILED)
  def test_runs_natively_after_one_warning(
      self, computation, arguments, expected, reason
  ):
    before = _workers()
    with runtime.compiled_context() as context:
      with _recorded_warnings() as texts:
        found = computation(*arguments)
        again = computation(*arguments)
      self.assertLen(_workers() - before, 1)
      self.assertIsNone(context.plan_of(computation))
    self.assertAllEqual(found, expected)
    self.assertAllEqual(again, expected)
    (text,) = texts
    self.assertIn(f'because {reason}', text)
    self.assertIn(str(computation.type_signature), text)
    self.assertEmpty(_workers() - before)

  def test_each_computation_warns_and_all_share_a_worker(self):
    before = _workers()
    with runtime.compiled_context():
      with _recorded_warnings() as texts:
        for _, computation, arguments, _, _ in _NOT_COMPILED:
          computation(*arguments)
      self.assertLen(_workers() - before, 1)
    self.assertLen(texts, len(_NOT_COMPILED))

  def test_close_ends_the_worker_and_may_be_repeated(self):
    before = _workers()
    context = runtime.create_compiled_context()
    with _installed(context), _recorded_warnings():
      _double_at_clients([1.0])
    started = _workers() - before
    self.assertLen(started, 1)
    context.close()
    self.assertFalse(any(worker.is_running() for worker in started))
    context.close()

  @parameterized.named_parameters(*_NOT_COMPILED)
  def test_strict_context_raises(self, computation, arguments, _, reason):
    before = _workers()
    with runtime.compiled_context(strict=True):
      for _ in range(2):
        with self.assertRaisesRegex(
            runtime.UnsupportedComputationError, reason
        ):
          computation(*arguments)
      self.assertEqual(_workers(), before)

  def test_starts_no_worker_without_need(self):
    before = _workers()
    with runtime.compiled_context():
      with _recorded_warnings() as texts:
        self.assertEqual(_build_sum()([1.0, 2.0]), 3.0)
      self.assertEqual(_workers(), before)
    self.assertEmpty(texts)


def _build_secure_sum(bitwidth: int) -> tff.framework.ConcreteComputation:
  @tff.federated_computation(_at_clients(np.int32))
  def add_up(values):
    return tff.federated_secure_sum_bitwidth(values, bitwidth)

  return add_up


class SecureSumsTest(_Test):

  def test_warn_once_in_each_context(self):
    with _recorded_warnings() as texts:
      for _ in range(2):
        with runtime.compiled_context(strict=True):
          for add_up in (_build_secure_sum(4), _build_secure_sum(8)):
            self.assertEqual(add_up([1, 2]), 3)
            self.assertEqual(add_up([3]), 3)
    self.assertLen(texts, 2)
    for text in texts:
      self.assertIn('Secure sums are computed in the clear', text)

  @parameterized.parameters(False, True)
  def test_modular_ones_are_refused(self, strict):
    # The aggregator itself cannot be built with the dependencies that the lock
    # names; this is what it is made of.
    @tff.federated_computation(_at_clients(np.int32))
    def add_up(values):
      return tff.backends.mapreduce.federated_secure_modular_sum(values, 8)

    with runtime.compiled_context(strict=strict):
      for _ in range(2):
        with self.assertRaisesRegex(ValueError, 'ddp_secure_aggregator'):
          add_up([1, 2])


_NUM_INPUTS = 64


@functools.cache
def _dropout_process(kind: str) -> Any:
  """A process that shows its masks.

  The inputs are ones, the label is out of reach and the loss is the absolute
  error, so that a step adds the mask, which is 0 or 2, to the weights. The
  weights after a round are the mean of the sums of the clients' masks.

  Args:
    kind: Of the model, 'functional' or 'variable'.

  Returns:
    The learning process.
  """
  spec = _Dict(
      x=tf.TensorSpec([None, _NUM_INPUTS], tf.float32),
      y=tf.TensorSpec([None, 1], tf.float32),
  )

  def keras_model():
    return tf.keras.Sequential(
        [
            tf.keras.layers.InputLayer((_NUM_INPUTS,)),
            tf.keras.layers.Dropout(0.5),
            tf.keras.layers.Dense(
                1, use_bias=False, kernel_initializer='zeros'
            ),
        ]
    )

  loss = tf.keras.losses.MeanAbsoluteError()
  if kind == 'functional':
    model = tff.learning.models.functional_model_from_keras(
        keras_model(), loss, spec
    )
  else:
    model = lambda: tff.learning.models.from_keras_model(
        keras_model(), loss=loss, input_spec=spec
    )
  return _learning.build_unweighted_fed_avg(model, _sgd(1.0), _sgd(1.0))


def _ones(num_examples: int) -> Any:
  return _Dict(
      x=np.ones([num_examples, _NUM_INPUTS], np.float32),
      y=np.full([num_examples, 1], 1e6, np.float32),
  )


def _cohort_of_ones(
    seed: int, round_num: int, client_ids: str, num_steps: int = 2
) -> simulation.Cohort:
  """Clients of one example a batch; a letter is an id."""
  source = simulation.PackedClientArrays.from_clients(
      {client_id: _ones(num_steps) for client_id in 'abcd'}
  )
  plan = simulation.BatchPlan(1, shuffle=False)
  return simulation.Cohort(source, client_ids, round_num, seed, plan)


def _build_noise() -> tff.framework.ConcreteComputation:
  """A new computation that adds up what clients draw."""

  @tff.tensorflow.computation(np.float32)
  def draw(value):
    return value + tf.random.uniform([8])

  @tff.federated_computation(_at_clients())
  def add_up(values):
    return tff.federated_sum(tff.federated_map(draw, values))

  return add_up


class RandomNumbersTest(_Test):

  def _masks(self, clients: Any, kind: str = 'functional') -> np.ndarray:
    (weights,) = _train(_dropout_process(kind), clients)
    return weights.reshape([-1])

  def _check_dependence(self, kind):
    with _installed(_context()):
      first = self._masks(_cohort_of_ones(1, 0, 'ab'), kind)
      others = {
          'seed': self._masks(_cohort_of_ones(2, 0, 'ab'), kind),
          'round': self._masks(_cohort_of_ones(1, 1, 'ab'), kind),
          'clients': self._masks(_cohort_of_ones(1, 0, 'ac'), kind),
      }
    with runtime.compiled_context(strict=True, seed=5, plan='loop'):
      again = self._masks(_cohort_of_ones(1, 0, 'ab'), kind)
    self.assertAllEqual(first, again)
    for name, other in others.items():
      self.assertNotAllEqual(first, other, name)

  def test_depend_on_seed_round_and_client_alone(self):
    self._check_dependence('functional')

  def test_of_a_client_do_not_depend_on_the_others(self):
    self._check_independence('functional')

  def test_of_two_steps_are_not_the_same(self):
    self._check_steps('functional')

  @pytest.mark.slow
  def test_of_variable_models_do_all_that_too(self):
    self._check_dependence('variable')
    self._check_independence('variable')
    self._check_steps('variable')

  @parameterized.parameters('vectorized', 'xla')
  def test_do_not_depend_on_the_plan(self, plan):
    cohort = _cohort_of_ones(1, 0, 'abc')
    with _installed(_context()):
      expected = self._masks(cohort)
    with runtime.compiled_context(strict=True, plan=plan):
      self.assertAllClose(self._masks(cohort), expected, atol=1e-6)

  def _check_independence(self, kind):
    with _installed(_context()):
      alone = [self._masks(_cohort_of_ones(1, 0, c), kind) for c in 'abc']
      for client_ids in ('abc', 'cab', 'ca'):
        # The mean over clients tells each of them: masks are whole numbers.
        masks = [alone['abc'.index(client_id)] for client_id in client_ids]
        together = self._masks(_cohort_of_ones(1, 0, client_ids), kind)
        self.assertAllClose(together, np.mean(masks, axis=0), atol=1e-6)

  def _check_steps(self, kind):
    with _installed(_context()):
      once = self._masks(_cohort_of_ones(1, 0, 'a', num_steps=1), kind)
      twice = self._masks(_cohort_of_ones(1, 0, 'a', num_steps=2), kind)
    self.assertCountEqual(np.unique(once), [0, 2])
    # Two equal masks would add up to 0 and 4 alone.
    self.assertCountEqual(np.unique(twice), [0, 2, 4])
    # The first step is the same, however many follow.
    self.assertAllInSet(twice - once, [0.0, 2.0])

  def test_of_begin_round_are_those_of_a_cohort(self):
    cohort = _cohort_of_ones(3, 4, 'dbd')
    batches = [cohort.batches(place) for place in range(len(cohort))]
    with runtime.compiled_context(strict=True, plan='loop') as context:
      expected = self._masks(cohort)
      context.begin_round(3, 4, ['d', 'b', 'd'])
      for clients in (list(cohort), batches):
        self.assertAllEqual(self._masks(clients), expected)
      # What a cohort says of itself counts for more.
      context.begin_round(9, 9, ['a', 'b', 'c'])
      self.assertAllEqual(self._masks(cohort), expected)
      self.assertNotAllEqual(self._masks(batches), expected)

  def test_of_begin_round_without_ids_depend_on_places(self):
    draw = _build_noise()
    with runtime.compiled_context(strict=True) as context:
      context.begin_round(1, 0)
      one, again, two = map(draw, ([0.0], [0.0], [0.0, 0.0]))
      context.begin_round(1, 0, ['a'])
      by_id = draw([0.0])
    self.assertAllEqual(one, again)
    # With the second client's, which are others.
    self.assertAllInRange(two - one, 0.0, 1.0)
    self.assertNotAllClose(two - one, one)
    self.assertNotAllEqual(by_id, one)

  def test_without_begin_round_differ_and_repeat_with_the_seed(self):
    draw = _build_noise()
    runs = []
    for seed in (7, 7, 8, None, None):
      with runtime.compiled_context(strict=True, seed=seed):
        runs.append([draw([0.0, 0.0]) for _ in range(3)])
    seven, again, *others = runs
    self.assert_same_bits(seven, again)
    different = [*seven, *(numbers for run in others for numbers in run)]
    for place, numbers in enumerate(different):
      for other in different[:place]:
        self.assertNotAllClose(numbers, other)

  def test_wrong_number_of_ids(self):
    draw = _build_noise()
    with runtime.compiled_context(strict=True) as context:
      context.begin_round(1, 0, ['a', 'b'])
      with self.assertRaisesRegex(ValueError, 'told of 2 clients, found 1'):
        draw([0.0])

  @parameterized.parameters(
      (-1, 0, ValueError),
      (0, -1, ValueError),
      (1.5, 0, TypeError),
      (0, '1', TypeError),
      (None, 0, TypeError),
      (True, 0, TypeError),
  )
  def test_numbers_that_are_no_seed(self, seed, round_num, error):
    with self.assertRaisesRegex(error, '`seed` must'):
      _context().begin_round(seed, round_num)

  @parameterized.parameters((-1, ValueError), (1.5, TypeError))
  def test_context_with_what_is_no_seed(self, seed, error):
    with self.assertRaisesRegex(error, '`seed` must'):
      runtime.create_compiled_context(seed=seed)


# Some clients with one batch, some with several, some with a short one, one
# without examples.
_RAGGED = tuple((7 * place) % 19 for place in range(20))


@functools.cache
def _image_process() -> Any:
  """A small convolutional network; ops of it cannot be vectorized."""
  spec = _Dict(
      x=tf.TensorSpec([None, 8, 8, 1], tf.float32),
      y=tf.TensorSpec([None], tf.int32),
  )
  initializer = tf.keras.initializers.GlorotUniform(seed=1)
  layers = [
      tf.keras.layers.InputLayer((8, 8, 1)),
      tf.keras.layers.Conv2D(4, 3, kernel_initializer=initializer),
      tf.keras.layers.ReLU(),
      tf.keras.layers.MaxPool2D(),
      tf.keras.layers.Flatten(),
      tf.keras.layers.Dense(3, kernel_initializer=initializer),
  ]
  model = tff.learning.models.functional_model_from_keras(
      tf.keras.Sequential(layers),
      tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
      spec,
  )
  return _learning.build_weighted_fed_avg(model, _sgd(0.1), _sgd(1.0))


def _image_clients(sizes: Sequence[int]) -> list[list[Any]]:
  """Clients of these numbers of images, in batches of 4."""
  generator = np.random.default_rng(0)
  clients = []
  for size in sizes:
    x = generator.normal(size=[size, 8, 8, 1]).astype(np.float32)
    y = generator.integers(3, size=size, dtype=np.int32)
    clients.append(
        [_Dict(x=x[i : i + 4], y=y[i : i + 4]) for i in range(0, size, 4)]
    )
  return clients


class PlansTest(_Test):

  def _train_by(self, plan: str, process: Any, *rounds: Any) -> Any:
    with _installed(_context(plan)):
      weights = _train(process, *rounds)
    chosen = _context(plan).plan_of(process.next)
    self.assertEqual(getattr(chosen, 'name', None), plan)
    return weights

  def _check_bits(self, kind):
    process, clients = _process(kind), _clients(_RAGGED)
    rounds = [clients, clients[3:10], clients[::-1]]
    expected = self._train_by('loop', process, *rounds)
    for _ in range(10):
      found = self._train_by('parallel', process, *rounds)
      self.assert_same_bits(found, expected)
    self.assertEqual(
        _context('parallel').plan_of(process.next).num_parallel_clients,
        plans.num_cores(),
    )

  def test_parallel_has_the_bits_of_loop_every_time(self):
    self._check_bits('functional')

  @pytest.mark.slow
  def test_parallel_has_the_bits_of_loop_for_variable_models(self):
    self._check_bits('variable')

  def test_vectorized_works_on_many_clients_at_once(self):
    process, clients = _process(), _clients([8] * 10)
    expected = self._train_by('loop', process, clients, clients[:3])
    _context.cache_clear()  # What it has built is to be built again.
    with mock.patch.object(
        tf, 'vectorized_map', wraps=tf.vectorized_map
    ) as vectorized_map:
      found = self._train_by('vectorized', process, clients, clients[:3])
    vectorized_map.assert_called()
    self.assertAllClose(found, expected, rtol=1e-5, atol=1e-5)

  def _check_fall_back(self, process, clients):
    expected = self._train_by('loop', process, clients)
    found = self._train_by('vectorized', process, clients)
    self.assertAllClose(found, expected, rtol=1e-5, atol=1e-5)

  def test_vectorized_falls_back_where_clients_differ(self):
    self._check_fall_back(_process(), _clients(_RAGGED))

  @pytest.mark.slow
  def test_vectorized_falls_back_for_variable_models(self):
    self._check_fall_back(_process('variable'), _clients([8] * 10))

  @pytest.mark.slow
  def test_vectorized_falls_back_for_convolutions(self):
    self._check_fall_back(_image_process(), _image_clients([8] * 5))

  def test_xla_gives_the_results_of_loop(self):
    process, clients = _process(), _clients([8, 4, 7])
    self.assertAllClose(
        self._train_by('xla', process, clients),
        self._train_by('loop', process, clients),
        rtol=1e-5,
        atol=1e-5,
    )

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
    process = _learning.build_unweighted_fed_avg(model, _sgd(0.1), _sgd(1.0))
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
        for add_up in (_build_sum(), _build_sum()):
          add_up([1.0])
          add_up([1.0, 2.0])
    said = [line for line in logs.output if 'runs on' in line]
    self.assertLen(said, 1)
    self.assertIn('CPU:0, plan vectorized', said[0])


class BuildingTest(_Test):
  """That nothing is built again."""

  def test_cohorts_of_all_sizes_share_a_function(self):
    process = _process()
    with runtime.compiled_context(strict=True) as context:
      state = process.initialize()
      with mock.patch.object(
          graph_functions, 'build', wraps=graph_functions.build
      ) as build:
        for sizes in ([5], [9, 0, 3], range(7), range(20, 8, -1)):
          state = process.next(state, _clients(sizes)).state
        build.assert_called_once()
        # Clients that are all alike are kept in another form, once more.
        for num_clients, size in ((1, 4), (3, 8), (7, 4), (12, 3)):
          state = process.next(state, _clients([size] * num_clients)).state
        self.assertEqual(build.call_count, 2)
      (program,) = [
          program
          for program in context._programs.values()
          if hasattr(program, '_functions')
      ]
      self.assertLen(program._functions, 2)

  def test_programs_vanish_with_their_computation(self):
    with runtime.compiled_context(strict=True) as context:
      add_up = _build_sum()
      add_up([1.0, 2.0])
      (program,) = map(weakref.ref, context._programs.values())
      del add_up
      gc.collect()
      self.assertEmpty(context._programs)
      self.assertIsNone(program())

  def test_programs_vanish_with_their_context(self):
    add_up = _build_sum()
    with runtime.compiled_context(strict=True) as context:
      add_up([1.0, 2.0])
      (program,) = map(weakref.ref, context._programs.values())
    del context
    gc.collect()
    self.assertIsNone(program())
    # And the computation runs in the next one.
    with runtime.compiled_context(strict=True):
      self.assertEqual(add_up([1.0, 2.0]), 3.0)


@functools.cache
def _weigh() -> tff.framework.ConcreteComputation:
  """A computation whose result depends on the order of what clients have."""

  @tff.tensorflow.computation(tff.SequenceType(_BATCH_TYPE))
  def weigh(dataset):
    return dataset.reduce(
        0.0, lambda total, b: 0.7 * total + tf.reduce_sum(b['x'])
    )

  @tff.federated_computation(_at_clients(tff.SequenceType(_BATCH_TYPE)))
  def add_up(clients):
    return tff.federated_sum(tff.federated_map(weigh, clients))

  return add_up


def _draw(batch: Any) -> Any:
  noise = tf.random.uniform(tf.shape(batch['x']))
  return _Dict(x=batch['x'] + noise, y=batch['y'])


def _scale(batch: Any) -> Any:
  return _Dict(x=2.0 * batch['x'], y=batch['y'])


class DatasetsTest(_Test):
  """That datasets are read once, where they are always the same."""

  @contextlib.contextmanager
  def _count_reads(self) -> Iterator[mock.Mock]:
    with mock.patch.object(
        tf.data.Dataset,
        'as_numpy_iterator',
        autospec=True,
        side_effect=tf.data.Dataset.as_numpy_iterator,
    ) as read:
      yield read

  @parameterized.named_parameters(
      ('plain', lambda dataset: dataset),
      ('mapped', lambda dataset: dataset.map(_scale)),
      ('repeated', lambda dataset: dataset.unbatch().repeat(2).batch(3)),
      ('prefetched', lambda dataset: dataset.prefetch(tf.data.AUTOTUNE)),
  )
  def test_are_read_once(self, change):
    datasets = [change(_dataset(9)), change(_dataset(3))]
    with runtime.compiled_context(strict=True) as context:
      with self._count_reads() as read:
        for clients in (datasets, datasets[:1], datasets[::-1]):
          _weigh()(clients)
        self.assertEqual(read.call_count, 2)
      # The mock knows what it was called with.
      del clients, datasets, read
      gc.collect()
      self.assertEmpty(context._cache._datasets)

  @parameterized.named_parameters(
      ('shuffled', lambda dataset: dataset.shuffle(9)),
      (
          'shuffled_before',
          lambda dataset: dataset.unbatch().shuffle(9).batch(4).map(_scale),
      ),
      ('drawing', lambda dataset: dataset.map(_draw)),
      (
          'from_python',
          lambda dataset: tf.data.Dataset.from_generator(
              dataset.as_numpy_iterator, output_signature=dataset.element_spec
          ),
      ),
  )
  def test_are_read_anew_if_they_change(self, change):
    dataset = change(_dataset(9))
    with runtime.compiled_context(strict=True) as context:
      with self._count_reads() as read:
        for _ in range(3):
          _weigh()([dataset])
      reads = [call for call in read.call_args_list if call.args[0] is dataset]
      self.assertLen(reads, 3)
      self.assertEmpty(context._cache._datasets)

  def test_shuffles_are_new_in_each_round(self):
    dataset = _dataset(90).unbatch().shuffle(90).batch(4)
    with runtime.compiled_context(strict=True):
      found = [float(_weigh()([dataset])) for _ in range(4)]
    self.assertLen(set(found), 4)

  def test_vanish_with_their_context(self):
    dataset = _dataset(9)
    with runtime.compiled_context(strict=True) as context:
      _weigh()([dataset])
      (rows,) = [
          weakref.ref(read)
          for by_type in context._cache._datasets.values()
          for read in by_type.values()
      ]
    del context
    gc.collect()
    self.assertIsNone(rows())


def _round_function(context: runtime.CompiledContext, process: Any) -> Any:
  """The one function that was built for the rounds of a process."""
  program = context._programs[id(process.next)]
  (function,) = program._functions.values()
  return function


def _devices_of_calls(function: Any) -> set[str]:
  """Where a round's calls, which are the steps of its clients, are placed."""
  return {
      operation.device
      for operation in function.graph.get_operations()
      # What is in no loop happens at the server.
      if 'PartitionedCall' in operation.type and '/while/' in operation.name
  }


class DevicesTest(_Test):

  @parameterized.parameters(
      'CPU', 'cpu', 'cpu:0', 'CPU:0', '/device:CPU:0', [['CPU']]
  )
  def test_names_of_the_cpu(self, devices):
    context = runtime.create_compiled_context(devices=devices)
    self.assertEqual(context.device, 'CPU:0')

  @parameterized.parameters(
      'TPU', 'CPU:1', '/device:GPU:99', '', [[]], [['CPU', 'CPU']]
  )
  def test_unknown_devices(self, devices):
    with self.assertRaisesRegex(ValueError, "must name one of \\['CPU:0'"):
      runtime.create_compiled_context(devices=devices)

  def test_gpu_where_there_is_none(self):
    with mock.patch.object(tf.config, 'list_physical_devices', return_value=[]):
      with self.assertRaisesRegex(
          ValueError, "one of \\['CPU:0'\\].*found 'GPU'"
      ):
        runtime.create_compiled_context(devices='GPU')
      self.assertEqual(runtime.create_compiled_context().device, 'CPU:0')

  def test_clients_work_on_the_device(self):
    # Calls are inlined where clients are vectorized.
    process = _learning.build_fed_sgd(testing.functional_model(), _sgd(0.1))
    with _installed(_context('loop')):
      _train(process, _clients([5, 9]))
    function = _round_function(_context('loop'), process)
    self.assertEqual(_devices_of_calls(function), {'/device:CPU:0'})


class GpuTest(_Test):

  def setUp(self):
    super().setUp()
    if not tf.config.list_physical_devices('GPU'):
      self.skipTest('TensorFlow sees no GPU on this machine.')

  @pytest.mark.slow
  def test_trains_there_with_the_same_result(self):
    # What a GPU makes of float32 by itself keeps three digits only.
    tensor_float = tf.config.experimental.tensor_float_32_execution_enabled()
    tf.config.experimental.enable_tensor_float_32_execution(False)
    self.addCleanup(
        tf.config.experimental.enable_tensor_float_32_execution, tensor_float
    )
    process, clients = _image_process(), _image_clients([8, 3, 5])
    with runtime.compiled_context(devices='CPU', strict=True):
      expected = _train(process, clients)
    with runtime.compiled_context(devices='GPU', strict=True) as context:
      self.assertEqual(context.device, 'GPU:0')
      state = process.initialize()
      memory = tf.config.experimental.get_memory_info('GPU:0')
      tf.config.experimental.reset_memory_stats('GPU:0')
      found = process.next(state, clients).state
      peak = tf.config.experimental.get_memory_info('GPU:0')['peak']
      function = _round_function(context, process)
    self.assertAllClose(
        testing.trainable(found), expected, rtol=1e-3, atol=1e-3
    )
    self.assertEqual(_devices_of_calls(function), {'/device:GPU:0'})
    self.assertGreater(peak, memory['current'])

  def test_is_chosen_by_default(self):
    context = runtime.create_compiled_context()
    self.assertEqual(context.device, 'GPU:0')
    with self.assertRaisesRegex(ValueError, "'CPU:0', 'GPU:0'"):
      runtime.create_compiled_context(devices='GPU:99')


def _in_thread(fn: Callable[[], Any]) -> Any:
  """What a function returns in another thread, or raises there."""
  results: list[Any] = []

  def run():
    try:
      results.append((fn(), None))
    except BaseException as e:  # pylint: disable=broad-except
      results.append((None, e))

  thread = threading.Thread(target=run)
  thread.start()
  thread.join()
  ((result, error),) = results
  if error is not None:
    raise error
  return result


class ContextsTest(_Test):

  def test_works_while_an_event_loop_runs(self):
    # As in a notebook.
    async def train():
      return _train(_process(), _clients([5, 9]))

    with _installed(_context()):
      expected = _train(_process(), _clients([5, 9]))
      self.assert_same_bits(asyncio.run(train()), expected)

  def test_works_in_another_thread(self):
    def train():
      with runtime.compiled_context(plan='parallel', strict=True):
        return _train(_process(), _clients([5, 9]))

    with _installed(_context()):
      expected = _train(_process(), _clients([5, 9]))
    self.assert_same_bits(_in_thread(train), expected)

  def test_one_context_serves_several_threads(self):
    def train(size):
      with _installed(_context()):
        return _train(_process(), _clients([size, 9]))

    sizes = [5, 6, 7, 8]
    found: dict[int, Any] = {}
    threads = [
        threading.Thread(target=lambda s=size: found.update({s: train(s)}))
        for size in sizes
    ]
    for thread in threads:
      thread.start()
    for thread in threads:
      thread.join()
    for size in sizes:
      self.assert_same_bits(found[size], train(size))

  def test_context_before_is_back(self):
    stack = tff.framework.get_context_stack()
    before = stack.current
    with self.assertRaisesRegex(ValueError, 'as asked for'):
      with runtime.compiled_context() as context:
        self.assertIs(stack.current, context)
        raise ValueError('as asked for')
    self.assertIs(stack.current, before)

  def test_set_compiled_context_installs_the_default(self):
    stack = tff.framework.get_context_stack()
    before = stack.current

    def run():
      context = runtime.set_compiled_context(devices='CPU', plan='loop', seed=1)
      self.assertIs(stack.current, context)
      add_up = _build_sum()
      self.assertEqual(add_up([1.0, 2.0]), 3.0)
      self.assertEqual(context.plan_of(add_up).name, 'loop')
      # It is below what a block installs.
      with runtime.compiled_context() as other:
        self.assertIs(stack.current, other)
      self.assertIs(stack.current, context)

    # Every thread has a stack of its own, so that no other test notices.
    _in_thread(run)
    self.assertIs(stack.current, before)


class ArgumentsTest(_Test):
  """What the errors of wrong arguments say."""

  def _assert_refused(self, clients: Any, *words: str) -> None:
    process = _process()
    with _installed(_context()):
      state = process.initialize()
      with self.assertRaises(TypeError) as caught:
        process.next(state, clients)
    for word in words:
      self.assertIn(word, str(caught.exception))

  @parameterized.parameters(3, 2.5, None)
  def test_no_list_of_clients(self, clients):
    self._assert_refused(
        clients, 'must be a list', f'found {type(clients).__name__}'
    )

  def test_dataset_in_place_of_a_list_of_them(self):
    dataset = _dataset(5)
    self._assert_refused(
        dataset, 'must be a list', f'found {type(dataset).__name__}'
    )

  def test_dataset_of_other_shapes(self):
    dataset = tf.data.Dataset.from_tensor_slices(
        _Dict(x=np.zeros([3, 7], np.float32), y=np.zeros([3], np.int32))
    )
    self._assert_refused(
        [dataset.batch(2)], 'float32[?,5]', 'shape=(None, 7)', 'found'
    )

  def test_dataset_of_other_dtypes(self):
    dataset = _dataset(5).map(
        lambda b: _Dict(x=b['x'], y=tf.cast(b['y'], tf.int64))
    )
    self._assert_refused([_dataset(5), dataset], 'int32[?]', 'tf.int64')

  def test_dataset_of_other_names(self):
    dataset = _dataset(5).map(lambda b: _Dict(a=b['x'], b=b['y']))
    self._assert_refused([dataset], 'x=float32[?,5]', "'a'")

  def test_dataset_that_another_computation_has_read(self):
    element = _Dict(x=tff.TensorType(np.float32, [None]))
    read = tff.tensorflow.computation(
        lambda dataset: dataset.reduce(
            0.0, lambda total, e: total + tf.reduce_sum(e['x'])
        ),
        tff.SequenceType(element),
    )

    @tff.federated_computation(_at_clients(tff.SequenceType(element)))
    def add_up(clients):
      return tff.federated_sum(tff.federated_map(read, clients))

    dataset = tf.data.Dataset.from_tensor_slices(
        _Dict(x=np.ones([3], np.float32))
    ).batch(2)
    with _installed(_context()):
      self.assertEqual(add_up([dataset]), 3.0)
    self._assert_refused([dataset], 'x=float32[?,5]', 'shape=(None,)')

  def test_batches_of_other_shapes(self):
    batch = _Dict(x=np.zeros([2, 7], np.float32), y=np.zeros([2], np.int32))
    self._assert_refused([[batch]], 'x=float32[?,5]', '7')

  def test_batches_without_a_feature(self):
    self._assert_refused(
        [[_Dict(x=np.zeros([2, 5], np.float32))]],
        'x=float32[?,5],y=int32[?]',
        'found OrderedDict with other fields',
    )

  def test_cohort_of_other_features(self):
    source = simulation.PackedClientArrays.from_clients(
        {'a': {'x': np.zeros([3, 5], np.float32)}}
    )
    cohort = simulation.Cohort(source, ['a'], 0, 1, simulation.BatchPlan(2))
    self._assert_refused(cohort, 'x=float32[?,5],y=int32[?]', "{'x': (")

  def test_context_goes_on_after_an_error(self):
    with _installed(_context()):
      before = _train(_process(), _clients([5, 9]))
      with self.assertRaises(TypeError):
        _process().next(_process().initialize(), 3)
      after = _train(_process(), _clients([5, 9]))
    self.assert_same_bits(before, after)


# Rounds before which the memory is not yet what it will stay at, and after.
_WARM_UP, _NUM_ROUNDS = 20, 60
# As many of them have a line of their own.
_BLOCK = 10
_NUM_WIDE = 500
_MAX_GROWTH_KB = 100


@functools.cache
def _wide_process() -> Any:
  """A small model of long rows, so that data that stays would be noticed."""
  keras_model = tf.keras.Sequential(
      [tf.keras.layers.Dense(1, input_shape=(_NUM_WIDE,))]
  )
  spec = _Dict(
      x=tf.TensorSpec([None, _NUM_WIDE], tf.float32),
      y=tf.TensorSpec([None, 1], tf.float32),
  )
  model = tff.learning.models.functional_model_from_keras(
      keras_model, tf.keras.losses.MeanSquaredError(), spec
  )
  return _learning.build_weighted_fed_avg(model, _sgd(1e-4), _sgd(1.0))


def _wide_cohorts() -> Iterator[simulation.Cohort]:
  """Each round other clients and another number of them."""
  generator = np.random.default_rng(0)
  source = simulation.PackedClientArrays.from_clients(
      {
          str(size): _Dict(
              x=np.ones([size, _NUM_WIDE], np.float32),
              y=np.ones([size, 1], np.float32),
          )
          for size in range(1, 60)
      }
  )
  plan = simulation.BatchPlan(16)
  for round_num in range(_WARM_UP + _NUM_ROUNDS):
    num_clients = generator.integers(1, 15)
    sizes = generator.integers(1, 60, size=num_clients)
    if round_num == 0:
      # The largest comes first: what the allocator takes for it, it keeps.
      sizes = np.full([15], 59)
    yield simulation.Cohort(source, map(str, sizes), round_num, 1, plan)


def _give_free_memory_back() -> None:
  """Gives back what tests before have left, so that it does not hide growth."""
  gc.collect()
  ctypes.CDLL(None).malloc_trim(0)


class MemoryTest(_Test):

  def _check(self, form):
    process = _wide_process()
    _give_free_memory_back()
    # What there is already need not be looked at in every round.
    gc.freeze()
    self.addCleanup(gc.unfreeze)
    resident = []
    with _installed(_context()):
      state = process.initialize()
      for cohort in _wide_cohorts():
        state = process.next(state, form(cohort)).state
        gc.collect()
        resident.append(psutil.Process().memory_info().rss / 1024)
    # Now and then the allocator takes some MB at once, and a line through all
    # rounds would rise; growth with the rounds is in all blocks of them.
    blocks = np.reshape(resident[_WARM_UP:], [-1, _BLOCK])
    slopes, _ = np.polyfit(np.arange(_BLOCK), blocks.T, 1)
    growth = np.median(slopes)
    # A function that is built again, or the rows of the seven clients of a
    # round if they stayed, would be more than 300 KB a round. TensorFlow itself
    # loses some 100 bytes of every batch that is read of a dataset, of which
    # there are twenty here.
    self.assertLess(growth, _MAX_GROWTH_KB)

  def test_does_not_grow_with_cohorts(self):
    self._check(lambda cohort: cohort)

  @pytest.mark.slow
  def test_does_not_grow_with_batches(self):
    self._check(lambda cohort: [cohort.batches(i) for i in range(len(cohort))])

  @pytest.mark.slow
  def test_does_not_grow_with_new_datasets(self):
    self._check(list)


if __name__ == '__main__':
  tf.test.main()
