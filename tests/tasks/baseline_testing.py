# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Examples and models of TFF's baselines, to compare with ours."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

# Nothing is shuffled.
SPEC = tff.simulation.baselines.ClientSpec(
    num_epochs=1, batch_size=4, shuffle_buffer_size=1
)


def preprocess(
    baseline: tff.simulation.baselines.BaselineTask, dataset: tf.data.Dataset
) -> dict[str, np.ndarray]:
  """Returns the features `x` and labels `y` of all examples of a client."""
  batches = baseline.datasets.train_preprocess_fn(dataset)
  parts = zip('xy', zip(*batches.as_numpy_iterator()), strict=True)
  return {name: np.concatenate(part) for name, part in parts}


def evaluate(
    model: tff.learning.models.VariableModel,
    x: np.ndarray,
    y: np.ndarray,
    weights: Sequence[np.ndarray],
) -> tuple[np.ndarray, list[np.ndarray], Mapping[str, Any]]:
  """Returns loss, gradients and unfinalized metrics of a batch."""
  assert len(model.trainable_variables) == len(weights)
  for variable, value in zip(model.trainable_variables, weights):
    variable.assign(value)
  spec = model.input_spec
  specs = list(spec.values()) if isinstance(spec, Mapping) else list(spec)
  values = [tf.cast(part, one.dtype) for part, one in zip((x, y), specs)]
  batch = (
      dict(zip(spec, values)) if isinstance(spec, Mapping) else tuple(values)
  )
  with tf.GradientTape() as tape:
    output = model.forward_pass(batch)
  gradients = tape.gradient(output.loss, model.trainable_variables)
  metrics = tf.nest.map_structure(
      lambda value: value.numpy(), model.report_local_unfinalized_metrics()
  )
  return (
      output.loss.numpy(),
      [tf.convert_to_tensor(gradient).numpy() for gradient in gradients],
      metrics,
  )


def as_means(unfinalized: Mapping[str, Any]) -> Mapping[str, Any]:
  """Returns metrics, of which Keras 3 sums the means over a sequence."""
  return {
      name: values[0] / values[1] if len(values) == 2 else values
      for name, values in unfinalized.items()
  }


def evaluate_functional(
    model: tff.learning.models.FunctionalModel,
    x: np.ndarray,
    y: np.ndarray,
    training: bool = False,
) -> tuple[np.ndarray, np.ndarray, Mapping[str, Any]]:
  """Returns output, loss and metrics of a batch."""
  with tf.Graph().as_default() as graph:
    weights = tf.nest.map_structure(tf.constant, model.initial_weights)
    output = model.predict_on_batch(weights, tf.constant(x), training)
    loss = model.loss(output, tf.constant(y))
    state = model.update_metrics_state(
        model.initialize_metrics_state(),
        labels=tf.constant(y),
        batch_output=tff.learning.models.BatchOutput(
            loss=loss, predictions=output, num_examples=len(x)
        ),
    )
    metrics = model.finalize_metrics(state)
    with tf.compat.v1.Session(graph=graph) as session:
      return session.run((output, loss, metrics))
