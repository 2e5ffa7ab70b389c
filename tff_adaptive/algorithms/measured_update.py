# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The finalizer, which takes a step of the server optimizer and measures it."""

import collections
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import _autograph
from tff_adaptive.models import moved_weights
from tff_adaptive.optimizers import optimizer as optimizer_lib
from tff_adaptive.optimizers import server_optimizer
from tff_adaptive.optimizers import vectors

_OrderedDict = collections.OrderedDict
_CHANGE = 'change'


def _is_spoilt(old: Any, new: Any) -> tf.Tensor:
  """Returns whether a finite entry has become non-finite, as by overflow."""
  spoilt = [
      tf.reduce_any(tf.math.is_finite(o) & ~tf.math.is_finite(n))
      for o, n in zip(tf.nest.flatten(old), tf.nest.flatten(new))
      if o.dtype.is_floating
  ]
  return tf.reduce_any(spoilt) if spoilt else tf.constant(False)


def _apply(
    rule: server_optimizer.ServerOptimizer,
    moved: moved_weights.MovedWeights,
    state: Any,
    weights: tff.learning.models.ModelWeights,
    update: Any,
) -> Any:
  """Returns the state, the weights and the measurements after a round."""
  is_alone = not (rule.client_reports or moved.is_sent)
  parts = {_CHANGE: update} if is_alone else update
  change = parts[_CHANGE]
  reports = server_optimizer.Reports(parts.get('reports', {}))
  before = (state, weights.trainable)
  stepped = _autograph.call(rule.next, *before, change, reports=reports)
  stepped = optimizer_lib.check_step(stepped, *before, rule)
  non_trainable = weights.non_trainable
  if moved.is_sent:
    non_trainable = moved.add_change(
        non_trainable, parts[moved_weights.BATCH_STATISTICS]
    )
  after = (*stepped, non_trainable)
  rejected = ~vectors.all_finite(update) | _is_spoilt(
      (*before, weights.non_trainable), after
  )

  def stay():
    held = _autograph.call(rule.after_rejection, state, change, reports)
    return held, weights.trainable, weights.non_trainable

  new_state, *new_weights = tf.cond(rejected, stay, lambda: after)
  norm = vectors.norm(change, vectors.step_dtype(change))
  measurements = _OrderedDict(
      update_non_finite=tf.cast(rejected, tf.int32),
      update_norm=tf.where(rejected, tf.zeros_like(norm), norm),
  )
  report = _autograph.call(rule.report, new_state)
  scalars = optimizer_lib.reported_scalars(report, rule, measurements)
  for name, value in scalars.items():
    measurements[name] = tf.where(rejected, float('nan'), value)
  return (
      new_state,
      tff.learning.models.ModelWeights(*new_weights),
      measurements,
  )


def build_measured_update_finalizer(
    optimizer: tff.learning.optimizers.Optimizer,
    weights_type: tff.Type,
    moved: moved_weights.MovedWeights = moved_weights.NONE,
) -> tff.learning.templates.FinalizerProcess:
  """Builds the finalizer that takes one step of a server optimizer.

  An update is rejected, and model and optimizer state do not change, if an
  entry of the update is not finite, or if an entry of the new state or model is
  not finite but was so before. For example, the square of 1e20 overflows
  float32, and a coordinate with an infinite second moment would never move.

  Args:
    optimizer: The server optimizer, which takes the update as its gradient. For
      one to which clients report, the update is an ordered dictionary of
      `change`, the gradient, and `reports`.
    weights_type: The unplaced `tff.Type` of the model's
      `tff.learning.models.ModelWeights`.
    moved: The moved weights. If clients send their change, it is the part
      `batch_statistics` of the update, beside `change`, and is subtracted from
      them. None by default.

  Returns:
    A `tff.learning.templates.FinalizerProcess`. It measures
    `update_non_finite`, 1 if the update was rejected, else 0; `update_norm`,
    the norm of the update over all trainable weights, 0 if it was rejected; and
    the report of a `ServerOptimizer`, NaN if the update was rejected.

  Raises:
    TypeError: If `optimizer` is not an optimizer, or its `client_reports` are
      no reports, or `weights_type` is another type.
    ValueError: If it is a rule of clients.

  Example:

    >>> weights_type = tff.to_type(tff.learning.models.ModelWeights(
    ...     trainable=tff.TensorType(np.float32, [3]), non_trainable=()))
    >>> finalizer = build_measured_update_finalizer(
    ...     tff.learning.optimizers.build_sgdm(1.0), weights_type)
    >>> finalizer.initialize.type_signature.compact_representation()
    '( -> <learning_rate=float32>@SERVER)'
  """
  rule = server_optimizer.to_server_optimizer(optimizer)
  container = getattr(weights_type, 'python_container', None)
  if container is not tff.learning.models.ModelWeights:
    raise TypeError(
        '`weights_type` must be the unplaced `tff.Type` of a '
        f'`tff.learning.models.ModelWeights`, found {weights_type}.'
    )
  specs = tff.types.type_to_tf_tensor_specs(weights_type.trainable)
  update_type = weights_type.trainable
  parts = {}
  if rule.client_reports:
    reports = [(name, np.float32) for name in rule.client_reports]
    parts['reports'] = _OrderedDict(reports)
  if moved.is_sent:
    specs_of_moved = moved.take(
        tff.types.type_to_tf_tensor_specs(weights_type.non_trainable)
    )
    parts[moved_weights.BATCH_STATISTICS] = tff.types.tensorflow_to_type(
        specs_of_moved
    )
  if parts:
    update_type = tff.to_type(_OrderedDict({_CHANGE: update_type, **parts}))

  @tff.tensorflow.computation
  def initial_state():
    return rule.initialize(specs)

  state_type = initial_state.type_signature.result

  @tff.tensorflow.computation(state_type, weights_type, update_type)
  @tf.function
  def apply(state, weights, update):
    return _apply(rule, moved, state, weights, update)

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
    return rule.get_hparams(state)

  @tff.tensorflow.computation(state_type, get_hparams.type_signature.result)
  def set_hparams(state, hparams):
    return rule.set_hparams(state, hparams)

  return tff.learning.templates.FinalizerProcess(
      initialize,
      next_fn,
      get_hparams_fn=get_hparams,
      set_hparams_fn=set_hparams,
  )
