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

from tff_adaptive.finalizers import reports_optimizer
from tff_adaptive.optimizers import federated_optimizer
from tff_adaptive.optimizers import optimizer as optimizer_lib
from tff_adaptive.optimizers import vectors

_OrderedDict = collections.OrderedDict


def _check_optimizer(optimizer: Any) -> None:
  optimizer_lib.check_optimizer(optimizer, 'The server optimizer')
  if optimizer_lib.takes_extra_args(optimizer) and optimizer.evaluates_again:
    raise ValueError(
        'The server optimizer evaluates batches again, and a server has none: '
        f'found {type(optimizer).__name__}. Use it as the client optimizer.'
    )
  if isinstance(optimizer, federated_optimizer.FederatedOptimizer):
    raise ValueError(
        'The server optimizer is a rule of clients, whose state the server '
        f'only averages: found {type(optimizer).__name__}. Use it as the '
        'client optimizer.'
    )


def _is_spoilt(old: Any, new: Any) -> tf.Tensor:
  """Whether an entry has ceased to be finite, as a square that overflows."""
  spoilt = [
      tf.reduce_any(tf.math.is_finite(o) & ~tf.math.is_finite(n))
      for o, n in zip(tf.nest.flatten(old), tf.nest.flatten(new))
      if o.dtype.is_floating
  ]
  return tf.reduce_any(spoilt) if spoilt else tf.constant(False)


def _measure(
    rejected: tf.Tensor, change: Any
) -> '_OrderedDict[str, tf.Tensor]':
  """Whether the update is rejected, and its norm."""
  norm = vectors.norm(tf.nest.flatten(change), vectors.step_dtype(change))
  return _OrderedDict(
      update_non_finite=tf.cast(rejected, tf.int32),
      update_norm=tf.where(rejected, tf.zeros_like(norm), norm),
  )


def _report(
    optimizer: tff.learning.optimizers.Optimizer,
    state: Any,
    rejected: tf.Tensor,
) -> '_OrderedDict[str, tf.Tensor]':
  """What a `ReportsOptimizer` says of its step; NaN if there was none."""
  if not isinstance(optimizer, reports_optimizer.ReportsOptimizer):
    return _OrderedDict()
  nothing = tf.constant(float('nan'))
  return _OrderedDict(
      (name, tf.where(rejected, nothing, tf.cast(value, tf.float32)))
      for name, value in optimizer.report(state).items()
  )


def _update_type(
    optimizer: tff.learning.optimizers.Optimizer, weights_type: tff.Type
) -> tff.Type:
  """The type of the change of the model, with the reports if it has any."""
  if not isinstance(optimizer, reports_optimizer.ReportsOptimizer):
    return weights_type.trainable
  reports = [(r.value, np.float32) for r in optimizer.client_reports]
  return tff.StructWithPythonType(
      [
          ('change', weights_type.trainable),
          ('reports', tff.StructWithPythonType(reports, _OrderedDict)),
      ],
      _OrderedDict,
  )


def _apply(
    optimizer: tff.learning.optimizers.Optimizer,
    state: Any,
    weights: tff.learning.models.ModelWeights,
    update: Any,
) -> Any:
  """The state, the weights and what is measured, after a round."""
  change, options = update, {}
  if isinstance(optimizer, reports_optimizer.ReportsOptimizer):
    change, options = update['change'], {'reports': update['reports']}
  before = (state, weights.trainable)
  after = optimizer.next(*before, change, **options)
  rejected = ~vectors.all_finite(update) | _is_spoilt(before, after)
  new_state, new_trainable = tf.cond(rejected, lambda: before, lambda: after)
  measurements = _measure(rejected, change)
  measurements.update(_report(optimizer, new_state, rejected))
  new_weights = tff.learning.models.ModelWeights(
      new_trainable, weights.non_trainable
  )
  return new_state, new_weights, measurements


def build_measured_update_finalizer(
    optimizer: tff.learning.optimizers.Optimizer, weights_type: tff.Type
) -> tff.learning.templates.FinalizerProcess:
  """Builds the finalizer that takes one step of a server optimizer.

  An update is rejected, so that the model and the optimizer's state stay as
  they were, if an entry of it is not finite, or if with it an entry of the
  state or of the model ceased to be: the square of 1e20 overflows float32, and
  a coordinate whose second moment is infinite would never move again.

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

  Raises:
    TypeError: If the optimizer is none.
    ValueError: If it is a rule of clients.

  Example:

    >>> weights_type = tff.to_type(tff.learning.models.ModelWeights(
    ...     trainable=tff.TensorType(np.float32, [3]), non_trainable=()))
    >>> finalizer = build_measured_update_finalizer(
    ...     tff.learning.optimizers.build_sgdm(1.0), weights_type)
    >>> finalizer.initialize.type_signature.compact_representation()
    '( -> <learning_rate=float32>@SERVER)'
  """
  _check_optimizer(optimizer)
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

  @tff.federated_computation
  def initialize():
    return tff.federated_eval(initial_state, tff.SERVER)

  @tff.federated_computation(
      initialize.type_signature.result,
      tff.FederatedType(weights_type, tff.SERVER),
      tff.FederatedType(update_type, tff.SERVER),
  )
  def next_fn(state, weights, update):
    return tff.templates.MeasuredProcessOutput(
        *tff.federated_map(apply, (state, weights, update))
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
