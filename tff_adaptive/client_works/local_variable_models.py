# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Variable models of clients, whose weights and metrics are variables."""

from collections.abc import Callable
from typing import Optional

import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import _autograph
from tff_adaptive.client_works import derived_tensors
from tff_adaptive.client_works import local_models
from tff_adaptive.client_works import model_checks
from tff_adaptive.client_works import moved_variables


class LocalVariableModel(local_models.LocalModel):
  """A variable model, whose weights and metrics are variables of the graph."""

  def __init__(
      self,
      model: tff.learning.models.VariableModel,
      parts: Optional[model_checks.KerasParts],
      warn: Callable[[tuple[str, ...]], None],
      warn_of_unread: Callable[[tuple[str, ...]], None],
      derives_tensors: bool,
  ):
    """Initializes the model.

    Args:
      model: TFF's model.
      parts: See `LocalModel`.
      warn: Called with weights that the forward pass moves.
      warn_of_unread: Called with weights on which the loss does not depend.
      derives_tensors: Whether layers keep tensors derived from weights.
    """
    super().__init__(parts)
    self._model = model
    self._warn = warn
    self._warn_of_unread = warn_of_unread
    self._derives_tensors = derives_tensors
    self._trainable = tuple(model.trainable_variables)

  def start(self, weights):
    for variable, value in zip(
        self._model.non_trainable_variables, weights.non_trainable
    ):
      variable.assign(value)
    _autograph.call(self._model.reset_metrics)
    return ()

  def _assign(self, trainable):
    for variable, value in zip(self._trainable, trainable):
      variable.assign(value)

  def forward(self, trainable, batch, training):
    self._assign(trainable)
    return self._forward_pass(batch, training)

  def _forward_pass(self, batch, training):
    if self._derives_tensors and not tf.executing_eagerly():
      output = derived_tensors.call_forward(self._model, batch, training)
    else:
      output = _autograph.call(
          self._model.forward_pass, batch, training=training
      )
    num_weights = len(self._model.trainable_variables)
    if num_weights != len(self._trainable):
      raise ValueError(
          f'The model has {len(self._trainable)} trainable variables, but '
          f'{num_weights} after `forward_pass`; later ones would not be '
          'trained. Make all in `__init__`, for example by calling a Keras '
          'model once.'
      )
    return output

  def value_and_grad(self, trainable, batch, loss_term=None):
    self._assign(trainable)
    with moved_variables.find(self._model.non_trainable_variables) as moved:
      evaluation = local_models.differentiate(
          lambda: self._forward_pass(batch, training=True),
          self._trainable,
          # A function of the variables, so that its gradient reaches them.
          lambda: (
              0.0
              if loss_term is None
              else loss_term(tuple(v.value() for v in self._trainable), batch)
          ),
          self.mean_loss,
      )
    if moved:
      self._warn(tuple(moved))
    if unread := local_models.places_of_none(evaluation.gradients):
      names = (self._trainable[place].name for place in unread)
      self._warn_of_unread(tuple(name.partition(':')[0] for name in names))
    return evaluation

  def value_and_grad_again(self, trainable, batch, loss_term=None):
    return self._restored(self.value_and_grad, trainable, batch, loss_term)

  def differentiable_loss(self, trainable, evaluation):
    # The loss depends on variables, to which the weights were assigned.
    @tf.custom_gradient
    def attach(loss, *weights):
      del weights  # They have the gradients of the evaluation.
      return tf.identity(loss), lambda upstream: (
          None,
          *(
              None if g is None else tf.math.scalar_mul(upstream, g)
              for g in evaluation.gradients
          ),
      )

    return attach(evaluation.loss, *trainable)

  def evaluate_again(self, trainable, batch):
    return self._restored(self.evaluate, trainable, batch)

  def _restored(self, evaluate, *args):
    # The forward pass updates metrics and may move batch statistics.
    touched = [
        *self._model.local_variables,
        *self._model.non_trainable_variables,
    ]
    before = [tf.identity(v.read_value()) for v in touched]
    evaluation = evaluate(*args)
    for variable, value in zip(touched, before):
      variable.assign(value)
    return evaluation

  def update_metrics(self, metrics, batch, evaluation):
    del batch, evaluation  # The forward pass has updated the metrics.
    return metrics

  def report_metrics(self, metrics, is_healthy):
    del metrics  # They are in variables.

    def reset():
      _autograph.call(self._model.reset_metrics)
      return tf.no_op()

    tf.cond(is_healthy, tf.no_op, reset)
    return _autograph.call(self._model.report_local_unfinalized_metrics)
