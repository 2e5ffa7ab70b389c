# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests for `row_functions`."""

from absl.testing import parameterized
import tensorflow as tf

from tff_adaptive.runtime.datasets import row_functions

_TABLE = tf.constant([[1.0], [2.0], [3.0]])


@tf.function
def _scale(x: tf.Tensor) -> tf.Tensor:
  return x * 2.0


class ActsOnRowsTest(tf.test.TestCase, parameterized.TestCase):

  def _acts_on_rows(self, fn):
    specs = [tf.TensorSpec([None, 6]), tf.TensorSpec([None], tf.int32)]
    concrete = tf.function(fn, autograph=False).get_concrete_function(*specs)
    library = concrete.graph.as_graph_def().library
    library.function.add().CopyFrom(concrete.function_def)
    return row_functions.acts_on_rows(
        concrete.function_def.signature.name,
        [spec.shape for spec in specs],
        library,
    )

  @parameterized.named_parameters(
      ('same', lambda x, y: (x, y)),
      ('arithmetic', lambda x, y: (x / 255.0 - 0.5, tf.cast(y, tf.int64))),
      ('of_two', lambda x, y: (tf.where(x > 0.5, x, -x), y)),
      ('by_column', lambda x, y: (x * tf.range(6.0), y)),
      ('reshape', lambda x, y: (tf.reshape(x, [-1, 2, 3]), y)),
      (
          'flatten',
          lambda x, y: (tf.reshape(x, [-1, 6]), tf.reshape(y, [-1, 1])),
      ),
      ('expand', lambda x, y: (tf.expand_dims(x, -1), y[:, tf.newaxis])),
      ('squeeze', lambda x, y: (tf.squeeze(x[:, :1], 1), y)),
      ('columns', lambda x, y: (x[:, :-1], x[..., -1])),
      ('reduce', lambda x, y: (tf.reduce_mean(x, axis=1), y)),
      ('argmax', lambda x, y: (tf.argmax(x, axis=-1), y)),
      ('one_hot', lambda x, y: (x, tf.one_hot(y, 3))),
      ('look_up', lambda x, y: (x, tf.gather(_TABLE, y))),
      ('concat', lambda x, y: (tf.concat([x, x], axis=1), y)),
      ('stack', lambda x, y: (tf.stack([x, x], axis=-1), y)),
      ('transpose', lambda x, y: (tf.transpose(x[:, :, None], [0, 2, 1]), y)),
      ('call', lambda x, y: (_scale(x), y)),
  )
  def test_of_rows(self, fn):
    self.assertTrue(self._acts_on_rows(fn))

  @parameterized.named_parameters(
      ('mean', lambda x, y: (x - tf.reduce_mean(x), y)),
      ('mean_of_columns', lambda x, y: (x - tf.reduce_mean(x, axis=0), y)),
      ('sort', lambda x, y: (tf.sort(x, axis=0), y)),
      ('reverse', lambda x, y: (x[::-1], y)),
      ('first', lambda x, y: (x[:1], y[:1])),
      ('flatten_all', lambda x, y: (tf.reshape(x, [-1]), y)),
      ('pairs', lambda x, y: (tf.reshape(x, [-1, 12]), y)),
      ('transpose', lambda x, y: (tf.transpose(x), y)),
      ('new_axis', lambda x, y: (x[tf.newaxis], y)),
      ('by_size', lambda x, y: (x / tf.cast(tf.shape(x)[0], tf.float32), y)),
      ('numbers', lambda x, y: (x, tf.range(tf.size(y)))),
      ('cumsum', lambda x, y: (x, tf.cumsum(y))),
      ('stack', lambda x, y: (tf.stack([x, x]), y)),
      ('concat', lambda x, y: (tf.concat([x, x], axis=0), y)),
      ('across', lambda x, y: (x[:, 0] * tf.cast(y, tf.float32)[:, None], y)),
      ('by_row', lambda x, y: (x[:4] * tf.ones([4, 1]), y)),
      ('gather', lambda x, y: (tf.gather(x, y), y)),
      ('constant', lambda x, y: (tf.zeros([3]), tf.zeros([3]))),
      ('products', lambda x, y: (tf.matmul(x, x, transpose_b=True), y)),
      ('call', lambda x, y: (tf.function(tf.reduce_sum)(x), y)),
  )
  def test_of_batches(self, fn):
    self.assertFalse(self._acts_on_rows(fn))
