# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of calling functions with fixed random numbers."""

from absl.testing import parameterized
import tensorflow as tf

from tff_adaptive import _random_ops


def _uniform(shape):
  return tf.random.uniform(shape)


def _normal(shape):
  return tf.random.normal(shape, stddev=2.0)


def _truncated(shape):
  return tf.random.truncated_normal(shape)


def _integers(shape):
  return tf.random.uniform(shape, maxval=1000000, dtype=tf.int64)


def _nested(shape):
  @tf.function
  def inner(x):
    return x + tf.random.uniform(tf.shape(x))

  @tf.function
  def outer(x):
    return inner(x) + inner(x)

  return outer(tf.zeros(shape))


def _branch(shape):
  return tf.cond(
      tf.reduce_sum(shape) > 0,
      lambda: tf.random.uniform(shape),
      lambda: tf.zeros(shape),
  )


def _dropout(shape):
  return tf.keras.layers.Dropout(0.5)(tf.ones(shape), training=True)


def _loop(shape):
  """Draws a new row in every iteration."""
  rows = tf.TensorArray(tf.float32, 3, element_shape=[None])
  return tf.reshape(
      tf.while_loop(
          lambda i, _: i < 3,
          lambda i, rows: (i + 1, rows.write(i, tf.random.uniform([100]))),
          (0, rows),
      )[1].stack(),
      tf.concat([shape[:0], [50, 6]], 0),
  )[:, :4]


def _from_generator(shape):
  # What `tf.random.Generator.from_non_deterministic_state` is made of.
  state = tf.raw_ops.NonDeterministicInts(shape=[3], dtype=tf.int64)
  return tf.random.stateless_uniform(shape, seed=state[:2])


_DRAWS = (
    ('loop', _loop),
    ('uniform', _uniform),
    ('normal', _normal),
    ('truncated_normal', _truncated),
    ('integers', _integers),
    ('nested_functions', _nested),
    ('branch', _branch),
    ('dropout', _dropout),
    ('generator', _from_generator),
)


class StatelessRandomTest(tf.test.TestCase, parameterized.TestCase):

  def test_arguments_may_be_unread(self):
    @tf.function
    def run(seed):
      return _random_ops.call_with_seed(
          lambda x, unread: x + tf.random.uniform([3]),
          seed,
          tf.ones([3]),
          tf.ones([2]),
      )

    self.assertEqual(run(tf.constant([1, 1])).shape, [3])

  @parameterized.named_parameters(*_DRAWS)
  def test_same_seed_same_numbers(self, draw):
    @tf.function
    def run(seed, other_seed, shape):
      return tuple(
          _random_ops.call_with_seed(draw, s, shape)
          for s in (seed, seed, other_seed)
      )

    shape = tf.constant([50, 4])
    first, second, third = run(tf.constant([1, 2]), tf.constant([1, 3]), shape)
    self.assertAllEqual(first, second)
    self.assertNotAllEqual(first, third)
    self.assertEqual(first.shape, [50, 4])
    again, _, _ = run(tf.constant([1, 2]), tf.constant([1, 3]), shape)
    self.assertAllEqual(first, again)

  def test_each_op_draws_its_own_numbers(self):
    @tf.function
    def run(seed):
      return _random_ops.call_with_seed(
          lambda x: (x + tf.random.uniform([9]), x + tf.random.uniform([9])),
          seed,
          tf.zeros([9]),
      )

    first, second = run(tf.constant([4, 5]))
    self.assertNotAllClose(first, second)

  def test_each_call_of_a_function_draws_its_own_numbers(self):
    @tf.function
    def draw(x):
      return x + tf.random.uniform([9])

    @tf.function
    def run(seed):
      return _random_ops.call_with_seed(
          lambda x: (draw(x), draw(x)), seed, tf.zeros([9])
      )

    first, second = run(tf.constant([4, 5]))
    self.assertNotAllClose(first, second)

  def test_distributions_stay(self):
    @tf.function
    def run(seed):
      call = _random_ops.call_with_seed
      shape = tf.constant([200000])
      return tuple(call(f, seed, shape) for f in (_uniform, _normal, _dropout))

    uniform, normal, dropout = run(tf.constant([7, 7]))
    self.assertAllInRange(uniform, 0.0, 1.0)
    self.assertAllClose(tf.reduce_mean(uniform), 0.5, atol=0.01)
    self.assertAllClose(tf.math.reduce_std(normal), 2.0, atol=0.02)
    self.assertAllInSet(dropout, (0.0, 2.0))
    self.assertAllClose(tf.reduce_mean(dropout), 1.0, atol=0.02)

  def test_side_effects_and_none_survive(self):
    counter = tf.Variable(0)

    def draw(x):
      counter.assign_add(1)
      return {'value': x * tf.random.uniform([3]), 'nothing': None}

    @tf.function
    def run(seed):
      return _random_ops.call_with_seed(draw, seed, tf.ones([3]))

    result = run(tf.constant([1, 1]))
    self.assertIsNone(result['nothing'])
    self.assertEqual(result['value'].shape, [3])
    self.assertAllEqual(counter, 1)

  def test_without_random_ops_the_function_itself_is_called(self):
    calls = []

    @tf.function
    def run(seed):
      def fn(x):
        calls.append(x)
        return x + 1.0

      return _random_ops.call_with_seed(fn, seed, tf.ones([]))

    self.assertAllEqual(run(tf.constant([1, 1])), 2.0)
    self.assertLen(calls, 2)  # Once to look for random ops, once for real.

  def test_gradients_use_the_same_mask(self):
    def value_and_grad(w):
      with tf.GradientTape() as tape:
        tape.watch(w)
        loss = tf.reduce_sum(_dropout([20]) * w)
      return loss, tape.gradient(loss, w)

    @tf.function
    def run(seed):
      call = _random_ops.call_with_seed
      return (
          call(value_and_grad, seed, tf.ones([20])),
          call(value_and_grad, seed, 3.0 * tf.ones([20])),
      )

    (loss, gradient), (tripled, same) = run(tf.constant([3, 1]))
    self.assertAllEqual(gradient, same)
    self.assertAllClose(tripled, 3.0 * loss)
    self.assertAllClose(tf.reduce_sum(gradient), loss)

  def test_gradients_of_rows_stay_slices(self):
    def gradient(table, rows):
      with tf.GradientTape() as tape:
        tape.watch(table)
        chosen = tf.gather(table, rows)
        loss = tf.reduce_sum(chosen * tf.random.uniform(tf.shape(chosen)))
      return {'slices': tape.gradient(loss, table), 'none': None}

    @tf.function
    def call(table, rows, seed):
      found = _random_ops.call_with_seed(gradient, seed, table, rows)
      self.assertIsInstance(found['slices'], tf.IndexedSlices)
      self.assertIsNone(found['none'])
      return tf.convert_to_tensor(found['slices'])

    table, rows = tf.zeros([4, 2]), tf.constant([1, 3, 1])
    first, second = (call(table, rows, tf.constant([1, 2])) for _ in range(2))
    self.assertAllEqual(first, second)
    self.assertAllEqual(tf.reduce_any(first > 0, axis=1), [0, 1, 0, 1])

  def test_each_iteration_draws_its_own_numbers(self):
    @tf.function
    def run(seed):
      return _random_ops.call_with_seed(
          lambda x: tf.while_loop(
              lambda i, _: i < 3,
              lambda i, x: (i + 1, tf.concat([x, tf.random.uniform([1])], 0)),
              (0, x),
              shape_invariants=(tf.TensorShape([]), tf.TensorShape([None])),
          )[1],
          seed,
          tf.zeros([0]),
      )

    self.assertLen(set(run(tf.constant([4, 5])).numpy().tolist()), 3)

  @parameterized.parameters((0, True), (3, False))
  def test_fractional_pooling_draws_unless_it_has_a_seed(self, seed, draws):
    with tf.Graph().as_default() as graph:
      tf.nn.fractional_max_pool(tf.zeros([1, 4, 4, 1]), 1.5, seed=seed)
    graph_def = graph.as_graph_def()
    rewriter = _random_ops.RandomOpRewriter(graph_def, '')
    self.assertEqual(rewriter.draws(graph_def.node), draws)

  @parameterized.named_parameters(
      ('shuffle', lambda: tf.random.shuffle(tf.range(5))),
      (
          'candidates',
          lambda: tf.random.log_uniform_candidate_sampler(
              tf.zeros([1, 1], tf.int64), 1, 2, True, 9
          )[0],
      ),
  )
  def test_draws_that_cannot_be_fixed_raise(self, draw):
    with self.assertRaisesRegex(ValueError, "previous_gradient='reuse'"):

      @tf.function
      def run(seed):
        return _random_ops.call_with_seed(draw, seed)

      run(tf.constant([1, 1]))
