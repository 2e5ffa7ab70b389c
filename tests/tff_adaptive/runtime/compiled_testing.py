# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Processes and contexts that tests of the compiled runtime share.

Processes and contexts are made once, so that a context compiles a process once
for all tests of a run.
"""

from collections.abc import Iterable, Sequence
import functools
from typing import Any, Optional

from absl.testing import parameterized
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tff_adaptive import runtime

_sgd = tff.learning.optimizers.build_sgdm


def build_sum() -> tff.framework.ConcreteComputation:
  """Returns a new computation that can be compiled."""

  @tff.federated_computation(testing.at_clients())
  def add_up(values):
    return tff.federated_sum(values)

  return add_up


@functools.cache
def process(kind: str = 'functional') -> tff.learning.templates.LearningProcess:
  """Returns federated averaging of a linear classifier."""
  return tff.learning.algorithms.build_weighted_fed_avg(
      testing.either_model(kind), _sgd(0.1), _sgd(1.0)
  )


def image_model(*layers: Any) -> tff.learning.models.FunctionalModel:
  """Returns a classifier of small images: these layers, and a dense one."""
  keras = tf.keras.layers
  model = tf.keras.Sequential(
      [keras.InputLayer(input_shape=(6, 6, 1)), *layers, keras.Dense(3)]
  )
  image = tf.TensorSpec([None, 6, 6, 1], tf.float32)
  return tff.learning.models.functional_model_from_keras(
      model,
      loss_fn=testing.loss(),
      input_spec=(image, tf.TensorSpec([None], tf.int32)),
  )


def images(clients: Iterable[Sequence[int]]) -> list[list[Any]]:
  """Returns a client for each entry: the sizes of its batches of images."""
  rng = np.random.default_rng(1)
  return [
      [
          (
              rng.normal(size=(size, 6, 6, 1)).astype(np.float32),
              rng.integers(0, 3, size).astype(np.int32),
          )
          for size in sizes
      ]
      for sizes in clients
  ]


@functools.cache
def context(
    num_parallel_clients: Optional[int] = None,
) -> runtime.CompiledContext:
  """Returns a context that tests share, so that a process is compiled once."""
  return runtime.CompiledContext(
      devices='CPU', num_parallel_clients=num_parallel_clients, strict=True
  )


def installed(num_parallel_clients: Optional[int] = None) -> Any:
  """Installs the shared context in a `with` statement."""
  return tff.framework.get_context_stack().install(
      context(num_parallel_clients)
  )


def train(learning_process: Any, *rounds: Any) -> list[np.ndarray]:
  """Returns the weights after rounds, in the context that is installed."""
  state = learning_process.initialize()
  for clients in rounds:
    state = learning_process.next(state, clients).state
  return testing.trainable(state)


class TestCase(tf.test.TestCase, parameterized.TestCase):
  """Compares values bit by bit."""

  def assert_same_bits(self, left: Any, right: Any) -> None:
    tf.nest.map_structure(self._assert_same_array, left, right)

  def _assert_same_array(self, left: Any, right: Any) -> None:
    self.assertAllEqual(left, right)  # Its message shows what differs.
    left, right = np.asarray(left), np.asarray(right)
    self.assertEqual(left.dtype, right.dtype)
    if left.dtype != object:
      self.assertEqual(left.tobytes(), right.tobytes())
