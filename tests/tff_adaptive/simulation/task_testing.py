# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""A toy task for tests."""

import collections
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.data import client_data
from tff_adaptive.simulation import task

INPUT_SPEC = collections.OrderedDict(
    x=tf.TensorSpec([None, 3], tf.float32), y=tf.TensorSpec([None], tf.int32)
)


def examples(size: int, first_label: int = 0, **features: np.ndarray):
  """Returns examples whose labels are consecutive integers."""
  return collections.OrderedDict(
      x=np.ones([size, 3], np.float32),
      y=np.arange(first_label, first_label + size, dtype=np.int32),
      **features,
  )


def clients(*sizes: int) -> client_data.PackedClientArrays:
  """Returns clients of these sizes; no two examples have one label."""
  ends = np.cumsum(sizes)
  return client_data.PackedClientArrays.from_clients(
      {
          f'client_{i}': examples(size, end - size)
          for i, (size, end) in enumerate(zip(sizes, ends))
      }
  )


def keras_model() -> tf.keras.Model:
  """Returns a linear model with two outputs."""
  return tf.keras.Sequential(
      [tf.keras.layers.Dense(2, kernel_initializer='zeros', input_shape=[3])]
  )


def functional_model(
    input_spec: Any = INPUT_SPEC,
) -> tff.learning.models.FunctionalModel:
  """Returns the linear model as a functional one."""
  return tff.learning.models.functional_model_from_keras(
      keras_model(),
      loss_fn=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
      input_spec=input_spec,
  )


def variable_model() -> tff.learning.models.VariableModel:
  """Returns the linear model with variables."""
  return tff.learning.models.from_keras_model(
      keras_model(),
      loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
      input_spec=INPUT_SPEC,
  )


def protocol(**changes: Any) -> task.Protocol:
  """Returns a protocol of two clients a round, with changes."""
  numbers = dict(
      client_batch_size=2, client_epochs=2, clients_per_round=2, total_rounds=5
  )
  return task.Protocol(**{**numbers, **changes})


def build_task(sizes: Sequence[int] = (5, 1), **changes: Any) -> task.Task:
  """Returns a task with clients of these sizes, with changes."""
  arguments = dict(
      name='toy',
      functional_model=None,
      variable_model_fn=variable_model,
      train_data=clients(*sizes),
      central_test=examples(4),
      protocol=protocol(),
  )
  return task.Task(**{**arguments, **changes})
