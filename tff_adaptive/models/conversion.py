# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Converts Keras models to functional models, and back."""

from collections.abc import Mapping
from typing import Any, Optional

import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.models import compiled
from tff_adaptive.models import forward as forward_lib
from tff_adaptive.models import keras_checks
from tff_adaptive.models import keras_classes
from tff_adaptive.models import keras_versions
from tff_adaptive.models import moved_weights

# The names of the parts of a batch.
PARTS = ('x', 'y', 'sample_weight')


class KerasFunctionalModel(tff.learning.models.FunctionalModel):
  """A Keras model as functional model, see `from_keras`.

  Attributes:
    keras_model: The Keras model.
    moved: The weights that the layers assign in training and that a round
      carries on.
    reports_mean: Whether the reported loss is per example, see `from_keras`.
    has_class_weights: Whether classes have weights in training.
  """

  def __init__(
      self,
      keras_model: Any,
      forward: forward_lib.Forward,
      batch_statistics: str,
      reports_mean: bool,
      **kwargs: Any,
  ):
    super().__init__(
        predict_on_batch_fn=tf.function(
            lambda weights, x, training=True: forward(
                weights, x, training
            ).to_output()
        ),
        **kwargs,
    )
    self.keras_model = keras_model
    self.reports_mean = reports_mean
    self.moved = moved_weights.NONE
    if batch_statistics != keras_checks.BATCH:
      keeps_layers = batch_statistics == keras_checks.FEDBN
      self.moved = moved_weights.find(
          forward.variables.trainable,
          forward.variables.non_trainable,
          forward.moved,
          is_local=batch_statistics == keras_checks.LOCAL or keeps_layers,
          kept=(
              keras_versions.trained_beside(keras_model, forward.moved)
              if keeps_layers
              else ()
          ),
      )
    self._weights = forward.variables.weights
    self._weights_of_classes = forward.weights_of_classes
    self.has_class_weights = bool(forward.prediction.class_weights)
    self._predict_and_move = tf.function(
        lambda weights, x: forward(weights, x, training=True)
    )

  def predict_and_move(self, weights: Any, x: Any) -> tuple[Any, Any]:
    """Returns the output in training, and the new values of `moved`."""
    prediction = self._predict_and_move(weights, x)
    return prediction.to_output(), prediction.moved

  def weigh_classes(self, output: Any) -> Any:
    """Returns an output in evaluation with the classes' weights in training."""
    return (
        compiled.Prediction.from_output(output)
        ._replace(class_weights=self._weights_of_classes(training=True))
        .to_output()
    )

  def assign(self, values: Any) -> None:
    """Assigns weights to the Keras model, see `to_keras`."""
    found = tf.nest.flatten(values)
    shapes = [tuple(tf.convert_to_tensor(value).shape) for value in found]
    wanted = [weight.numpy().shape for weight in self._weights]
    if shapes != wanted:
      raise ValueError(
          f'The weights of the Keras model have the shapes {wanted}, found a '
          f'{type(values).__name__} with {shapes}: pass '
          '`process.get_model_weights(state)` of a process with this model.'
      )
    for weight, value in zip(self._weights, found):
      weight.assign(value)


def from_keras(
    model: Any,
    loss: Any = None,
    metrics: Any = None,
    *,
    input_spec: Any,
    loss_weights: Any = None,
    weighted_metrics: Any = None,
    class_weight: Optional[Mapping[int, float]] = None,
    batch_statistics: str = keras_checks.BATCH,
) -> KerasFunctionalModel:
  """Converts a Keras model to the functional model that every builder takes.

  A round then trains it as `Model.fit` does. Losses are those of Keras,
  with the regularizers of weights and activities, losses added by layers,
  masks and sample weights; and so are metrics. A federation of one client gives
  the weights and metrics of `fit`.

  Layers that draw random numbers, such as dropout, take a new seed in each
  step. It depends on the seed of the round, so that runs repeat to the bit.

  Args:
    model: A model of Keras 3 (`keras.Model`, with the backend of TensorFlow) or
      Keras 2 (`tf.keras.Model`): functional, sequential or subclassed, with its
      weights made. They are the initial weights.
    loss: As for `Model.compile`: a loss, its name, a function, or a structure
      of them, one for each output. If it has the attribute `counts_padding`,
      and it is true, masks do not reach loss and metrics, as in TFF's forms of
      a Keras model. If it has the attribute `reports_mean`, and it is true, it
      is the sum over a batch, and `clients/loss` and evaluations report it per
      example. Default `None`: the losses that the model adds are all.
    metrics: As for `Model.compile`. Default `None`: only losses.
    input_spec: The `tf.TensorSpec`s of a batch, such as `dataset.element_spec`:
      a tuple (x, y) or (x, y, sample_weight), or a mapping with these names. x
      and y may be nested.
    loss_weights: As for `Model.compile`. Default `None`: all 1.
    weighted_metrics: As for `Model.compile`: the metrics that sample weights
      weigh. Default `None`: none.
    class_weight: As for `Model.fit`, from each class to its weight: in training
      the weight of an example is that of its class, times its sample weight if
      it has one. Default `None`: all 1.
    batch_statistics: The weights that layers assign in training, the moving
      means and variances of batch normalization. `'aggregate'`: clients train
      from those of the server and send their changes, which are averaged like
      the update. They are the payload `'batch_statistics'` of
      `payload_aggregators` and `privacy`. `'local'`: each client keeps its own
      from round to round, and the server keeps the initial ones (SiloBN).
      `'fedbn'`: each client also keeps its own trained weights of these layers,
      scale and shift, which is FedBN. The default `'batch'` carries none:
      training uses the statistics of a batch, evaluation the initial values.
      TFF's builders know only this.

  Returns:
    A `tff.learning.models.FunctionalModel`, with the attribute `keras_model`.
    Its metrics are those of `fit`: `loss`, one per output if there are several,
    and the metrics. Models with sample weights are for the builders of this
    library; TFF's take pairs.

  Raises:
    TypeError: If `model` is not a Keras model, a metric is of the other version
      of Keras, or the batches have ragged tensors.
    ValueError: If `input_spec` has other parts or an unknown number of axes, or
      `batch_statistics` is another word; if `class_weight` lacks classes, there
      are several outputs or the last axis of the labels is unknown; if there is
      no loss; if the model has no weights yet, trains in its own way
      (`train_step`), constrains weights, looks up in a table without words, or
      keeps other state besides its weights; if it moves integers that should be
      averaged; or if the state of a metric is not a sum, and so cannot be added
      over clients. Names the layer or metric.

  References:
    Andreux et al., Siloed Federated Learning for Multi-Centric Histopathology
    Datasets, DCL 2020, https://arxiv.org/abs/2008.07424 (SiloBN). Li et al.,
    FedBN: Federated Learning on Non-IID Features via Local Batch Normalization,
    ICLR 2021, https://arxiv.org/abs/2102.07623.

  Example:
    >>> import keras
    >>> model = keras.Sequential([keras.Input([2]), keras.layers.Dense(3)])
    >>> functional_model = from_keras(
    ...     model,
    ...     loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    ...     metrics=['accuracy'],
    ...     input_spec=(
    ...         tf.TensorSpec([None, 2]), tf.TensorSpec([None], tf.int32)))
    >>> [weight.shape for weight in functional_model.initial_weights[0]]
    [(2, 3), (3,)]
  """
  keras = keras_versions.find(model)
  features, labels, weight = _split(input_spec)
  if batch_statistics not in keras_checks.BATCH_STATISTICS:
    raise ValueError(
        '`batch_statistics` must be one of '
        f'{list(keras_checks.BATCH_STATISTICS)}, found {batch_statistics!r}.'
    )
  weights = dict(class_weight or {})
  keras_checks.check_class_weight(weights, labels)
  with keras_classes.kept_usable():
    keras_checks.check(keras, model)
    keras_checks.check_metrics(model, [metrics, weighted_metrics])
    with keras_checks.named_state(model):
      forward = forward_lib.Forward(
          keras,
          model,
          features,
          returns_moved=batch_statistics != keras_checks.BATCH,
          keeps_masks=not getattr(loss, 'counts_padding', False),
          class_weights=[weights[i] for i in range(len(weights))],
      )
      keras_checks.check_moved(forward.moved, batch_statistics)
      keras_checks.check_moved_in_evaluation(forward.moved_in_evaluation)
      if loss is None and not forward.prediction.losses:
        raise ValueError(
            'There is no loss: give `loss`, as for `Model.compile`, whose own '
            'arguments are not used.'
        )
      functions = compiled.CompiledFunctions(
          keras,
          keras.compile(
              model,
              loss=loss,
              metrics=metrics,
              loss_weights=loss_weights,
              weighted_metrics=weighted_metrics,
          ),
          forward.prediction,
          labels,
          weight,
      )
  return KerasFunctionalModel(
      model,
      forward,
      batch_statistics,
      getattr(loss, 'reports_mean', False),
      initial_weights=(
          tuple(v.numpy() for v in forward.variables.trainable),
          tuple(v.numpy() for v in forward.variables.non_trainable),
      ),
      loss_fn=functions.loss,
      metrics_fns=functions.metrics_fns,
      input_spec=input_spec,
  )


def with_batch_statistics(
    model: KerasFunctionalModel, weights: Any, batch_statistics: Any
) -> tff.learning.models.ModelWeights:
  """Returns weights with those that a client keeps.

  Args:
    model: The result of `from_keras` with `batch_statistics='local'` or
      `'fedbn'`.
    weights: The weights, `process.get_model_weights(state)`.
    batch_statistics: The part `'batch_statistics'` of the client's state.

  Returns:
    The weights with which to evaluate or predict for the client.

  Example:
    >>> import keras
    >>> layer = keras.layers.BatchNormalization()
    >>> spec = (tf.TensorSpec([None, 2]), tf.TensorSpec([None, 2]))
    >>> model = from_keras(
    ...     keras.Sequential([keras.Input([2]), layer]), 'mse',
    ...     input_spec=spec, batch_statistics='local')
    >>> process = algorithms.build_fed_opt(model, optimizers.build_sgd(0.1))
    >>> weights = process.get_model_weights(process.initialize())
    >>> kept = ([0.0, 3.0], [1.0, 4.0])
    >>> with_batch_statistics(model, weights, kept).non_trainable[0]
    [0.0, 3.0]
  """
  return model.moved.put_kept(weights, batch_statistics)


def to_keras(model: KerasFunctionalModel, weights: Any) -> Any:
  """Gives trained weights to the Keras model, to save, export or use it.

  Args:
    model: The result of `from_keras`.
    weights: The weights, `process.get_model_weights(state)`.

  Returns:
    The Keras model that `from_keras` was given, itself, with these weights.

  Raises:
    ValueError: If the weights are not those of the model.

  Example:
    >>> import keras
    >>> keras_model = keras.Sequential(
    ...     [keras.Input([2]), keras.layers.Dense(1)])
    >>> spec = (tf.TensorSpec([None, 2]), tf.TensorSpec([None, 1]))
    >>> model = from_keras(keras_model, 'mse', input_spec=spec)
    >>> process = algorithms.build_fed_opt(model, optimizers.build_delta_sgd())
    >>> weights = process.get_model_weights(process.initialize())
    >>> to_keras(model, weights).save('model.keras')
  """
  model.assign(weights)
  return model.keras_model


def _split(input_spec: Any) -> tuple[Any, Any, Optional[Any]]:
  """Returns the specs of features, labels and sample weights."""
  parts: Any = ()
  if isinstance(input_spec, (tuple, list)):
    parts = input_spec
  elif isinstance(input_spec, Mapping):
    if set(input_spec) in (set(PARTS), set(PARTS[:2])):
      parts = [input_spec[name] for name in PARTS[: len(input_spec)]]
  if len(parts) not in (2, 3):
    raise ValueError(
        '`input_spec` must be a tuple (x, y) or (x, y, sample_weight), or a '
        f'mapping with these names, found {input_spec}.'
    )
  for spec in tf.nest.flatten(parts):
    if not isinstance(spec, tf.TensorSpec):
      raise TypeError(
          '`input_spec` must have a `tf.TensorSpec` for each tensor, found '
          f'{spec}: pad ragged tensors by `to_tensor()`, and let the model '
          'mask the padding, such as with `Embedding(mask_zero=True)`.'
      )
    if spec.shape.rank is None:
      raise ValueError(
          '`input_spec` must tell how many axes each tensor has, found '
          f'{spec}: call `tf.ensure_shape` in `dataset.map`.'
      )
  return parts[0], parts[1], parts[2] if len(parts) == 3 else None
