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
"""The bottleneck autoencoder for EMNIST."""

import collections
from collections.abc import Callable

import tensorflow as tf
import tensorflow_federated as tff

from tasks import initializers
from tasks import keras_forms
from tasks.emnist import emnist_preprocessing

_UNITS = (1000, 500, 250, 30, 250, 500, 1000, 784)
_BOTTLENECK = 3


def input_spec() -> collections.OrderedDict[str, tf.TensorSpec]:
  """Returns the specification of a batch, of any size."""
  pixels = tf.TensorSpec([None, emnist_preprocessing.NUM_PIXELS], tf.float32)
  return collections.OrderedDict(x=pixels, y=pixels)


def build_autoencoder(seed: int) -> tf.keras.Model:
  """Builds the Keras model, whose initial weights depend on the seed alone.

  Args:
    seed: The seed of the initial weights, a non-negative integer. Kernels are
      uniform as of Glorot, biases zero, Keras' defaults.

  Returns:
    A model from pixels of shape [batch, 784] to pixels: dense layers of 1000,
    500, 250, 30, 250, 500, 1000 and 784 units, sigmoids all but the linear one
    of 30; 2,837,314 weights.

  Raises:
    TypeError: If the seed is not an integer.
    ValueError: If the seed is negative.

  Example:

    >>> build_autoencoder(seed=1).count_params()
    2837314

  References:
    Reddi et al., Adaptive Federated Optimization, ICLR 2021,
    https://arxiv.org/abs/2003.00295, Appendix C, after Zaheer et al., Adaptive
    Methods for Nonconvex Optimization, NeurIPS 2018. The same as in
    `tff.simulation.baselines.emnist`.
  """
  inputs = tf.keras.Input([emnist_preprocessing.NUM_PIXELS])
  outputs = inputs
  for i, units in enumerate(_UNITS):
    name = f'dense_{i + 1}'
    layer = tf.keras.layers.Dense(
        units,
        activation='linear' if i == _BOTTLENECK else 'sigmoid',
        kernel_initializer=initializers.glorot_uniform(seed, 'emnist_ae', name),
        name=name,
    )
    outputs = layer(outputs)
  return tf.keras.Model(inputs, outputs)


def build_functional_autoencoder(
    seed: int,
) -> tff.learning.models.FunctionalModel:
  """Builds the autoencoder in functional form, with the mean squared error.

  Args:
    seed: As for `build_autoencoder`.

  Returns:
    A functional model with the metrics 'mean_squared_error' and
    'mean_absolute_error', on batches of `input_spec`.

  Raises:
    TypeError: If the seed is not an integer.
    ValueError: If the seed is negative.

  Example:

    >>> model = build_functional_autoencoder(seed=1)
    >>> len(model.initial_weights[0])
    16
  """
  return keras_forms.to_functional_model(
      build_autoencoder(seed),
      input_spec(),
      tf.keras.losses.MeanSquaredError,
      _metrics,
  )


def build_variable_autoencoder_fn(
    seed: int,
) -> Callable[[], tff.learning.models.VariableModel]:
  """Builds what makes the same autoencoder with variables.

  Args:
    seed: As for `build_autoencoder`.

  Returns:
    A function without arguments that returns a new model, with the initial
    weights and the metrics of the functional form, and those that
    `tff.learning.models.from_keras_model` adds.

  Example:

    >>> len(build_variable_autoencoder_fn(seed=1)().trainable_variables)
    16
  """
  return keras_forms.to_variable_model_fn(
      lambda: build_autoencoder(seed),
      input_spec(),
      tf.keras.losses.MeanSquaredError,
      _metrics,
  )


def _metrics() -> list[tf.keras.metrics.Metric]:
  """Returns the metrics of TFF's task."""
  return [
      tf.keras.metrics.MeanSquaredError(),
      tf.keras.metrics.MeanAbsoluteError(),
  ]
