# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""A common interface to TFF's two kinds of models.

A `tff.learning.models.FunctionalModel` takes its weights as arguments; a
`tff.learning.models.VariableModel` holds them in variables, together with its
metrics. The local loop sees only a `local_models.LocalModel`, which a
`ModelAdapter` builds inside the graph of the client's work.
"""

from collections.abc import Callable, Mapping
import functools
from typing import Any, Union

import attrs
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import _autograph
from tff_adaptive.client_works import derived_tensors
from tff_adaptive.client_works import late_metrics
from tff_adaptive.client_works import local_functional_models
from tff_adaptive.client_works import local_models
from tff_adaptive.client_works import local_variable_models
from tff_adaptive.client_works import model_checks
from tff_adaptive.client_works import moved_variables
from tff_adaptive.models import conversion
from tff_adaptive.models import keras_versions
from tff_adaptive.models import moved_weights as moved_weights_lib

Model = Union[
    tff.learning.models.FunctionalModel,
    Callable[[], tff.learning.models.VariableModel],
]


def pack_weights(spec: Any, weights: Any) -> Any:
  """Returns a model's weights in the structure of a spec.

  Args:
    spec: The specs of the weights, a `tff.learning.models.ModelWeights`.
    weights: The weights, in any structure with the same order.

  Returns:
    The weights.

  Raises:
    ValueError: If they are not the weights of the model.
  """
  found = tf.nest.flatten(weights)
  wanted = [tuple(leaf.shape) for leaf in tf.nest.flatten(spec)]
  shapes = [np.shape(leaf) for leaf in found]
  if shapes != wanted:
    raise ValueError(
        f'The weights of the model have the shapes {wanted}, found a '
        f'{type(weights).__name__} with {shapes}: pass '
        '`process.get_model_weights(state)` of a process with this model.'
    )
  return tf.nest.pack_sequence_as(spec, found)


@attrs.frozen(kw_only=True, eq=False)
class ModelAdapter:
  """The types of a model, and a builder of it inside a client's graph.

  Attributes:
    weights_spec: The model's `tff.learning.models.ModelWeights`, with a
      `tf.TensorSpec` for each weight.
    weights_type: The `tff.Type` of the weights.
    element_type: The `tff.Type` of a batch.
    metric_finalizers: The argument of `tff.learning.metrics` aggregators.
    initial_weights: Returns the initial weights in the current graph.
    build_local_model: Builds the model in the current graph.
    moved_weights: See `local_models.LocalModel`.
  """

  weights_spec: tff.learning.models.ModelWeights
  weights_type: tff.Type
  element_type: tff.Type
  metric_finalizers: Any
  initial_weights: Callable[[], tff.learning.models.ModelWeights]
  build_local_model: Callable[[], local_models.LocalModel]
  moved_weights: moved_weights_lib.MovedWeights = moved_weights_lib.NONE

  def finalize_metrics(self, unfinalized: Any) -> Mapping[str, Any]:
    """Returns metrics from unfinalized ones, in the current graph."""
    if callable(self.metric_finalizers):
      return _autograph.call(self.metric_finalizers, unfinalized)
    return {
        name: _autograph.call(self.metric_finalizers[name], values)
        for name, values in unfinalized.items()
    }


def _map_initial_weights(
    fn: Callable[[Any], Any], model: tff.learning.models.FunctionalModel
) -> tff.learning.models.ModelWeights:
  """Maps a functional model's initial weights; turns its lists into tuples."""
  return tff.learning.models.ModelWeights(
      *(
          tf.nest.map_structure(
              fn, tuple(weights) if isinstance(weights, list) else weights
          )
          for weights in model.initial_weights
      )
  )


def _adapt_functional(
    model: tff.learning.models.FunctionalModel,
) -> ModelAdapter:
  """Returns the adapter of a functional model."""
  parts = model_checks.find_keras(model)
  model_checks.check(model, parts)
  model = late_metrics.build_in_functional(model, parts)
  # Warn once, however many graphs the model is built in.
  warn_of_unread = functools.cache(model_checks.warn_of_unread)
  weights_spec = _map_initial_weights(
      lambda w: tf.TensorSpec(w.shape, w.dtype), model
  )
  moved = moved_weights_lib.NONE
  local_class: Any = local_functional_models.LocalFunctionalModel
  if isinstance(model, conversion.KerasFunctionalModel):
    moved = model.moved
    local_class = (
        local_functional_models.MovingKerasModel
        if moved.places
        else local_functional_models.LocalKerasModel
    )
  return ModelAdapter(
      weights_spec=weights_spec,
      weights_type=tff.types.tensorflow_to_type(weights_spec),
      element_type=tff.types.tensorflow_to_type(model.input_spec),
      metric_finalizers=model.finalize_metrics,
      initial_weights=lambda: _map_initial_weights(tf.convert_to_tensor, model),
      build_local_model=lambda: local_class(model, parts, warn_of_unread),
      moved_weights=moved,
  )


def _adapt_variable(
    model_fn: Callable[[], tff.learning.models.VariableModel],
) -> ModelAdapter:
  """Returns the adapter of a factory of variable models."""
  # Warn once, however many graphs the model is built in.
  warn = functools.cache(moved_variables.warn)
  warn_of_unread = functools.cache(model_checks.warn_of_unread)

  def build():
    model = model_fn()
    if not isinstance(model, tff.learning.models.VariableModel):
      raise TypeError(
          'The model factory must return a `tff.learning.models.VariableModel`,'
          f' found {type(model)}. For a Keras model, return '
          '`tff.learning.models.from_keras_model(...)`.'
      )
    parts = model_checks.find_keras(model)
    return model, parts, late_metrics.build_in_variable(model, parts)

  def build_local_model():
    model, parts, _ = build()
    return local_variable_models.LocalVariableModel(
        model, parts, warn, warn_of_unread, derives_tensors
    )

  # A graph of its own, so that no variable outlives this inspection.
  with tf.Graph().as_default():
    model, parts, metric_finalizers = build()
    model_checks.check(model, parts)
    derives_tensors = derived_tensors.exist(model)
    return ModelAdapter(
        weights_spec=tf.nest.map_structure(
            lambda v: tf.TensorSpec(v.shape, v.dtype),
            tff.learning.models.ModelWeights.from_model(model),
        ),
        weights_type=tff.learning.models.weights_type_from_model(model),
        element_type=tff.types.tensorflow_to_type(model.input_spec),
        metric_finalizers=metric_finalizers,
        initial_weights=lambda: tff.learning.models.ModelWeights.from_model(
            build()[0]
        ),
        build_local_model=build_local_model,
    )


def build_model_adapter(model: Model) -> ModelAdapter:
  """Builds the adapter that fits `model`.

  Args:
    model: A `tff.learning.models.FunctionalModel`, or a function without
      arguments that returns a new `tff.learning.models.VariableModel` at every
      call.

  Returns:
    A `ModelAdapter`.

  Raises:
    TypeError: If `model` is neither.
    ValueError: If a part of a Keras model would be missing, see
      `model_checks.check`.
  """
  if isinstance(model, tff.learning.models.FunctionalModel):
    return _adapt_functional(model)
  if isinstance(model, tf.keras.Model) or keras_versions.is_keras_3(model):
    raise TypeError(
        f'`model` must not be a Keras model, found {type(model)}: convert it '
        'by `tff_adaptive.models.from_keras`.'
    )
  if isinstance(model, tff.learning.models.VariableModel):
    raise TypeError(
        f'`model` must not be an existing model, found {type(model)}: pass a '
        'function without arguments that returns a new one, or a '
        '`tff.learning.models.FunctionalModel`.'
    )
  if not callable(model):
    raise TypeError(
        '`model` must be a `tff.learning.models.FunctionalModel` or a function '
        'without arguments that returns a `tff.learning.models.VariableModel`, '
        f'found {type(model)}.'
    )
  return _adapt_variable(model)
