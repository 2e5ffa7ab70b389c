# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reading graphs whose calls are inlined."""

from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tff_adaptive.runtime import flat_graphs


def _build(fn, shape=(None, 3)):
  """Builds the graph of a function of 'x' behind two calls."""
  call = tf.function(fn, autograph=False)
  outer = tf.function(lambda x: call(tf.identity(x)), autograph=False)
  graph = tf.Graph()
  with graph.as_default():
    x = tf.compat.v1.placeholder(tf.int32, shape, name='x')
    result = outer(x)
  graph_def = graph.as_graph_def()
  return flat_graphs.FlatGraph.build(
      graph_def, graph_def.library, parameters=['x'], results=[result.name]
  )


class FlatGraphsTest(parameterized.TestCase, tf.test.TestCase):

  def test_inlines_calls(self):
    graph = _build(lambda x: x + 1)
    ops = {node.op for node in graph.needed()}
    self.assertEqual(ops, {'Placeholder', 'Identity', 'Const', 'AddV2'})

  def test_calls_that_xla_compiles_stay(self):
    compiled = tf.function(lambda x: x + 1, jit_compile=True)
    ops = [node.op for node in _build(compiled).needed()]
    self.assertIn(
        'PartitionedCall', [op.removeprefix('Stateful') for op in ops]
    )

  @parameterized.named_parameters(
      ('reshape', lambda x: tf.reshape(x, [-1]), True),
      ('expand', lambda x: tf.expand_dims(x, 1), True),
      ('newaxis', lambda x: x[:, tf.newaxis], True),
      ('last_newaxis', lambda x: x[..., tf.newaxis], False),
      ('column', lambda x: x[:, 0], False),
      ('slice', lambda x: x[1:, tf.newaxis], False),
      ('strides', lambda x: x[::2, tf.newaxis], False),
      ('sum', lambda x: x + x, False),
  )
  def test_source_of_ids(self, fn, is_x):
    graph = _build(fn)
    source = graph.source_of_ids(graph.results[0])
    self.assertEqual(source == 'x:0', is_x)

  @parameterized.named_parameters(
      ('constant', lambda x: tf.constant([4, 5])[1], 5),
      ('cast', lambda x: tf.cast(tf.constant(7.5), tf.int32), 7),
      ('parameter', lambda x: x[0, 0], None),
      ('random', lambda x: tf.random.uniform([], 0, 9, tf.int32), None),
  )
  def test_constant(self, fn, value):
    graph = _build(fn)
    self.assertEqual(graph.constant(graph.results[0]), value)

  @parameterized.named_parameters(
      ('constant', lambda x: tf.constant(np.zeros([2, 2])), True),
      ('fill', lambda x: tf.zeros([40, 40]), True),
      ('like', lambda x: tf.raw_ops.ZerosLike(x=x), True),
      ('ones', lambda x: tf.ones([40, 40]), False),
      ('parameter', lambda x: x - x, False),
  )
  def test_is_zero(self, fn, is_zero):
    graph = _build(fn)
    self.assertEqual(graph.is_zero(graph.source(graph.results[0])), is_zero)
