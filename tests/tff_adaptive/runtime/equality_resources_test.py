# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that tables inside of computations are made anew for each client."""

from collections.abc import Callable
from typing import Any

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tests.tff_adaptive.runtime import equality_testing

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


def _sum_over_clients(
    fn: Callable[[tf.data.Dataset], tf.Tensor],
) -> tff.framework.ConcreteComputation:
  work = tff.tensorflow.computation(fn, _WORDS)

  @tff.federated_computation(testing.at_clients(_WORDS))
  def add_up(words):
    return tff.federated_sum(tff.federated_map(work, words))

  return add_up


@pytest.mark.usefixtures('native_runtime')
class ResourcesTest(equality_testing.TestCase):

  @parameterized.product(dense=[False, True], in_function=[False, True])
  def test_mutable_tables(self, dense, in_function):
    def count_distinct(words):
      table = _mutable(dense)

      @tf.function
      def count():
        for word in words:
          table.insert(word, table.lookup(word) + 1)
        return table.size()

      return count()

    add_up = _sum_over_clients(
        (lambda words: tf.function(lambda: count_distinct(words))())
        if in_function
        else count_distinct
    )
    with equality_testing.pipelines():
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
    add_up = _sum_over_clients(look_up_all)
    with equality_testing.pipelines():
      for clients in ([['a', 'b', 'c'], ['b']], []):
        self.assert_equals(add_up, clients)
