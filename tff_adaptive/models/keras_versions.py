# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""A common interface to Keras 3 and Keras 2.

Keras itself computes everything: outputs, masks, losses and metrics. The
interface has what is called differently in the two versions.
"""

import abc
import collections
from collections.abc import Callable, Iterator, Mapping, Sequence
import contextlib
import functools
import importlib
import json
from typing import Any
import zipfile

import tensorflow as tf

# From a variable to its value at the time.
ValueOf = Callable[[Any], tf.Tensor]


class Keras(abc.ABC):
  """A version of Keras.

  Attributes:
    model_class: Its `Model`.
  """

  model_class: Any

  @abc.abstractmethod
  def stateless(
      self, variables: Sequence[Any], values: Sequence[tf.Tensor]
  ) -> contextlib.AbstractContextManager[ValueOf]:
    """Returns a context in which variables have other values.

    Args:
      variables: The variables.
      values: A tensor for each. Assignments change it, not the variable.

    Returns:
      A context manager, which yields a function from a variable to its value.
    """

  @abc.abstractmethod
  def seeds(self, model: Any) -> list[Any]:
    """Returns the variables that hold the seeds of a model's layers."""

  @abc.abstractmethod
  def compute_loss(
      self,
      compiled: Any,
      y: Any,
      y_pred: Any,
      weight: Any,
      added: list[tf.Tensor],
  ) -> tf.Tensor:
    """Returns the loss of a batch, and updates the metrics of losses.

    Args:
      compiled: The result of `compile`.
      y: The labels.
      y_pred: The predictions, with their masks.
      weight: The sample weights, or `None`.
      added: The losses that the model adds.
    """

  @abc.abstractmethod
  def has_one_loss(self, compiled: Any) -> bool:
    """Returns whether `track_loss` updates all that `compute_loss` does.

    Args:
      compiled: The result of `compile`, after it has computed a loss.
    """

  def track_loss(self, compiled: Any, loss: tf.Tensor, y_pred: Any) -> None:
    """Updates the metric of the whole loss, as `fit` does."""
    compiled.metrics[0].update_state(
        loss, sample_weight=tf.shape(tf.nest.flatten(y_pred)[0])[0]
    )

  def compile(self, model: Any, **arguments: Any) -> Any:
    """Returns a compiled model without layers, with the outputs of another."""
    compiled = self.model_class()
    compiled.output_names = getattr(model, 'output_names', None)
    compiled.compile(**arguments)
    return compiled

  def call(self, model: Any, x: Any, training: bool) -> Any:
    """Calls a model as `fit` does."""
    # Keras 2 tells the layers, also if `call` of the model has no `training`.
    return model(x, training=training)


class _Keras3(Keras):
  """Keras 3, which can run without state."""

  def __init__(self):
    # Here, so that only users of Keras 3 import it.
    self._keras = importlib.import_module('keras')
    self.model_class = self._keras.Model
    backend = self._keras.backend.backend()
    if backend != 'tensorflow':
      raise ValueError(
          'A Keras 3 model needs the backend of TensorFlow, but Keras was '
          f'imported with that of {backend}: set KERAS_BACKEND=tensorflow '
          'before the import.'
      )

  @contextlib.contextmanager
  def stateless(self, variables, values):
    with self._keras.StatelessScope(
        zip(variables, values), collect_losses=True
    ) as scope:
      add_update, assigned = scope.add_update, dict[int, tf.Tensor]()

      def add_assigned(update):
        variable, value = update
        assigned[id(variable)] = value
        # A variable that is read after that has no gradient.
        add_update((variable, tf.stop_gradient(value)))

      scope.add_update = add_assigned
      yield lambda variable: assigned.get(
          id(variable), scope.get_current_value(variable)
      )

  def call(self, model, x, training):
    # It takes the values of an `OrderedDict` in their order.
    x = in_order_of(getattr(model, '_inputs_struct', None), x)
    if model._call_has_training_arg:  # pylint: disable=protected-access
      return super().call(model, x, training)
    return model(x)

  def seeds(self, model):
    weights = {id(weight) for weight in model.weights}
    return [v for v in model.variables if id(v) not in weights]

  def compute_loss(self, compiled, y, y_pred, weight, added):
    losses = added
    if compiled.loss is not None:
      loss = compiled.compute_loss(None, y, y_pred, weight)
      losses = [loss, *(tf.cast(one, loss.dtype) for one in added)]
    loss = tf.add_n(losses)
    self.track_loss(compiled, loss, y_pred)
    return loss

  def has_one_loss(self, compiled):
    compiled_loss = compiled._compile_loss  # pylint: disable=protected-access
    return compiled_loss is None or not compiled_loss.metrics


class _Keras2(Keras):
  """Keras 2, whose variables are those of TensorFlow."""

  def __init__(self):
    self.model_class = tf.keras.Model

  def stateless(self, variables, values):
    return _replaced(variables, values)

  def seeds(self, model):
    del model  # Its layers draw by ops that keep no state.
    return []

  def compute_loss(self, compiled, y, y_pred, weight, added):
    return compiled.compiled_loss(
        y, y_pred, weight, regularization_losses=added
    )

  def has_one_loss(self, compiled):
    # Without a loss of its own, Keras 2 counts batches, not examples.
    has_loss = any(tf.nest.flatten(compiled.loss))
    return has_loss and len(compiled.compiled_loss.metrics) == 1


def find(model: Any) -> Keras:
  """Returns the version of Keras of a model.

  Args:
    model: A Keras model.

  Raises:
    TypeError: If it is none.
    ValueError: If it is a Keras 3 model of another backend.
  """
  if isinstance(model, tf.keras.Model):
    return _Keras2()
  if is_keras_3(model):
    keras = _Keras3()
    if isinstance(model, keras.model_class):
      return keras
  raise TypeError(
      '`model` must be a model of Keras 3 (`keras.Model`) or Keras 2 '
      f'(`tf.keras.Model`), found {type(model).__name__}.'
  )


def load(path: Any) -> Any:
  """Returns the model of a `.keras` file, of the version that wrote it.

  Args:
    path: The file.

  Raises:
    ValueError: If the file is no intact `.keras` file.
  """
  try:
    with zipfile.ZipFile(path) as archive:
      version = json.loads(archive.read('metadata.json'))['keras_version']
    is_keras_2 = version.startswith('2.')
    keras = tf.keras if is_keras_2 else importlib.import_module('keras')
    return keras.models.load_model(path, compile=False)
  except (zipfile.BadZipFile, KeyError, TypeError, ValueError) as error:
    raise ValueError(f'{path} is not an intact Keras file ({error})') from error


def in_order_of(structure: Any, values: Any) -> Any:
  """Returns named values as a mapping like another one with these names."""
  are_mappings = all(isinstance(s, Mapping) for s in (structure, values))
  if not are_mappings or set(structure) != set(values):
    return values
  is_ordered = isinstance(structure, collections.OrderedDict)
  container = collections.OrderedDict if is_ordered else dict
  return container((name, values[name]) for name in structure)


def split_weights(model: Any) -> tuple[list[Any], list[Any]]:
  """Returns a model's trainable weights, and its others.

  Args:
    model: A Keras model. To Keras 2, the words of a lookup and the state of a
      metric of the model are weights, too, which are left out.
  """
  parts = (model.trainable_weights, model.non_trainable_weights)
  counted = {id(v) for metric in model.metrics for v in metric.variables}
  trainable, others = (
      [w for w in p if hasattr(w, 'shape') and id(w) not in counted]
      for p in parts
  )
  return trainable, others


def trained_beside(model: Any, weights: Sequence[Any]) -> list[Any]:
  """Returns the trained weights of the layers that have other weights.

  Args:
    model: A Keras model.
    weights: Weights that are not trained.
  """
  wanted = set(map(id, weights))
  found = []
  for layer in model._flatten_layers():  # pylint: disable=protected-access
    # Without those of the layers in it.
    kind = 'variables' if is_keras_3(layer) else 'weights'
    others = getattr(layer, f'_non_trainable_{kind}')
    if any(id(weight) in wanted for weight in others):
      found.extend(getattr(layer, f'_trainable_{kind}'))
  return found


def is_keras_3(value: Any) -> bool:
  """Returns whether an object is of a class of Keras 3."""
  return any(c.__module__.startswith('keras.') for c in type(value).__mro__)


class _Value:
  """The value of a variable, with a variable's methods.

  Attributes:
    now: The value that is read.
    assigned: The same, with a gradient; a variable that is read has none.
  """

  def __init__(self, value: tf.Tensor):
    self.now = self.assigned = value

  def attributes(self) -> dict[str, Any]:
    """Returns attributes of `tf.Variable` that read or change the value."""
    attributes = {
        # Embeddings are colocated with it.
        '_handle': self.now,
        'value': self._read,
        'read_value': self._read,
        'sparse_read': lambda indices, name=None: tf.gather(self.now, indices),
        'gather_nd': lambda indices, name=None: tf.gather_nd(self.now, indices),
        'assign': lambda value, *_, **__: self._assign(value),
        'assign_add': lambda delta, *_, **__: self._assign(self.now + delta),
        'assign_sub': lambda delta, *_, **__: self._assign(self.now - delta),
        '_strided_slice_assign': lambda **slices: self._assign(
            tf.raw_ops.TensorStridedSliceUpdate(input=self.now, **slices)
        ),
    }
    for change in ('add', 'max', 'min', 'sub', 'update'):
      scatter = functools.partial(
          self._scatter, getattr(tf, f'tensor_scatter_nd_{change}')
      )
      attributes[f'scatter_nd_{change}'] = scatter
      attributes[f'scatter_{change}'] = (
          lambda rows, *_, scatter=scatter, **__: scatter(
              tf.expand_dims(rows.indices, -1), rows.values
          )
      )
    return attributes

  def _scatter(self, op: Any, indices: Any, updates: Any, *_: Any) -> tf.Tensor:
    return self._assign(op(self.now, indices, updates))

  def _read(self, *_: Any, **__: Any) -> tf.Tensor:
    return self.now

  def _assign(self, value: Any) -> tf.Tensor:
    self.assigned = tf.convert_to_tensor(value, self.now.dtype)
    self.now = tf.stop_gradient(self.assigned)
    return self.now


def _plain(variable: Any) -> tf.Variable:
  """Returns a variable that Keras may have wrapped, to cast it."""
  return getattr(variable, '_variable', variable)


def _restore(variable: tf.Variable, attributes: dict[str, Any]) -> None:
  vars(variable).clear()
  vars(variable).update(attributes)


@contextlib.contextmanager
def _replaced(
    variables: Sequence[Any], values: Sequence[tf.Tensor]
) -> Iterator[ValueOf]:
  """Lets variables of TensorFlow have other values while a graph is built."""
  replaced = {
      id(_plain(v)): _Value(value) for v, value in zip(variables, values)
  }
  with contextlib.ExitStack() as stack:
    for variable in map(_plain, variables):
      stack.callback(_restore, variable, dict(vars(variable)))
      vars(variable).update(replaced[id(variable)].attributes())
    yield lambda variable: replaced[id(_plain(variable))].assigned
