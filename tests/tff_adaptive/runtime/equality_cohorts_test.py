# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that clients' data of all forms give what they give natively."""

import functools
from typing import Any

from absl.testing import parameterized
import attrs
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tests.tff_adaptive.runtime import equality_testing
from tests.tff_adaptive.runtime import sequence_testing
from tff_adaptive import algorithms
from tff_adaptive import data
from tff_adaptive import optimizers


@functools.cache
def _process() -> tff.learning.templates.LearningProcess:
  return algorithms.build_fed_opt(
      testing.functional_model(), optimizers.build_sgd(0.1)
  )


@pytest.mark.usefixtures('native_runtime')
class CohortsTest(equality_testing.TestCase):

  def test_all_forms_of_a_cohort(self):
    process = _process()
    state = process.initialize()
    source = equality_testing.source()
    lazy = data.LazyClientArrays(
        source.client_ids, source.examples, source.element_spec
    )
    for plan in (
        data.BatchPlan(4, num_epochs=2),
        data.BatchPlan(3, num_epochs=2, shuffle=False, drop_remainder=True),
        data.BatchPlan(100, max_examples=7),
    ):
      cohort = data.Cohort(source, equality_testing.ROUNDS[0], 3, 1, plan)
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
        with equality_testing.compiled():
          found = process.next(state, clients)
        self.assert_same(expected, found, 1e-5, f'{name}, {plan}')

  def test_client_that_occurs_twice_counts_twice(self):
    process = _process()
    state = process.initialize()
    source, plan = equality_testing.source(), data.BatchPlan(4)
    cohort = data.Cohort(source, ['nine', 'one', 'nine'], 0, 1, plan)
    expected = process.next(state, list(cohort))
    with equality_testing.compiled():
      found = process.next(state, cohort)
    self.assert_same(expected, found, 1e-5)
    once = process.next(state, list(cohort)[:2])
    self.assertNotAllClose(
        testing.trainable(once.state)[0], testing.trainable(found.state)[0]
    )

  def test_no_clients(self):
    process = _process()
    state = process.initialize()
    nobody = equality_testing.cohort()[:0]
    self.assertEmpty(nobody)
    expected = process.next(state, [])
    with equality_testing.compiled():
      for clients in ([], nobody):
        self.assert_same(expected, process.next(state, clients), 1e-5)


_lookup = tf.lookup
_WORDS = tff.SequenceType(np.str_)


def _mutable(dense: bool) -> Any:
  if dense:
    return _lookup.experimental.DenseHashTable(
        tf.string, tf.int64, 0, empty_key='', deleted_key='-'
    )
  return _lookup.experimental.MutableHashTable(tf.string, tf.int64, 0)


def _static(vocabulary: bool) -> Any:
  initializer = _lookup.KeyValueTensorInitializer(
      ['a', 'b'], tf.constant([0, 1], tf.int64)
  )
  if vocabulary:
    return _lookup.StaticVocabularyTable(initializer, 1)
  return _lookup.StaticHashTable(initializer, -1)


@pytest.mark.usefixtures('native_runtime')
class ResourcesTest(equality_testing.TestCase):

  @parameterized.product(dense=[False, True], in_function=[False, True])
  @pytest.mark.sample(2)
  def test_mutable_tables(self, dense, in_function):
    def count_distinct(words):
      table = _mutable(dense)

      @tf.function
      def count():
        for word in words:
          table.insert(word, table.lookup(word) + 1)
        return table.size()

      return count()

    count = count_distinct
    if in_function:
      count = lambda words: tf.function(lambda: count_distinct(words))()
    add_up = sequence_testing.over_clients(count, _WORDS)
    for clients in ([['a', 'b', 'a'], ['c'], ['a']], [['z']], [[]]):
      self.assert_equals(add_up, clients)

  @parameterized.parameters(False, True)
  def test_static_tables(self, vocabulary):
    @tff.tensorflow.computation(np.str_)
    def look_up(word):
      return _static(vocabulary).lookup(word)

    def look_up_all(words):
      numbers = words.map(_static(vocabulary).lookup)
      return numbers.reduce(np.int64(0), lambda a, b: 3 * a + b)

    for word in 'abc':
      self.assert_equals(look_up, word)
    add_up = sequence_testing.over_clients(look_up_all, _WORDS)
    for clients in ([['a', 'b', 'c'], ['b']], []):
      self.assert_equals(add_up, clients)
