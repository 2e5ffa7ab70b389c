# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The training of one client of the tests, and its oracle."""

import functools

import tensorflow as tf

from tests.tff_adaptive import testing
from tff_adaptive.client_works import local_training
from tff_adaptive.client_works import model_adapter


def _dataset(batches):
  specs = tf.nest.map_structure(
      lambda s: tf.TensorSpec(s.shape, s.dtype), testing.INPUT_SPEC
  )
  return tf.data.Dataset.from_generator(
      lambda: iter(batches), output_signature=specs
  )


def train(
    model,
    optimizer,
    batches,
    fetch_after=lambda: (),
    start=local_training.RoundStart(),
    **kwargs,
):
  """Trains one client in a graph of its own; returns numpy results.

  If `fetch_after` returns tensors or variables, these are read after the
  training and returned, too.
  """
  hparams = optimizer.get_hparams(
      optimizer.initialize(tf.TensorSpec([], tf.float32))
  )
  adapter = model_adapter.build_model_adapter(model)
  with tf.Graph().as_default():
    hparams = tf.nest.map_structure(tf.convert_to_tensor, hparams)
    weights = tf.nest.map_structure(
        tf.convert_to_tensor, adapter.initial_weights()
    )
    training = local_training.LocalTraining(optimizer, **kwargs)
    model = adapter.build_local_model()
    train = tf.function(functools.partial(training, model))
    start = tf.nest.map_structure(tf.convert_to_tensor, start)
    result = train(weights, hparams, _dataset(batches), start)
    with tf.compat.v1.Session() as session:
      session.run(tf.compat.v1.global_variables_initializer())
      numpy_result = session.run(result)
      fetched = session.run(fetch_after())
      return (numpy_result, fetched) if fetched else numpy_result


def plain_loop(batches, rates):
  """Trains the classifier by plain gradient descent; the oracle."""
  model = testing.keras_model()
  loss_fn = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
  start = model.get_weights()
  losses = []
  for batch, rate in zip(batches, rates):
    with tf.GradientTape() as tape:
      loss = loss_fn(batch['y'], model(batch['x']))
    losses.append(float(loss))
    gradients = tape.gradient(loss, model.trainable_variables)
    for variable, gradient in zip(model.trainable_variables, gradients):
      variable.assign_sub(rate * gradient)
  return [s - e for s, e in zip(start, model.get_weights())], losses
