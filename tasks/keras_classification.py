# Copyright 2026 The tff_adaptive Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""Keras classifiers as TFF models: what the tasks of classification share."""

from collections.abc import Callable, Mapping
import enum
from typing import Optional, Type, TypeVar, Union

import tensorflow as tf
import tensorflow_federated as tff

from tasks import keras_forms
from tff_adaptive.client_works import loss_terms
from tff_adaptive.client_works import model_adapter

_ModelID = TypeVar('_ModelID', bound=enum.Enum)


def to_model_id(
    model_ids: Type[_ModelID], model_id: Union[_ModelID, str]
) -> _ModelID:
  """The member of a task's enumeration of models.

  Args:
    model_ids: The enumeration.
    model_id: A member or its value.

  Returns:
    The member.

  Raises:
    ValueError: If there is none.
  """
  try:
    return model_ids(model_id)
  except ValueError:
    known = [member.value for member in model_ids]
    raise ValueError(
        f'`model_id` must be one of {known}, found {model_id!r}.'
    ) from None


def _loss() -> tf.keras.losses.Loss:
  return tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def _metrics() -> list[tf.keras.metrics.Metric]:
  return [tf.keras.metrics.SparseCategoricalAccuracy(name='accuracy')]


def to_functional_model(
    keras_model: tf.keras.Model, input_spec: Mapping[str, tf.TensorSpec]
) -> tff.learning.models.FunctionalModel:
  """The functional form of a classifier, with softmax cross entropy.

  Args:
    keras_model: A model from a batch to logits.
    input_spec: The specs of a batch's `x` and integer labels `y`.

  Returns:
    A functional model with the metric 'accuracy' and the weights of
    `keras_model` as initial weights.
  """
  return keras_forms.to_functional_model(
      keras_model, input_spec, _loss, _metrics
  )


def to_variable_model_fn(
    build_keras_model: Callable[[], tf.keras.Model],
    input_spec: Mapping[str, tf.TensorSpec],
) -> Callable[[], tff.learning.models.VariableModel]:
  """What makes the form of a classifier that has variables.

  Args:
    build_keras_model: Makes the model, from a batch to logits, anew.
    input_spec: The specs of a batch's `x` and integer labels `y`.

  Returns:
    A function without arguments that returns a new model with the metric
    'accuracy' and those that `tff.learning.models.from_keras_model` adds.
  """
  return keras_forms.to_variable_model_fn(
      build_keras_model, input_spec, _loss, _metrics
  )


def to_representation_fn(
    keras_model: tf.keras.Model, input_spec: Mapping[str, tf.TensorSpec]
) -> Optional[model_adapter.RepresentationFn]:
  """The features that a classifier decides by, as a function of its weights.

  Args:
    keras_model: A model from a batch to logits, whose last layer has weights.
    input_spec: The specs of a batch's `x` and integer labels `y`.

  Returns:
    A function of (trainable weights, batch) to what goes into the last layer;
    None if no layer before that has weights, as in logistic regression.
  """
  last = keras_model.layers[-1]
  if len(keras_model.trainable_weights) == len(last.trainable_weights):
    return None
  return loss_terms.build_keras_representation(keras_model, input_spec)
