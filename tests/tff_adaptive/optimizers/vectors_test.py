# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `vectors`, of what is fused, and that fusing changes no number."""

from unittest import mock

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive.optimizers import rules_testing
from tff_adaptive import optimizers
from tff_adaptive import runtime
from tff_adaptive.optimizers import vectors


class VectorsTest(tf.test.TestCase, parameterized.TestCase):

  def test_norm_of_bfloat16_does_not_overflow_or_round_away(self):
    tensor = tf.fill([10000], tf.constant(1.0, tf.bfloat16))
    self.assertAllClose(vectors.norm([tensor], tf.float32), 100.0)

  def test_all_finite_looks_at_every_floating_point_entry(self):
    finite = (tf.ones([2]), {'count': tf.constant(3)})
    self.assertTrue(vectors.all_finite(finite))
    self.assertTrue(vectors.all_finite(()))
    for bad in (float('nan'), float('-inf')):
      self.assertFalse(vectors.all_finite((*finite, tf.constant([0.0, bad]))))

  @parameterized.parameters(tf.float32, tf.float64)
  def test_ratio_of_a_failing_client_is_nan(self, dtype):
    ratio = tf.function(vectors.ratio)
    found = [
        ratio(tf.constant(2.0, dtype), tf.constant(denominator, dtype))
        for denominator in (4.0, 0.0, float('inf'))
    ]
    self.assertAllEqual(found, [0.5, 0.0, float('nan')])

  def test_step_dtype(self):
    half = tf.TensorSpec([], tf.bfloat16)
    double = tf.TensorSpec([], tf.float64)
    self.assertEqual(vectors.step_dtype((half,)), tf.float32)
    self.assertEqual(vectors.step_dtype((half, double)), tf.float64)

  @parameterized.parameters(
      optimizers.build_adagrad_norm,
      optimizers.build_dog,
      optimizers.build_dowg,
      optimizers.build_d_adaptation_sgd,
  )
  def test_a_gradient_whose_norm_overflows_does_not_stop_the_steps(self, build):
    rule = build()
    state = rule.initialize(tf.TensorSpec([2], tf.float32))
    _, moved = rule.next(state, tf.ones([2]), tf.constant([3e19, 1.0]))
    self.assertAllEqual(moved, [float('nan')] * 2)


_LARGE, _SMALL = [256, 256], [3]
_SPECS = (tf.TensorSpec(_LARGE, tf.float32), tf.TensorSpec(_SMALL, tf.float32))
_RULES = (
    optimizers.build_adam(),
    optimizers.build_adagrad(),
    optimizers.build_yogi(),
    optimizers.build_fedams(),
    optimizers.build_fedcada_adam(learning_rate=0.1),
    optimizers.build_adaalter(),
)


def _vectors(seed: int) -> tuple[np.ndarray, ...]:
  """Returns a large tensor with some zeros, and a small one."""
  rng = np.random.default_rng(seed)
  large = rng.normal(size=_LARGE) * (rng.uniform(size=_LARGE) < 0.9)
  return large.astype(np.float32), rng.normal(size=_SMALL).astype(np.float32)


def _take_steps(optimizer):
  """Returns the weights and the state after three steps."""
  weights = tuple(map(tf.constant, _vectors(0)))
  state = optimizer.initialize(_SPECS)
  for seed in (1, 2, 3):
    gradients = tuple(map(tf.constant, _vectors(seed)))
    state, weights = rules_testing.next_step(
        optimizer, state, weights, lambda _, found=gradients: found
    )
  return state, weights


def _num_fused(function) -> int:
  """Returns the number of calls in a function that XLA is to compile."""
  return sum(
      '_XlaMustCompile' in node.attr
      for node in function.get_concrete_function().graph.as_graph_def().node
  )


class FusedTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.parameters(*_RULES)
  @pytest.mark.sample(1)
  def test_kernel_computes_what_the_ops_do(self, optimizer):
    fused = tf.function(lambda: _take_steps(optimizer))
    # One tensor of the two, in each of three steps.
    self.assertEqual(_num_fused(fused), 3)
    for one, other in zip(
        *map(tf.nest.flatten, (fused(), _take_steps(optimizer)))
    ):
      self.assertAllClose(one, other, rtol=1e-6, atol=1e-6)

  def test_nothing_is_fused_where_there_is_a_gpu(self):
    gpu = tf.config.PhysicalDevice('/physical_device:GPU:0', 'GPU')
    with mock.patch.object(
        tf.config, 'list_physical_devices', return_value=[gpu]
    ):
      function = tf.function(lambda: _take_steps(optimizers.build_adam()))
      self.assertEqual(_num_fused(function), 0)

  def test_coordinates_without_gradient_do_not_move(self):
    optimizer = optimizers.build_adam(epsilon=0.0)

    @tf.function
    def step():
      state = optimizer.initialize(_SPECS)
      weights = tuple(map(tf.constant, _vectors(0)))
      zeros = tuple(map(tf.zeros_like, weights))
      return optimizer.next(state, weights, zeros)[1]

    self.assertEqual(_num_fused(step), 1)
    self.assertAllEqual(step()[0], _vectors(0)[0])


def _model() -> tff.learning.models.FunctionalModel:
  """Returns least squares with a large matrix."""

  @tf.function
  def predict(weights, x, training):
    del training
    return tf.matmul(x, weights[0][0])

  @tf.function
  def loss(output, label, sample_weight=None):
    del sample_weight
    return tf.reduce_mean(tf.square(output - label))

  spec = tf.TensorSpec([None, _LARGE[0]], tf.float32)
  return tff.learning.models.FunctionalModel(
      initial_weights=((np.zeros(_LARGE, np.float32),), ()),
      predict_on_batch_fn=predict,
      loss_fn=loss,
      input_spec=(spec, spec),
  )


def _train():
  """Returns the matrix after a round of TFF's algorithm with Adam."""
  process = tff.learning.algorithms.build_weighted_fed_avg(
      _model(), client_optimizer_fn=optimizers.build_adam()
  )
  rng = np.random.default_rng(1)
  x = rng.normal(size=[2, 8, 4, _LARGE[0]]).astype(np.float32)
  clients = [
      tf.data.Dataset.from_tensor_slices((client, client)) for client in x
  ]
  output = process.next(process.initialize(), clients)
  return output.state.global_model_weights.trainable[0]


class RuntimesTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.parameters(1, 4)
  @pytest.mark.usefixtures('native_runtime')
  @pytest.mark.slow
  def test_tffs_algorithm_is_that_of_the_native_runtime(self, number):
    native = _train()
    self.assertGreater(np.abs(native).max(), 0.0)
    with runtime.CompiledContext(num_parallel_clients=number, strict=True):
      self.assertAllClose(_train(), native, rtol=1e-5, atol=1e-6)
