# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trains the models of the zoo in a federation, and by Keras."""

import itertools
import warnings

import keras
import numpy as np
import tensorflow as tf

from tests.tff_adaptive.models import zoo_testing
from tff_adaptive import algorithms
from tff_adaptive import models
from tff_adaptive import optimizers
from tff_adaptive.models import keras_versions

VERSIONS = {'keras_3': keras, 'keras_2': tf.keras}
BATCH_SIZE = 4
NUM_EPOCHS = 2
_RATE = 0.02
_MOMENTUM = 0.9
NUM_EXAMPLES = 11
CELLS = [
    (name, version)
    for name, version in itertools.product(zoo_testing.ZOO, VERSIONS)
    if version == 'keras_3' or name not in zoo_testing.ONLY_KERAS_3
]


def dataset(examples):
  batches = tf.data.Dataset.from_tensor_slices(examples).batch(BATCH_SIZE)
  return batches.repeat(NUM_EPOCHS)


def convert(animal, dataset, batch_statistics='batch', class_weight=None):
  with warnings.catch_warnings():
    # Averages of batch normalization stay as they are.
    warnings.filterwarnings('ignore', 'The model moves')
    return models.from_keras(
        animal.model,
        animal.loss,
        input_spec=dataset.element_spec,
        batch_statistics=batch_statistics,
        class_weight=class_weight,
        **animal.options,
    )


def build(model):
  """Returns FedAvg with momentum in the clients."""
  return algorithms.build_fed_opt(
      model, optimizers.build_sgd(_RATE, momentum=_MOMENTUM)
  )


def fit(version, animal, dataset, **options):
  """Trains the Keras model; returns its metrics."""
  animal.model.compile(
      version.optimizers.SGD(_RATE, momentum=_MOMENTUM),
      animal.loss,
      **animal.options,
  )
  # One epoch of all, as metrics are those of a whole round.
  history = animal.model.fit(
      dataset, verbose=0, shuffle=False, **options
  ).history
  return {name: values[0] for name, values in history.items()}


def split_weights(model):
  """Returns the trainable weights of a Keras model, and the others."""
  parts = keras_versions.split_weights(model)
  return [[weight.numpy() for weight in part] for part in parts]


def joined(model, trainable, non_trainable):
  """Returns the weights in the order of `set_weights`."""
  values = dict(
      zip(
          map(id, [*model.trainable_weights, *model.non_trainable_weights]),
          [*trainable, *non_trainable],
      )
  )
  return [values[id(weight)] for weight in model.weights]


def scalars(metrics):
  """Returns metrics with an entry for each entry of a vector."""
  scalars = {}
  for name, value in metrics.items():
    if np.ndim(value):
      scalars |= {f'{name}_{i}': entry for i, entry in enumerate(value)}
    else:
      scalars[name] = value
  return scalars
