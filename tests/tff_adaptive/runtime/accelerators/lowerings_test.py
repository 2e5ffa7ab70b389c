# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that TensorFlow's ops, and their gradients, are the same in JAX.

They do not see the room behind the rows of a batch, either.
"""

import inspect

from absl.testing import parameterized
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from tests import case_testing
from tff_adaptive.runtime.accelerators import graph_programs
from tff_adaptive.runtime.accelerators import lowerings
from tff_adaptive.runtime.accelerators import padding
from tff_adaptive.runtime.accelerators import variable_lowerings

_ROOM = 5
_rng = np.random.default_rng(0)


def _normal(*shape):
  return _rng.normal(size=shape).astype(np.float32)


def _loop(rows):
  """Returns sums of powers, in a loop whose turns write a list."""

  def turn(number, rows, written):
    rows = rows * rows * 0.5 + tf.cast(number, tf.float32)
    return number + 1, rows, written.write(number, rows)

  written = tf.TensorArray(tf.float32, 5, element_shape=rows.shape)
  _, _, written = tf.while_loop(
      lambda number, *_: number < 5,
      turn,
      [0, rows, written],
      maximum_iterations=5,
  )
  return written.stack()


def _doubled(rows):
  """Doubles in a loop, whose gradient keeps the known factor in a list."""
  _, rows = tf.while_loop(
      lambda number, _: number < 3,
      lambda number, rows: (number + 1, rows * tf.cast(2.0, tf.bfloat16)),
      [0, tf.cast(rows, tf.bfloat16)],
      maximum_iterations=3,
  )
  return tf.cast(rows, tf.float32)


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


def _recurrent(steps, square):
  """Returns the states of a recurrent layer, in a loop over steps."""
  turns = tf.transpose(steps, [1, 0, 2])
  inputs = tf.TensorArray(tf.float32, 3).unstack(turns)
  outputs = tf.TensorArray(tf.float32, 3)

  def turn(number, state, outputs):
    state = tf.tanh(inputs.read(number) @ square + state)
    return number + 1, state, outputs.write(number, state)

  state = tf.zeros([tf.shape(steps)[0], 4])
  _, _, outputs = tf.while_loop(
      lambda number, *_: number < 3,
      turn,
      [0, state, outputs],
      maximum_iterations=3,
  )
  return tf.transpose(outputs.stack(), [1, 0, 2])


def _batch_norm(images, scale):
  y, mean, variance = tf.compat.v1.nn.fused_batch_norm(images, scale, scale)
  return tf.reduce_sum(y * y * images) + tf.reduce_sum(mean * variance)


def _attention(steps, square):
  queries = tf.einsum('btd,de->bte', steps, square)
  scores = tf.nn.softmax(tf.matmul(queries, steps, transpose_b=True))
  return tf.matmul(scores, steps)


def _dropped(steps):
  drawn = tf.random.stateless_uniform(tf.shape(steps), [1, 2])
  return tf.where(drawn > 0.5, steps / 0.5, 0.0)


def _sparse_loss(rows, labels):
  losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, rows)
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


def _branch(rows):
  return tf.cond(tf.reduce_sum(rows) > 0, lambda: rows * 2, lambda: rows - 1)


# Inputs of the functions below, by the names of their parameters.
_BATCHES = {
    'rows': _normal(_ROOM, 4),
    'steps': _normal(_ROOM, 3, 4),
    'images': _normal(_ROOM, 6, 6, 2),
    'volumes': _normal(_ROOM, 2, 3, 2, 2),
    'labels': np.array([2, 0, 1, 2, 3], np.int32),
}
_ROWS, _, _IMAGES, _, _LABELS = _BATCHES.values()
_WEIGHTS = {
    'weights': _normal(4, 3),
    'narrow': _normal(4, 2),
    'square': _normal(4, 4),
    'flat': _normal(72, 3),
    'kernel': _normal(3, 3, 2, 4),
    'uneven': _normal(3, 2, 2, 4),
    'points': _normal(1, 1, 2, 4),
    'depthwise': _normal(3, 3, 2, 2),
    'others': _normal(5, 2),
    'scale': _normal(2),
    'bias': _normal(3),
    'vector': _normal(4),
    'positive': np.abs(_ROWS) + 0.1,
    'clipped': np.maximum(_ROWS, 0),
}
_PADDING = [[0, 0], [1, 0], [2, 1], [0, 0]]
# Functions of batches. Gradients are taken of the float inputs.
_BATCHED = dict(
    dense=lambda rows, weights, bias: tf.nn.relu(
        tf.nn.bias_add(rows @ weights, bias)
    ),
    time_distributed=lambda steps, narrow: tf.reshape(
        tf.reshape(steps, [-1, 4]) @ narrow, [tf.shape(steps)[0], 3, 2]
    ),
    tensordot=lambda steps, narrow: tf.tensordot(steps, narrow, [[2], [0]]),
    flattened=lambda images, flat: tf.reshape(images, [tf.shape(images)[0], 72])
    @ flat,
    convolution=lambda images, kernel: tf.nn.max_pool2d(
        tf.nn.conv2d(images, kernel, 1, 'SAME'), 2, 2, 'VALID'
    ),
    depthwise=lambda images, depthwise: tf.nn.avg_pool2d(
        tf.nn.depthwise_conv2d(images, depthwise, [1] * 4, 'SAME'),
        2,
        2,
        'VALID',
    ),
    resized=lambda images: tf.image.resize(images, [12, 12], 'nearest'),
    batch_norm=_batch_norm,
    batch_norm_of_volumes=lambda volumes, scale: tf.raw_ops.FusedBatchNormV3(
        x=volumes,
        scale=scale,
        offset=scale,
        mean=scale,
        variance=scale,
        data_format='NDHWC',
    ).y,
    layer_norm=lambda rows, vector: vector
    * (rows - tf.reduce_mean(rows, -1, keepdims=True))
    * tf.math.rsqrt(tf.math.reduce_variance(rows, -1, keepdims=True) + 0.1),
    moments=lambda rows: (rows - tf.reduce_mean(rows, 0))
    / tf.sqrt(tf.math.reduce_variance(rows, 0) + 0.1),
    attention=_attention,
    recurrent=_recurrent,
    dropout=_dropped,
    sparse_loss=_sparse_loss,
    loss=lambda rows, labels: tf.reduce_mean(
        tf.nn.softmax_cross_entropy_with_logits(tf.one_hot(labels, 4), rows)
    ),
    embedding=lambda labels, weights: tf.reduce_mean(
        tf.gather(weights, labels), 0
    ),
    scattered=lambda rows, labels, square: tf.tensor_scatter_nd_add(
        square, labels[:, tf.newaxis], rows
    ),
    reductions=lambda rows: tf.reduce_max(rows, 0)
    * tf.reduce_min(rows, [0, 1])
    * tf.reduce_prod(rows)
    + tf.norm(rows)
    + tf.nn.l2_loss(rows)
    + tf.cast(tf.reduce_all(rows > -9) | tf.reduce_any(rows > 9), tf.float32),
    means=lambda rows: tf.reduce_mean(rows)
    + tf.reduce_mean(rows, 0)
    + tf.reduce_mean(rows, [0, 1], keepdims=True),
    means_of_integers=lambda rows: tf.reduce_mean(
        tf.cast(rows * 10, tf.int32), 0
    ),
    accuracy=lambda rows, labels: tf.reduce_sum(rows)
    + tf.reduce_sum(
        tf.cast(tf.argmax(rows, 1, tf.int32) == labels, tf.float32)
    ),
    rearranged=lambda steps: tf.concat(
        [steps[:, 1:, ::2], tf.reverse(steps, [2])[:, :2, :2]], axis=1
    )
    + tf.stack([steps[..., 0], steps[:, :, 1]], 2)[:, :1],
    cut=lambda rows: tf.concat(tf.split(rows, 2, 1)[::-1], 1)
    * tf.pad(tf.unstack(rows, axis=1)[0][:, None], [[0, 0], [1, 2]]),
    numbered=lambda rows: rows
    * tf.cast(tf.range(tf.shape(rows)[0]), tf.float32)[:, tf.newaxis],
    repeated=lambda rows, vector: rows
    * tf.tile(vector[tf.newaxis], [tf.shape(rows)[0], 1])
    * tf.ones_like(rows)
    * tf.fill([tf.shape(rows)[0], 1], 2.0)
    + tf.broadcast_to(vector, tf.shape(rows)),
    cumulated=lambda rows: tf.cumsum(rows, 1) + tf.math.cumprod(rows, 0),
    branch=_branch,
    segments=lambda rows, labels: tf.math.unsorted_segment_sum(rows, labels, 4),
)
# Functions of arrays of known sizes; an input of one of them is its default.
_OTHERS = dict(
    transposed_product=lambda rows, others: tf.matmul(
        rows, others, transpose_a=True
    ),
    conv_valid=lambda images, kernel: tf.nn.conv2d(images, kernel, 1, 'VALID'),
    conv_same=lambda images, uneven: tf.nn.conv2d(images, uneven, 1, 'SAME'),
    conv_strides=lambda images, kernel: tf.nn.conv2d(images, kernel, 2, 'SAME'),
    conv_of_points=lambda images, points: tf.nn.conv2d(
        images, points, 1, 'VALID'
    ),
    conv_strided_points=lambda images, points: tf.nn.conv2d(
        images, points, 2, 'VALID'
    ),
    # TensorFlow has its gradients on some CPUs only.
    conv_dilated=lambda images, kernel: tf.stop_gradient(
        tf.nn.conv2d(images, kernel, 1, 'SAME', dilations=2)
    ),
    conv_padded=lambda images, kernel: tf.nn.conv2d(
        images, kernel, 1, _PADDING
    ),
    conv_padded_points=lambda images, points: tf.nn.conv2d(
        images, points, 1, _PADDING
    ),
    depthwise_strides=lambda images, depthwise: tf.nn.depthwise_conv2d(
        images, depthwise, [1, 2, 2, 1], 'SAME'
    ),
    max_pool_same=lambda images: tf.nn.max_pool2d(images, 3, 2, 'SAME'),
    max_pool_of_nan=lambda images: tf.nn.max_pool2d(
        tf.where(images > 0.5, float('nan'), images), 2, 2, 'VALID'
    ),
    avg_pool_same=lambda images: tf.nn.avg_pool2d(images, 3, 2, 'SAME'),
    batch_norm_of_first_channels=lambda images, s=_normal(6), o=_normal(6): (
        tf.compat.v1.nn.fused_batch_norm(images, s, o, data_format='NCHW')[0]
    ),
    resize_to_corners=lambda images: (
        tf.compat.v1.image.resize_nearest_neighbor(
            images, [11, 9], align_corners=True
        )
    ),
    gather_columns=lambda rows: tf.gather(rows, [2, 0], axis=1),
    gather_in_batches=lambda rows: tf.gather(
        rows, _LABELS[:, None] % 2, batch_dims=1
    ),
    gather_in_batches_from_the_end=lambda rows: tf.gather(
        rows, _LABELS[:, None] % 2, axis=1, batch_dims=-1
    ),
    gather_nd=lambda rows: tf.gather_nd(rows, [[1, 2], [0, 0]]),
    unary=lambda positive: tf.math.log(positive)
    + tf.sqrt(positive) * tf.exp(-positive)
    + tf.math.rsqrt(positive),
    no_gradient_where_a_slope_is_infinite=lambda x=np.float32([0, 3]): (
        tf.where(
            x > 0, tf.sqrt(x) + tf.math.rsqrt(x) + tf.math.reciprocal(x), 0.0
        )
    ),
    activations=lambda rows: sum(
        activation(rows)
        for activation in (
            tf.tanh,
            tf.sigmoid,
            tf.nn.elu,
            tf.nn.selu,
            tf.nn.softplus,
            tf.nn.gelu,
            tf.nn.relu6,
            tf.nn.leaky_relu,
        )
    ),
    no_nan=lambda rows, clipped: tf.math.divide_no_nan(rows, clipped)
    + tf.math.multiply_no_nan(rows, clipped),
    quotients=lambda x=np.float32([1, 5.5, -7.5]), y=np.float32([0.1, -2, 2]): (
        tf.math.floordiv(x, y) + tf.truncatediv(x, y)
    ),
    mean_of_bytes=lambda x=np.full([30], 200, np.uint8): tf.reduce_mean(
        x, keepdims=True
    ),
    mean_of_bfloat16=lambda x=np.full([300], 3, np.float32): tf.cast(
        tf.reduce_mean(tf.cast(x, tf.bfloat16)), tf.float32
    ),
    known_sum_of_bfloat16=lambda rows: rows
    * tf.cast(tf.reduce_sum(tf.ones([300], tf.bfloat16)), tf.float32),
    norm_of_integers=lambda x=np.int32([3, 5]): (
        tf.math.reduce_euclidean_norm(x, 0)
    ),
    adjoints=lambda x=np.complex64([[[1, 2j], [3 + 1j, 1 - 1j]]]): (
        tf.matmul(x, x, adjoint_a=True)
        + tf.matmul(x, x, adjoint_b=True)
        + tf.linalg.inv(x, adjoint=True)
    ),
    product_of_bytes=lambda x=np.full([1, 2, 2], 100, np.int8): (
        tf.raw_ops.BatchMatMulV3(x=x, y=x, Tout=tf.int32)
    ),
    one_hot_of_bytes=lambda x=np.uint8([3]): tf.one_hot(x, 300),
    places_beside_nan=lambda x=np.float32([[1, np.nan, 3], [np.nan, 2, 1]]): (
        tf.argmax(x, 1) + 10 * tf.argmin(x, 1)
    ),
    in_top=lambda y=np.int32([1, 0, 0, 5]), x=np.float32(
        [[1, 2], [1, np.nan], [np.nan, 1], [1, 2]]
    ): tf.cast(tf.math.in_top_k(y, x, 1), tf.float32),
    diagonal=lambda x=np.float32([0, 1]): tf.cast(
        tf.math.is_inf(tf.linalg.diag(1 / x, num_rows=2)), tf.float32
    ),
    clip_between_none=lambda rows: tf.raw_ops.ClipByValue(
        t=rows, clip_value_min=1.0, clip_value_max=0.0
    ),
    clip=lambda rows: tf.clip_by_global_norm([rows, 2 * rows], 1.0)[0][1],
    shapes=lambda rows: tf.reshape(
        tf.pad(tf.transpose(rows)[:, 1:], [[0, 1], [2, 0]]),
        [tf.shape(rows)[0], -1],
    ),
    slices=lambda rows: tf.concat([rows[1:3, ::2], rows[-3:, :2][::-1]], 0)
    + tf.stack(tf.unstack(rows))[..., :2],
    splits=lambda rows: tf.split(rows, [1, 3], 1)[1][:, :1]
    * tf.split(rows, 4, 1)[0],
    selections=lambda rows: tf.where(rows > 0, rows, rows * 3)
    + tf.cast(rows > 0, tf.float32),
    cumulative=lambda rows: tf.cumsum(rows, 1, reverse=True),
    top=lambda rows: tf.math.top_k(rows, 2)[0],
    top_places=lambda rows: tf.raw_ops.TopKV2(
        input=rows, k=2, index_type=tf.int64
    ).indices,
    tensor_diagonal=lambda rows: tf.linalg.tensor_diag_part(
        tf.stop_gradient(rows[:4])
    ),
    bands=lambda rows: tf.linalg.band_part(rows, 1, 0),
    sets_of_sizes=lambda rows: rows
    * tf.cast(
        tf.size(tf.sets.difference([tf.shape(rows)], [[5, 7]]).values),
        tf.float32,
    ),
    loop=_loop,
    loop_of_bfloat16=_doubled,
    known_items=lambda rows: _known_items(rows[0]),
    lstm=lambda x=_normal(2, 4, 3): _lstm(x),
    last_branch=lambda rows: tf.switch_case(
        tf.constant(-1), [lambda: rows, lambda: 2 * rows]
    ),
    other_branch=lambda positive: _branch(-positive),
    integers=lambda rows: tf.cast(
        (tf.cast(rows * 10, tf.int32) // 3) % 4
        + tf.argmax(rows, 1, tf.int32)[:, None],
        tf.float32,
    ),
)


def _case(fn, batches):
  """Returns a function, which of its inputs are batches, and the others."""
  batched, others = [], []
  for one in inspect.signature(fn).parameters.values():
    if one.name in batches:
      batched.append(batches[one.name])
    else:
      others.append({**_BATCHES, **_WEIGHTS}.get(one.name, one.default))
  return fn, batched, others


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

  @case_testing.named(
      **{name: _case(fn, _BATCHES) for name, fn in _BATCHED.items()},
      **{name: _case(fn, {}) for name, fn in _OTHERS.items()},
  )
  def test_equals_tensorflow(self, fn, batched, others):
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
    dilated = lambda x, k: tf.nn.conv2d(x, k, 1, 'SAME', dilations=2)
    _, program = _program_of(_with_gradients(dilated), inputs)
    with jax.enable_x64(True):
      found = jax.jit(program)(*inputs)
    self._assert_close(found, expected(*map(tf.constant, inputs)))

  @case_testing.named(
      reverse=lambda x: tf.reverse(x, [0]),
      first_rows=lambda x: x[:2],
      last_row=lambda x: x[-1],
      sorted=lambda x: tf.math.top_k(tf.transpose(x), 1)[0],
      softmax_over_rows=lambda x: tf.nn.softmax(x, 0),
      merged=lambda x: tf.reshape(tf.transpose(x), [-1]),
      joined=lambda x: tf.concat([x, x], 0),
      of_other_rows=lambda x: x + tf.ones([_ROOM, 1]),
      cut_by_rows=lambda x: x[:, : tf.shape(x)[0]],
      rows_as_channels=lambda x: tf.raw_ops.BiasAddGrad(
          out_backprop=tf.transpose(x)
      ),
      gathered_columns=(
          lambda x: tf.gather_nd(
              tf.transpose(x), tf.range(tf.shape(x)[0])[:, tf.newaxis]
          )
      ),
  )
  def test_what_mixes_rows_is_refused(self, fn):
    _, program = _program_of(fn, [], [_ROWS])
    rows = padding.rows(_ROWS, padding.Batch(_ROOM, np.int32(3)))
    with self.assertRaises(padding.PaddingError):
      jax.eval_shape(lambda: [padding.bare(one) for one in program(rows)])

  @case_testing.named(
      lower_diagonal=lambda x: tf.linalg.diag(x, k=-1),
      diagonals=lambda x: tf.linalg.diag(x[:2], k=(-1, 0)),
      other_entries=lambda x: tf.linalg.diag(x, padding_value=-1.0),
      upper_diagonal=lambda x: tf.linalg.diag_part(x, k=1),
      every_other_row=lambda x: x[: tf.cast(x[0, 0], tf.int32) : 2],
      joined_strings=lambda x: tf.gather(['a', 'b'], tf.argmax(x))
      + tf.constant('c'),
      no_rows=lambda x: tf.reduce_max(x[:0], 0),
      index_of_no_axis=lambda x: tf.gather_nd(x, tf.zeros([2, 0], tf.int32)),
      growing_list=_growing_list,
      list_of_a_tensor_that_grows=_pushed_to_rows,
      list_of_a_length_that_depends_on_values=_halves,
      pooled_channels=(
          lambda x: tf.nn.max_pool(
              x[:, None, None], [1, 1, 1, 2], [1, 1, 1, 2], 'VALID'
          )
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

  @case_testing.named(
      gather=lambda x, i: tf.gather(x, i)[:, 0],
      batches=lambda x, i: tf.gather(x[:3], i[:, None], batch_dims=1),
      entries=lambda x, i: tf.gather_nd(x, i[:, None])[:, 0],
      rows=lambda x, i: tf.stack([x[i[0]], x[i[1] - 5], x[i[2]]])[:, 0],
      slices=lambda x, i: tf.concat(_slices_at(x, i), 0),
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
