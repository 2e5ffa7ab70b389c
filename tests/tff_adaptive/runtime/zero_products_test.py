# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of zero_products."""

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive.runtime import equality_testing
from tests.tff_adaptive.runtime import sequence_testing
from tff_adaptive.runtime.graphs import zero_products


def _share_of_entries(x):
  """Returns the mean times the number of entries, which is a constant."""
  count = tf.cast(tf.reduce_prod(tf.shape(x)), x.dtype)
  return tf.reduce_mean(x) * (count / 7.0)


_zero_first = lambda x: tf.constant(0.0) * tf.reduce_mean(x)


@tf.function(autograph=False)
def _in_a_function(x):
  return _share_of_entries(x) + _zero_first(x)


@pytest.mark.usefixtures('native_runtime')
class ZeroProductsTest(equality_testing.TestCase):

  @parameterized.named_parameters(
      ('share', _share_of_entries, 0.0),
      ('zero_first', _zero_first, 0.0),
      ('in_a_function', _in_a_function, 0.0),
      ('not_zero', lambda x: tf.reduce_mean(x) * tf.constant(2.0), np.nan),
      ('not_constant', lambda x: tf.reduce_mean(x) * tf.reduce_sum(x), np.nan),
  )
  def test_products_are_those_of_native_runs(self, fn, expected):
    total = sequence_testing.over_clients(fn, tff.TensorType(np.float32, (0,)))
    found = self.assert_equals(total, [np.zeros(0, np.float32)] * 2)
    np.testing.assert_array_equal(found, expected)

  @parameterized.parameters(
      (lambda x: x * 0.0, [0.0, 0.0, 0.0]),
      (lambda x: 0.0 * x, [0.0, 0.0, 0.0]),
      (lambda x: x * [0.0, 1.0, 0.0], [np.nan, np.inf, np.nan]),
      (lambda x: x * (tf.constant(2.0) - 2.0), [0.0, 0.0, 0.0]),
      (lambda x: x * tf.random.uniform([], 0.0, 0.0), [np.nan] * 3),
  )
  def test_only_constants_that_are_all_zero_count(self, fn, expected):
    with tf.Graph().as_default() as graph:
      x = tf.compat.v1.placeholder(tf.float32, [3], 'x')
      result = fn(x)
    graph_def = graph.as_graph_def()
    zero_products.make_zero(graph_def)
    with tf.Graph().as_default() as graph:
      tf.graph_util.import_graph_def(graph_def, name='')
      with tf.compat.v1.Session(graph=graph) as session:
        found = session.run(
            result.name, {'x:0': np.float32([np.nan, np.inf, -np.inf])}
        )
    np.testing.assert_array_equal(found, expected)
