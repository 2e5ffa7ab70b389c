# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that computations of all kinds give the same in all contexts."""

import collections
import contextlib
from typing import Any
from unittest import mock

from absl.testing import parameterized
import attrs
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tests.tff_adaptive.runtime import computations_testing
from tests.tff_adaptive.runtime import equality_testing
from tff_adaptive import runtime
from tff_adaptive.runtime import running
from tff_adaptive.runtime.steps import steps

_Dict = collections.OrderedDict
_CASES = computations_testing.CASES


def _read(value: Any) -> Any:
  """Returns a result with lists of elements in place of datasets."""
  if isinstance(value, tf.data.Dataset):
    return str(value.element_spec).encode(), list(value.as_numpy_iterator())
  if attrs.has(type(value)):
    return type(value)(_read(value.total), _read(value.each))
  if isinstance(value, dict):
    return type(value)((name, _read(field)) for name, field in value.items())
  if isinstance(value, (list, tuple)):
    return type(value)(map(_read, value))
  return value


def _run(computation: Any, calls: Any) -> list[Any]:
  return [_read(computation(*arguments)) for arguments in calls]


def _counted(kind: type[Any]) -> contextlib.AbstractContextManager:
  """Counts the calls of objects of a class."""
  return mock.patch.object(
      kind, '__call__', autospec=True, side_effect=kind.__call__
  )


@pytest.fixture(scope='module')
def native():
  """TFF's runtime, with one client where the argument does not tell."""
  with runtime.NativeContext(default_num_clients=1):
    yield


@pytest.mark.usefixtures('native')
class ComputationsTest(equality_testing.TestCase):

  @parameterized.named_parameters(*_CASES.items())
  def test_all_contexts_give_the_same(self, case):
    computation, calls = case.computation, case.arguments
    expected = _run(computation, calls)
    with equality_testing.compiled() as context:
      with _counted(steps.StepGraph) as step_graphs:
        found = _run(computation, calls)
      with _counted(running.Runner) as graphs:
        again = _run(computation, calls)
      self.assertEqual(context.path_of(computation), case.path)
    self.assert_same(expected, found, 1e-6)
    self.assert_same(found, again, 0)
    if case.path != 'steps':
      self.assertLessEqual(graphs.call_count, len(calls))
    if not step_graphs.call_count:
      return
    with mock.patch.object(steps.StepGraph, '__call__', return_value=None):
      with runtime.CompiledContext(strict=True) as context:
        self.assert_same(found, _run(computation, calls), 0)
        self.assertEqual(context.path_of(computation), 'steps')

  def test_fields_are_found_by_name(self):
    # TFF goes by place, which swaps them without a word.
    run, arguments = _CASES['weighted_mean'].computation, [
        _Dict(w=2.0, x=1.0),
        _Dict(x=2.0, w=3.0),
    ]
    with equality_testing.compiled():
      self.assertAllClose(run(arguments), _Dict(mean=1.6, total=5.0))

  @pytest.mark.slow
  def test_clients_that_nothing_tells_the_number_of(self):
    @tff.federated_computation(
        tff.FederatedType(np.float32, tff.CLIENTS, all_equal=True)
    )
    def add_up(value):
      return tff.federated_sum(value)

    for number in (1, 3):
      for context in (
          runtime.CompiledContext(strict=True, default_num_clients=number),
          runtime.NativeContext(default_num_clients=number),
      ):
        with context:
          self.assertEqual(add_up(2.0), 2.0 * number)

  def test_zero_bytes_between_texts_change_the_sum(self):
    join = tff.tensorflow.computation(
        lambda x, y: tf.strings.join([x, y], separator='\0'), [np.str_, np.str_]
    )
    nothing = tff.tensorflow.computation(lambda: tf.constant(''))
    same = tff.tensorflow.computation(lambda x: x, np.str_)

    @tff.federated_computation(testing.at_clients(np.str_))
    def join_all(values):
      return tff.federated_aggregate(values, nothing(), join, join, same)

    texts = [f'{number}' for number in range(40)]
    with equality_testing.compiled():
      self.assertEqual(join_all(texts), '\0'.join(['', *texts]).encode())
