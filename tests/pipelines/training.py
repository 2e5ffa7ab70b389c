# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Models and loops that several pipelines share."""

import collections
from collections.abc import Callable
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tests.pipelines import pipeline

sgd = tff.learning.optimizers.build_sgdm


# A loop of `tf.function` over the batches of a round takes as long.
ARITHMETIC = "TensorFlow's gradients of convolutions or recurrences take it"


def of_process(process: Any, sample: Callable[[], Any]) -> pipeline.Run:
  """Returns the rounds of a learning process, with weights and metrics.

  Args:
    process: The process.
    sample: Returns the clients of the next round.
  """

  def rounds():
    state = process.initialize()
    yield state.global_model_weights
    while True:
      output = process.next(state, sample())
      state = output.state
      yield state.global_model_weights, output.metrics

  return pipeline.Run(rounds, process.next)


def only_weights(process: Any, sample: Callable[[], Any]) -> pipeline.Run:
  """Returns the rounds of a learning process, with weights alone."""

  def rounds():
    state = process.initialize()
    while True:
      yield state.global_model_weights.trainable
      state = process.next(state, sample()).state

  return pipeline.Run(rounds, process.next)


def of_state(
    initialize: Callable[[], Any], next_fn: Any, *arguments: Any
) -> pipeline.Run:
  """Returns the rounds of a computation from states and clients to states."""

  def rounds():
    state = initialize()
    while True:
      yield state
      state = next_fn(state, *arguments)

  return pipeline.Run(rounds, next_fn)


def of_calls(computation: Any, *arguments: Any) -> pipeline.Run:
  """Returns rounds that are calls with the same arguments."""

  def rounds():
    yield ()
    while True:
      yield computation(*arguments)

  return pipeline.Run(rounds, computation)


def softmax_model() -> tf.keras.Model:
  """Returns softmax regression of flat digits, from zeros."""
  return tf.keras.Sequential(
      [
          tf.keras.layers.InputLayer((784,)),
          tf.keras.layers.Dense(10, kernel_initializer="zeros"),
          tf.keras.layers.Softmax(),
      ]
  )


def accuracy() -> Any:
  """Returns the metrics of functional models."""
  return collections.OrderedDict(
      accuracy=tf.keras.metrics.SparseCategoricalAccuracy
  )


def functional(model: tf.keras.Model, spec: Any, from_logits: bool) -> Any:
  """Returns a classifier as a functional model."""
  return tff.learning.models.functional_model_from_keras(
      model,
      loss_fn=tf.keras.losses.SparseCategoricalCrossentropy(
          from_logits=from_logits
      ),
      input_spec=spec,
      metrics_constructor=accuracy(),
  )


def glorot(seed: int) -> tf.keras.initializers.Initializer:
  """Returns an initializer that gives the same weights on both runtimes."""
  return tf.keras.initializers.GlorotNormal(seed=seed)
