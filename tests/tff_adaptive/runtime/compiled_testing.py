# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Processes and contexts that tests of the compiled runtime share.

Processes and contexts are made once, so that a context compiles a process once
for all tests of a run.
"""

import collections
from collections.abc import Sequence
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


@functools.cache
def image_process() -> tff.learning.templates.LearningProcess:
  """Returns a small convolutional network."""
  spec = collections.OrderedDict(
      x=tf.TensorSpec([None, 8, 8, 1], tf.float32),
      y=tf.TensorSpec([None], tf.int32),
  )
  initializer = tf.keras.initializers.GlorotUniform(seed=1)
  layers = [
      tf.keras.layers.InputLayer((8, 8, 1)),
      tf.keras.layers.Conv2D(4, 3, kernel_initializer=initializer),
      tf.keras.layers.ReLU(),
      tf.keras.layers.MaxPool2D(),
      tf.keras.layers.Flatten(),
      tf.keras.layers.Dense(3, kernel_initializer=initializer),
  ]
  model = tff.learning.models.functional_model_from_keras(
      tf.keras.Sequential(layers),
      tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
      spec,
  )
  return tff.learning.algorithms.build_weighted_fed_avg(
      model, _sgd(0.1), _sgd(1.0)
  )


def image_clients(sizes: Sequence[int]) -> list[list[Any]]:
  """Returns clients of these numbers of images, in batches of 4."""
  generator = np.random.default_rng(0)
  clients = []
  for size in sizes:
    x = generator.normal(size=[size, 8, 8, 1]).astype(np.float32)
    y = generator.integers(3, size=size, dtype=np.int32)
    clients.append(
        [
            collections.OrderedDict(x=x[i : i + 4], y=y[i : i + 4])
            for i in range(0, size, 4)
        ]
    )
  return clients


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
