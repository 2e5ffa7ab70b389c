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
"""Tests that the compiled runtime gives what TFF's native runtime gives."""

import collections
from collections.abc import Mapping
import functools
from typing import Any

from absl.testing import parameterized
import attrs
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tff_adaptive import algorithms
from tff_adaptive import client_works
from tff_adaptive import optimizers
from tff_adaptive import runtime
from tff_adaptive import simulation
from tff_adaptive.optimizers import schedules

_UNIFORM = tff.learning.ClientWeighting.UNIFORM
_ITERATOR = tff.learning.LoopImplementation.DATASET_ITERATOR
_adam = tff.learning.optimizers.build_adam
_sgdm = tff.learning.optimizers.build_sgdm
_learning = tff.learning.algorithms

# Clients of a batch and less, of several batches with a short last one, and
# one without examples; two rounds of different size.
_SIZES = {'one': 1, 'nine': 9, 'four': 4, 'none': 0, 'many': 13, 'five': 5}
_ROUNDS: tuple[tuple[str, ...], ...] = (
    ('one', 'nine', 'four', 'none', 'many'),
    ('five', 'nine'),
)


@functools.cache
def _source() -> simulation.PackedClientArrays:
  """The clients; they share rows of one set of arrays."""
  generator = np.random.default_rng(0)
  num_rows = sum(_SIZES.values())
  shape = [num_rows, testing.NUM_FEATURES]
  values = collections.OrderedDict(
      x=generator.normal(size=shape).astype(np.float32),
      y=generator.integers(testing.NUM_CLASSES, size=num_rows, dtype=np.int32),
  )
  rows = generator.permutation(num_rows)
  ends = np.cumsum(list(_SIZES.values()))
  return simulation.PackedClientArrays.from_partition(
      values, dict(zip(_SIZES, np.split(rows, ends[:-1])))
  )


def _cohort(round_num: int = 0, **plan: Any) -> simulation.Cohort:
  return simulation.Cohort(
      _source(),
      _ROUNDS[round_num],
      round_num,
      seed=1,
      plan=simulation.BatchPlan(4, **plan),
  )


def _halving(round_num: Any) -> tf.Tensor:
  return 0.1 * 0.5 ** tf.cast(round_num, tf.float32)


# How the clients' part, and that of the server, is made from a model.
_PROCESSES = {
    'weighted_fed_avg': lambda model: _learning.build_weighted_fed_avg(
        model, _sgdm(0.1), _sgdm(1.0, 0.9)
    ),
    'unweighted_fed_avg': lambda model: _learning.build_unweighted_fed_avg(
        model, _adam(0.1), _adam(0.1)
    ),
    'fed_avg_by_iterator': lambda model: _learning.build_weighted_fed_avg(
        model, _sgdm(0.1), loop_implementation=_ITERATOR
    ),
    'fed_avg_with_schedule': lambda model: (
        _learning.build_weighted_fed_avg_with_optimizer_schedule(
            model, _halving, _sgdm
        )
    ),
    'fed_sgd': lambda model: _learning.build_fed_sgd(model, _sgdm(0.5)),
    'fed_sgd_by_iterator': lambda model: _learning.build_fed_sgd(
        model, _sgdm(0.5), loop_implementation=_ITERATOR
    ),
    'weighted_fed_prox': lambda model: _learning.build_weighted_fed_prox(
        model, 0.5, _sgdm(0.1)
    ),
    'unweighted_fed_prox': lambda model: _learning.build_unweighted_fed_prox(
        model, 0.5, _sgdm(0.1)
    ),
    'fed_eval': lambda model: _learning.build_fed_eval(model),
    'weighted_mime_lite': lambda model: _learning.build_weighted_mime_lite(
        model, _sgdm(0.1, 0.9)
    ),
    'unweighted_mime_lite': lambda model: _learning.build_unweighted_mime_lite(
        model, _adam(0.1)
    ),
    'mime_lite_with_schedule': lambda model: (
        _learning.build_mime_lite_with_optimizer_schedule(
            model, _halving, _sgdm(0.1, 0.9)
        )
    ),
    'robust_aggregator': lambda model: _learning.build_weighted_fed_avg(
        model, _sgdm(0.1), model_aggregator=tff.learning.robust_aggregator()
    ),
    'compression_aggregator': lambda model: _learning.build_weighted_fed_avg(
        model,
        _sgdm(0.1),
        model_aggregator=tff.learning.compression_aggregator(),
    ),
    'dp_aggregator_without_noise': lambda model: (
        _learning.build_unweighted_fed_avg(
            model,
            _sgdm(0.1),
            model_aggregator=tff.learning.dp_aggregator(0.0, 4.0),
        )
    ),
    'fed_opt_sgd': lambda model: algorithms.build_fed_opt(
        model, optimizers.build_sgd(0.1)
    ),
    'fed_opt_delta_sgd_recompute': lambda model: algorithms.build_fed_opt(
        model,
        optimizers.build_delta_sgd(),
        optimizers.build_adam(0.1),
        client_weighting=_UNIFORM,
        client_schedule=schedules.build_inverse_sqrt(),
        server_schedule=schedules.build_exp_decay(),
    ),
    'fed_opt_delta_sgd_reuse': lambda model: algorithms.build_fed_opt(
        model,
        optimizers.build_delta_sgd(previous_gradient='reuse'),
        optimizers.build_fedadam(0.1),
    ),
    'fed_opt_by_iterator': lambda model: algorithms.build_fed_opt(
        model, optimizers.build_delta_sgd(), loop_implementation=_ITERATOR
    ),
    'fed_opt_with_all_options': lambda model: algorithms.build_fed_opt(
        model,
        optimizers.build_adam(0.05),
        optimizers.build_fedyogi(0.1),
        model_aggregator=tff.learning.robust_aggregator(),
        loss_term=client_works.build_fedprox(0.3),
        clip_norm=0.5,
        weight_decay=0.1,
    ),
}

# Every kind of loop and of model, and a server that draws random numbers.
_SAMPLE = (
    ('weighted_fed_avg', 'functional'),
    ('fed_avg_by_iterator', 'variable'),
    ('fed_eval', 'variable'),
    ('dp_aggregator_without_noise', 'functional'),
    ('fed_opt_delta_sgd_recompute', 'functional'),
)
_OTHERS = tuple(
    (name, kind)
    for name in _PROCESSES
    for kind in ('functional', 'variable')
    if (name, kind) not in _SAMPLE
)


def _named(cases: Any) -> list[tuple[str, ...]]:
  return [(f'{name}_{kind}', name, kind) for name, kind in cases]


@functools.cache
def _model(kind: str) -> Any:
  return testing.either_model(kind)


@functools.cache
def _process(name: str, kind: str) -> tff.learning.templates.LearningProcess:
  return _PROCESSES[name](_model(kind))


def _doubled(value: Any) -> Any:
  """The value with twice its floats, in the same containers."""
  return tf.nest.map_structure(
      lambda leaf: np.asarray(2 * leaf, leaf.dtype), value
  )


def _run_process(process: Any, cohorts: Any) -> dict[str, Any]:
  """All that a learning process can do, in the context that is installed."""
  state = process.initialize()
  done = {'initialize': state}
  for round_num, cohort in enumerate(cohorts):
    output = process.next(state, cohort)
    state = output.state
    done[f'round {round_num}'] = output
  weights = process.get_model_weights(state)
  hparams = process.get_hparams(state)
  done['get_model_weights'] = weights
  done['set_model_weights'] = process.set_model_weights(
      state, _doubled(weights)
  )
  done['get_hparams'] = hparams
  done['set_hparams'] = process.set_hparams(state, _doubled(hparams))
  return done


@functools.cache
def _context() -> runtime.CompiledContext:
  """One context for all tests, so that a process is compiled once."""
  return runtime.create_compiled_context(strict=True, seed=1)


def _compiled() -> Any:
  return tff.framework.get_context_stack().install(_context())


class _EqualityTest(tf.test.TestCase):
  """Compares the compiled runtime with the context that is installed."""

  def assert_same(
      self, expected: Any, found: Any, atol: float, place: str = ''
  ) -> None:
    """Fails unless types of containers and leaves are equal, values close."""
    self.assertIs(type(found), type(expected), place)
    if isinstance(expected, Mapping):
      self.assertEqual(list(found), list(expected), place)
      pairs = [(f'{k!r}', expected[k], found[k]) for k in expected]
    elif attrs.has(type(expected)):
      names = [field.name for field in attrs.fields(type(expected))]
      pairs = [(n, getattr(expected, n), getattr(found, n)) for n in names]
    elif isinstance(expected, (list, tuple)):
      self.assertEqual(len(found), len(expected), place)
      pairs = [(f'[{i}]', *both) for i, both in enumerate(zip(expected, found))]
    else:
      self._assert_same_leaf(expected, found, atol, place)
      return
    for name, left, right in pairs:
      self.assert_same(left, right, atol, f'{place} {name}')

  def _assert_same_leaf(self, expected, found, atol, place):
    if isinstance(expected, bytes):
      self.assertEqual(found, expected, place)
      return
    self.assertIsInstance(expected, (np.ndarray, np.generic), place)
    self.assertEqual(found.dtype, expected.dtype, place)
    self.assertEqual(found.shape, expected.shape, place)
    if not np.issubdtype(expected.dtype, np.inexact):
      np.testing.assert_array_equal(found, expected, place)
      return
    np.testing.assert_allclose(
        found, expected, rtol=atol, atol=atol, err_msg=place
    )

  def assert_process_equals(
      self, process: Any, expected_cohorts: Any, cohorts: Any, atol=1e-5
  ) -> None:
    """Runs a process on both runtimes."""
    expected = _run_process(process, expected_cohorts)
    with _compiled():
      found = _run_process(process, cohorts)
    for name, value in expected.items():
      tf.nest.assert_same_structure(value, found[name])
      self.assert_same(value, found[name], atol, name)

  def assert_equals(self, computation: Any, *arguments: Any, atol=1e-6) -> Any:
    """Runs a computation on both runtimes; returns the result."""
    expected = computation(*arguments)
    with _compiled():
      found = computation(*arguments)
    self.assert_same(expected, found, atol)
    return found


@pytest.mark.usefixtures('native_runtime')
class ProcessesTest(_EqualityTest, parameterized.TestCase):

  def _check(self, name, kind):
    cohorts = [_cohort(0), _cohort(1)]
    # What the compiled runtime has of a cohort and of datasets is the same.
    self.assert_process_equals(
        _process(name, kind),
        [list(cohort) for cohort in cohorts],
        [cohorts[0], list(cohorts[1])],
    )

  @parameterized.named_parameters(*_named(_SAMPLE))
  def test_sample(self, name, kind):
    self._check(name, kind)

  @parameterized.named_parameters(*_named(_OTHERS))
  @pytest.mark.slow
  def test_others(self, name, kind):
    self._check(name, kind)

  @pytest.mark.slow
  def test_weights_that_are_not_trained(self):
    process = _learning.build_weighted_fed_avg(
        testing.variable_model_fn(batch_norm=True), _sgdm(0.1)
    )
    # Batches of one row have no variance, which is what normalization divides
    # by; only what is well conditioned can be compared.
    source, plan = _source(), simulation.BatchPlan(4, drop_remainder=True)
    cohort = simulation.Cohort(source, ['nine', 'many'], 0, 1, plan)
    self.assert_process_equals(process, [list(cohort)], [cohort], atol=1e-4)

  def test_k_means_of_single_examples(self):
    process = _learning.build_fed_kmeans(3, (2,), random_seed=(1, 2))
    points = np.random.default_rng(0).normal(size=[20, 2]).astype(np.float32)
    rounds = [
        [
            tf.data.Dataset.from_tensor_slices(client)
            for client in np.split(points, places)
        ]
        for places in ([1, 4, 4, 13], [7])
    ]
    states = []
    stack = tff.framework.get_context_stack()
    for context in (stack.current, _context()):
      with stack.install(context):
        states.append([process.initialize()])
        for clients in rounds:
          output = process.next(states[-1][-1], clients)
          states[-1].append(output.state)
        states[-1].append(output.metrics)
    self.assert_same(*states, atol=1e-5)


@pytest.mark.filterwarnings('ignore:Secure sums are computed in the clear')
class SecureSumsTest(_EqualityTest, parameterized.TestCase):

  @pytest.fixture(autouse=True)
  def _use_secure_runtime(self, secure_test_runtime):
    with tff.framework.get_context_stack().install(secure_test_runtime):
      yield

  @parameterized.parameters('functional', 'variable')
  @pytest.mark.slow
  def test_secure_aggregator(self, kind):
    process = _learning.build_weighted_fed_avg(
        _model(kind),
        _sgdm(0.1),
        model_aggregator=tff.learning.secure_aggregator(),
    )
    cohorts = [_cohort(0), _cohort(1)]
    self.assert_process_equals(process, map(list, cohorts), cohorts)

  def test_secure_sums(self):
    @tff.federated_computation(
        tff.FederatedType((np.int32, (np.int32, [2])), tff.CLIENTS)
    )
    def add_up(values):
      return tff.federated_secure_sum_bitwidth(values, 8)

    found = self.assert_equals(add_up, [(1, [2, 3]), (4, [5, 6])])
    self.assertAllEqual(found[1], [7, 9])


def _linear_model(
    dtype: Any, num_outputs: int, spec: Any, num_features: int = 3
) -> tff.learning.models.FunctionalModel:
  """Least squares, without help of Keras."""
  generator = np.random.default_rng(1)
  weights = generator.normal(size=[num_features, num_outputs]).astype(dtype)

  @tf.function
  def predict(model_weights, x, training):
    del training  # Unused.
    (kernel, bias), _ = model_weights
    return tf.matmul(x, kernel) + bias

  def loss(output, label, sample_weight=None):
    del sample_weight  # Unused.
    return tf.reduce_mean(tf.square(output - label))

  return tff.learning.models.FunctionalModel(
      initial_weights=((weights, np.zeros([num_outputs], dtype)), ()),
      predict_on_batch_fn=predict,
      loss_fn=loss,
      input_spec=spec,
  )


def _linear_examples(num_examples, dtype, num_outputs=1, seed=0):
  generator = np.random.default_rng(seed)
  x = generator.normal(size=[num_examples, 3]).astype(dtype)
  return x, generator.normal(size=[num_examples, num_outputs]).astype(dtype)


@pytest.mark.usefixtures('native_runtime')
class ModelsTest(_EqualityTest):

  def test_double_precision_and_pairs(self):
    spec = (
        tf.TensorSpec([None, 3], tf.float64),
        tf.TensorSpec([None, 1], tf.float64),
    )
    process = _learning.build_unweighted_fed_avg(
        _linear_model(np.float64, 1, spec), _sgdm(0.125)
    )
    datasets = [
        tf.data.Dataset.from_tensor_slices(
            _linear_examples(size, np.float64, seed=size)
        ).batch(4)
        for size in (1, 9, 4, 0, 13)
    ]
    # Pairs may come as lists of batches, too.
    lists = [list(dataset.as_numpy_iterator()) for dataset in datasets]
    self.assert_process_equals(
        process, [datasets, datasets[1:3]], [datasets, lists[1:3]], atol=1e-10
    )

  def test_noise_of_differential_privacy(self):
    # Clients without examples change nothing: what changes is the noise.
    spec = (
        tf.TensorSpec([None, 3], tf.float32),
        tf.TensorSpec([None, 20_000], tf.float32),
    )
    process = _learning.build_unweighted_fed_avg(
        _linear_model(np.float32, 20_000, spec),
        _sgdm(0.1),
        model_aggregator=tff.learning.dp_aggregator(0.5, 10.0),
    )
    empty = [[]] * 10
    with runtime.compiled_context(strict=True, seed=1) as context:
      start = process.initialize()
      changes = []
      for seed, round_num in ((1, 0), (1, 0), (1, 1), (2, 0)):
        context.begin_round(seed, round_num)
        end = process.next(start, empty).state
        changes.append(
            [
                new - old
                for new, old in zip(
                    testing.trainable(end), testing.trainable(start)
                )
            ]
        )
    first, again, other_round, other_seed = changes
    for left, right in zip(first, again):
      self.assertAllEqual(left, right)
    # Adaptive clipping starts at 0.1. It counts the clipped clients with noise
    # of its own, of deviation 0.05 a client, and takes that from the privacy of
    # the sum: Andrew et al., Differentially Private Learning with Adaptive
    # Clipping, Theorem 1.
    count_deviation = 0.05 * 10
    multiplier = (0.5**-2 - (2 * count_deviation) ** -2) ** -0.5
    deviation = multiplier * 0.1 / 10
    kernel, bias = first
    for sample in (kernel, bias):
      # Four times the error of a sample's deviation, and of its kurtosis.
      tolerance = 4 / np.sqrt(2 * sample.size)
      self.assertAllClose(np.std(sample) / deviation, 1.0, atol=tolerance)
      self.assertAllClose(
          np.mean(np.square(np.square(sample / deviation))),
          3.0,
          atol=4 * np.sqrt(96 / sample.size),
      )
    # What is drawn for rows, tensors, rounds and seeds is not the same.
    pairs = [
        (kernel[0], kernel[1]),
        (kernel[0], bias),
        (kernel[0], other_round[0][0]),
        (kernel[0], other_seed[0][0]),
    ]
    for left, right in pairs:
      self.assertLess(
          abs(np.corrcoef(left, right)[0, 1]), 4 / np.sqrt(bias.size)
      )

  @pytest.mark.slow
  def test_compression_of_a_large_model(self):
    # From 20,000 weights on updates are quantized, with random rounding.
    num_outputs = 10_000
    spec = (
        tf.TensorSpec([None, 3], tf.float32),
        tf.TensorSpec([None, num_outputs], tf.float32),
    )
    model = _linear_model(np.float32, num_outputs, spec)
    plain, compressed = (
        _learning.build_weighted_fed_avg(
            model, _sgdm(1000.0), model_aggregator=aggregator
        )
        for aggregator in (None, tff.learning.compression_aggregator())
    )
    dataset = tf.data.Dataset.from_tensor_slices(
        _linear_examples(5, np.float32, num_outputs)
    ).batch(4)
    changes = []
    for process in (plain, compressed):
      with _compiled():
        start = process.initialize()
        end = process.next(start, [dataset]).state
        changes.append(testing.trainable(end)[0] - testing.trainable(start)[0])
    expected, found = changes
    # Clipping scales the change as a whole.
    expected *= np.vdot(expected, found) / np.vdot(expected, expected)
    step = (np.max(found) - np.min(found)) / 255
    error = found - expected
    self.assertLess(np.max(np.abs(error)), 1.1 * step)
    self.assertGreater(np.std(error), 0.1 * step)
    self.assertLess(abs(np.mean(error)), 4 * step / np.sqrt(error.size))


def _tensor(dtype: Any, *shape: Any) -> tff.TensorType:
  return tff.TensorType(dtype, shape)


def _sequence(element: Any) -> tff.SequenceType:
  return tff.SequenceType(element)


def _over_clients(fn: Any, member_type: Any) -> Any:
  """A computation that sums `fn` of what clients have over clients."""
  work = tff.tensorflow.computation(fn, member_type)

  @tff.federated_computation(tff.FederatedType(member_type, tff.CLIENTS))
  def run(clients):
    return tff.federated_sum(tff.federated_map(work, clients))

  return run


def _weigh(value: Any) -> tf.Tensor:
  """A number that depends on all components of an element and their order."""
  total = tf.constant(0.0)
  for place, tensor in enumerate(tf.nest.flatten(value)):
    if tensor.dtype == tf.string:
      tensor = tf.strings.length(tensor)
    tensor = tf.reshape(tf.cast(tensor, tf.float32), [-1])
    numbers = tf.range(1.0, tf.cast(tf.size(tensor), tf.float32) + 1.0)
    total += (place + 1.0) * tf.reduce_sum(numbers * tensor) + 0.1
  return total


def _digest(dataset: tf.data.Dataset) -> tf.Tensor:
  """A number that depends on all elements of a dataset and their order."""
  return dataset.reduce(0.0, lambda state, e: 0.7 * state + _weigh(e))


@tf.function
def _digest_by_loop(dataset):
  state = 0.0
  for element in dataset:
    state = 0.7 * state + _weigh(element)
  return state


@tf.function
def _digest_by_iterator(dataset):
  state = 0.0
  for element in iter(dataset):
    state = 0.7 * state + _weigh(element)
  return state


@tf.function
def _digest_until_large(dataset):
  state = 0.0
  for element in iter(dataset):
    state = 0.7 * state + _weigh(element)
    if state > 20.0:
      break
  return state


def _digest_twice(dataset):
  once = _digest(dataset)
  return dataset.reduce(once, lambda state, e: 0.7 * state * _weigh(e))


def _digest_in_branch(dataset):
  size = _digest(dataset)
  return tf.cond(size > 10.0, lambda: _digest(dataset), lambda: -size)


def _digest_in_digest(dataset):
  return dataset.reduce(
      0.0, lambda state, e: state + _weigh(e) * _digest(dataset)
  )


def _digest_of_variable(dataset):
  variable = tf.Variable(1.0)

  @tf.function
  def run():
    variable.assign(1.0)

    def step(state, element):
      variable.assign_add(_weigh(element))
      return state + variable

    return dataset.reduce(0.0, step) + variable

  return run()


# How a client may read its dataset, and how it may make a new one of it.
_READ = {
    'reduction': _digest,
    'loop': _digest_by_loop,
    'iterator': _digest_by_iterator,
    'break': _digest_until_large,
    'two_reductions': _digest_twice,
    'branch': _digest_in_branch,
    'reduction_in_reduction': _digest_in_digest,
    'variable': _digest_of_variable,
    'nothing': lambda dataset: tf.constant(1.0),
}
_CHANGE = {
    'map': lambda dataset: _digest(dataset.map(lambda x: 2.0 * x)),
    'batch': lambda dataset: _digest(dataset.unbatch().batch(2)),
    'filter': lambda dataset: _digest(dataset.filter(lambda x: x[0] > 1.0)),
    'repeat': lambda dataset: _digest(dataset.take(2).repeat(2)),
    'enumerate': lambda dataset: _digest(
        dataset.enumerate().map(lambda i, x: tf.cast(i, tf.float32) * x)
    ),
    'cardinality': lambda dataset: tf.cast(dataset.cardinality(), tf.float32),
}


def _numbers(*sizes: int) -> list[np.ndarray]:
  """Batches of numbers, all different."""
  ends = np.cumsum(sizes)
  numbers = np.arange(sum(sizes), dtype=np.float32) + 0.5
  return [part for part in np.split(numbers, ends)[:-1]]


def _dataset(elements: list[Any], element_type: Any) -> tf.data.Dataset:
  """A dataset of elements of any sizes, without a function of Python."""
  spec = tff.types.type_to_tf_tensor_specs(tff.to_type(element_type))

  def one(element):
    return tf.data.Dataset.from_tensors(
        tf.nest.map_structure(
            lambda s, leaf: np.asarray(leaf, s.dtype.as_numpy_dtype),
            spec,
            element,
        )
    )

  if not elements:
    zeros = tf.nest.map_structure(
        lambda s: np.zeros([size or 0 for size in s.shape]), spec
    )
    return one(zeros).take(0)
  dataset = one(elements[0])
  for element in elements[1:]:
    dataset = dataset.concatenate(one(element))
  return dataset


_ROWS = _sequence(_tensor(np.float32, None))
_Dict = collections.OrderedDict

# Elements of all kinds: their type, and two clients with lists of them.
_ELEMENTS = {
    'numbers': (np.float32, [[1.0, 2.0, 3.0], [4.0]]),
    'integers': (np.int64, [[1, 2, 3], [4]]),
    'vectors': (
        _tensor(np.float32, 2),
        [[np.float32([1, 2]), np.float32([3, 4])], [np.float32([5, 6])]],
    ),
    'rows': (_tensor(np.float32, None), [_numbers(4, 4, 1), _numbers(2)]),
    'rows_and_an_empty_client': (
        _tensor(np.float32, None),
        [_numbers(3), [], []],
    ),
    'matrices': (
        _tensor(np.float32, None, 2),
        [[np.ones([3, 2], np.float32)], [np.ones([1, 2], np.float32)]],
    ),
    'rows_of_any_size': (
        _tensor(np.float32, None, None),
        [[np.ones([3, 2], np.float32)], [np.ones([1, 4], np.float32)]],
    ),
    'rows_and_a_number': (
        _Dict(x=_tensor(np.float32, None), w=np.float32),
        [
            [_Dict(x=np.float32([1, 2]), w=np.float32(3))],
            [_Dict(x=np.float32([4]), w=np.float32(5))],
        ],
    ),
    'rows_of_two_lengths': (
        _Dict(x=_tensor(np.float32, None), y=_tensor(np.float32, None)),
        [[_Dict(x=np.float32([1, 2]), y=np.float32([3]))]],
    ),
    # `tf.data` sorts names, types keep them as they are.
    'names_not_in_order': (
        _Dict(b=_tensor(np.float32, None), a=_tensor(np.float32, None)),
        [[_Dict(b=np.float32([1, 2]), a=np.float32([3, 4]))]],
    ),
    'pairs': (
        (_tensor(np.float32, None), _tensor(np.int32, None)),
        [[(np.float32([1, 2]), np.int32([3, 4]))]],
    ),
    'structures': (
        _Dict(
            x=(_tensor(np.float32, None), _tensor(np.float32, None, 2)),
            y=_tensor(np.int64, None),
        ),
        [
            [
                _Dict(
                    x=(np.float32([1, 2]), np.ones([2, 2], np.float32)),
                    y=np.int64([3, 4]),
                )
            ]
        ],
    ),
    'strings': (
        _tensor(np.str_, None),
        [[np.array(['a', 'bc'], object)], [np.array(['def'], object)]],
    ),
    'other_dtypes': (
        (
            _tensor(np.float16, None),
            _tensor(np.bool_, None),
            _tensor(np.uint8, None),
            _tensor(np.float64, None),
        ),
        [
            [
                (
                    np.float16([1, 2]),
                    np.array([True, False]),
                    np.uint8([3, 4]),
                    np.float64([5, 6]),
                )
            ]
        ],
    ),
}


@pytest.mark.usefixtures('native_runtime')
class ArgumentsTest(_EqualityTest, parameterized.TestCase):
  """The forms that clients' data come in, and what clients do with them."""

  def test_all_forms_of_a_cohort(self):
    process = _process('fed_opt_sgd', 'functional')
    state = process.initialize()
    source = _source()
    lazy = simulation.LazyClientArrays(
        source.client_ids, source.examples, source.element_spec
    )
    for plan in (
        simulation.BatchPlan(4),
        simulation.BatchPlan(4, num_epochs=2),
        simulation.BatchPlan(
            3, num_epochs=2, shuffle=False, drop_remainder=True
        ),
        simulation.BatchPlan(100, max_examples=7),
    ):
      cohort = simulation.Cohort(source, _ROUNDS[0], 3, 1, plan)
      batches = [cohort.batches(i) for i in range(len(cohort))]
      forms = {
          'cohort': cohort,
          'slice': cohort[:],
          'not packed': attrs.evolve(cohort, source=lazy),
          'datasets': list(cohort),
          'tuple': tuple(cohort),
          'batches': batches,
          'names not in order': [
              [dict(y=batch['y'], x=batch['x']) for batch in client]
              for client in batches
          ],
      }
      expected = process.next(state, list(cohort))
      for name, clients in forms.items():
        with _compiled():
          found = process.next(state, clients)
        self.assert_same(expected, found, 1e-5, f'{name}, {plan}')

  def test_client_that_occurs_twice(self):
    process = _process('fed_opt_sgd', 'functional')
    state = process.initialize()
    cohort = simulation.Cohort(
        _source(), ['nine', 'one', 'nine'], 0, 1, simulation.BatchPlan(4)
    )
    expected = process.next(state, list(cohort))
    with _compiled():
      self.assert_same(expected, process.next(state, cohort), 1e-5)

  def test_no_clients(self):
    process = _process('fed_opt_sgd', 'functional')
    state = process.initialize()
    nobody = _cohort()[:0]
    self.assertEmpty(nobody)
    expected = process.next(state, [])
    with _compiled():
      for clients in ([], nobody):
        self.assert_same(expected, process.next(state, clients), 1e-5)

  def test_elements(self):
    # All kinds at once: each is a field of what a client has.
    member_type = tff.StructType(
        [(name, _sequence(kind)) for name, (kind, _) in _ELEMENTS.items()]
    )
    digests = _over_clients(
        lambda value: _Dict((name, _digest(value[name])) for name in _ELEMENTS),
        member_type,
    )
    clients = [
        _Dict(
            (name, _dataset(lists[i] if i < len(lists) else [], kind))
            for name, (kind, lists) in _ELEMENTS.items()
        )
        for i in range(3)
    ]
    self.assert_equals(digests, clients)

  @parameterized.named_parameters(
      (name, *case) for name, case in _ELEMENTS.items()
  )
  @pytest.mark.slow
  def test_elements_alone(self, element_type, clients):
    self.assert_equals(
        _over_clients(_digest, _sequence(element_type)),
        [_dataset(client, element_type) for client in clients],
    )

  @parameterized.named_parameters(
      (name, element_type, clients)
      for name, (element_type, clients) in _ELEMENTS.items()
      # TFF's runtime takes no lists of arrays.
      if name not in ('vectors',)
  )
  @pytest.mark.slow
  def test_lists_of_elements(self, element_type, clients):
    digest = _over_clients(_digest, _sequence(element_type))
    expected = digest([_dataset(client, element_type) for client in clients])
    with _compiled():
      self.assert_same(expected, digest(clients), 1e-6)

  def _ranges(self):
    return [
        tf.data.Dataset.range(size)
        .map(lambda x: tf.cast(x, tf.float32) + 0.5)
        .batch(4)
        for size in (1, 9, 4, 0, 13)
    ]

  @parameterized.named_parameters(('reading', _READ), ('changing', _CHANGE))
  def test_uses(self, uses):
    def run(dataset):
      return _Dict((name, use(dataset)) for name, use in uses.items())

    self.assert_equals(_over_clients(run, _ROWS), self._ranges())

  @parameterized.named_parameters(*_READ.items(), *_CHANGE.items())
  @pytest.mark.slow
  def test_uses_alone(self, use):
    self.assert_equals(_over_clients(use, _ROWS), self._ranges())

  @parameterized.named_parameters(*_READ.items(), *_CHANGE.items())
  @pytest.mark.slow
  def test_uses_of_lists(self, use):
    use = _over_clients(use, _ROWS)
    lists = [_numbers(4, 4, 1), [], _numbers(3)]
    self.assert_equals(use, lists)

  def test_several_fields(self):
    # What a client has need not be a sequence alone.
    fields = tff.StructType(
        [('a', _ROWS), ('b', _tensor(np.float32, 2)), ('c', _ROWS)]
    )
    compute = _over_clients(
        lambda v: _digest(v['a']) + v['b'] * _digest(v['c']), fields
    )
    clients = [
        _Dict(a=_numbers(2, 1), b=np.float32([3, 4]), c=_numbers(5)),
        _Dict(a=[], b=np.float32([5, 6]), c=_numbers(1, 1)),
    ]
    self.assert_equals(compute, clients)
    self.assert_equals(compute, [])

  def test_state_of_clients(self):
    # State goes in as a sequence of one element beside the data, and comes out
    # stacked at the server, with the ids of the clients beside it.
    state_type = _Dict(w=_tensor(np.float32, 2, 3), n=np.int32)
    member_type = tff.to_type(
        _Dict(data=_ROWS, state=_sequence(state_type), id=np.str_)
    )
    stacked_type = tff.to_type(
        _Dict(
            id=_tensor(np.str_, None),
            w=_tensor(np.float32, None, 2, 3),
            n=_tensor(np.int32, None),
        )
    )

    @tff.tensorflow.computation(member_type)
    def work(client):
      none = (tf.zeros([2, 3]), tf.constant(0))
      w, n = client['state'].reduce(none, lambda _, s: (s['w'], s['n']))
      return _Dict(id=client['id'], w=w + _digest(client['data']), n=n + 1)

    @tff.tensorflow.computation
    def zero():
      return _Dict(
          id=tf.zeros([0], tf.string),
          w=tf.zeros([0, 2, 3]),
          n=tf.zeros([0], tf.int32),
      )

    @tff.tensorflow.computation(stacked_type, work.type_signature.result)
    def accumulate(stacked, client):
      return _Dict(
          (name, tf.concat([stacked[name], client[name][tf.newaxis]], 0))
          for name in stacked
      )

    @tff.tensorflow.computation(stacked_type, stacked_type)
    def merge(left, right):
      return _Dict(
          (name, tf.concat([left[name], right[name]], 0)) for name in left
      )

    @tff.tensorflow.computation(stacked_type)
    def report(stacked):
      return stacked

    @tff.federated_computation(_at_clients(member_type))
    def run(clients):
      reports = tff.federated_map(work, clients)
      return tff.federated_aggregate(reports, zero(), accumulate, merge, report)

    sizes = {'a': (4, 2), 'b': (3,), 'c': (), 'd': (1, 1, 1)}
    clients = [
        _Dict(
            data=_dataset(_numbers(*parts), _ROWS.element),
            state=_dataset(
                [_Dict(w=np.full([2, 3], place), n=place)], state_type
            ),
            id=name,
        )
        for place, (name, parts) in enumerate(sizes.items())
    ]
    found = self.assert_equals(run, clients)
    self.assertEqual(found['id'].tolist(), [b'a', b'b', b'c', b'd'])
    self.assertEqual(found['n'].tolist(), [1, 2, 3, 4])

  @pytest.mark.slow
  def test_preprocessing_in_the_process(self):
    example_spec = _Dict(
        x=_tensor(np.float32, testing.NUM_FEATURES), y=np.int32
    )

    @tff.tensorflow.computation(_sequence(example_spec))
    def preprocess(dataset):
      return dataset.take(7).repeat(2).batch(4)

    process = _process('fed_opt_sgd', 'functional')
    datasets = [
        tf.data.Dataset.from_tensor_slices(_source().examples(name))
        for name in _ROUNDS[0]
    ]
    for compose in (
        tff.simulation.compose_dataset_computation_with_learning_process,
        tff.simulation.compose_dataset_computation_with_iterative_process,
    ):
      composed = compose(preprocess, process)
      results = []
      stack = tff.framework.get_context_stack()
      for context in (stack.current, _context()):
        with stack.install(context):
          output = composed.next(composed.initialize(), datasets)
          results.append((output, composed.next(output.state, datasets[:2])))
      self.assert_same(*results, 1e-5)

  def test_data_made_of_client_ids(self):
    @tff.tensorflow.computation(np.str_)
    def make(client_id):
      size = tf.strings.to_number(client_id, tf.int64)
      numbers = tf.data.Dataset.range(size)
      return numbers.map(lambda x: tf.cast(x, tf.float32)).batch(2)

    @tff.federated_computation(tff.FederatedType(_ROWS, tff.CLIENTS))
    def run(clients):
      digest = tff.tensorflow.computation(_digest, _ROWS)
      return tff.federated_sum(tff.federated_map(digest, clients))

    composed = tff.simulation.compose_dataset_computation_with_computation(
        make, run
    )
    self.assert_equals(composed, ['3', '0', '10'])


def _at_clients(member_type: Any = np.float32) -> tff.FederatedType:
  return tff.FederatedType(member_type, tff.CLIENTS)


def _at_server(member_type: Any = np.float32) -> tff.FederatedType:
  return tff.FederatedType(member_type, tff.SERVER)


@tff.tensorflow.computation(np.float32, np.float32)
def _add(left, right):
  return left + right


@tff.tensorflow.computation
def _constants():
  return _Dict(b=(tf.constant([1.0, 2.0]), tf.constant('text')), a=[3, True])


@pytest.mark.usefixtures('native_runtime')
class ComputationsTest(_EqualityTest):
  """Computations that are no learning process."""

  def test_sums_and_means(self):
    @tff.federated_computation(_at_clients())
    def add_up(values):
      return tff.federated_sum(values)

    @tff.federated_computation(_at_clients())
    def average(values):
      return tff.federated_mean(values)

    @tff.federated_computation(_at_clients(_Dict(x=np.float32, w=np.float32)))
    def weighted(values):
      return _Dict(
          mean=tff.federated_mean(values.x, values.w),
          total=tff.federated_sum(values.w),
      )

    for computation in (add_up, average):
      for values in ([1.0, 2.0, 3.5], [4.0], []):
        self.assert_equals(computation, values)
    self.assert_equals(weighted, [_Dict(x=1.0, w=2.0), _Dict(x=2.0, w=3.0)])

  def test_structures_of_sums(self):
    @tff.federated_computation(
        _at_clients(
            _Dict(b=_tensor(np.int64, 2), a=(np.float64, _Dict(c=np.int32)))
        )
    )
    def add_up(values):
      return tff.federated_sum(values)

    self.assert_equals(
        add_up,
        [_Dict(b=[i, 2 * i], a=(0.5 * i, _Dict(c=i))) for i in range(20)],
    )

  def test_server_and_clients_to_one_value(self):
    @tff.federated_computation(_at_server(), _at_clients())
    def add_to(start, values):
      return tff.federated_map(_add, (start, tff.federated_sum(values)))

    @tff.federated_computation(_at_server(), _at_clients())
    def broadcast(start, values):
      sums = tff.federated_map(_add, (tff.federated_broadcast(start), values))
      return tff.federated_mean(sums)

    self.assert_equals(add_to, 10.0, [1.0, 2.0])
    self.assert_equals(broadcast, 10.0, [1.0, 2.0])

  def test_server_and_clients_to_two_values(self):
    @tff.federated_computation(_at_server(), _at_clients())
    def both(start, values):
      total = tff.federated_sum(values)
      return tff.federated_map(_add, (start, total)), total

    @tff.federated_computation(_at_server(np.int32), _at_clients())
    def neither_is_the_state(start, values):
      return tff.federated_sum(values), start

    self.assert_equals(both, 10.0, [1.0, 2.0])
    self.assert_equals(neither_is_the_state, np.int32(10), [1.0, 2.0])

  def test_server_alone(self):
    @tff.federated_computation
    def one_value():
      return tff.federated_value(3, tff.SERVER)

    @tff.federated_computation
    def computed():
      return tff.federated_eval(_constants, tff.SERVER)

    @tff.federated_computation
    def zipped():
      return tff.federated_zip(
          _Dict(
              b=tff.federated_value(3, tff.SERVER),
              a=tff.federated_eval(_constants, tff.SERVER),
          )
      )

    for computation in (one_value, computed, zipped, _constants):
      self.assert_equals(computation)

  def test_tensorflow_alone(self):
    rows = _sequence(_tensor(np.float32, None))

    @tff.tensorflow.computation(np.float32, rows)
    def scale(factor, dataset):
      return _Dict(result=factor * _digest(dataset), text=tf.constant('a'))

    self.assert_equals(_add, 1.0, 2.0)
    self.assert_equals(scale, 2.0, _dataset(_numbers(3, 1), rows.element))

  def test_containers_of_python(self):
    @attrs.define
    class Pair:
      left: Any
      right: Any

    @tff.tensorflow.computation
    def make():
      return Pair([1, (2.0,)], _Dict(z=tf.constant(3), a=()))

    @tff.tensorflow.computation(make.type_signature.result)
    def pass_on(pair):
      return pair

    self.assert_equals(pass_on, self.assert_equals(make))


if __name__ == '__main__':
  tf.test.main()
