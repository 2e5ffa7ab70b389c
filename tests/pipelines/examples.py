# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Pipelines as in TFF's folder of examples."""

import collections
from typing import Any

import attrs
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tests.pipelines import client_data
from tests.pipelines import pipeline
from tests.pipelines import training
from tests.tff_adaptive import testing
from tff_adaptive.runtime import plans

_at_clients, _at_server = testing.at_clients, testing.at_server


def _convolutional_model() -> tf.keras.Model:
  return tf.keras.Sequential(
      [
          tf.keras.layers.InputLayer((28, 28, 1)),
          tf.keras.layers.Conv2D(
              16, 5, padding='same', kernel_initializer=training.glorot(1)
          ),
          tf.keras.layers.MaxPool2D(),
          tf.keras.layers.ReLU(),
          tf.keras.layers.Flatten(),
          tf.keras.layers.Dense(10, kernel_initializer=training.glorot(2)),
      ]
  )


@attrs.define(eq=False, frozen=True)
class _ServerState:
  weights: Any
  velocity: Any
  round_num: Any


@attrs.define(eq=False, frozen=True)
class _Message:
  weights: Any
  round_num: Any


@attrs.define(eq=False, frozen=True)
class _ClientOutput:
  delta: Any
  weight: Any
  loss: Any


def _assign(variables: Any, values: Any) -> None:
  for variable, value in zip(variables, values):
    variable.assign(value)


@tf.function
def _train_on_images(keras_model, optimizer, dataset, message):
  """Trains a Keras model by a loop over a client's batches."""
  variables = keras_model.trainable_variables
  _assign(variables, message.weights)
  loss_fn = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
  num_examples = tf.constant(0, tf.int32)
  total = tf.constant(0.0)
  for batch in iter(dataset):
    with tf.GradientTape() as tape:
      scores = keras_model(batch['x'], training=True)
      loss = loss_fn(batch['y'], scores)
    gradients = tape.gradient(loss, variables)
    optimizer.apply_gradients(zip(gradients, variables))
    size = tf.shape(batch['x'])[0]
    num_examples += size
    total += loss * tf.cast(size, tf.float32)
  weight = tf.cast(num_examples, tf.float32)
  deltas = [new - old for new, old in zip(variables, message.weights)]
  return _ClientOutput(deltas, weight, total / weight)


def _build_simple_fed_avg() -> tff.templates.IterativeProcess:
  @tff.tensorflow.computation
  def server_init():
    weights = [
        variable.read_value()
        for variable in _convolutional_model().trainable_variables
    ]
    return _ServerState(weights, list(map(tf.zeros_like, weights)), 0)

  state_type = server_init.type_signature.result
  data_type = tff.SequenceType(tff.types.tensorflow_to_type(client_data.IMAGES))

  @tff.tensorflow.computation(state_type)
  def message_of(state):
    return _Message(state.weights, state.round_num)

  @tff.tensorflow.computation(data_type, message_of.type_signature.result)
  def client_update(dataset, message):
    keras_model = _convolutional_model()
    optimizer = tf.keras.optimizers.SGD(0.1)
    return _train_on_images(keras_model, optimizer, dataset, message)

  delta_type = client_update.type_signature.result.delta

  @tff.tensorflow.computation(state_type, delta_type)
  def server_update(state, delta):
    velocity = [0.9 * v + d for v, d in zip(state.velocity, delta)]
    weights = [w + v for w, v in zip(state.weights, velocity)]
    return _ServerState(weights, velocity, state.round_num + 1)

  @tff.federated_computation
  def initialize():
    return tff.federated_eval(server_init, tff.SERVER)

  @tff.federated_computation(_at_server(state_type), _at_clients(data_type))
  def next_fn(state, clients):
    message = tff.federated_broadcast(tff.federated_map(message_of, state))
    outputs = tff.federated_map(client_update, (clients, message))
    delta = tff.federated_mean(outputs.delta, weight=outputs.weight)
    loss = tff.federated_mean(outputs.loss, weight=outputs.weight)
    return tff.federated_map(server_update, (state, delta)), loss

  return tff.templates.IterativeProcess(initialize, next_fn)


# Of nearly equal numbers, rounding decides which one a pool keeps.
@pipeline.pipeline(
    plans.CACHED,
    pipeline.near(5e-3),
    known_ratio=0.8,
    cause=training.ARITHMETIC,
)
def simple_fed_avg() -> pipeline.Run:
  clients = client_data.datasets(
      lambda dataset: dataset.shuffle(418, seed=3)
      .repeat(2)
      .batch(20)
      .map(client_data.images)
  )
  return training.of_outputs(
      _build_simple_fed_avg(),
      clients,
      lambda output: output[0].weights,
      lambda state: state.weights,
  )


@attrs.define(eq=False, frozen=True)
class _ClientState:
  index: Any
  num_steps: Any


def _build_stateful() -> tuple[Any, Any]:
  """Returns federated averaging whose clients keep states."""
  model_type = tff.to_type([(np.float32, (784, 10)), (np.float32, (10,))])
  data_type = tff.SequenceType(
      tff.types.tensorflow_to_type(client_data.FLAT_DIGITS)
  )

  @tff.tensorflow.computation
  def first_state():
    return _ClientState(index=0, num_steps=0)

  state_type = first_state.type_signature.result

  @tff.tensorflow.computation(data_type, state_type, model_type)
  def client_update(dataset, state, start):
    @tf.function
    def train(weights, num_steps):
      for batch in dataset:
        with tf.GradientTape() as tape:
          tape.watch(weights)
          scores = batch['x'] @ weights[0] + weights[1]
          losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
              tf.reshape(batch['y'], [-1]), scores
          )
          loss = tf.reduce_mean(losses)
        gradients = tape.gradient(loss, weights)
        weights = tuple(w - 0.1 * g for w, g in zip(weights, gradients))
        num_steps += 1
      return weights, num_steps

    weights, num_steps = train(tuple(start), state.num_steps)
    delta = [new - old for new, old in zip(weights, start)]
    return delta, _ClientState(state.index, num_steps)

  add = tff.tensorflow.computation(
      lambda old, delta: [a + b for a, b in zip(old, delta)]
  )

  @tff.federated_computation(
      _at_server(model_type), _at_clients(data_type), _at_clients(state_type)
  )
  def next_fn(model, clients, states):
    at_clients = tff.federated_broadcast(model)
    delta, new_states = tff.federated_map(
        client_update, (clients, states, at_clients)
    )
    num_steps = tff.federated_sum(new_states.num_steps)
    model = tff.federated_map(add, (model, tff.federated_mean(delta)))
    return model, num_steps, new_states

  return next_fn, first_state


@pipeline.pipeline(plans.STEPS)
def stateful_clients() -> pipeline.Run:
  next_fn, _ = _build_stateful()
  clients = client_data.datasets(
      lambda dataset: dataset.batch(20).map(client_data.flat_digits)
  )

  def rounds():
    model = [np.zeros([784, 10], np.float32), np.zeros([10], np.float32)]
    states = [_ClientState(number, 0) for number in range(len(clients))]
    yield model
    while True:
      model, num_steps, states = next_fn(model, clients, states)
      # Runtimes return the states as different containers of the same numbers.
      yield model, num_steps, [int(state.num_steps) for state in states]

  return pipeline.Run(rounds, next_fn)


@tf.function
def _evaluate(model, dataset):
  """Returns the metrics of a model on a client's examples."""
  model.reset_metrics()
  num_examples = dataset.batch(50).reduce(
      0,
      lambda count, batch: count
      + model.forward_pass(batch, training=False).num_examples,
  )
  metrics = collections.OrderedDict(num_test_examples=num_examples)
  for name, sums in model.report_local_unfinalized_metrics().items():
    metrics[name] = sums[0] / sums[1] if len(sums) == 2 else sums[0]
  return metrics


def _build_personalize_fn() -> Any:
  """Returns a strategy that trains for three epochs."""
  optimizer = tf.keras.optimizers.SGD(0.01)

  @tf.function
  def personalize(model, train_data, test_data, context=None):
    del context

    def step(count, batch):
      with tf.GradientTape() as tape:
        output = model.forward_pass(batch)
      variables = model.trainable_variables
      gradients = tape.gradient(output.loss, variables)
      optimizer.apply_gradients(zip(gradients, variables))
      return count + output.num_examples

    count = 0
    metrics = collections.OrderedDict()
    for epoch in range(1, 4):
      count = train_data.batch(20).reduce(count, step)
      metrics[f'epoch_{epoch}'] = _evaluate(model, test_data)
    metrics['num_train_examples'] = count
    return metrics

  return personalize


@pipeline.pipeline(plans.CACHED)
def personalization() -> pipeline.Run:
  def model_fn():
    return training.variable(
        _convolutional_model(),
        client_data.IMAGES,
        True,
        tf.keras.metrics.SparseCategoricalAccuracy(),
    )

  evaluate = tff.learning.algorithms.build_personalization_eval_computation(
      model_fn,
      collections.OrderedDict(sgd=_build_personalize_fn),
      baseline_evaluate_fn=_evaluate,
  )
  # Each example is an element; the strategy makes batches.
  clients = [
      collections.OrderedDict(
          train_data=examples.take(30), test_data=examples.skip(30)
      )
      for examples in client_data.datasets(lambda d: d.map(client_data.images))
  ]
  weights = tff.learning.models.ModelWeights(
      [v.numpy() for v in _convolutional_model().trainable_variables], []
  )

  def rounds():
    yield ()
    while True:
      metrics = evaluate(weights, clients)
      # A sample of all clients, in an order of its own.
      yield tf.nest.map_structure(np.sort, metrics)

  return pipeline.Run(rounds, evaluate)
