# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""A linear classifier for tests of evaluations, and its metrics by NumPy."""

import collections

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

SPEC = collections.OrderedDict(
    x=tf.TensorSpec([None, 4], tf.float32), y=tf.TensorSpec([None], tf.int32)
)


def keras_model(dropout=0.5):
  return tf.keras.Sequential(
      [
          tf.keras.layers.InputLayer((4,)),
          tf.keras.layers.Dropout(dropout),
          tf.keras.layers.Dense(3, kernel_initializer='ones'),
      ]
  )


def loss():
  return tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def functional_model(dropout=0.5):
  return tff.learning.models.functional_model_from_keras(
      keras_model(dropout),
      loss(),
      SPEC,
      metrics_constructor=lambda: collections.OrderedDict(
          accuracy=tf.keras.metrics.SparseCategoricalAccuracy()
      ),
  )


def variable_model(dropout=0.5):
  return tff.learning.models.from_keras_model(
      keras_model(dropout),
      loss=loss(),
      input_spec=SPEC,
      metrics=[tf.keras.metrics.SparseCategoricalAccuracy('accuracy')],
  )


def weights(seed=1):
  generator = np.random.default_rng(seed)
  return tff.learning.models.ModelWeights(
      trainable=[
          generator.normal(size=(4, 3)).astype(np.float32),
          generator.normal(size=(3,)).astype(np.float32),
      ],
      non_trainable=[],
  )


def expected(trainable, arrays):
  """Returns cross entropy and accuracy of all examples at once, in float64."""
  kernel, bias = (np.asarray(leaf, np.float64) for leaf in trainable)
  logits = arrays['x'] @ kernel + bias
  picked = logits[np.arange(len(logits)), arrays['y']]
  losses = np.log(np.exp(logits).sum(axis=1)) - picked
  return losses.mean(), (logits.argmax(axis=1) == arrays['y']).mean()
