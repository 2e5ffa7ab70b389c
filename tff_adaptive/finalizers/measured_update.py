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
"""The finalizer of server optimizers, and what it measures."""

import collections
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import _compat
from tff_adaptive.finalizers import reports_optimizer
from tff_adaptive.optimizers import vectors

_OrderedDict = collections.OrderedDict


def _measure(
    rejected: tf.Tensor, change: Any
) -> '_OrderedDict[str, tf.Tensor]':
  """Whether the update is rejected, and its norm."""
  norm = vectors.norm(tf.nest.flatten(change), vectors.step_dtype(change))
  return _OrderedDict(
      update_non_finite=tf.cast(rejected, tf.int32),
      update_norm=tf.where(rejected, tf.zeros_like(norm), norm),
  )


def _reject_and_measure(
    state: Any, update: Any
) -> tuple[tf.Tensor, '_OrderedDict[str, tf.Tensor]']:
  """Rejects a non-finite update, as TFF does, and measures its norm."""
  rejected, _ = tff.learning.templates.reject_non_finite_update(state, update)
  return rejected, _measure(rejected, update)


def _update_type(
    optimizer: reports_optimizer.ReportsOptimizer, weights_type: _compat.Type
) -> _compat.Type:
  """The type of the change of the model, and the reports beside it."""
  reports = [(r.value, np.float32) for r in optimizer.client_reports]
  return _compat.StructWithPythonType(
      [
          ('change', weights_type.trainable),
          ('reports', _compat.StructWithPythonType(reports, _OrderedDict)),
      ],
      _OrderedDict,
  )


def _apply(
    optimizer: reports_optimizer.ReportsOptimizer,
    state: Any,
    weights: tff.learning.models.ModelWeights,
    update: Any,
) -> Any:
  """The state, the weights and what is measured, after a round."""
  rejected, _ = tff.learning.templates.reject_non_finite_update(state, update)
  stepped = optimizer.next(
      state, weights.trainable, update['change'], reports=update['reports']
  )
  new_state, new_trainable = tf.nest.map_structure(
      lambda old, new: tf.where(rejected, old, new),
      (state, weights.trainable),
      stepped,
  )
  measurements = _measure(rejected, update['change'])
  nothing = tf.constant(float('nan'))
  for name, value in optimizer.report(new_state).items():
    measurements[name] = tf.where(rejected, nothing, tf.cast(value, tf.float32))
  new_weights = tff.learning.models.ModelWeights(
      new_trainable, weights.non_trainable
  )
  return new_state, new_weights, measurements


def _build_reports_finalizer(
    optimizer: reports_optimizer.ReportsOptimizer, weights_type: _compat.Type
) -> tff.learning.templates.FinalizerProcess:
  """The finalizer of an optimizer that sees reports beside the update."""
  specs = tff.types.type_to_tf_tensor_specs(weights_type.trainable)
  update_type = _update_type(optimizer, weights_type)

  @tff.tensorflow.computation
  def initial_state():
    return optimizer.initialize(specs)

  state_type = initial_state.type_signature.result

  @tff.tensorflow.computation(state_type, weights_type, update_type)
  @tf.function
  def apply(state, weights, update):
    return _apply(optimizer, state, weights, update)

  @_compat.federated_computation
  def initialize():
    return _compat.federated_eval(initial_state, _compat.SERVER)

  @_compat.federated_computation(
      initialize.type_signature.result,
      _compat.FederatedType(weights_type, _compat.SERVER),
      _compat.FederatedType(update_type, _compat.SERVER),
  )
  def next_fn(state, weights, update):
    return tff.templates.MeasuredProcessOutput(
        *_compat.federated_map(apply, (state, weights, update))
    )

  @tff.tensorflow.computation(state_type)
  def get_hparams(state):
    return optimizer.get_hparams(state)

  @tff.tensorflow.computation(state_type, get_hparams.type_signature.result)
  def set_hparams(state, hparams):
    return optimizer.set_hparams(state, hparams)

  return tff.learning.templates.FinalizerProcess(
      initialize,
      next_fn,
      get_hparams_fn=get_hparams,
      set_hparams_fn=set_hparams,
  )


def build_measured_update_finalizer(
    optimizer: tff.learning.optimizers.Optimizer, weights_type: _compat.Type
) -> tff.learning.templates.FinalizerProcess:
  """Builds the finalizer that takes one step of a server optimizer.

  An update with an entry that is not finite is rejected: the model and the
  optimizer's state stay as they were.

  Args:
    optimizer: The server optimizer; the update is its gradient. Of a
      `ReportsOptimizer`, the update is an ordered dictionary of `change`, its
      gradient, and `reports`.
    weights_type: The unplaced `tff.Type` of the model's
      `tff.learning.models.ModelWeights`.

  Returns:
    A `tff.learning.templates.FinalizerProcess` that measures
    `update_non_finite`, 1 if the update was rejected, else 0, `update_norm`,
    the Euclidean norm of the change over all trainable weights before the
    optimizer, 0 if it was rejected, and what a `ReportsOptimizer` reports, NaN
    if it was rejected.

  Example:

    >>> weights_type = tff.to_type(tff.learning.models.ModelWeights(
    ...     trainable=tff.TensorType(np.float32, [3]), non_trainable=()))
    >>> finalizer = build_measured_update_finalizer(
    ...     tff.learning.optimizers.build_sgdm(1.0), weights_type)
    >>> finalizer.initialize.type_signature.compact_representation()
    '( -> <learning_rate=float32>@SERVER)'
  """
  if isinstance(optimizer, reports_optimizer.ReportsOptimizer):
    return _build_reports_finalizer(optimizer, weights_type)
  return tff.learning.templates.build_apply_optimizer_finalizer(
      optimizer, weights_type, _reject_and_measure
  )
