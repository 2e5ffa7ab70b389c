# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Builds Keras metrics that make their variables at their first update.

`F1Score`, `FBetaScore` and `R2Score` need the shapes of labels and predictions.
TFF takes the variables of a metric where it is made.
"""

from collections.abc import Callable
import functools
import inspect
from typing import Any, Optional

import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.client_works import model_checks

# Makes the variables of a metric and returns the metric.
_Build = Callable[[tf.keras.metrics.Metric], tf.keras.metrics.Metric]


def _builder(
    model: Any, parts: Optional[model_checks.KerasParts]
) -> Optional[_Build]:
  """Returns a function that builds late metrics, if the shapes are known."""
  output_shape = getattr(parts and parts.model, 'output_shape', None)
  if not isinstance(output_shape, tuple):
    return None
  spec = model.input_spec
  labels = spec.get('y') if isinstance(spec, dict) else spec[1]
  if not isinstance(labels, tf.TensorSpec):
    return None

  def build(metric):
    if _is_late(metric):
      metric.build(labels.shape, tf.TensorShape(output_shape))
    return metric

  return build


def _is_late(metric: tf.keras.metrics.Metric) -> bool:
  parameters = inspect.signature(metric.build).parameters
  return not metric.built and len(parameters) == 2


def build_in_functional(
    model: tff.learning.models.FunctionalModel,
    parts: Optional[model_checks.KerasParts],
) -> tff.learning.models.FunctionalModel:
  """Returns the model with late metrics built; itself if it has none.

  Args:
    model: The model.
    parts: Its Keras objects, see `model_checks.find_keras`.
  """
  build = _builder(model, parts)
  # TFF keeps the constructor only in the functions that it makes.
  initialize = getattr(model, '_initialize_metrics_state', None)
  fn = getattr(initialize, 'python_function', None)
  if build is None or fn is None:
    return model
  construct = inspect.getclosurevars(fn).nonlocals.get('metrics_constructor')
  if construct is None:
    return model
  with tf.Graph().as_default():
    if not any(map(_is_late, tf.nest.flatten(construct()))):
      return model
  return tff.learning.models.FunctionalModel(
      initial_weights=model.initial_weights,
      predict_on_batch_fn=model.predict_on_batch,
      loss_fn=model.loss,
      metrics_fns=tff.learning.metrics.create_functional_metric_fns(
          lambda: tf.nest.map_structure(build, construct())
      ),
      input_spec=model.input_spec,
  )


def build_in_variable(
    model: tff.learning.models.VariableModel,
    parts: Optional[model_checks.KerasParts],
) -> Any:
  """Builds the late metrics of a model and returns all its finalizers.

  Args:
    model: The model, in the current graph.
    parts: Its Keras objects, see `model_checks.find_keras`.
  """
  finalizers = model.metric_finalizers()
  build = _builder(model, parts)
  if build is None:
    return finalizers
  for metric in model.get_metrics():
    if _is_late(metric):
      build(metric)
      construct = functools.partial(
          type(metric).from_config, metric.get_config()
      )
      finalizers[metric.name] = (
          tff.learning.metrics.create_keras_metric_finalizer(
              functools.partial(_construct, construct, build)
          )
      )
  return finalizers


def _construct(construct: Callable[[], Any], build: _Build) -> Any:
  return build(construct())
