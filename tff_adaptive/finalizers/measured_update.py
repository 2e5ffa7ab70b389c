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
"""TFF's finalizer for a server optimizer, with the norm of the update."""

import collections
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import _compat
from tff_adaptive.optimizers import vectors


def _reject_and_measure(
    state: Any, update: Any
) -> tuple[tf.Tensor, 'collections.OrderedDict[str, tf.Tensor]']:
  """Rejects a non-finite update, as TFF does, and measures its norm."""
  rejected, measurements = tff.learning.templates.reject_non_finite_update(
      state, update
  )
  norm = vectors.norm(tf.nest.flatten(update), vectors.step_dtype(update))
  return rejected, collections.OrderedDict(
      measurements, update_norm=tf.where(rejected, tf.zeros_like(norm), norm)
  )


def build_measured_update_finalizer(
    optimizer: tff.learning.optimizers.Optimizer, weights_type: _compat.Type
) -> tff.learning.templates.FinalizerProcess:
  """Builds the finalizer that takes one step of a server optimizer.

  An update with an entry that is not finite is rejected: the model and the
  optimizer's state stay as they were.

  Args:
    optimizer: The server optimizer; the update is its gradient.
    weights_type: The unplaced `tff.Type` of the model's
      `tff.learning.models.ModelWeights`.

  Returns:
    A `tff.learning.templates.FinalizerProcess` that measures
    `update_non_finite`, 1 if the update was rejected, else 0, and
    `update_norm`, the Euclidean norm of the update over all trainable weights
    before the optimizer, 0 if it was rejected.
  """
  return tff.learning.templates.build_apply_optimizer_finalizer(
      optimizer, weights_type, _reject_and_measure
  )
