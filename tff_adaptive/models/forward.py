# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The forward pass of a Keras model, as a function without state."""

from collections.abc import Sequence
import itertools
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tff_adaptive import _random_ops
from tff_adaptive.models import compiled
from tff_adaptive.models import keras_versions
from tff_adaptive.models import tracing


class Variables(NamedTuple):
  """The variables of a Keras model.

  Attributes:
    trainable: Its trainable weights.
    non_trainable: Its other weights.
    seeds: The states of its generators of random numbers.
  """

  trainable: list[Any]
  non_trainable: list[Any]
  seeds: list[Any]

  @property
  def weights(self) -> list[Any]:
    """All weights, in the order of `tff.learning.models.ModelWeights`."""
    return [*self.trainable, *self.non_trainable]


class Forward:
  """The forward pass of a Keras model, as a function of its variables.

  Attributes:
    variables: Its variables.
    prediction: The specs of a prediction.
    moved: The weights that the layers assign in training, such as the averages
      of batch normalization.
    moved_in_evaluation: Those that they assign in evaluation.
  """

  def __init__(
      self,
      keras: keras_versions.Keras,
      model: Any,
      x: Any,
      returns_moved: bool = False,
      keeps_masks: bool = True,
      class_weights: Sequence[float] = (),
  ):
    """Traces the forward pass.

    Args:
      keras: The version of Keras.
      model: The model.
      x: The specs of a batch of features.
      returns_moved: Whether a prediction in training has the moved weights.
        Default False.
      keeps_masks: Whether a prediction has the masks of outputs. Default True.
      class_weights: The weights of classes in training, see `from_keras`.
        Default: none.

    Raises:
      HiddenStateError: If the model has other state than its variables.
    """
    self._keras = keras
    self._model = model
    self._returns_moved = returns_moved
    self._keeps_masks = keeps_masks
    self._class_weights = np.array(class_weights, np.float32)
    self.variables = Variables(
        *keras_versions.split_weights(model), keras.seeds(model)
    )
    # Which seeds are used, by whether the model is trained.
    self._used: dict[bool, list[bool]] = {}
    specs = tf.nest.map_structure(
        lambda v: tf.TensorSpec(v.shape, v.dtype), tuple(self.variables)
    )
    self.moved: list[Any] = []
    self.moved_in_evaluation: list[Any] = []
    self._passes = {
        training: tracing.TracedFunction(
            lambda values, x, training=training: self._run(training, values, x),
            specs,
            x,
        )
        for training in (True, False)
    }
    # A layer may add a loss in training alone.
    self.prediction = self._passes[False].result._replace(
        losses=max(
            (one.result.losses for one in self._passes.values()), key=len
        ),
        class_weights=tuple(
            map(tf.TensorSpec.from_tensor, self.weights_of_classes(True))
        ),
    )

  def weights_of_classes(self, training: bool) -> tuple[tf.Tensor, ...]:
    """Returns the weights of classes; in evaluation they are 1."""
    weights = self._class_weights
    if not weights.size:
      return ()
    return (tf.constant(weights if training else np.ones_like(weights)),)

  def _run(self, training: bool, values: Any, x: Any) -> Any:
    """Returns the prediction, in a trace."""
    variables = [*self.variables.weights, *self.variables.seeds]
    given = tf.nest.flatten(values)
    with self._keras.stateless(variables, given) as value_of:
      outputs = self._keras.call(self._model, x, training)
      losses = [
          tf.reduce_sum(tf.cast(loss, tf.float32))
          for loss in self._model.losses
      ]
      new = [value_of(variable) for variable in variables]
    changed = [value is not before for value, before in zip(new, given)]
    num_weights = len(self.variables.weights)
    self._used[training] = changed[num_weights:]
    moved = list(itertools.compress(new, changed[:num_weights]))
    assigned = list(itertools.compress(variables, changed[:num_weights]))
    if training:
      self.moved = assigned
    else:
      self.moved_in_evaluation = assigned
    masks = compiled.find_masks(outputs) if self._keeps_masks else ()
    added = (tf.add_n(losses),) if losses else ()
    is_returned = training and self._returns_moved
    return compiled.Prediction(
        outputs, masks, added, moved=tuple(moved) if is_returned else ()
    )

  def __call__(
      self, weights: Any, x: Any, training: bool
  ) -> compiled.Prediction:
    """Returns the prediction, with new seeds for layers that draw."""
    seeds = [
        tf.cast(_random_ops.draw_seed(), seed.dtype)
        if is_used
        else tf.zeros(seed.shape, seed.dtype)
        for seed, is_used in zip(self.variables.seeds, self._used[training])
    ]
    prediction = self._passes[training]((*weights, seeds), x)
    if self.prediction.losses and not prediction.losses:
      prediction = prediction._replace(losses=(tf.zeros([]),))
    return prediction._replace(class_weights=self.weights_of_classes(training))
