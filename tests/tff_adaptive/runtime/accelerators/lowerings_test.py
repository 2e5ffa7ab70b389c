# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that TensorFlow's ops, and their gradients, are the same in JAX."""

from absl.testing import parameterized
import jax
import numpy as np
import pytest
import tensorflow as tf

from tff_adaptive.runtime.accelerators import graph_programs
from tff_adaptive.runtime.accelerators import lowerings

_rng = np.random.default_rng(0)


def _normal(*shape):
  return _rng.normal(size=shape).astype(np.float32)


def _conv(strides, padding, dilation=1):
  return lambda x, k: tf.nn.conv2d(x, k, strides, padding, dilations=dilation)


_IMAGES = _normal(2, 6, 7, 3)
_MATRIX = _normal(4, 3)
_LABELS = np.array([2, 0, 1, 2], np.int32)
_POSITIVE = np.abs(_MATRIX) + 0.1


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


def _branch(x):
  return tf.cond(tf.reduce_sum(x) > 0, lambda: x * 2, lambda: x - 1)


def _rnn(x):
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


# The function and its inputs, by name. Of the float inputs gradients are taken.
_CASES = {
    'dense': (
        lambda x, k, b: tf.nn.relu(x @ k + b),
        _MATRIX,
        _normal(3, 5),
        _normal(5),
    ),
    'transposed_product': (
        lambda x, y: tf.matmul(x, y, transpose_a=True),
        _MATRIX,
        _normal(4, 2),
    ),
    'batched_product': (
        lambda x, y: tf.matmul(x, y, transpose_b=True),
        _normal(2, 4, 3),
        _normal(2, 5, 3),
    ),
    'einsum': (
        lambda x, y: tf.einsum('abc,cd->abd', x, y),
        _normal(2, 4, 3),
        _normal(3, 2),
    ),
    'conv_valid': (_conv(1, 'VALID'), _IMAGES, _normal(3, 3, 3, 4)),
    'conv_same': (_conv(1, 'SAME'), _IMAGES, _normal(3, 2, 3, 4)),
    'conv_strides': (_conv(2, 'SAME'), _IMAGES, _normal(3, 3, 3, 4)),
    'conv_of_points': (_conv(1, 'VALID'), _IMAGES, _normal(1, 1, 3, 4)),
    'conv_strided_points': (_conv(2, 'VALID'), _IMAGES, _normal(1, 1, 3, 4)),
    'conv_dilated': (_conv(1, 'SAME', 2), _IMAGES, _normal(3, 3, 3, 4)),
    'conv_padded': (
        _conv(1, [[0, 0], [1, 0], [2, 1], [0, 0]]),
        _IMAGES,
        _normal(3, 3, 3, 4),
    ),
    'depthwise': (
        lambda x, k: tf.nn.depthwise_conv2d(x, k, [1, 2, 2, 1], 'SAME'),
        _normal(2, 6, 6, 3),
        _normal(3, 3, 3, 2),
    ),
    'max_pool': (lambda x: tf.nn.max_pool2d(x, 2, 2, 'VALID'), _IMAGES),
    'max_pool_same': (lambda x: tf.nn.max_pool2d(x, 3, 2, 'SAME'), _IMAGES),
    'avg_pool': (lambda x: tf.nn.avg_pool2d(x, 3, 2, 'SAME'), _IMAGES),
    'batch_norm': (
        lambda x, s, o: tf.compat.v1.nn.fused_batch_norm(x, s, o)[0],
        _IMAGES,
        _normal(3),
        _normal(3),
    ),
    'batch_norm_of_first_channels': (
        lambda x, s, o: tf.compat.v1.nn.fused_batch_norm(
            x, s, o, data_format='NCHW'
        )[0],
        _IMAGES,
        _normal(6),
        _normal(6),
    ),
    'resize': (
        lambda x: tf.image.resize(x, [12, 14], 'nearest'),
        _IMAGES,
    ),
    'sparse_cross_entropy': (
        lambda x: tf.nn.sparse_softmax_cross_entropy_with_logits(_LABELS, x),
        _MATRIX,
    ),
    'cross_entropy': (
        lambda x: tf.nn.softmax_cross_entropy_with_logits(
            tf.one_hot(_LABELS, 3), x
        ),
        _MATRIX,
    ),
    'embedding': (lambda t: tf.gather(t, _LABELS), _MATRIX),
    'gather_columns': (lambda t: tf.gather(t, [2, 0], axis=1), _MATRIX),
    'gather_in_batches': (
        lambda t: tf.gather(t, _LABELS[:, None] % 2, batch_dims=1),
        _MATRIX,
    ),
    'gather_nd': (lambda t: tf.gather_nd(t, [[1, 2], [0, 0]]), _MATRIX),
    'unary': (
        lambda x: tf.math.log(x) + tf.sqrt(x) * tf.exp(-x) + tf.math.rsqrt(x),
        _POSITIVE,
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
        _MATRIX,
    ),
    'reductions': (
        lambda x: tf.reduce_mean(x, 0)
        + tf.reduce_max(x, 0) * tf.reduce_min(x)
        + tf.reduce_prod(x)
        + tf.norm(x),
        _MATRIX,
    ),
    'no_nan': (
        lambda x, y: tf.math.divide_no_nan(x, y)
        + tf.math.multiply_no_nan(x, y),
        _MATRIX,
        np.where(_MATRIX > 0, _MATRIX, 0).astype(np.float32),
    ),
    'clip': (
        lambda x: tf.clip_by_global_norm([x, 2 * x], 1.0)[0][1],
        _MATRIX,
    ),
    'shapes': (
        lambda x: tf.reshape(
            tf.pad(tf.transpose(x)[:, 1:], [[0, 1], [2, 0]]),
            [tf.shape(x)[0], -1],
        ),
        _MATRIX,
    ),
    'slices': (
        lambda x: tf.concat([x[1:3, ::2], x[-2:, :2][::-1]], 0)
        + tf.stack(tf.unstack(x))[..., :2],
        _MATRIX,
    ),
    'splits': (
        lambda x: tf.split(x, [1, 2], 1)[1] * tf.split(x, 3, 1)[0],
        _MATRIX,
    ),
    'broadcasts': (
        lambda x, y: x * y + tf.tile(y[None], [4, 1]) + tf.zeros_like(x),
        _MATRIX,
        _normal(3),
    ),
    'selections': (
        lambda x: tf.where(x > 0, x, x * 3) + tf.cast(x > 0, tf.float32),
        _MATRIX,
    ),
    'cumulative': (lambda x: tf.cumsum(x, 1, reverse=True), _MATRIX),
    'top': (lambda x: tf.math.top_k(x, 2)[0], _MATRIX),
    'bands': (lambda x: tf.linalg.band_part(x, 1, 0), _MATRIX),
    'segments': (
        lambda x: tf.math.unsorted_segment_sum(x, _LABELS, 3),
        _MATRIX,
    ),
    'sets_of_sizes': (
        lambda x: x
        * tf.cast(
            tf.size(tf.sets.difference([tf.shape(x)], [[4, 7]]).values),
            tf.float32,
        ),
        _MATRIX,
    ),
    'loop': (_loop, _MATRIX),
    'recurrent': (_rnn, _normal(2, 4, 3)),
    'branch': (_branch, _MATRIX),
    'other_branch': (_branch, -np.abs(_MATRIX)),
    'integers': (
        lambda x: tf.cast(
            (tf.cast(x * 10, tf.int32) // 3) % 4
            + tf.argmax(x, 1, tf.int32)[:, None],
            tf.float32,
        ),
        _MATRIX,
    ),
}


def _with_gradients(fn):
  """Returns a function whose results are those of `fn`, and its gradients."""

  def run(*inputs):
    with tf.GradientTape() as tape:
      tape.watch(inputs)
      result = fn(*inputs)
      total = tf.reduce_sum(result * result)
    gradients = tape.gradient(total, inputs, unconnected_gradients='zero')
    # Gradients of tables are slices.
    return [result, *map(tf.convert_to_tensor, gradients)]

  return run


def _program_of(fn, inputs):
  """Returns a function of TensorFlow, and the same function in JAX."""
  specs = [tf.TensorSpec(value.shape, value.dtype) for value in inputs]
  function = tf.function(fn, autograph=False)
  concrete = function.get_concrete_function(*specs)
  graph_def = concrete.graph.as_graph_def()
  program = graph_programs.GraphProgram(
      graph_def,
      [tensor.name for tensor in concrete.inputs],
      [tensor.name for tensor in concrete.outputs],
  )
  return concrete, program


class LoweringsTest(parameterized.TestCase):

  @parameterized.named_parameters(
      (name, *case) for name, case in _CASES.items()
  )
  def test_equals_tensorflow(self, fn, *inputs):
    concrete, program = _program_of(_with_gradients(fn), inputs)
    with jax.enable_x64(True):
      found = jax.jit(program)(*inputs)
    expected = concrete(*map(tf.constant, inputs))
    self.assertLen(found, len(expected))
    for one, other in zip(found, expected):
      np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5)
      self.assertEqual(np.asarray(one).dtype, other.numpy().dtype)

  def test_eigenvectors_compose_the_matrix(self):
    matrix = np.cov(_MATRIX.T)
    _, program = _program_of(tf.linalg.eigh, [matrix])
    with jax.enable_x64(True):
      values, vectors = jax.jit(program)(matrix)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(matrix), 1e-6)
    np.testing.assert_allclose(
        vectors @ np.diag(values) @ vectors.T, matrix, atol=1e-6
    )

  @parameterized.parameters((4, 3), (3, 4))
  def test_singular_vectors_compose_the_matrix(self, *shape):
    matrix = np.resize(_MATRIX, shape).astype(np.float64)
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

    _, program = _program_of(loss, [_MATRIX, _LABELS])
    found = jax.jit(program)(_MATRIX, np.array([0, 3, -1, 2], np.int32))
    np.testing.assert_array_equal(
        np.isnan(found[0]), [False, True, True, False]
    )

  def test_an_op_without_a_form_is_named(self):
    _, program = _program_of(lambda x: tf.signal.rfft(x), [_MATRIX])
    with self.assertRaisesRegex(
        lowerings.NoLoweringError, r"no form of the op RFFT.*\(at '.*'\)"
    ):
      jax.eval_shape(program, _MATRIX)

  def test_a_shape_that_depends_on_values_is_named(self):
    _, program = _program_of(
        lambda x: tf.zeros([tf.cast(x[0, 0], tf.int32), 2]), [_MATRIX]
    )
    with self.assertRaisesRegex(
        lowerings.NoLoweringError, 'a shape is not known before the round runs'
    ):
      jax.eval_shape(program, _MATRIX)


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
