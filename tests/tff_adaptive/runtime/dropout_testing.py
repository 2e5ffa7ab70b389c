# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""A learning process that shows what its dropout draws."""

import collections
import functools
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

NUM_INPUTS = 64


@functools.cache
def build_process(kind: str) -> Any:
  """Returns a process that shows its masks.

  The inputs are ones, the label is out of reach and the loss is the absolute
  error, so that a step adds the mask, which is 0 or 2, to the weights. The
  weights after a round are the mean of the sums of the clients' masks.
  """
  spec = collections.OrderedDict(
      x=tf.TensorSpec([None, NUM_INPUTS], tf.float32),
      y=tf.TensorSpec([None, 1], tf.float32),
  )

  def keras_model():
    return tf.keras.Sequential(
        [
            tf.keras.layers.InputLayer((NUM_INPUTS,)),
            tf.keras.layers.Dropout(0.5),
            tf.keras.layers.Dense(
                1, use_bias=False, kernel_initializer='zeros'
            ),
        ]
    )

  loss = tf.keras.losses.MeanAbsoluteError()
  if kind == 'functional':
    model = tff.learning.models.functional_model_from_keras(
        keras_model(), loss, spec
    )
  else:
    model = lambda: tff.learning.models.from_keras_model(
        keras_model(), loss=loss, input_spec=spec
    )
  sgd = tff.learning.optimizers.build_sgdm(1.0)
  return tff.learning.algorithms.build_unweighted_fed_avg(model, sgd, sgd)


def ones(num_examples: int, label: float = 1e6) -> Any:
  """Returns examples of `build_process`; the label tells clients apart."""
  return collections.OrderedDict(
      x=np.ones([num_examples, NUM_INPUTS], np.float32),
      y=np.full([num_examples, 1], label, np.float32),
  )
