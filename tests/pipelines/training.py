# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Models and loops that several pipelines share."""

import collections
from collections.abc import Callable
import itertools
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tests.pipelines import pipeline

sgd = tff.learning.optimizers.build_sgdm


# A loop of `tf.function` over the batches of a round takes as long.
ARITHMETIC = "TensorFlow's gradients of convolutions or recurrences take it"


def of_outputs(
    process: Any,
    clients: Any,
    show: Callable[[Any], Any],
    show_start: Callable[[Any], Any] = lambda state: (),
) -> pipeline.Run:
  """Returns the rounds of a process, of which parts are compared.

  Args:
    process: The process.
    clients: Those of each round, or a function that returns an iterator.
    show: Returns the part of an output.
    show_start: Returns the part of the first state. Defaults to nothing.
  """

  def rounds():
    cohorts = clients() if callable(clients) else itertools.repeat(clients)
    state = process.initialize()
    yield show_start(state)
    for cohort in cohorts:
      output = process.next(state, cohort)
      state = output.state if hasattr(output, "state") else output[0]
      yield show(output)

  return pipeline.Run(rounds, process.next)


def of_process(process: Any, clients: Any) -> pipeline.Run:
  """Returns a learning process' rounds, with weights and metrics."""
  return of_outputs(
      process,
      clients,
      lambda output: (output.state.global_model_weights, output.metrics),
      lambda state: state.global_model_weights,
  )


def only_weights(process: Any, clients: Any) -> pipeline.Run:
  """Returns a learning process' rounds, with trainable weights alone."""
  trainable = lambda state: state.global_model_weights.trainable
  return of_outputs(
      process, clients, lambda output: trainable(output.state), trainable
  )


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


def functional(model: tf.keras.Model, spec: Any, from_logits: bool) -> Any:
  """Returns a classifier as a functional model."""
  return tff.learning.models.functional_model_from_keras(
      model,
      loss_fn=tf.keras.losses.SparseCategoricalCrossentropy(
          from_logits=from_logits
      ),
      input_spec=spec,
      metrics_constructor=collections.OrderedDict(
          accuracy=tf.keras.metrics.SparseCategoricalAccuracy
      ),
  )


def variable(
    model: tf.keras.Model, spec: Any, from_logits: bool, *metrics: Any
) -> Any:
  """Returns a classifier as a model with variables."""
  return tff.learning.models.from_keras_model(
      model,
      input_spec=spec,
      loss=tf.keras.losses.SparseCategoricalCrossentropy(
          from_logits=from_logits
      ),
      metrics=list(metrics),
  )


def glorot(seed: int) -> tf.keras.initializers.Initializer:
  """Returns an initializer that gives the same weights on both runtimes."""
  return tf.keras.initializers.GlorotNormal(seed=seed)
