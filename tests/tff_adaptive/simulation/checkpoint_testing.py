# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""A state that the tests of checkpoints save."""

import collections

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff


def state(scale=1.0):
  """Returns a state of a learning process, with leaves of many types."""
  weights = tff.learning.models.ModelWeights(
      trainable=[np.arange(6, dtype=np.float32).reshape(2, 3) * scale],
      non_trainable=(np.float64(0.1 * scale),),
  )
  return tff.learning.templates.LearningAlgorithmState(
      global_model_weights=weights,
      distributor=(),
      client_work=collections.OrderedDict(
          learning_rate=np.float32(0.1), name=b'adam', flag=True, step=3
      ),
      aggregator=tff.structure.Struct(
          [(None, np.int64(2**40)), ('b', np.zeros([0, 2], np.int32))]
      ),
      finalizer=[
          np.array([1.5, -scale], tf.bfloat16.as_numpy_dtype),
          tf.bfloat16.as_numpy_dtype(scale),
      ],
  )


def leaves(structure):
  """Returns the types, dtypes and bits of the leaves of such a state."""
  return [
      (type(leaf), np.asarray(leaf).dtype, np.asarray(leaf).tobytes())
      for leaf in (
          *structure.global_model_weights.trainable,
          *structure.global_model_weights.non_trainable,
          *structure.client_work.values(),
          *structure.aggregator,
          *structure.finalizer,
      )
  ]
