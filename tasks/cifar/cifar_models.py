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
"""Models for CIFAR-10 and CIFAR-100."""

import collections
from collections.abc import Callable
import enum
import functools
from typing import Union

import tensorflow as tf
import tensorflow_federated as tff

from tasks import keras_classification
from tasks.cifar import cifar_preprocessing
from tasks.cifar import regularization
from tasks.cifar import resnet
from tasks.cifar import resnet_v2
from tasks.cifar import simple_cnn


class ModelID(enum.Enum):
  """The models for CIFAR; the values are those of a flag.

  Attributes:
    RESNET18: The ResNet-18 for CIFAR of the Delta-SGD and FedLi experiments.
    RESNET50: The ResNet-50 of the Delta-SGD experiments.
    RESNET18_V2: The second version of ResNet-18, of the FedOpt experiments.
    RESNET50_V2: The second version of ResNet-50, as in TFF's baselines.
    SIMPLE_CNN: The small CNN of the FedCAda experiments.
  """

  RESNET18 = 'resnet18'
  RESNET50 = 'resnet50'
  RESNET18_V2 = 'resnet18_v2'
  RESNET50_V2 = 'resnet50_v2'
  SIMPLE_CNN = 'simple_cnn'


_BUILDERS: dict[ModelID, Callable[..., tf.keras.Model]] = {
    ModelID.RESNET18: resnet.build_resnet18,
    ModelID.RESNET50: resnet.build_resnet50,
    ModelID.RESNET18_V2: resnet_v2.build_resnet18_v2,
    ModelID.RESNET50_V2: resnet_v2.build_resnet50_v2,
    ModelID.SIMPLE_CNN: simple_cnn.build_simple_cnn,
}
_WITH_NORMS = (ModelID.RESNET18, ModelID.RESNET50)


def input_spec(
    augmentation: str,
) -> collections.OrderedDict[str, tf.TensorSpec]:
  """Returns the specification of a batch, of any size.

  Args:
    augmentation: One of `cifar_preprocessing.AUGMENTATIONS`, which decides on
      the size of images.

  Returns:
    The specs of 'x' and 'y'.

  Raises:
    ValueError: If there is no such augmentation.
  """
  return collections.OrderedDict(
      (name, tf.TensorSpec([None, *spec.shape], spec.dtype))
      for name, spec in cifar_preprocessing.element_spec(augmentation).items()
  )


def build_keras_model(
    model_id: Union[ModelID, str],
    num_classes: int,
    seed: int,
    *,
    augmentation: str,
    norm: str = resnet.GROUP_NORM,
) -> tf.keras.Model:
  """Builds a Keras model whose initial weights depend on the seed alone.

  Args:
    model_id: `RESNET18` and `RESNET50`: the ones for CIFAR of the Delta-SGD and
      FedLi experiments, see `resnet`. `RESNET18_V2` and `RESNET50_V2`: those of
      the FedOpt experiments and of TFF's baselines, see `resnet_v2`.
      `SIMPLE_CNN`: the one of the FedCAda experiments, see `simple_cnn`.
    num_classes: The number of classes.
    seed: The seed of the initial weights, a non-negative integer.
    augmentation: One of `cifar_preprocessing.AUGMENTATIONS`, which decides on
      the size of images.
    norm: What the first two normalize by: 'group' (the default) or 'batch'. The
      others have no choice.

  Returns:
    A model from images to logits of shape [batch, num_classes].

  Raises:
    TypeError: If the seed is not an integer.
    ValueError: If the model, the augmentation or the norm is unknown, the model
      does not have the norm, or the seed is negative.

  Example:

    >>> build_keras_model('resnet18', 10, 1, augmentation='none').count_params()
    11173962
  """
  model_id = keras_classification.to_model_id(ModelID, model_id)
  size = cifar_preprocessing.crop_size(augmentation)
  options = {}
  if model_id in _WITH_NORMS:
    options['norm'] = norm
  elif norm != resnet.GROUP_NORM:
    raise ValueError(
        f'`norm` must be {resnet.GROUP_NORM!r} for the model '
        f'{model_id.value!r}, found {norm!r}.'
    )
  return _BUILDERS[model_id]((size, size, 3), num_classes, seed, **options)


def to_functional_model(
    keras_model: tf.keras.Model, augmentation: str
) -> tff.learning.models.FunctionalModel:
  """The functional form, with softmax cross entropy and the weights' penalties.

  Args:
    keras_model: What `build_keras_model` returned, with group normalization.
    augmentation: As there.

  Returns:
    A functional model with the metric 'accuracy', on batches of `input_spec`.

  Example:

    >>> keras_model = build_keras_model(
    ...     'simple_cnn', 10, 1, augmentation='none')
    >>> len(to_functional_model(keras_model, 'none').initial_weights[0])
    10
  """
  model = keras_classification.to_functional_model(
      keras_model, input_spec(augmentation)
  )
  return regularization.add_penalties(model, keras_model)


def build_variable_model_fn(
    model_id: Union[ModelID, str],
    num_classes: int,
    seed: int,
    *,
    augmentation: str,
    norm: str = resnet.GROUP_NORM,
) -> Callable[[], tff.learning.models.VariableModel]:
  """Builds what makes the model with variables.

  Args:
    model_id: As for `build_keras_model`.
    num_classes: As for `build_keras_model`.
    seed: As for `build_keras_model`.
    augmentation: As for `build_keras_model`.
    norm: As for `build_keras_model`.

  Returns:
    A function without arguments that returns a new model, with the initial
    weights and the loss of the functional form and the metrics 'accuracy' and
    those that `tff.learning.models.from_keras_model` adds.

  Raises:
    ValueError: If the model or the augmentation is unknown.

  Example:

    >>> model_fn = build_variable_model_fn(
    ...     'simple_cnn', 10, seed=1, augmentation='none')
    >>> len(model_fn().trainable_variables)
    10
  """
  build = functools.partial(
      build_keras_model,
      keras_classification.to_model_id(ModelID, model_id),
      num_classes,
      seed,
      augmentation=augmentation,
      norm=norm,
  )
  return keras_classification.to_variable_model_fn(
      build, input_spec(augmentation)
  )
