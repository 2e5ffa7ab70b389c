# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that ops do not see the room behind the rows of a batch."""

from absl.testing import parameterized
import jax
import numpy as np
import tensorflow as tf

from tff_adaptive.runtime.accelerators import graph_programs
from tff_adaptive.runtime.accelerators import padding

_ROOM = 5
_rng = np.random.default_rng(0)


def _normal(*shape):
  return _rng.normal(size=shape).astype(np.float32)


_ROWS = _normal(_ROOM, 4)
_IMAGES = _normal(_ROOM, 6, 6, 2)
_STEPS = _normal(_ROOM, 3, 4)
_LABELS = np.array([2, 0, 1, 2, 3], np.int32)


def _recurrent(x, weights):
  """Returns the states of a recurrent layer, in a loop over steps."""
  steps = tf.transpose(x, [1, 0, 2])
  inputs = tf.TensorArray(tf.float32, 3).unstack(steps)
  outputs = tf.TensorArray(tf.float32, 3)

  def turn(number, state, outputs):
    state = tf.tanh(inputs.read(number) @ weights + state)
    return number + 1, state, outputs.write(number, state)

  state = tf.zeros([tf.shape(x)[0], 4])
  _, _, outputs = tf.while_loop(
      lambda number, *_: number < 3,
      turn,
      [0, state, outputs],
      maximum_iterations=3,
  )
  return tf.transpose(outputs.stack(), [1, 0, 2])


def _batch_norm(x, scale):
  y, mean, variance = tf.compat.v1.nn.fused_batch_norm(x, scale, scale)
  return tf.reduce_sum(y * y * x) + tf.reduce_sum(mean * variance)


def _attention(x, weights):
  queries = tf.einsum('btd,de->bte', x, weights)
  scores = tf.nn.softmax(tf.matmul(queries, x, transpose_b=True))
  return tf.matmul(scores, x)


def _dropped(x):
  drawn = tf.random.stateless_uniform(tf.shape(x), [1, 2])
  return tf.where(drawn > 0.5, x / 0.5, 0.0)


def _sparse_loss(x, labels):
  losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, x)
  return tf.reduce_mean(losses) + tf.reduce_sum(losses) / tf.cast(
      tf.size(losses), tf.float32
  )


# The function, the rows of a batch, and other inputs, by name.
_CASES = {
    'dense': (
        lambda x, k, b: tf.nn.relu(tf.nn.bias_add(x @ k, b)),
        [_ROWS],
        [_normal(4, 3), _normal(3)],
    ),
    'time_distributed': (
        lambda x, k: tf.reshape(
            tf.reshape(x, [-1, 4]) @ k, [tf.shape(x)[0], 3, 2]
        ),
        [_STEPS],
        [_normal(4, 2)],
    ),
    'tensordot': (
        lambda x, k: tf.tensordot(x, k, [[2], [0]]),
        [_STEPS],
        [_normal(4, 2)],
    ),
    'flattened': (
        lambda x, k: tf.reshape(x, [tf.shape(x)[0], 72]) @ k,
        [_IMAGES],
        [_normal(72, 3)],
    ),
    'convolution': (
        lambda x, k: tf.nn.max_pool2d(
            tf.nn.conv2d(x, k, 1, 'SAME'), 2, 2, 'VALID'
        ),
        [_IMAGES],
        [_normal(3, 3, 2, 3)],
    ),
    'depthwise': (
        lambda x, k: tf.nn.avg_pool2d(
            tf.nn.depthwise_conv2d(x, k, [1, 1, 1, 1], 'SAME'), 2, 2, 'VALID'
        ),
        [_IMAGES],
        [_normal(3, 3, 2, 2)],
    ),
    'resized': (
        lambda x: tf.image.resize(x, [12, 12], 'nearest'),
        [_IMAGES],
        [],
    ),
    'batch_norm': (_batch_norm, [_IMAGES], [_normal(2)]),
    'layer_norm': (
        lambda x, s: s
        * (x - tf.reduce_mean(x, -1, keepdims=True))
        * tf.math.rsqrt(tf.math.reduce_variance(x, -1, keepdims=True) + 0.1),
        [_ROWS],
        [_normal(4)],
    ),
    'moments': (
        lambda x: (x - tf.reduce_mean(x, 0))
        / tf.sqrt(tf.math.reduce_variance(x, 0) + 0.1),
        [_ROWS],
        [],
    ),
    'attention': (_attention, [_STEPS], [_normal(4, 4)]),
    'recurrent': (_recurrent, [_STEPS], [_normal(4, 4)]),
    'dropout': (_dropped, [_STEPS], []),
    'sparse_loss': (_sparse_loss, [_ROWS, _LABELS], []),
    'loss': (
        lambda x, labels: tf.reduce_mean(
            tf.nn.softmax_cross_entropy_with_logits(tf.one_hot(labels, 4), x)
        ),
        [_ROWS, _LABELS],
        [],
    ),
    'embedding': (
        lambda labels, table: tf.reduce_mean(tf.gather(table, labels), 0),
        [_LABELS],
        [_normal(4, 3)],
    ),
    'scattered': (
        lambda x, labels, table: tf.tensor_scatter_nd_add(
            table, labels[:, tf.newaxis], x
        ),
        [_ROWS, _LABELS],
        [_normal(4, 4)],
    ),
    'reductions': (
        lambda x: tf.reduce_max(x, 0)
        * tf.reduce_min(x, [0, 1])
        * tf.reduce_prod(x)
        + tf.norm(x)
        + tf.nn.l2_loss(x)
        + tf.cast(tf.reduce_all(x > -9) | tf.reduce_any(x > 9), tf.float32),
        [_ROWS],
        [],
    ),
    'means': (
        lambda x: tf.reduce_mean(x)
        + tf.reduce_mean(x, 0)
        + tf.reduce_mean(x, [0, 1], keepdims=True),
        [_ROWS],
        [],
    ),
    'accuracy': (
        lambda x, labels: tf.reduce_sum(
            tf.cast(tf.argmax(x, 1, tf.int32) == labels, tf.float32)
        )
        + tf.reduce_sum(x),
        [_ROWS, _LABELS],
        [],
    ),
    'rearranged': (
        lambda x: tf.concat(
            [x[:, 1:, ::2], tf.reverse(x, [2])[:, :2, :2]], axis=1
        )
        + tf.stack([x[..., 0], x[:, :, 1]], 2)[:, :1],
        [_STEPS],
        [],
    ),
    'cut': (
        lambda x: tf.concat(tf.split(x, 2, 1)[::-1], 1)
        * tf.pad(tf.unstack(x, axis=1)[0][:, None], [[0, 0], [1, 2]]),
        [_ROWS],
        [],
    ),
    'numbered': (
        lambda x: x
        * tf.cast(tf.range(tf.shape(x)[0]), tf.float32)[:, tf.newaxis],
        [_ROWS],
        [],
    ),
    'repeated': (
        lambda x, y: x
        * tf.tile(y[tf.newaxis], [tf.shape(x)[0], 1])
        * tf.ones_like(x)
        * tf.fill([tf.shape(x)[0], 1], 2.0)
        + tf.broadcast_to(y, tf.shape(x)),
        [_ROWS],
        [_normal(4)],
    ),
    'cumulated': (
        lambda x: tf.cumsum(x, 1) + tf.math.cumprod(x, 0),
        [_ROWS],
        [],
    ),
    'branch': (
        lambda x: tf.cond(tf.reduce_sum(x) > 0, lambda: x * 2, lambda: x - 1),
        [_ROWS],
        [],
    ),
    'segments': (
        lambda x, labels: tf.math.unsorted_segment_sum(x, labels, 4),
        [_ROWS, _LABELS],
        [],
    ),
}


def _with_gradients(fn):
  """Returns a function whose results are those of `fn`, and its gradients."""

  def run(*inputs):
    watched = [one for one in inputs if one.dtype.is_floating]
    with tf.GradientTape() as tape:
      tape.watch(watched)
      result = fn(*inputs)
      total = tf.reduce_sum(result * result)
    gradients = tape.gradient(total, watched, unconnected_gradients='zero')
    return [result, total, *map(tf.convert_to_tensor, gradients)]

  return run


def _program_of(fn, batched, others):
  """Returns a function of TensorFlow, and the same function in JAX."""
  specs = [tf.TensorSpec([None, *x.shape[1:]], x.dtype) for x in batched]
  specs += [tf.TensorSpec(x.shape, x.dtype) for x in others]
  function = tf.function(fn, autograph=False)
  concrete = function.get_concrete_function(*specs)
  program = graph_programs.GraphProgram(
      concrete.graph.as_graph_def(),
      [tensor.name for tensor in concrete.inputs],
      [tensor.name for tensor in concrete.outputs],
  )
  return concrete, program


def _with_room(x, count):
  """Returns rows, behind some of them numbers that nothing should read."""
  filling = np.nan if np.issubdtype(x.dtype, np.floating) else 3
  return np.concatenate([x[:count], np.full_like(x[count:], filling)])


class PaddedLoweringsTest(parameterized.TestCase):

  @parameterized.named_parameters(
      (name, *case) for name, case in _CASES.items()
  )
  def test_equals_tensorflow_without_the_room(self, fn, batched, others):
    concrete, program = _program_of(_with_gradients(fn), batched, others)

    @jax.jit
    def run(count, batched, others):
      batch = padding.Batch(_ROOM, count)
      rows = [padding.rows(x, batch) for x in batched]
      outputs = program(*rows, *others)
      axes = [getattr(output, 'axis', None) for output in outputs]
      return list(map(padding.bare, outputs)), axes

    for count in (1, 3, _ROOM):
      with jax.enable_x64(True):
        rows = [_with_room(x, count) for x in batched]
        found, axes = run(np.int32(count), rows, others)
      expected = concrete(*(tf.constant(x[:count]) for x in batched), *others)
      for one, axis, other in zip(found, axes, expected, strict=True):
        if axis is not None:
          one = np.take(np.asarray(one), np.arange(count), int(axis))
        tolerance = 1e-5 * max(1, np.max(np.abs(other)))
        np.testing.assert_allclose(one, other, rtol=3e-5, atol=tolerance)
        self.assertEqual(np.asarray(one).dtype, other.numpy().dtype)

  @parameterized.named_parameters(
      ('reverse', lambda x: tf.reverse(x, [0])),
      ('first_rows', lambda x: x[:2]),
      ('last_row', lambda x: x[-1]),
      ('sorted', lambda x: tf.math.top_k(tf.transpose(x), 1)[0]),
      ('softmax_over_rows', lambda x: tf.nn.softmax(x, 0)),
      ('merged', lambda x: tf.reshape(tf.transpose(x), [-1])),
      ('joined', lambda x: tf.concat([x, x], 0)),
      ('of_other_rows', lambda x: x + tf.ones([_ROOM, 1])),
  )
  def test_what_mixes_rows_is_refused(self, fn):
    _, program = _program_of(fn, [_ROWS], [])
    rows = padding.rows(_ROWS, padding.Batch(_ROOM, np.int32(3)))
    with self.assertRaises(padding.PaddingError):
      jax.eval_shape(lambda: [padding.bare(one) for one in program(rows)])
