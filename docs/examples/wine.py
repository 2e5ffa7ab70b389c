# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""A task of your own: scikit-learn's 178 wines, from a file wine.npz."""

from tasks import definitions


def build_mlp(input_shape, num_classes, seed):
  """Builds two dense layers; weights depend on the seed alone."""
  import keras  # Here, so that --help is quick.

  return keras.Sequential(
      [
          keras.Input(input_shape),
          keras.layers.Dense(
              16,
              activation='relu',
              kernel_initializer=keras.initializers.GlorotUniform(seed),
          ),
          keras.layers.Dense(num_classes, kernel_initializer='zeros'),
      ]
  )


def build_logistic(input_shape, num_classes):
  """Builds logistic regression, which begins with zeros."""
  import keras

  return keras.Sequential(
      [
          keras.Input(input_shape),
          keras.layers.Dense(num_classes, kernel_initializer='zeros'),
      ]
  )


WINE = definitions.ClassificationTask(
    name='wine',
    data=definitions.NpzData('wine.npz', shape=(13,), classes=3),
    models={'mlp': build_mlp, 'logistic': build_logistic},
    clients=definitions.Partition(num_clients=10, alpha=0.5, noun='wines'),
    protocol=definitions.Protocol(
        client_batch_size=4,
        client_epochs=1,
        clients_per_round=5,
        total_rounds=20,
    ),
)
