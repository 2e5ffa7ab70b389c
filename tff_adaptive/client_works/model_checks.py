# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks of Keras models where a process or an evaluation is built.

TFF's two forms of a Keras model do not have all of its parts. A part that
would be missing without an error is refused, with another way to have it, or
warned of.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
import functools
import inspect
import re
from typing import Any, cast, Optional, TypeVar
import warnings

import attrs
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import _error_texts
from tff_adaptive import models
from tff_adaptive.models import keras_classes

_Function = TypeVar('_Function', bound=Callable[..., Any])

_FROM_KERAS = 'convert the model by `tff_adaptive.models.from_keras`'
# TFF's arguments of builders, and those of this package.
_STOCK_ARGUMENTS = {
    'model_fn': '`model`',
    'client_optimizer_fn': '`client_optimizer`',
    'server_optimizer_fn': '`server_optimizer`',
    'model_distributor': 'none, as models are broadcast uncompressed',
    # Of older versions of TFF.
    'aggregation_process': '`model_aggregator`, a factory',
    'broadcast_process': 'none, as models are broadcast uncompressed',
    'client_weight_fn': '`client_weighting`',
    'model_update_aggregation_factory': '`model_aggregator`',
    'use_experimental_simulation_loop': (
        'none, or `loop_implementation=`'
        '`tff.learning.LoopImplementation.DATASET_ITERATOR`'
    ),
}
_LATE_METRIC = (
    'A metric makes its variables when it first sees predictions, which TFF '
    'cannot read: make them in `__init__`, such as by `num_labels` of '
    '`AUC(multi_label=True)`.'
)
# Patterns of errors of TensorFlow, TFF and Keras, and what they mean; `\1` is
# what the group of the pattern found.
_CAUSES = (
    (
        'Attempting to capture an EagerTensor',
        'The model, its loss or a metric uses a tensor or a variable made '
        'outside of it, such as a `tf.constant` or an existing Keras model: '
        'make it a NumPy array, or make it where it is used (models and losses '
        'in the function that returns the `VariableModel`).',
    ),
    (
        r'was defined in FuncGraph\(name=predict_on_batch',
        'A layer adds a loss in its call (`add_loss`), which TFF cannot read '
        f'outside of it: {_FROM_KERAS}.',
    ),
    (
        'Cannot get session inside',
        'A metric resets its variables by `tf.keras.backend.set_value`, as '
        'MeanIoU does, which a `VariableModel` cannot do: use '
        '`tff.learning.models.functional_model_from_keras`, or a subclass '
        'whose `reset_state` calls `assign` of the variables.',
    ),
    (
        'Expected list, found dict',
        '`metrics` of `from_keras_model` must be a list of metrics, found a '
        'dictionary: pass `list(metrics.values())`; the names are those of the '
        'metrics.',
    ),
    (r'(?s)learning/metrics/keras_utils\.py.*is not in list', _LATE_METRIC),
    ('The input to the finalizer should be a list', _LATE_METRIC),
    (
        r'No gradient defined for operation.*\(op type: (\w+)\)',
        r'TensorFlow has no gradient of the op \1 of the model: apply '
        '`tf.stop_gradient` to what it computes, such as by a layer '
        '`tf.keras.layers.Lambda(tf.stop_gradient)` behind it, if no weights '
        'come before it, or compute it in the data (`dataset.map`).',
    ),
)


@attrs.frozen(kw_only=True, eq=False)
class KerasParts:
  """The Keras objects of a model of TFF.

  Attributes:
    model: The Keras model.
    losses: Its losses: one per output, or one for all.
    is_functional: Whether it is TFF's functional form.
  """

  model: tf.keras.Model
  losses: Sequence[Any]
  is_functional: bool

  @property
  def sums_losses(self) -> bool:
    """Whether the loss of a batch is a sum over its examples."""
    sums = {
        getattr(loss, 'reduction', None) == tf.keras.losses.Reduction.SUM
        for loss in self.losses
    }
    if len(sums) == 2:
      raise ValueError(
          'Of the losses of the outputs, some sum over a batch and some take '
          'the mean: give all the same `reduction`.'
      )
    return sums == {True}

  @property
  def penalty(self) -> Any:
    """The sum of the losses of the weights' regularizers."""
    losses = () if self.is_functional else self.model.losses
    return tf.add_n(losses) if losses else 0.0


def find_keras(model: Any) -> Optional[KerasParts]:
  """Returns the Keras objects of a model that TFF has converted, else `None`.

  Args:
    model: A `tff.learning.models.FunctionalModel` or `VariableModel`.
  """
  if not isinstance(model, tff.learning.models.FunctionalModel):
    # Attributes of TFF's own class; it has no public name.
    keras_model = getattr(model, '_keras_model', None)
    is_of_tff = type(model).__module__.startswith('tensorflow_federated.')
    if not is_of_tff or not isinstance(keras_model, tf.keras.Model):
      return None
    losses = getattr(model, '_loss_fns', ())
    return KerasParts(model=keras_model, losses=losses, is_functional=False)
  # TFF's conversion keeps them only in the functions that it makes.
  kept = _converted(getattr(model, '_predict_on_batch_fn', None))
  keras_model = kept.get('keras_model')
  if keras_model is None:
    return None
  if not isinstance(keras_model, tf.keras.Model):
    with tf.Graph().as_default():
      keras_model = keras_model()
  loss = _converted(getattr(model, '_loss_fn', None)).get('loss_fn')
  return KerasParts(model=keras_model, losses=[loss], is_functional=True)


def _converted(fn: Any) -> Mapping[str, Any]:
  """Returns the objects kept by a function of TFF's Keras conversion."""
  fn = getattr(fn, 'python_function', fn)
  name = getattr(fn, '__qualname__', '')
  if not name.startswith('functional_model_from_keras.'):
    return {}
  return inspect.getclosurevars(fn).nonlocals


def check(model: Any, parts: Optional[KerasParts]) -> None:
  """Raises, or warns, if a part of a Keras model would be dropped.

  Args:
    model: A `tff.learning.models.FunctionalModel` or `VariableModel`.
    parts: Its Keras objects, see `find_keras`.

  Raises:
    TypeError: If the model takes ragged tensors.
    ValueError: If losses or weights would be missing or the model cannot be
      run. Names the layer and another way.
  """
  _check_dense(model.input_spec)
  is_functional = isinstance(model, tff.learning.models.FunctionalModel)
  if is_functional and not isinstance(model, models.KerasFunctionalModel):
    _check_features(model.input_spec)
  if parts is None:
    return
  _check_built(parts)
  if parts.is_functional:
    _check_functional_layers(parts.model)
  _check_added_losses(parts)
  _check_outputs(parts)
  _warn_of_mask(parts)
  if getattr(parts.model, '_is_compiled', False):
    warnings.warn(
        'The Keras model is compiled, but loss, loss weights and metrics of '
        '`compile` are not used: pass them to the conversion.'
    )


def _check_dense(input_spec: Any) -> None:
  """Raises if batches have ragged tensors."""
  ragged = (tf.RaggedTensorSpec, tf.RaggedTensor)
  if any(isinstance(s, ragged) for s in tf.nest.flatten(input_spec)):
    raise TypeError(
        'The model takes ragged tensors, which are no elements of clients: pad '
        'them by `to_tensor()` and let the model mask the padding, such as '
        'with `Embedding(mask_zero=True)`.'
    )


def _check_features(input_spec: Any) -> None:
  """Raises unless a functional model takes features and labels."""
  names = list(input_spec) if isinstance(input_spec, Mapping) else None
  if names is not None and set(names) != {'x', 'y'} or len(input_spec) != 2:
    raise ValueError(
        "The batches of a functional model have the parts 'x' and 'y', found "
        f'{names or len(input_spec)}. For sample weights, {_FROM_KERAS}; put '
        "other parts into 'x' or 'y'."
    )


def _check_built(parts: KerasParts) -> None:
  if not parts.model.built:
    raise ValueError(
        f'The Keras model {parts.model.name!r} has no weights yet: let it '
        'begin with `tf.keras.Input`, or call it once where it is made, such '
        'as `keras_model(tf.zeros([1, 28, 28]))`.'
    )


def _layers(model: tf.keras.Model) -> Iterator[tf.keras.layers.Layer]:
  """Yields the model and all its layers, also those inside of layers."""
  yield model
  for module in model.submodules:
    if isinstance(module, tf.keras.layers.Layer):
      yield module


def _check_functional_layers(model: tf.keras.Model) -> None:
  """Raises at a layer that TFF's functional form of a model cannot have."""
  created = {id(w) for w in model.non_trainable_weights if w.trainable}
  for layer in _layers(model):
    weights = layer.weights
    other = ''
    if isinstance(layer, tf.keras.layers.BatchNormalization):
      cause = 'moves its averages in training'
      other = ', or use `tf.keras.layers.GroupNormalization`'
    elif created & {id(w) for w in weights} and not layer.trainable:
      cause = 'is frozen (`trainable` is false)'
    elif weights and _casts(layer):
      cause = f'casts its weights (dtype policy {layer.dtype_policy.name!r})'
    elif names := _weight_regularizers(layer):
      cause = f'has {" and ".join(names)}, whose loss would be missing'
    else:
      continue
    raise ValueError(
        f'The layer {layer.name!r} {cause}, which '
        '`functional_model_from_keras` does not support: '
        f'{_FROM_KERAS}{other}.'
    )


def _casts(layer: tf.keras.layers.Layer) -> bool:
  policy = getattr(layer, 'dtype_policy', None)
  return policy is not None and policy.compute_dtype != policy.variable_dtype


def _weight_regularizers(layer: tf.keras.layers.Layer) -> list[str]:
  """Returns the names of the regularizers of a layer's own weights."""
  return [
      name
      for name, value in vars(layer).items()
      if name.endswith('_regularizer') and value is not None
      if not name.startswith('_')
      if name != 'activity_regularizer'
  ]


def _check_added_losses(parts: KerasParts) -> None:
  """Raises at a layer that adds a loss in its call.

  A `VariableModel` raises by itself where `add_loss` is called.
  """
  for layer in _layers(parts.model):
    call = inspect.unwrap(type(layer).call)
    names = getattr(getattr(call, '__code__', None), 'co_names', ())
    if getattr(layer, 'activity_regularizer', None) is not None:
      cause = '`activity_regularizer`'
    elif parts.is_functional and 'add_loss' in names:
      cause = '`add_loss`'
    else:
      continue
    raise ValueError(
        f'The layer {layer.name!r} adds a loss in its call ({cause}), which '
        f"TFF's forms of a Keras model do not have: {_FROM_KERAS}."
    )


def _check_outputs(parts: KerasParts) -> None:
  """Raises if a loss of one tensor gets several."""
  num_outputs = len(getattr(parts.model, 'outputs', None) or ())
  if num_outputs < 2 or len(parts.losses) != 1:
    return
  loss = parts.losses[0]
  if type(loss).__module__ != tf.keras.losses.MeanSquaredError.__module__:
    return  # A user's own, which may well take all outputs.
  raise ValueError(
      f'The Keras model has {num_outputs} outputs, which '
      f'{type(loss).__name__} would stack to one tensor: {_FROM_KERAS}, with '
      '`loss=[...]`, one loss per output, and `loss_weights`, or write a '
      '`tf.keras.losses.Loss` of all outputs.'
  )


def _warn_of_mask(parts: KerasParts) -> None:
  """Warns of a mask that does not reach loss and metrics."""
  outputs = getattr(parts.model, 'outputs', None) or ()
  if all(getattr(o, '_keras_mask', None) is None for o in outputs):
    return
  if all(map(_handles_padding, parts.losses)):
    return
  masking = [
      layer.name
      for layer in _layers(parts.model)
      if getattr(layer, 'mask_zero', False)
      or isinstance(layer, tf.keras.layers.Masking)
  ]
  source = f' of the layer {masking[0]!r}' if masking else ''
  warnings.warn(
      f"The mask{source} does not reach the loss and the metrics in TFF's "
      'forms of a Keras model, so padding counts like any step: '
      f'{_FROM_KERAS}, or use a loss and metrics that skip padding, such as '
      '`SparseCategoricalCrossentropy(ignore_class=0)`. If the loss skips it '
      'already or padding is to count, set `loss.counts_padding = True`.'
  )


def _handles_padding(loss: Any) -> bool:
  """Returns whether a loss skips padding, or is meant to count it."""
  if getattr(loss, 'counts_padding', False):
    return True
  kwargs = getattr(loss, '_fn_kwargs', {})
  return kwargs.get('ignore_class') is not None


def warn_of_matrices(metrics_type: tff.Type) -> None:
  """Warns of metrics that are in a round's result but in no file of a run."""
  if not isinstance(metrics_type, tff.StructType):
    return
  for name, metric_type in tff.structure.iter_elements(metrics_type):
    shape = getattr(metric_type, 'shape', ())
    if shape is None or len(shape) > 1:
      warnings.warn(
          f'The metric {name!r} has the shape {shape}: it is among the metrics '
          'of a round, but `metrics.csv` and TensorBoard have only scalars and '
          'vectors.'
      )


def warn_of_unread(names: tuple[str, ...]) -> None:
  """Warns of trainable weights without a gradient.

  Args:
    names: The names of the weights, at least one.
  """
  warnings.warn(_error_texts.untrained_weights(names), UserWarning)


def builds_models(fn: _Function) -> _Function:
  """Decorates a builder of processes or evaluations of models.

  The builder leaves Keras models usable, names the causes of obscure errors,
  and names its own arguments if it gets those of TFF's builders.

  Args:
    fn: The builder.

  Returns:
    The decorated builder.
  """

  @functools.wraps(fn)
  def build(*args, **kwargs):
    stock = [name for name in kwargs if name in _STOCK_ARGUMENTS]
    if stock:
      wanted = ', '.join(
          f'for `{name}`: {_STOCK_ARGUMENTS[name]}' for name in stock
      )
      raise TypeError(
          f"`{fn.__name__}` does not have all arguments of TFF's builders, use "
          f'{wanted}.'
      )
    with keras_classes.kept_usable():
      try:
        return fn(*args, **kwargs)
      except Exception as error:
        for pattern, sentence in _CAUSES:
          if found := re.search(pattern, str(error)):
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(found.expand(sentence)) from error
        raise

  return cast(_Function, build)
