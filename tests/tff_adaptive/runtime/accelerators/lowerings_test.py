# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that TensorFlow's ops, and their gradients, are the same in JAX.

They do not see the room behind the rows of a batch, either.
"""

from absl.testing import parameterized
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from tff_adaptive.runtime.accelerators import graph_programs
from tff_adaptive.runtime.accelerators import lowerings
from tff_adaptive.runtime.accelerators import padding
from tff_adaptive.runtime.accelerators import variable_lowerings

_ROOM = 5
_rng = np.random.default_rng(0)


def _normal(*shape):
  return _rng.normal(size=shape).astype(np.float32)


def _conv(strides, padding, dilation=1):
  return lambda x, k: tf.nn.conv2d(x, k, strides, padding, dilations=dilation)


def _loop(x):
  """Returns sums of powers, in a loop whose turns write a list."""

  def turn(number, x, rows):
    x = x * x * 0.5 + tf.cast(number, tf.float32)
    return number + 1, x, rows.write(number, x)

  rows = tf.TensorArray(tf.float32, 5, element_shape=x.shape)
  _, _, rows = tf.while_loop(
      lambda number, *_: number < 5, turn, [0, x, rows], maximum_iterations=5
  )
  return rows.stack()


def _doubled(x):
  """Doubles in a loop, whose gradient keeps the known factor in a list."""
  _, x = tf.while_loop(
      lambda number, _: number < 3,
      lambda number, x: (number + 1, x * tf.cast(2.0, tf.bfloat16)),
      [0, tf.cast(x, tf.bfloat16)],
      maximum_iterations=3,
  )
  return tf.cast(x, tf.float32)


def _lstm(x):
  """Returns the outputs of an LSTM of three units."""
  weights = [tf.fill([3, 12], 0.1), tf.fill([3, 12], -0.2), tf.fill([12], 0.3)]
  state = [tf.zeros([x.shape[0], 3])] * 2

  def step(inputs, state):
    hidden, cell = state
    gates = inputs @ weights[0] + hidden @ weights[1] + weights[2]
    i, f, c, o = tf.split(gates, 4, -1)
    cell = tf.sigmoid(f) * cell + tf.sigmoid(i) * tf.tanh(c)
    hidden = tf.sigmoid(o) * tf.tanh(cell)
    return hidden, [hidden, cell]

  return tf.keras.backend.rnn(step, x, state)[1]


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


def _known_items(x):
  """Returns the last items of lists that begin with one that is known."""
  shape = tf.constant([], tf.int32)
  ops = tf.raw_ops
  empty = ops.EmptyTensorList(
      element_shape=shape, max_num_elements=3, element_dtype=tf.float32
  )
  one = ops.TensorListPushBack(input_handle=empty, tensor=5.0)
  other = ops.TensorListSetItem(input_handle=one, index=0, item=x[0])
  options = {'element_shape': shape, 'element_dtype': tf.float32}
  lists = [tf.zeros_like(one), tf.add_n([one, one]), other]
  items = [
      ops.TensorListPopBack(input_handle=handle, **options).tensor
      for handle in lists
  ]
  whole = ops.TensorListStack(input_handle=one, **options)
  return tf.stop_gradient(tf.concat([items, whole], 0))


def _slices_at(x, places):
  return [tf.slice(x, [place, 0], [1, 1]) for place in tf.unstack(places)]


def _growing_list(x):
  array = tf.TensorArray(tf.float32, 1, dynamic_size=True, element_shape=[4])
  return array.write(0, x[0]).write(1, x[1]).stack()


def _pushed_to_rows(x):
  ops, shape = tf.raw_ops, tf.constant([4])
  rows = ops.TensorListFromTensor(tensor=x, element_shape=shape)
  rows = ops.TensorListPushBack(input_handle=rows, tensor=x[0])
  return ops.TensorListStack(
      input_handle=rows, element_shape=shape, element_dtype=tf.float32
  )


def _halves(x):
  """Returns x, x / 2, ... as long as these are large."""
  ops, shape = tf.raw_ops, tf.shape(x)
  halves = ops.EmptyTensorList(
      element_shape=shape, max_num_elements=9, element_dtype=x.dtype
  )
  _, halves = tf.while_loop(
      lambda x, _: tf.norm(x) > 1,
      lambda x, handle: (
          x / 2,
          ops.TensorListPushBack(input_handle=handle, tensor=x),
      ),
      [x, halves],
  )
  return ops.TensorListStack(
      input_handle=halves, element_shape=shape, element_dtype=x.dtype
  )


def _branch(x):
  return tf.cond(tf.reduce_sum(x) > 0, lambda: x * 2, lambda: x - 1)


_ROWS = _normal(_ROOM, 4)
_STEPS = _normal(_ROOM, 3, 4)
_IMAGES = _normal(_ROOM, 6, 6, 2)
_LABELS = np.array([2, 0, 1, 2, 3], np.int32)
_POSITIVE = np.abs(_ROWS) + 0.1
# The function, the rows of a batch, and other inputs, by name. Of the float
# inputs gradients are taken.
_BATCHED = {
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
    'resized': (lambda x: tf.image.resize(x, [12, 12], 'nearest'), [_IMAGES]),
    'batch_norm': (_batch_norm, [_IMAGES], [_normal(2)]),
    'batch_norm_of_volumes': (
        lambda x, s: tf.raw_ops.FusedBatchNormV3(
            x=x, scale=s, offset=s, mean=s, variance=s, data_format='NDHWC'
        ).y,
        [_normal(_ROOM, 2, 3, 2, 2)],
        [_normal(2)],
    ),
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
    ),
    'attention': (_attention, [_STEPS], [_normal(4, 4)]),
    'recurrent': (_recurrent, [_STEPS], [_normal(4, 4)]),
    'dropout': (_dropped, [_STEPS]),
    'sparse_loss': (_sparse_loss, [_ROWS, _LABELS]),
    'loss': (
        lambda x, labels: tf.reduce_mean(
            tf.nn.softmax_cross_entropy_with_logits(tf.one_hot(labels, 4), x)
        ),
        [_ROWS, _LABELS],
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
    ),
    'means': (
        lambda x: tf.reduce_mean(x)
        + tf.reduce_mean(x, 0)
        + tf.reduce_mean(x, [0, 1], keepdims=True),
        [_ROWS],
    ),
    'means_of_integers': (
        lambda x: tf.reduce_mean(tf.cast(x * 10, tf.int32), 0),
        [_ROWS],
    ),
    'accuracy': (
        lambda x, labels: tf.reduce_sum(
            tf.cast(tf.argmax(x, 1, tf.int32) == labels, tf.float32)
        )
        + tf.reduce_sum(x),
        [_ROWS, _LABELS],
    ),
    'rearranged': (
        lambda x: tf.concat(
            [x[:, 1:, ::2], tf.reverse(x, [2])[:, :2, :2]], axis=1
        )
        + tf.stack([x[..., 0], x[:, :, 1]], 2)[:, :1],
        [_STEPS],
    ),
    'cut': (
        lambda x: tf.concat(tf.split(x, 2, 1)[::-1], 1)
        * tf.pad(tf.unstack(x, axis=1)[0][:, None], [[0, 0], [1, 2]]),
        [_ROWS],
    ),
    'numbered': (
        lambda x: x
        * tf.cast(tf.range(tf.shape(x)[0]), tf.float32)[:, tf.newaxis],
        [_ROWS],
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
    'cumulated': (lambda x: tf.cumsum(x, 1) + tf.math.cumprod(x, 0), [_ROWS]),
    'branch': (_branch, [_ROWS]),
    'segments': (
        lambda x, labels: tf.math.unsorted_segment_sum(x, labels, 4),
        [_ROWS, _LABELS],
    ),
}
# The same of functions that do not take a batch.
_OTHERS = {
    'transposed_product': (
        lambda x, y: tf.matmul(x, y, transpose_a=True),
        _ROWS,
        _normal(5, 2),
    ),
    'conv_valid': (_conv(1, 'VALID'), _IMAGES, _normal(3, 3, 2, 4)),
    'conv_same': (_conv(1, 'SAME'), _IMAGES, _normal(3, 2, 2, 4)),
    'conv_strides': (_conv(2, 'SAME'), _IMAGES, _normal(3, 3, 2, 4)),
    'conv_of_points': (_conv(1, 'VALID'), _IMAGES, _normal(1, 1, 2, 4)),
    'conv_strided_points': (_conv(2, 'VALID'), _IMAGES, _normal(1, 1, 2, 4)),
    'conv_dilated': (
        # TensorFlow has its gradients on some CPUs only.
        lambda x, k: tf.stop_gradient(_conv(1, 'SAME', 2)(x, k)),
        _IMAGES,
        _normal(3, 3, 2, 4),
    ),
    'conv_padded': (
        _conv(1, [[0, 0], [1, 0], [2, 1], [0, 0]]),
        _IMAGES,
        _normal(3, 3, 2, 4),
    ),
    'conv_padded_points': (
        _conv(1, [[0, 0], [1, 0], [2, 1], [0, 0]]),
        _IMAGES,
        _normal(1, 1, 2, 4),
    ),
    'depthwise_strides': (
        lambda x, k: tf.nn.depthwise_conv2d(x, k, [1, 2, 2, 1], 'SAME'),
        _IMAGES,
        _normal(3, 3, 2, 2),
    ),
    'max_pool_same': (lambda x: tf.nn.max_pool2d(x, 3, 2, 'SAME'), _IMAGES),
    'avg_pool_same': (lambda x: tf.nn.avg_pool2d(x, 3, 2, 'SAME'), _IMAGES),
    'batch_norm_of_first_channels': (
        lambda x, s, o: tf.compat.v1.nn.fused_batch_norm(
            x, s, o, data_format='NCHW'
        )[0],
        _IMAGES,
        _normal(6),
        _normal(6),
    ),
    'resize_to_corners': (
        lambda x: tf.compat.v1.image.resize_nearest_neighbor(
            x, [11, 9], align_corners=True
        ),
        _IMAGES,
    ),
    'gather_columns': (lambda t: tf.gather(t, [2, 0], axis=1), _ROWS),
    'gather_in_batches': (
        lambda t: tf.gather(t, _LABELS[:, None] % 2, batch_dims=1),
        _ROWS,
    ),
    'gather_in_batches_from_the_end': (
        lambda t: tf.gather(t, _LABELS[:, None] % 2, axis=1, batch_dims=-1),
        _ROWS,
    ),
    'gather_nd': (lambda t: tf.gather_nd(t, [[1, 2], [0, 0]]), _ROWS),
    'unary': (
        lambda x: tf.math.log(x) + tf.sqrt(x) * tf.exp(-x) + tf.math.rsqrt(x),
        _POSITIVE,
    ),
    'no_gradient_where_a_slope_is_infinite': (
        lambda x: tf.where(
            x > 0, tf.sqrt(x) + tf.math.rsqrt(x) + tf.math.reciprocal(x), 0.0
        ),
        np.array([0, 3], np.float32),
    ),
    'activations': (
        lambda x: tf.tanh(x)
        + tf.sigmoid(x)
        + tf.nn.elu(x)
        + tf.nn.selu(x)
        + tf.nn.softplus(x)
        + tf.nn.gelu(x)
        + tf.nn.relu6(x)
        + tf.nn.leaky_relu(x),
        _ROWS,
    ),
    'no_nan': (
        lambda x, y: tf.math.divide_no_nan(x, y)
        + tf.math.multiply_no_nan(x, y),
        _ROWS,
        np.where(_ROWS > 0, _ROWS, 0).astype(np.float32),
    ),
    'quotients': (
        lambda x, y: tf.math.floordiv(x, y) + tf.truncatediv(x, y),
        np.array([1, 5.5, -7.5], np.float32),
        np.array([0.1, -2, 2], np.float32),
    ),
    'mean_of_bytes': (
        lambda x: tf.reduce_mean(x, keepdims=True),
        np.full([30], 200, np.uint8),
    ),
    'mean_of_bfloat16': (
        lambda x: tf.cast(tf.reduce_mean(tf.cast(x, tf.bfloat16)), tf.float32),
        np.full([300], 3, np.float32),
    ),
    'known_sum_of_bfloat16': (
        lambda x: x
        * tf.cast(tf.reduce_sum(tf.ones([300], tf.bfloat16)), tf.float32),
        _ROWS,
    ),
    'norm_of_integers': (
        lambda x: tf.math.reduce_euclidean_norm(x, 0),
        np.array([3, 5], np.int32),
    ),
    'adjoints': (
        lambda x: tf.matmul(x, x, adjoint_a=True)
        + tf.matmul(x, x, adjoint_b=True)
        + tf.linalg.inv(x, adjoint=True),
        np.array([[[1, 2j], [3 + 1j, 1 - 1j]]], np.complex64),
    ),
    'product_of_bytes': (
        lambda x: tf.raw_ops.BatchMatMulV3(x=x, y=x, Tout=tf.int32),
        np.full([1, 2, 2], 100, np.int8),
    ),
    'one_hot_of_bytes': (
        lambda x: tf.one_hot(x, 300),
        np.array([3], np.uint8),
    ),
    'places_beside_nan': (
        lambda x: tf.argmax(x, 1) + 10 * tf.argmin(x, 1),
        np.array([[1, np.nan, 3], [np.nan, 2, 1]], np.float32),
    ),
    'in_top': (
        lambda x, labels: tf.cast(tf.math.in_top_k(labels, x, 1), tf.float32),
        np.array([[1, 2], [1, np.nan], [np.nan, 1], [1, 2]], np.float32),
        np.array([1, 0, 0, 5], np.int32),
    ),
    'diagonal': (
        lambda x: tf.cast(
            tf.math.is_inf(tf.linalg.diag(1 / x, num_rows=2)), tf.float32
        ),
        np.array([0, 1], np.float32),
    ),
    'clip_between_none': (
        lambda x: tf.raw_ops.ClipByValue(
            t=x, clip_value_min=1.0, clip_value_max=0.0
        ),
        _ROWS,
    ),
    'clip': (lambda x: tf.clip_by_global_norm([x, 2 * x], 1.0)[0][1], _ROWS),
    'shapes': (
        lambda x: tf.reshape(
            tf.pad(tf.transpose(x)[:, 1:], [[0, 1], [2, 0]]),
            [tf.shape(x)[0], -1],
        ),
        _ROWS,
    ),
    'slices': (
        lambda x: tf.concat([x[1:3, ::2], x[-3:, :2][::-1]], 0)
        + tf.stack(tf.unstack(x))[..., :2],
        _ROWS,
    ),
    'splits': (
        lambda x: tf.split(x, [1, 3], 1)[1][:, :1] * tf.split(x, 4, 1)[0],
        _ROWS,
    ),
    'selections': (
        lambda x: tf.where(x > 0, x, x * 3) + tf.cast(x > 0, tf.float32),
        _ROWS,
    ),
    'cumulative': (lambda x: tf.cumsum(x, 1, reverse=True), _ROWS),
    'top': (lambda x: tf.math.top_k(x, 2)[0], _ROWS),
    'top_places': (
        lambda x: tf.raw_ops.TopKV2(input=x, k=2, index_type=tf.int64).indices,
        _ROWS,
    ),
    'tensor_diagonal': (
        lambda x: tf.linalg.tensor_diag_part(tf.stop_gradient(x[:4])),
        _ROWS,
    ),
    'bands': (lambda x: tf.linalg.band_part(x, 1, 0), _ROWS),
    'sets_of_sizes': (
        lambda x: x
        * tf.cast(
            tf.size(tf.sets.difference([tf.shape(x)], [[5, 7]]).values),
            tf.float32,
        ),
        _ROWS,
    ),
    'loop': (_loop, _ROWS),
    'loop_of_bfloat16': (_doubled, _ROWS),
    'known_items': (_known_items, _ROWS[0]),
    'lstm': (_lstm, _normal(2, 4, 3)),
    'last_branch': (
        lambda x: tf.switch_case(tf.constant(-1), [lambda: x, lambda: 2 * x]),
        _ROWS,
    ),
    'other_branch': (_branch, -_POSITIVE),
    'integers': (
        lambda x: tf.cast(
            (tf.cast(x * 10, tf.int32) // 3) % 4
            + tf.argmax(x, 1, tf.int32)[:, None],
            tf.float32,
        ),
        _ROWS,
    ),
}
_CASES = [
    *((name, *case) for name, case in _BATCHED.items()),
    *((name, fn, [], others) for name, (fn, *others) in _OTHERS.items()),
]


def _with_gradients(fn):
  """Returns a function whose results are those of `fn`, and its gradients."""

  def run(*inputs):
    watched = [one for one in inputs if one.dtype.is_floating]
    with tf.GradientTape() as tape:
      tape.watch(watched)
      result = fn(*inputs)
      total = tf.reduce_sum(result * result)
    gradients = tape.gradient(total, watched, unconnected_gradients='zero')
    # Gradients of tables are slices.
    return [result, total, *map(tf.convert_to_tensor, gradients)]

  return run


def _program_of(fn, others, batched=()):
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


class LoweringsTest(parameterized.TestCase):

  def _assert_close(self, found, expected):
    for one, other in zip(found, expected, strict=True):
      tolerance = 1e-5 * max(2, np.max(np.abs(other)))
      np.testing.assert_allclose(one, other, rtol=3e-5, atol=tolerance)
      self.assertEqual(np.asarray(one).dtype, other.numpy().dtype)

  @parameterized.named_parameters(*_CASES)
  def test_equals_tensorflow(self, fn, batched, others=()):
    concrete, program = _program_of(_with_gradients(fn), others, batched)

    @jax.jit
    def run(count, batched, others):
      batch = padding.Batch(_ROOM, count)
      rows = [padding.rows(x, batch) for x in batched]
      outputs = program(*rows, *others)
      axes = [getattr(output, 'axis', None) for output in outputs]
      return list(map(padding.bare, outputs)), axes

    with jax.enable_x64(True):
      found = jax.jit(program)(*batched, *others)
    self._assert_close(found, concrete(*map(tf.constant, [*batched, *others])))
    for count in (1, 3, _ROOM) if batched else ():
      with jax.enable_x64(True):
        rows = [_with_room(x, count) for x in batched]
        found, axes = run(np.int32(count), rows, others)
      found = [
          np.asarray(one)
          if axis is None
          else np.take(np.asarray(one), np.arange(count), int(axis))
          for one, axis in zip(found, axes)
      ]
      rows = [tf.constant(x[:count]) for x in batched]
      self._assert_close(found, concrete(*rows, *map(tf.constant, others)))

  def test_gradients_of_a_dilated_convolution(self):
    def with_zeros_between(x, kernel):
      apart = tf.pad(
          tf.reshape(kernel, [3, 1, 3, 1, 2, 4]),
          [[0, 0], [0, 1], [0, 0], [0, 1], [0, 0], [0, 0]],
      )
      wide = tf.reshape(apart, [6, 6, 2, 4])[:5, :5]
      return tf.nn.conv2d(x, wide, 1, 'SAME')

    inputs = [_IMAGES, _normal(3, 3, 2, 4)]
    expected, _ = _program_of(_with_gradients(with_zeros_between), inputs)
    _, program = _program_of(_with_gradients(_conv(1, 'SAME', 2)), inputs)
    with jax.enable_x64(True):
      found = jax.jit(program)(*inputs)
    self._assert_close(found, expected(*map(tf.constant, inputs)))

  @parameterized.named_parameters(
      ('reverse', lambda x: tf.reverse(x, [0])),
      ('first_rows', lambda x: x[:2]),
      ('last_row', lambda x: x[-1]),
      ('sorted', lambda x: tf.math.top_k(tf.transpose(x), 1)[0]),
      ('softmax_over_rows', lambda x: tf.nn.softmax(x, 0)),
      ('merged', lambda x: tf.reshape(tf.transpose(x), [-1])),
      ('joined', lambda x: tf.concat([x, x], 0)),
      ('of_other_rows', lambda x: x + tf.ones([_ROOM, 1])),
      ('cut_by_rows', lambda x: x[:, : tf.shape(x)[0]]),
      (
          'rows_as_channels',
          lambda x: tf.raw_ops.BiasAddGrad(out_backprop=tf.transpose(x)),
      ),
      (
          'gathered_columns',
          lambda x: tf.gather_nd(
              tf.transpose(x), tf.range(tf.shape(x)[0])[:, tf.newaxis]
          ),
      ),
  )
  def test_what_mixes_rows_is_refused(self, fn):
    _, program = _program_of(fn, [], [_ROWS])
    rows = padding.rows(_ROWS, padding.Batch(_ROOM, np.int32(3)))
    with self.assertRaises(padding.PaddingError):
      jax.eval_shape(lambda: [padding.bare(one) for one in program(rows)])

  @parameterized.named_parameters(
      ('lower_diagonal', lambda x: tf.linalg.diag(x, k=-1)),
      ('diagonals', lambda x: tf.linalg.diag(x[:2], k=(-1, 0))),
      ('other_entries', lambda x: tf.linalg.diag(x, padding_value=-1.0)),
      ('upper_diagonal', lambda x: tf.linalg.diag_part(x, k=1)),
      ('every_other_row', lambda x: x[: tf.cast(x[0, 0], tf.int32) : 2]),
      (
          'joined_strings',
          lambda x: tf.gather(['a', 'b'], tf.argmax(x)) + tf.constant('c'),
      ),
      ('no_rows', lambda x: tf.reduce_max(x[:0], 0)),
      (
          'index_of_no_axis',
          lambda x: tf.gather_nd(x, tf.zeros([2, 0], tf.int32)),
      ),
      ('growing_list', _growing_list),
      ('list_of_a_tensor_that_grows', _pushed_to_rows),
      ('list_of_a_length_that_depends_on_values', _halves),
      (
          'pooled_channels',
          lambda x: tf.nn.max_pool(
              x[:, None, None], [1, 1, 1, 2], [1, 1, 1, 2], 'VALID'
          ),
      ),
  )
  def test_what_has_no_form_is_refused(self, fn):
    _, program = _program_of(fn, [_ROWS])
    with self.assertRaises(lowerings.NoLoweringError):
      jax.eval_shape(program, _ROWS)

  @parameterized.parameters((2, 2), (-1, 4), (-9, 0), (9, 5))
  def test_first_rows_are_counted(self, end, count):
    _, program = _program_of(lambda x, end: x[:end], [_ROWS, np.int32(end)])
    (kept,) = jax.jit(program)(_ROWS, np.int32(end))
    self.assertEqual(int(kept.counts), count)

  def test_eigenvectors_compose_the_matrix(self):
    matrix = np.cov(_ROWS.T)
    _, program = _program_of(tf.linalg.eigh, [matrix])
    with jax.enable_x64(True):
      values, vectors = jax.jit(program)(matrix)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(matrix), 1e-6)
    np.testing.assert_allclose(
        vectors @ np.diag(values) @ vectors.T, matrix, atol=1e-6
    )

  @parameterized.parameters((4, 3), (3, 4))
  def test_singular_vectors_compose_the_matrix(self, *shape):
    matrix = np.resize(_ROWS, shape).astype(np.float64)
    _, program = _program_of(tf.linalg.svd, [matrix])
    with jax.enable_x64(True):
      values, left, right = jax.jit(program)(matrix)
    np.testing.assert_allclose(
        values, np.linalg.svd(matrix, compute_uv=False), 1e-6
    )
    np.testing.assert_allclose(left * values @ right.T, matrix, atol=1e-6)

  def test_labels_out_of_range_are_not_numbers(self):
    def loss(logits, labels):
      return tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)

    _, program = _program_of(loss, [_ROWS, _LABELS])
    found = jax.jit(program)(_ROWS, np.array([0, 4, -1, 2, 3], np.int32))
    np.testing.assert_array_equal(
        np.isnan(found[0]), [False, True, True, False, False]
    )

  @parameterized.named_parameters(
      ('gather', lambda x, i: tf.gather(x, i)[:, 0]),
      ('batches', lambda x, i: tf.gather(x[:3], i[:, None], batch_dims=1)),
      ('entries', lambda x, i: tf.gather_nd(x, i[:, None])[:, 0]),
      ('rows', lambda x, i: tf.stack([x[i[0]], x[i[1] - 5], x[i[2]]])[:, 0]),
      ('slices', lambda x, i: tf.concat(_slices_at(x, i), 0)),
  )
  def test_what_is_read_out_of_range_is_not_a_number(self, fn):
    places = np.array([0, -1, 5], np.int32)
    _, program = _program_of(fn, [_ROWS, places])
    (found,) = jax.jit(program)(_ROWS, places)
    np.testing.assert_array_equal(
        np.isnan(np.ravel(found)), [False, True, True]
    )

  def test_what_is_written_out_of_range_is_dropped(self):
    def write(x, places):
      ones = tf.ones_like(x[:3])
      return [
          tf.scatter_nd(places, ones, x.shape),
          tf.tensor_scatter_nd_update(x, places, ones) - x,
          tf.tensor_scatter_nd_add(x, places, ones) - x,
          x - tf.tensor_scatter_nd_sub(x, places, ones),
      ]

    places = np.array([[-1], [5], [-5]], np.int32)
    _, program = _program_of(write, [_ROWS, places])
    for found in jax.jit(program)(_ROWS, places):
      np.testing.assert_array_equal(found, np.zeros_like(_ROWS))

  def test_a_batch_may_have_no_rows(self):
    _, program = _program_of(_batch_norm, [_normal(2)], [_IMAGES])
    rows = padding.rows(_IMAGES[:0], padding.Batch(0, np.int32(0)))
    found, *_ = jax.jit(lambda scale: program(rows, scale))(_normal(2))
    self.assertTrue(np.isnan(found))

  def test_an_op_without_a_form_is_named(self):
    _, program = _program_of(lambda x: tf.signal.rfft(x), [_ROWS])
    with self.assertRaisesRegex(
        lowerings.NoLoweringError, r"no form of the op RFFT.*\(at '.*'\)"
    ):
      jax.eval_shape(program, _ROWS)

  def test_a_shape_that_depends_on_values_is_named(self):
    _, program = _program_of(
        lambda x: tf.zeros([tf.cast(x[0, 0], tf.int32), 2]), [_ROWS]
    )
    with self.assertRaisesRegex(
        lowerings.NoLoweringError, 'a shape is not known before the round runs'
    ):
      jax.eval_shape(program, _ROWS)


class RandomLoweringsTest(parameterized.TestCase):

  @parameterized.product(
      dtype=['float16', 'bfloat16', 'float32', 'float64', 'int32', 'int64'],
      shape=[(), (5,), (3, 7)],
  )
  @pytest.mark.sample(3)
  def test_has_the_bits_of_tensorflow(self, dtype, shape):
    def draw(seed):
      options = {'maxval': 1000} if dtype.startswith('int') else {}
      drawn = tf.random.stateless_uniform(shape, seed, dtype=dtype, **options)
      old = tf.raw_ops.StatelessRandomUniform
      if dtype.startswith('int'):
        return drawn, tf.random.stateless_uniform(
            shape, seed, None, None, dtype
        )
      return drawn, old(shape=shape, seed=seed, dtype=dtype)

    for seed in ([1, 2], [-5, 2**31 - 1]):
      seed = np.array(seed, np.int32)
      concrete, program = _program_of(draw, [seed])
      with jax.enable_x64(True):
        found = jax.jit(program)(seed)
      for one, other in zip(found, concrete(tf.constant(seed))):
        np.testing.assert_array_equal(np.asarray(one), other.numpy())

  @parameterized.parameters('float32', 'float64')
  def test_normal_numbers_equal_up_to_rounding(self, dtype):
    seed = np.array([3, 4], np.int32)
    concrete, program = _program_of(
        lambda seed: tf.random.stateless_normal([1001], seed, dtype=dtype),
        [seed],
    )
    with jax.enable_x64(True):
      (found,) = jax.jit(program)(seed)
    np.testing.assert_allclose(
        found, concrete(tf.constant(seed)), rtol=1e-5, atol=1e-6
    )


class VariablesTest(parameterized.TestCase):

  def test_loops_and_branches_assign(self):
    graph = tf.Graph()
    with graph.as_default():
      start = tf.compat.v1.placeholder(tf.float32, [])
      handle = tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=[])
      assign = tf.raw_ops.AssignVariableOp(resource=handle, value=start)

      @tf.function(autograph=False)
      def count(handle):
        def add():
          tf.raw_ops.AssignAddVariableOp(resource=handle, value=2.0)
          return tf.constant(0)

        def turn(number):
          tf.cond(number > 2, add, lambda: tf.constant(0))
          return number + 1

        tf.while_loop(lambda number: number < 5, turn, [tf.constant(0)])
        return tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32)

      with tf.control_dependencies([assign]):
        result = count(tf.identity(handle))
    program = graph_programs.GraphProgram(
        graph.as_graph_def(), [start.name], [result.name]
    )
    self.assertEqual(float(jax.jit(program)(np.float32(1))[0]), 5.0)

  def test_loops_are_differentiated_by_variables(self):
    weights = tf.Variable([0.5, 2.0])

    def slope(x):
      with tf.GradientTape() as tape:
        _, y = tf.while_loop(
            lambda number, _: number < 3,
            lambda number, y: (number + 1, y * y * weights),
            [0, x],
        )
      return tape.gradient(y, weights)

    x = np.array([2, 1], np.float32)
    concrete, program = _program_of(slope, [x])
    variable = variable_lowerings.Variable()
    variable.value = jnp.array([0.5, 2])
    (found,) = jax.jit(lambda x: program(x, variable))(x)
    np.testing.assert_allclose(found, concrete(tf.constant(x)), 1e-6)

  def test_the_number_of_rows_keeps_its_dtype(self):
    graph = tf.Graph()
    with graph.as_default():
      rows = tf.compat.v1.placeholder(tf.float32, [None, 4])
      handle = tf.raw_ops.VarHandleOp(dtype=tf.int64, shape=[])
      number = tf.shape(rows, tf.int64)[0]
      assign = tf.raw_ops.AssignVariableOp(resource=handle, value=number)
      with tf.control_dependencies([assign]):
        value = tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.int64)
    program = graph_programs.GraphProgram(
        graph.as_graph_def(), [rows.name], [value.name]
    )
    batch = padding.rows(_ROWS, padding.Batch(_ROOM, np.int32(3)))
    with jax.enable_x64(True):
      (found,) = program(batch)
    self.assertEqual((found.dtype, int(found)), (np.int64, 3))

  def test_rows_are_gathered(self):
    graph = tf.Graph()
    with graph.as_default():
      table = tf.compat.v1.placeholder(tf.float32, [_ROOM, 4])
      places = tf.compat.v1.placeholder(tf.int32, [None])
      handle = tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=[_ROOM, 4])
      assign = tf.raw_ops.AssignVariableOp(resource=handle, value=table)
      with tf.control_dependencies([assign]):
        rows = tf.raw_ops.ResourceGather(
            resource=handle, indices=places, dtype=tf.float32
        )
    program = graph_programs.GraphProgram(
        graph.as_graph_def(), [table.name, places.name], [rows.name]
    )
    batch = padding.rows(_LABELS, padding.Batch(_ROOM, np.int32(3)))
    for given in (_LABELS, batch):
      found = jax.jit(
          lambda table, given=given: padding.bare(program(table, given)[0])
      )(_ROWS)
      np.testing.assert_array_equal(found, _ROWS[_LABELS])
