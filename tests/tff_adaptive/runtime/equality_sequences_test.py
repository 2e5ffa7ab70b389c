# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that clients may use sequences in all ways that they may natively."""

import collections

from absl.testing import parameterized
import pytest
import tensorflow as tf

from tests.tff_adaptive.runtime import equality_testing
from tests.tff_adaptive.runtime import sequence_testing

_ROWS = sequence_testing.ROWS
_digest = sequence_testing.digest
_over_clients = sequence_testing.over_clients
_weigh = sequence_testing.weigh


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


# Ways to read a dataset, and those that need a `tf.data` pipeline.
_READ = {
    'reduction': _digest,
    'iterator': _digest_by_iterator,
    'break': _digest_until_large,
    'two_reductions': _digest_twice,
    'branch': _digest_in_branch,
    'reduction_in_reduction': _digest_in_digest,
    'variable': _digest_of_variable,
    'nothing': lambda dataset: tf.constant(1.0),
    'batch': lambda dataset: _digest(dataset.unbatch().batch(2)),
}
_CHANGE = {
    'cardinality': lambda dataset: tf.cast(dataset.cardinality(), tf.float32),
}


@pytest.mark.usefixtures('native_runtime')
class SequencesTest(equality_testing.TestCase):

  def _ranges(self):
    return [
        tf.data.Dataset.range(size)
        .map(lambda x: tf.cast(x, tf.float32) + 0.5)
        .batch(4)
        for size in (1, 9, 4, 0, 13)
    ]

  @parameterized.named_parameters(('reading', _READ), ('changing', _CHANGE))
  @pytest.mark.sample(1)
  def test_uses(self, uses):
    def run(dataset):
      return collections.OrderedDict(
          (name, use(dataset)) for name, use in uses.items()
      )

    with equality_testing.pipelines(uses is _CHANGE):
      self.assert_equals(_over_clients(run, _ROWS), self._ranges())

  @parameterized.named_parameters(*_READ.items(), *_CHANGE.items())
  @pytest.mark.slow
  def test_uses_alone(self, use):
    with equality_testing.pipelines(use in _CHANGE.values()):
      self.assert_equals(_over_clients(use, _ROWS), self._ranges())

  @parameterized.named_parameters(*_READ.items(), *_CHANGE.items())
  @pytest.mark.slow
  def test_uses_of_lists(self, use):
    is_change = use in _CHANGE.values()
    use = _over_clients(use, _ROWS)
    lists = [sequence_testing.numbers(4, 4, 1), [], sequence_testing.numbers(3)]
    with equality_testing.pipelines(is_change):
      self.assert_equals(use, lists)
