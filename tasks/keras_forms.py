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
"""A Keras model in the two forms in which TFF takes models."""

import collections
from collections.abc import Callable, Mapping, Sequence

import tensorflow as tf
import tensorflow_federated as tff

LossFn = Callable[[], tf.keras.losses.Loss]
MetricsFn = Callable[[], Sequence[tf.keras.metrics.Metric]]


def to_functional_model(
    keras_model: tf.keras.Model,
    input_spec: Mapping[str, tf.TensorSpec],
    build_loss: LossFn,
    build_metrics: MetricsFn,
) -> tff.learning.models.FunctionalModel:
  """The functional form of a Keras model.

  Args:
    keras_model: The model.
    input_spec: The specs of a batch's `x` and `y`.
    build_loss: Makes the loss of a batch.
    build_metrics: Makes the metrics, with different names.

  Returns:
    A functional model with the weights of `keras_model` as initial weights.
  """
  return tff.learning.models.functional_model_from_keras(
      keras_model,
      loss_fn=build_loss(),
      input_spec=input_spec,
      metrics_constructor=lambda: collections.OrderedDict(
          (metric.name, metric) for metric in build_metrics()
      ),
  )


def to_variable_model_fn(
    build_keras_model: Callable[[], tf.keras.Model],
    input_spec: Mapping[str, tf.TensorSpec],
    build_loss: LossFn,
    build_metrics: MetricsFn,
) -> Callable[[], tff.learning.models.VariableModel]:
  """What makes the form of a Keras model that has variables.

  Args:
    build_keras_model: Makes the model anew.
    input_spec: The specs of a batch's `x` and `y`.
    build_loss: Makes the loss of a batch.
    build_metrics: Makes the metrics, with different names.

  Returns:
    A function without arguments that returns a new model with these metrics and
    those that `tff.learning.models.from_keras_model` adds.
  """

  def model_fn() -> tff.learning.models.VariableModel:
    return tff.learning.models.from_keras_model(
        build_keras_model(),
        loss=build_loss(),
        input_spec=input_spec,
        metrics=list(build_metrics()),
    )

  return model_fn
