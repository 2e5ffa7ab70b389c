# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The finalizer of server optimizers, including those with client reports."""

import abc
import collections
from collections.abc import Mapping, Sequence
from typing import Any, Optional, TypeVar

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import _autograph
from tff_adaptive.aggregators import reports as reports_lib
from tff_adaptive.optimizers import federated_optimizer
from tff_adaptive.optimizers import optimizer as optimizer_lib
from tff_adaptive.optimizers import vectors

_OrderedDict = collections.OrderedDict

State = TypeVar('State')
Weights = TypeVar('Weights')
Hparams = TypeVar('Hparams')


class ReportsOptimizer(
    tff.learning.optimizers.Optimizer[State, Weights, Hparams]
):
  """A server optimizer whose `next` also sees aggregated client reports.

  It extends TFF's protocol by a keyword, as
  `tff_adaptive.optimizers.ExtraArgsOptimizer` does for clients. In
  `build_fed_opt`, clients report what `client_reports` names. A rule implements
  `step`.

  Attributes:
    client_reports: The reports that it needs, at least one.
  """

  client_reports: Sequence[reports_lib.ClientReport]

  def next(
      self,
      state: State,
      weights: Weights,
      gradients: Any,
      *,
      reports: Optional[Mapping[str, tf.Tensor]] = None,
  ) -> tuple[State, Weights]:
    """Takes one step, see `step`.

    Args:
      state: As for `step`.
      weights: As for `step`.
      gradients: As for `step`.
      reports: As for `step`. `None`, the default, in the algorithms of
        `tff.learning`, which have no reports.

    Returns:
      The new state and the new weights.

    Raises:
      ValueError: If there are no reports.
    """
    if reports is None:
      names = [report.value for report in self.client_reports]
      raise ValueError(
          f'This server rule needs reports of clients ({", ".join(names)}), '
          'which were not given: use it as the server optimizer of '
          '`tff_adaptive.algorithms.build_fed_opt`. Clients and the algorithms '
          'of `tff.learning` have no such reports.'
      )
    return _autograph.call(
        self.step, state, weights, gradients, _Reports(reports)
    )

  @abc.abstractmethod
  def step(
      self,
      state: State,
      weights: Weights,
      gradients: Any,
      reports: Mapping[str, tf.Tensor],
  ) -> tuple[State, Weights]:
    """Takes one step.

    Args:
      state: The state returned by `initialize` or by the previous `next`.
      weights: A structure of tensors, the global model.
      gradients: A structure like it, minus the mean update of the clients.
      reports: Maps the name of each of `client_reports` to its mean, maximum
        or count over the healthy clients, a float32 scalar.

    Returns:
      The new state and the new weights.
    """

  def after_rejection(
      self, state: State, gradients: Any, reports: Mapping[str, tf.Tensor]
  ) -> State:
    """Returns the state after a round whose step was rejected.

    Args:
      state: The state before the step.
      gradients: As for `step`, of any values.
      reports: As for `step`.

    Returns:
      A state like `state`, which is the default.
    """
    del gradients, reports
    return state

  def report(self, state: State) -> '_OrderedDict[str, tf.Tensor]':
    """Returns scalars that describe the step that ended in `state`.

    Args:
      state: A state returned by `next`.

    Returns:
      An ordered dictionary from names to scalars, which become metrics of the
      round.
    """
    del state
    return _OrderedDict()


class _Reports(dict[str, tf.Tensor]):
  """The reports that a rule asked for."""

  def __missing__(self, name: str):
    raise ValueError(
        f'The server rule reads the report {name!r}, but its `client_reports` '
        f'name {list(self)} alone: name it there, too.'
    )


def check_server_optimizer(optimizer: Any) -> None:
  """Raises unless a server can use the optimizer."""
  optimizer_lib.check_optimizer(optimizer, 'The server optimizer')
  if optimizer_lib.evaluates_again(optimizer):
    raise ValueError(
        'The server optimizer must not evaluate batches again, as a server has '
        f'none, found {optimizer_lib.name_of(optimizer)}. Use it as the client '
        'optimizer.'
    )
  if isinstance(optimizer, federated_optimizer.FederatedOptimizer):
    raise ValueError(
        'The server optimizer must not be a client rule, found '
        f'{optimizer_lib.name_of(optimizer)}. Use it as the client optimizer.'
    )
  if isinstance(optimizer, ReportsOptimizer):
    found = tuple(optimizer.client_reports)
    if not found or not all(
        isinstance(report, reports_lib.ClientReport) for report in found
    ):
      raise TypeError(
          '`client_reports` must hold at least one member of '
          '`tff_adaptive.aggregators.reports.ClientReport`, found '
          f'{found}.'
      )


def _is_spoilt(old: Any, new: Any) -> tf.Tensor:
  """Returns whether a finite entry has become non-finite, as by overflow."""
  spoilt = [
      tf.reduce_any(tf.math.is_finite(o) & ~tf.math.is_finite(n))
      for o, n in zip(tf.nest.flatten(old), tf.nest.flatten(new))
      if o.dtype.is_floating
  ]
  return tf.reduce_any(spoilt) if spoilt else tf.constant(False)


def _apply(
    optimizer: tff.learning.optimizers.Optimizer,
    state: Any,
    weights: tff.learning.models.ModelWeights,
    update: Any,
) -> Any:
  """Returns the state, the weights and the measurements after a round."""
  change, options = update, {}
  sees_reports = isinstance(optimizer, ReportsOptimizer)
  if sees_reports:
    change, options = update['change'], {'reports': update['reports']}
  before = (state, weights.trainable)
  after = _autograph.call(optimizer.next, *before, change, **options)
  rejected = ~vectors.all_finite(update) | _is_spoilt(before, after)

  def stay():
    if not sees_reports:
      return before
    held = _autograph.call(optimizer.after_rejection, state, change, **options)
    return held, weights.trainable

  new_state, new_trainable = tf.cond(rejected, stay, lambda: after)
  norm = vectors.norm(change, vectors.step_dtype(change))
  measurements = _OrderedDict(
      update_non_finite=tf.cast(rejected, tf.int32),
      update_norm=tf.where(rejected, tf.zeros_like(norm), norm),
  )
  if sees_reports:
    nothing = tf.constant(float('nan'))
    for name, value in _autograph.call(optimizer.report, new_state).items():
      value = tf.cast(value, tf.float32)
      measurements[name] = tf.where(rejected, nothing, value)
  new_weights = tff.learning.models.ModelWeights(
      new_trainable, weights.non_trainable
  )
  return new_state, new_weights, measurements


def build_measured_update_finalizer(
    optimizer: tff.learning.optimizers.Optimizer, weights_type: tff.Type
) -> tff.learning.templates.FinalizerProcess:
  """Builds the finalizer that takes one step of a server optimizer.

  An update is rejected, and model and optimizer state do not change, if an
  entry of the update is not finite, or if an entry of the new state or model is
  not finite but was so before. For example, the square of 1e20 overflows
  float32, and a coordinate with an infinite second moment would never move.

  Args:
    optimizer: The server optimizer, which takes the update as its gradient. For
      a `ReportsOptimizer`, the update is an ordered dictionary of `change`, the
      gradient, and `reports`.
    weights_type: The unplaced `tff.Type` of the model's
      `tff.learning.models.ModelWeights`.

  Returns:
    A `tff.learning.templates.FinalizerProcess`. It measures
    `update_non_finite`, 1 if the update was rejected, else 0; `update_norm`,
    the norm of the update over all trainable weights, 0 if it was rejected; and
    the report of a `ReportsOptimizer`, NaN if the update was rejected.

  Raises:
    TypeError: If `optimizer` is not an optimizer, or its `client_reports` are
      no reports.
    ValueError: If it is a rule of clients.

  Example:

    >>> weights_type = tff.to_type(tff.learning.models.ModelWeights(
    ...     trainable=tff.TensorType(np.float32, [3]), non_trainable=()))
    >>> finalizer = build_measured_update_finalizer(
    ...     tff.learning.optimizers.build_sgdm(1.0), weights_type)
    >>> finalizer.initialize.type_signature.compact_representation()
    '( -> <learning_rate=float32>@SERVER)'
  """
  check_server_optimizer(optimizer)
  specs = tff.types.type_to_tf_tensor_specs(weights_type.trainable)
  update_type = weights_type.trainable
  if isinstance(optimizer, ReportsOptimizer):
    reports = [(r.value, np.float32) for r in optimizer.client_reports]
    update_type = tff.to_type(
        _OrderedDict(change=update_type, reports=_OrderedDict(reports))
    )

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
