# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that the compiled runtime says what it cannot do as it is asked.

It warns of what the native runtime takes over, and of secure sums in the clear,
or refuses them.
"""

import collections
from collections.abc import Iterator
import contextlib
import re
from typing import Any
import warnings

from absl.testing import parameterized
import attrs
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tests.tff_adaptive.runtime import compiled_testing
from tests.tff_adaptive.runtime import dropout_testing
from tests.tff_adaptive.runtime import sequence_testing
from tests.tff_adaptive.runtime import worker_testing
from tff_adaptive import runtime
from tff_adaptive.runtime import compiled


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


@attrs.frozen
class _Pair:
  first: Any
  second: Any


@tff.tensorflow.computation(np.int32)
def _enqueue(number):
  queue = tf.queue.FIFOQueue(10, [tf.int32], [[]])
  with tf.control_dependencies([queue.enqueue(number)]):
    return _Pair(queue.size(), -number)


@tff.federated_computation(testing.at_clients(np.int32))
def _enqueue_at_clients(numbers):
  return tff.federated_map(_enqueue, numbers)


@tff.federated_computation(testing.at_clients(np.int32))
def _sum_of_enqueued(numbers):
  return tff.federated_sum(tff.federated_map(_enqueue, numbers))


@tff.federated_computation(tff.FunctionType(np.int32, np.int32), np.int32)
def _call(function, number):
  return function(number)


_sum_of_all = sequence_testing.over_clients(
    lambda array: tf.reduce_sum(array), tff.TensorType(np.float32, [None])
)
_REASON = (
    "'fifo_queue' (FIFOQueueV2) would keep its state between runs; pass the "
    'state as an argument and return it instead'
)


# Computations that need TFF's runtime, their arguments and results, and why.
_NOT_COMPILED = (
    ('tensorflow', _enqueue, np.int32(3), _Pair(1, -3), _REASON),
    (
        'results_at_the_clients',
        _enqueue_at_clients,
        [3, 4],
        [_Pair(1, -3), _Pair(1, -4)],
        _REASON,
    ),
    ('round', _sum_of_enqueued, [3, 4], _Pair(2, -7), _REASON),
)


class FallbackTest(tf.test.TestCase, parameterized.TestCase):

  def test_all_run_on_one_worker_each_after_one_warning(self):
    before = worker_testing.workers()
    with runtime.CompiledContext() as context:
      for name, computation, argument, expected, reason in _NOT_COMPILED:
        with self.subTest(name):
          with _recorded_warnings() as texts:
            for _ in range(2):
              self.assertEqual(computation(argument), expected)
          (text,) = texts
          self.assertStartsWith(
              text, f"TFF's native runtime takes over, because {reason}. "
          )
          # What to write instead, and the start of the type, in one line.
          self.assertIn(
              computation.type_signature.compact_representation()[:100], text
          )
          self.assertNotIn('\n', text)
          self.assertIsNone(context.plan_of(computation))
      self.assertLen(worker_testing.workers() - before, 1)
    self.assertEmpty(worker_testing.workers() - before)

  def test_functions_as_arguments_are_handed_over(self):
    negate = tff.tensorflow.computation(lambda x: -x, np.int32)
    with runtime.CompiledContext(), _recorded_warnings() as texts:
      self.assertEqual(_call(negate, 3), -3)
    (text,) = texts
    self.assertIn('(int32 -> int32)); call the function within', text)

  def test_random_numbers_without_a_seed_are_handed_over(self):
    draw = tff.tensorflow.computation(lambda: tf.random.gamma([], 1.0))
    with runtime.CompiledContext(), _recorded_warnings() as texts:
      self.assertNotEqual(draw(), draw())
    (text,) = texts
    self.assertIn("RandomGamma'), which takes no seed; draw them by", text)

  def test_clients_that_differ_in_shape_are_not_handed_over(self):
    arrays = [np.ones([2], np.float32), np.ones([5], np.float32)]
    with runtime.CompiledContext(strict=True) as context:
      self.assertEqual(_sum_of_all(arrays[:1]), 2.0)
      self.assertEqual(_sum_of_all(arrays), 7.0)
      self.assertIsNotNone(context.plan_of(_sum_of_all))
      self.assertEqual(_sum_of_all(arrays[:1]), 2.0)

  def _draw_twice(self, draw_number):
    """Returns the clients' draws in two runs, and the last warning."""
    draw, found = dropout_testing.build_draw(draw_number), []
    for _ in range(2):
      with runtime.CompiledContext(), _recorded_warnings() as texts:
        found.append(draw([[np.int64(1)], [np.int64(2)]]))
    (text,) = texts
    return *found, text

  @pytest.mark.slow
  def test_draws_the_same_in_each_run(self):
    first, again, text = self._draw_twice(lambda: tf.random.uniform([]))
    self.assertAllEqual(first, again)
    self.assertNotEqual(first[0], first[1])
    self.assertNotIn('random', text)

  @pytest.mark.slow
  def test_says_what_is_drawn_anew(self):
    first, again, text = self._draw_twice(lambda: tf.random.gamma([], 1.0))
    self.assertNotAllEqual(first, again)
    self.assertIn('in each run, because random numbers are drawn', text)

  def test_close_ends_the_worker_and_may_be_repeated(self):
    before = worker_testing.workers()
    context = runtime.CompiledContext()
    stack = tff.framework.get_context_stack()
    with stack.install(context), _recorded_warnings():
      _enqueue_at_clients([1])
    started = worker_testing.workers() - before
    self.assertLen(started, 1)
    context.close()
    self.assertFalse(any(worker.is_running() for worker in started))
    context.close()

  @parameterized.named_parameters(*_NOT_COMPILED)
  def test_strict_context_raises(self, computation, argument, _, reason):
    before = worker_testing.workers()
    with runtime.CompiledContext(strict=True):
      for _ in range(2):
        with self.assertRaisesRegex(
            runtime.UnsupportedComputationError, re.escape(reason)
        ):
          computation(argument)
      self.assertEqual(worker_testing.workers(), before)

  def test_warning_names_the_line_of_the_caller(self):
    with runtime.CompiledContext():
      with self.assertWarns(RuntimeWarning) as caught:
        _enqueue_at_clients([1])
    self.assertEqual(caught.filename, __file__)

  def test_warning_has_one_line_of_a_long_type(self):
    names = [f'name_of_a_weight_{number}' for number in range(50)]
    long_type = tff.to_type(collections.OrderedDict.fromkeys(names, np.float32))
    text = compiled._cut(tff.FunctionType(long_type, long_type))
    self.assertStartsWith(text, '(<name_of_a_weight_0=float32,')
    self.assertLen(text, 104)

  def test_starts_no_worker_without_need(self):
    before = worker_testing.workers()
    with runtime.CompiledContext():
      with _recorded_warnings() as texts:
        self.assertEqual(compiled_testing.build_sum()([1.0, 2.0]), 3.0)
      self.assertEqual(worker_testing.workers(), before)
    self.assertEmpty(texts)


_PAIR_TYPE = tff.types.tensorflow_to_type(
    collections.OrderedDict(
        a=tf.TensorSpec([None], tf.float32), b=tf.TensorSpec([3], tf.float32)
    )
)
_ROWS_TYPE = tff.TensorType(np.float32, [None, None])


def _build_sum_of(
    element_type: tff.Type, add: Any
) -> tff.framework.ConcreteComputation:
  """Returns a new sum of the clients' results from their datasets."""
  return sequence_testing.over_clients(add, tff.SequenceType(element_type))


def _reduce(elements: tf.data.Dataset) -> tf.Tensor:
  return elements.reduce(
      0.0,
      lambda total, element: total
      + sum(map(tf.reduce_sum, tf.nest.flatten(element))),
  )


# Computations whose clients' data are not kept as rows, their clients, and why.
_PIPELINES = (
    (
        'work_on_a_dataset',
        lambda: _build_sum_of(
            np.float32, lambda d: _reduce(d.window(2).flat_map(lambda w: w))
        ),
        [[1.0, 2.0, 3.0], [4.0]],
        10.0,
        "clients' work does more than read its dataset: it calls WindowDataset",
    ),
    (
        'elements_of_no_kind',
        lambda: _build_sum_of(_PAIR_TYPE, _reduce),
        [[{'a': np.ones([2], np.float32), 'b': np.ones([3], np.float32)}]],
        5.0,
        'are neither batches of rows nor all of one shape',
    ),
    (
        'rows_that_differ_in_shape',
        lambda: _build_sum_of(_ROWS_TYPE, _reduce),
        [[np.ones([1, 2], np.float32)], [np.ones([1, 3], np.float32)]],
        5.0,
        'rows differ in shape: (2,) and (3,)',
    ),
)


class PipelinesTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.named_parameters(*_PIPELINES)
  def test_run_after_one_warning(self, build, clients, expected, reason):
    computation = build()
    with runtime.CompiledContext() as context:
      with _recorded_warnings() as texts:
        for _ in range(2):
          self.assertEqual(computation(clients), expected)
      plan = context.plan_of(computation)
    (text,) = texts
    self.assertIn(f'because {plan.pipelines}.', text)
    self.assertIn(reason, plan.pipelines)

  @parameterized.named_parameters(*_PIPELINES)
  def test_are_refused_by_a_strict_context(self, build, clients, _, reason):
    computation = build()
    with runtime.CompiledContext(strict=True):
      for _ in range(2):
        with self.assertRaisesRegex(
            runtime.UnsupportedComputationError, re.escape(reason)
        ):
          computation(clients)

  def test_other_shapes_in_later_rounds_do_not_warn_again(self):
    add_up = _build_sum_of(_ROWS_TYPE, _reduce)
    with runtime.CompiledContext(), _recorded_warnings() as texts:
      for width in (3, 4):
        shapes = ([1, 2], [1, width])
        clients = [[np.ones(shape, np.float32)] for shape in shapes]
        self.assertEqual(add_up(clients), 2.0 + width)
    self.assertLen(texts, 1)

  def test_of_rows_are_none(self):
    add_up = _build_sum_of(np.float32, _reduce)
    with runtime.CompiledContext(strict=True) as context:
      self.assertEqual(add_up([[1.0, 2.0], []]), 3.0)
      self.assertIsNone(context.plan_of(add_up).pipelines)


def _build_secure_sum(bitwidth: int) -> tff.framework.ConcreteComputation:
  @tff.federated_computation(testing.at_clients(np.int32))
  def add_up(values):
    return tff.federated_secure_sum_bitwidth(values, bitwidth)

  return add_up


class SecureSumsTest(tf.test.TestCase, parameterized.TestCase):

  def test_warn_once_in_each_context(self):
    with _recorded_warnings() as texts:
      for _ in range(2):
        with runtime.CompiledContext(strict=True):
          for add_up in (_build_secure_sum(4), _build_secure_sum(8)):
            self.assertEqual(add_up([1, 2]), 3)
            self.assertEqual(add_up([3]), 3)
    self.assertLen(texts, 2)
    for text in texts:
      self.assertIn('Secure sums are computed in the clear', text)

  def test_modular_ones_are_sums_in_the_clear(self):
    @tff.federated_computation(testing.at_clients(np.int32))
    def add_up(values):
      return tff.backends.mapreduce.federated_secure_modular_sum(values, 8)

    with _recorded_warnings() as texts:
      with runtime.CompiledContext(strict=True):
        self.assertEqual(add_up([5, 6, 7]), 18 % 8)
    self.assertLen(texts, 1)
