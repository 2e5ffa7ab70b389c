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
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tests.tff_adaptive.runtime import compiled_testing
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


_REASON = (
    "'fifo_queue' (FIFOQueueV2) would keep its state between runs; pass the "
    'state as an argument and return it instead'
)
_PAIR_TYPE = tff.types.tensorflow_to_type(
    collections.OrderedDict(
        a=tf.TensorSpec([None], tf.float32), b=tf.TensorSpec([3], tf.float32)
    )
)
_ROWS_TYPE = tff.TensorType(np.float32, [None, None])


def _sum_of(element_type: Any, change: Any = lambda elements: elements) -> Any:
  """Returns a sum of all that is in the clients' changed sequences."""

  def add(total, element):
    return total + sum(map(tf.reduce_sum, tf.nest.flatten(element)))

  return sequence_testing.over_clients(
      lambda elements: change(elements).reduce(0.0, add),
      tff.SequenceType(element_type),
  )


# Computations, their argument and result, and why they are not compiled: TFF's
# runtime takes them over, or clients' data are not kept as rows.
_NATIVE = (
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
_PIPELINES = (
    (
        'work_on_a_dataset',
        _sum_of(np.float32, lambda d: d.window(2).flat_map(lambda w: w)),
        [[1.0, 2.0, 3.0], [4.0]],
        10.0,
        "clients' work does more than read its dataset: it calls WindowDataset",
    ),
    (
        'elements_of_no_kind',
        _sum_of(_PAIR_TYPE),
        [[{'a': np.ones([2], np.float32), 'b': np.ones([3], np.float32)}]],
        5.0,
        'are neither batches of rows nor all of one shape',
    ),
    (
        'rows_that_differ_in_shape',
        _sum_of(_ROWS_TYPE),
        [[np.ones([1, 2], np.float32)], [np.ones([1, 3], np.float32)]],
        5.0,
        'rows differ in shape: (2,) and (3,)',
    ),
)


class FallbackTest(tf.test.TestCase, parameterized.TestCase):

  def test_all_run_on_one_worker_each_after_one_warning(self):
    before = worker_testing.workers()
    with runtime.CompiledContext() as context:
      for name, computation, argument, expected, reason in _NATIVE:
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
      (started,) = worker_testing.workers() - before
    self.assertFalse(started.is_running())
    context.close()  # It may be repeated.

  @parameterized.named_parameters(*_PIPELINES)
  def test_pipelines_run_after_one_warning(
      self, computation, clients, expected, reason
  ):
    with runtime.CompiledContext() as context:
      with _recorded_warnings() as texts:
        for _ in range(2):
          self.assertEqual(computation(clients), expected)
      plan = context.plan_of(computation)
    (text,) = texts
    self.assertIn(f'because {plan.pipelines}.', text)
    self.assertIn(reason, plan.pipelines)

  @parameterized.named_parameters(*_NATIVE, *_PIPELINES)
  def test_strict_context_raises(self, computation, argument, _, reason):
    before = worker_testing.workers()
    with compiled_testing.installed():
      for _ in range(2):
        with self.assertRaisesRegex(
            runtime.UnsupportedComputationError, re.escape(reason)
        ):
          computation(argument)
      self.assertEqual(worker_testing.workers(), before)

  def test_other_shapes_in_later_rounds_do_not_warn_again(self):
    add_up = _sum_of(_ROWS_TYPE)
    with runtime.CompiledContext(), _recorded_warnings() as texts:
      for width in (3, 4):
        shapes = ([1, 2], [1, width])
        clients = [[np.ones(shape, np.float32)] for shape in shapes]
        self.assertEqual(add_up(clients), 2.0 + width)
    self.assertLen(texts, 1)

  def test_functions_and_draws_without_a_seed_are_handed_over(self):
    negate = tff.tensorflow.computation(lambda x: -x, np.int32)
    draw = tff.tensorflow.computation(lambda: tf.random.gamma([], 1.0))
    with runtime.CompiledContext(), _recorded_warnings() as texts:
      self.assertEqual(_call(negate, 3), -3)
      self.assertNotEqual(draw(), draw())
    self.assertLen(texts, 2)
    self.assertIn('(int32 -> int32)); call the function within', texts[0])
    self.assertIn("RandomGamma'), which takes no seed; draw them by", texts[1])
    self.assertIn('Its random numbers are new in each run.', texts[1])

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


def _build_secure_sum(add: Any) -> tff.framework.ConcreteComputation:
  return tff.federated_computation(
      lambda values: add(values, 8), testing.at_clients(np.int32)
  )


class SecureSumsTest(tf.test.TestCase, parameterized.TestCase):

  def test_warn_once_in_each_context(self):
    with _recorded_warnings() as texts:
      for add, expected in (
          (tff.federated_secure_sum_bitwidth, 18),
          (tff.backends.mapreduce.federated_secure_modular_sum, 18 % 8),
      ):
        with runtime.CompiledContext(strict=True):
          for _ in range(2):
            add_up = _build_secure_sum(add)
            self.assertEqual(add_up([5, 6, 7]), expected)
            self.assertEqual(add_up([3]), 3)
    self.assertLen(texts, 2)
    for text in texts:
      self.assertIn('Secure sums are computed in the clear', text)
