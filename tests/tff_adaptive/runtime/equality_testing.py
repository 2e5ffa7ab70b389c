# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""A test case that runs things on the native and on the compiled runtime."""

import collections
from collections.abc import Iterator, Mapping
import contextlib
import functools
import sys
from typing import Any
from unittest import mock
import warnings

from absl.testing import parameterized
import attrs
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tff_adaptive import data
from tff_adaptive import runtime

# Clients of a batch and less, of several batches with a short last one, and
# one without examples; two rounds of different size.
_SIZES = {'one': 1, 'nine': 9, 'four': 4, 'none': 0, 'many': 13, 'five': 5}
ROUNDS: tuple[tuple[str, ...], ...] = (
    ('one', 'nine', 'four', 'none', 'many'),
    ('five', 'nine'),
)


@functools.cache
def source() -> data.PackedClientArrays:
  """Returns the clients; they share rows of one set of arrays."""
  generator = np.random.default_rng(0)
  num_rows = sum(_SIZES.values())
  shape = [num_rows, testing.NUM_FEATURES]
  values = collections.OrderedDict(
      x=generator.normal(size=shape).astype(np.float32),
      y=generator.integers(testing.NUM_CLASSES, size=num_rows, dtype=np.int32),
  )
  rows = generator.permutation(num_rows)
  ends = np.cumsum(list(_SIZES.values()))
  return data.PackedClientArrays.from_partition(
      values, dict(zip(_SIZES, np.split(rows, ends[:-1])))
  )


def cohort(round_num: int = 0) -> data.Cohort:
  """Returns the clients of a round, in batches of 4."""
  return data.Cohort(
      source(), ROUNDS[round_num], round_num, seed=1, plan=data.BatchPlan(4)
  )


@functools.cache
def context() -> runtime.CompiledContext:
  """Returns one context for all tests, so that a process is compiled once."""
  return runtime.CompiledContext(strict=True, seed=1)


def compiled() -> Any:
  """Installs the context in a `with` statement."""
  return tff.framework.get_context_stack().install(context())


@contextlib.contextmanager
def pipelines(are_needed: bool = True) -> Iterator[None]:
  """Lets `compiled` run clients' `tf.data` pipelines, if they are needed."""
  if not are_needed:
    yield
    return
  lenient = runtime.CompiledContext(seed=1)
  with mock.patch.object(sys.modules[__name__], 'context', lambda: lenient):
    with warnings.catch_warnings(record=True) as caught:
      warnings.simplefilter('always')
      yield
  texts = [str(warning.message) for warning in caught]
  if not any('pipeline runs in each' in text for text in texts):
    raise AssertionError(f'No pipeline ran; the warnings were {texts}.')


def _doubled(value: Any) -> Any:
  """Returns the value with twice its floats, in the same containers."""
  return tf.nest.map_structure(
      lambda leaf: np.asarray(2 * leaf, leaf.dtype), value
  )


def _run_process(process: Any, cohorts: Any) -> dict[str, Any]:
  """Calls all computations of a learning process, in this context."""
  state = process.initialize()
  done = {'initialize': state}
  for round_num, clients in enumerate(cohorts):
    output = process.next(state, clients)
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


class TestCase(tf.test.TestCase, parameterized.TestCase):
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
    with compiled():
      found = _run_process(process, cohorts)
    for name, value in expected.items():
      tf.nest.assert_same_structure(value, found[name])
      self.assert_same(value, found[name], atol, name)

  def assert_equals(self, computation: Any, *arguments: Any, atol=1e-6) -> Any:
    """Runs a computation on both runtimes; returns the result."""
    expected = computation(*arguments)
    with compiled():
      found = computation(*arguments)
    self.assert_same(expected, found, atol)
    return found
