# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Functional models of clients, which have no state."""

from collections.abc import Callable, Iterator
import contextlib
import copy
import threading
from typing import Any, NamedTuple, Optional
import warnings

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import _autograph
from tff_adaptive.client_works import local_models
from tff_adaptive.client_works import model_checks
from tff_adaptive.data import specs as specs_lib
from tff_adaptive.models import compiled
from tff_adaptive.models import conversion

_WARNINGS_LOCK = threading.Lock()


@contextlib.contextmanager
def inference_by_default() -> Iterator[None]:
  """Makes inference the default of Keras layers without `training` argument.

  TFF clones a Keras model each time a functional model predicts, and Keras
  calls each layer of the clone once on a placeholder that is never fed. By
  default that call adds random ops of dropout layers, on which TFF's worker
  fails; at inference it adds none. The prediction itself passes `training`.
  """
  scope = tf.keras.backend.learning_phase_scope(0)
  with contextlib.ExitStack() as stack:
    # `catch_warnings` affects all threads, so hold it as briefly as possible.
    with _WARNINGS_LOCK, warnings.catch_warnings():
      # Deprecated, since TensorFlow 2 needs it only in such graphs.
      warnings.simplefilter('ignore')
      stack.enter_context(scope)
    yield


class LocalFunctionalModel(local_models.LocalModel):
  """A functional model, which has no state."""

  def __init__(
      self,
      model: tff.learning.models.FunctionalModel,
      parts: Optional[model_checks.KerasParts],
      warn_of_unread: Callable[[tuple[str, ...]], None],
  ):
    """Initializes the model.

    Args:
      model: TFF's model.
      parts: See `LocalModel`.
      warn_of_unread: Called with weights on which the loss does not depend.
    """
    super().__init__(parts)
    self._model = model
    self._warn_of_unread = warn_of_unread
    self._trainable_structure = model.initial_weights[0]
    self._non_trainable = ()

  def start(self, weights):
    self._non_trainable = weights.non_trainable
    return _autograph.call(self._model.initialize_metrics_state)

  def forward(self, trainable, batch, training):
    x, y = local_models.features_and_labels(batch)
    weights = (
        tf.nest.pack_sequence_as(self._trainable_structure, trainable),
        self._non_trainable,
    )
    return self._output(self._predict(weights, x, training), y)

  def _predict(self, weights, x, training):
    with inference_by_default():
      return _autograph.call(
          self._model.predict_on_batch, weights, x, training=training
      )

  def _output(self, predictions, y):
    return tff.learning.models.BatchOutput(
        loss=_autograph.call(self._model.loss, output=predictions, label=y),
        predictions=predictions,
        num_examples=tf.shape(tf.nest.flatten(predictions)[0])[0],
    )

  def value_and_grad(self, trainable, batch, loss_term=None):
    evaluation = local_models.differentiate(
        lambda: self.forward(trainable, batch, training=True),
        trainable,
        lambda: 0.0 if loss_term is None else loss_term(trainable, batch),
        self.mean_loss,
    )
    if unread := local_models.places_of_none(evaluation.gradients):
      names = specs_lib.field_names(self._trainable_structure)
      weights = tf.nest.flatten(self._trainable_structure)
      self._warn_of_unread(
          tuple(
              f'{names[place]} of shape {list(np.shape(weights[place]))}'
              for place in unread
          )
      )
    return evaluation

  def update_metrics(self, metrics, batch, evaluation):
    _, labels = local_models.features_and_labels(batch)
    output = tff.learning.models.BatchOutput(
        loss=evaluation.model_loss,
        predictions=evaluation.predictions,
        num_examples=evaluation.num_examples,
    )
    return _autograph.call(
        self._model.update_metrics_state,
        metrics,
        labels=labels,
        batch_output=output,
    )

  def report_metrics(self, metrics, is_healthy):
    return tf.nest.map_structure(
        lambda counted, empty: tf.where(is_healthy, counted, empty),
        metrics,
        _autograph.call(self._model.initialize_metrics_state),
    )


class _Predictions(NamedTuple):
  """Predictions, and the new values of the moved weights."""

  predictions: Any
  moved: local_models.Weights


class LocalKerasModel(LocalFunctionalModel):
  """A model of `from_keras`."""

  def evaluate_again(self, trainable, batch):
    evaluation = self.evaluate(trainable, batch)
    if not self._model.has_class_weights:
      return evaluation
    _, y = local_models.features_and_labels(batch)
    output = self._output(self._model.weigh_classes(evaluation.predictions), y)
    return evaluation._replace(
        loss=output.loss,
        mean_loss=self.mean_loss(output),
        model_loss=output.loss,
    )

  def _sums_losses(self):
    return self._model.reports_mean

  def _penalty(self, output):
    predictions = output.predictions
    if isinstance(predictions, _Predictions):
      predictions = predictions.predictions
    losses = compiled.Prediction.from_output(predictions).losses
    return tf.add_n(losses) if losses else 0.0


class MovingKerasModel(LocalKerasModel):
  """A model of `from_keras` that moves weights in training."""

  def __init__(self, model: conversion.KerasFunctionalModel, *args: Any):
    super().__init__(model, *args)
    self.moved_weights = model.moved

  def with_moved(self, moved):
    model = copy.copy(self)
    model._non_trainable = self.moved_weights.put(self._non_trainable, moved)
    return model

  def _predict(self, weights, x, training):
    if not training:
      return super()._predict(weights, x, training)
    return _Predictions(*self._model.predict_and_move(weights, x))

  def _output(self, predictions, y):
    if not isinstance(predictions, _Predictions):
      return super()._output(predictions, y)
    output = super()._output(predictions.predictions, y)
    return output._replace(predictions=predictions)

  def value_and_grad(self, trainable, batch, loss_term=None):
    evaluation = super().value_and_grad(trainable, batch, loss_term)
    predictions, moved = evaluation.predictions
    return evaluation._replace(predictions=predictions, moved=moved)
