# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The protocol of optimizers that need more than a gradient.

`tff.learning.optimizers.Optimizer.next(state, weights, gradients)` sees no loss
and cannot evaluate another point. `ExtraArgsOptimizer` adds both as
keyword-only arguments, as optax's `GradientTransformationExtraArgs` does. The
local training loop of `tff_adaptive.client_works` runs optimizers of either
protocol.
"""

import abc
import collections
from collections.abc import Callable, Collection, Iterable, Mapping
import numbers
from typing import Any, Optional, TypeVar

import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import _autograph
from tff_adaptive.optimizers import vectors

# Keys of `ExtraArgsOptimizer.report` that the training loop interprets.
STEP_SIZE_KEY = 'step_size'
GRADIENT_EVALUATIONS_KEY = 'gradient_evaluations'

State = TypeVar('State')
Weights = TypeVar('Weights')
Hparams = TypeVar('Hparams')

# Maps weights to (loss, gradients), on the batch and with the dropout mask of
# the current step.
ValueAndGradFn = Callable[[Any], tuple[tf.Tensor, Any]]


class ExtraArgsOptimizer(
    tff.learning.optimizers.Optimizer[State, Weights, Hparams]
):
  """An optimizer whose `next` may use the loss and further evaluations.

  Attributes:
    takes_extra_args: Marks the protocol. The local training loop passes `value`
      and, if `evaluates_again`, `value_and_grad_fn` to optimizers that have it.
    evaluates_again: Whether `next` calls `value_and_grad_fn`, by default False.
      Only then does the loop fix the random numbers (dropout) of a step.
    client_weighting: How `tff_adaptive.algorithms.build_fed_opt` weights
      clients with this rule unless told, by default by their examples, as TFF
      does.
  """

  takes_extra_args: bool = True
  evaluates_again: bool = False
  client_weighting: tff.learning.ClientWeighting = (
      tff.learning.ClientWeighting.NUM_EXAMPLES
  )

  @abc.abstractmethod
  def next(
      self,
      state: State,
      weights: Weights,
      gradients: Any,
      *,
      value: Optional[tf.Tensor] = None,
      value_and_grad_fn: Optional[ValueAndGradFn] = None,
  ) -> tuple[State, Weights]:
    """Takes one step.

    Args:
      state: The state returned by `initialize` or by the previous `next`.
      weights: A structure of tensors, the current point.
      gradients: The gradients at `weights`, a structure like it; a leaf may be
        `None` or `tf.IndexedSlices`.
      value: The scalar loss at `weights` on the batch of this step, loss terms
        included; `None` if the caller does not know it.
      value_and_grad_fn: Maps a structure like `weights` to the loss and the
        gradients there, on the same batch and with the same dropout mask;
        `None` if the caller cannot evaluate again.

    Returns:
      The new state and the new weights.
    """

  def report(self, state: State) -> 'collections.OrderedDict[str, tf.Tensor]':
    """Returns scalars that describe the step that ended in `state`.

    The training loop reports the mean, minimum and maximum of each over the
    steps of all healthy clients, and refuses names that it uses itself, such as
    `loss`. It sums `GRADIENT_EVALUATIONS_KEY`, which is 1 per step if missing.
    A batch for which it is 0 does not count as a step: the other scalars should
    be 0 then.

    Args:
      state: A state returned by `next`.

    Returns:
      An ordered dictionary from names to scalar tensors.
    """
    del state
    return collections.OrderedDict()

  def final_weights(self, state: State, weights: Weights) -> Weights:
    """Returns the weights with which a client ends its round.

    These differ from `weights` for a rule whose result is not its last iterate,
    such as one that averages the iterates.

    Args:
      state: The state returned by the last call of `next`.
      weights: The weights returned by the same call.

    Returns:
      A structure like `weights`; by default `weights` itself.
    """
    del state
    return weights


class HparamsInState:
  """A mixin for optimizers that hold their hyperparameters in the state.

  List it before the protocol among the bases of a class.
  """

  def __init__(self, hparams: Mapping[str, Any]):
    """Initializes the optimizer.

    Args:
      hparams: The hyperparameters by name; a state begins with them. An integer
        learning rate becomes a float.
    """
    self._hparams = collections.OrderedDict(hparams)
    rate = self._hparams.get(tff.learning.optimizers.LEARNING_RATE_KEY)
    if isinstance(rate, numbers.Integral):
      # A schedule would round its factors to integers.
      self._hparams[tff.learning.optimizers.LEARNING_RATE_KEY] = float(rate)

  def get_hparams(self, state: Any) -> 'collections.OrderedDict[str, Any]':
    return collections.OrderedDict((key, state[key]) for key in self._hparams)

  def set_hparams(
      self, state: Any, hparams: Any
  ) -> 'collections.OrderedDict[str, Any]':
    for name in hparams:
      if name not in self._hparams:
        raise ValueError(
            f'The optimizer has no hyperparameter {name!r}; it has '
            f'{list(self._hparams)}.'
        )
    return collections.OrderedDict(state, **hparams)


def takes_extra_args(optimizer: tff.learning.optimizers.Optimizer) -> bool:
  """Returns whether `optimizer` has the protocol of `ExtraArgsOptimizer`."""
  return getattr(optimizer, 'takes_extra_args', False)


def evaluates_again(optimizer: tff.learning.optimizers.Optimizer) -> bool:
  """Returns whether `next` of `optimizer` needs a `value_and_grad_fn`."""
  return takes_extra_args(optimizer) and optimizer.evaluates_again


def has_final_weights(optimizer: tff.learning.optimizers.Optimizer) -> bool:
  """Returns whether the result of `optimizer` is not its last iterate."""
  default = ExtraArgsOptimizer.final_weights
  return takes_extra_args(optimizer) and (
      type(optimizer).final_weights is not default
  )


def final_weights(
    optimizer: tff.learning.optimizers.Optimizer, state: Any, weights: Any
) -> Any:
  """Returns the weights with which a client ends its round.

  Args:
    optimizer: Any `tff.learning.optimizers.Optimizer`.
    state: The state returned by its last call of `next`.
    weights: The weights returned by the same call.

  Returns:
    The `final_weights` of an `ExtraArgsOptimizer`, else `weights`.
  """
  if takes_extra_args(optimizer):
    return _autograph.call(optimizer.final_weights, state, weights)
  return weights


def check_step(result: Any, state: Any, weights: Any, optimizer: Any) -> Any:
  """Returns the result of `next`, the new state and the new weights.

  Args:
    result: What `next` returned.
    state: The state that it got.
    weights: The weights that it got.
    optimizer: The optimizer, for the message.

  Raises:
    TypeError: If the result is no pair of structures like both.
  """
  method = f'`next` of {name_of(optimizer)} must return'
  if not isinstance(result, (tuple, list)) or len(result) != 2:
    raise TypeError(
        f'{method} a pair, the new state and the new weights, found a '
        f'{type(result).__name__}.'
    )
  for part, new, old in zip(('state', 'weights'), result, (state, weights)):
    if not _is_alike(old, new):
      raise TypeError(
          f'{method} the new state, then the new weights, each with the '
          f'structure that it got. The {part} had {_shown(old)}, found '
          f'{_shown(new)}.'
      )
  return result


def _is_alike(one: Any, other: Any) -> bool:
  """Returns whether structures are equal, up to the types of containers."""
  are_mappings = (isinstance(s, collections.abc.Mapping) for s in (one, other))
  if len(set(are_mappings)) > 1:
    return False
  try:
    tf.nest.assert_same_structure(one, other, check_types=False)
  except (TypeError, ValueError):
    return False
  return True


def _shown(structure: Any) -> str:
  """Returns a structure as text: its names, or the number of its entries."""
  if isinstance(structure, collections.abc.Mapping):
    return f'the entries {list(structure)}'
  if isinstance(structure, (tuple, list)):
    return f'{len(structure)} entries'
  return f'a {type(structure).__name__}'


# What the training loop counts itself.
_COUNTED = (
    'loss',
    'num_clients',
    'num_examples',
    'num_gradient_evaluations',
    'num_healthy',
    'num_steps',
)


def step_report(
    optimizer: tff.learning.optimizers.Optimizer, state: Any
) -> 'collections.OrderedDict[str, tf.Tensor]':
  """Returns the report of an optimizer's last step, as float32 scalars.

  Args:
    optimizer: Any `tff.learning.optimizers.Optimizer`. If it does not report,
      the learning rate in its state is the step size.
    state: A state returned by its `next`.

  Returns:
    An ordered dictionary; empty if nothing is known of the step.
  """
  if takes_extra_args(optimizer):
    report = _autograph.call(optimizer.report, state)
  else:
    report = collections.OrderedDict()
    if isinstance(state, collections.abc.Mapping):
      learning_rate = state.get(tff.learning.optimizers.LEARNING_RATE_KEY)
      if learning_rate is not None:
        report[STEP_SIZE_KEY] = learning_rate
  return reported_scalars(report, optimizer, _COUNTED)


def reported_scalars(
    report: Mapping[str, Any], optimizer: Any, taken: Collection[str] = ()
) -> 'collections.OrderedDict[str, tf.Tensor]':
  """Returns what `report` of an optimizer returned, as float32 scalars.

  Args:
    report: What it returned.
    optimizer: The optimizer, for messages.
    taken: The names that it cannot use. Empty by default.

  Raises:
    ValueError: If an entry is no scalar, or its name is taken.
  """
  for name in report:
    if name in taken:
      raise ValueError(
          f'`report` of {name_of(optimizer)} returns {name!r}, a name that the '
          'metrics of a round already have: choose another one.'
      )
  scalars = collections.OrderedDict(
      (name, tf.cast(value, tf.float32)) for name, value in report.items()
  )
  for name, value in scalars.items():
    if not value.shape.is_compatible_with([]):
      raise ValueError(
          f'`report` of {name_of(optimizer)} must return scalars, found '
          f'{name!r} of the shape {value.shape}: reduce it, such as by '
          '`tf.reduce_mean`.'
      )
  return scalars


def name_of(optimizer: Any) -> str:
  """Returns the name of an optimizer, for messages."""
  return getattr(optimizer, 'name', '') or type(optimizer).__name__.lstrip('_')


def check_optimizer(value: Any, owner: str) -> None:
  """Raises unless `value` is an optimizer.

  Args:
    value: The object to check.
    owner: The subject of the error message.

  Raises:
    TypeError: If `value` is anything else, such as a builder that has not been
      called; the message names builders that return an optimizer.
  """
  if isinstance(value, tff.learning.optimizers.Optimizer):
    return
  name = getattr(value, '__name__', '')
  if callable(value) and name.startswith('build_'):
    found, cure = f'the function {name}', f'Call it, as in `{name}(...)`.'
  else:
    found = type(value).__name__
    cure = (
        'Call a builder of `tff_adaptive.optimizers` or '
        '`tff.learning.optimizers`, such as `build_sgd(0.1)`.'
    )
    keras = (
        tf.keras.optimizers.Optimizer,
        tf.keras.optimizers.legacy.Optimizer,
    )
    if callable(value) or isinstance(value, keras):
      cure += ' Keras optimizers, and functions that return one, do not work.'
  raise TypeError(
      f'{owner} must be a `tff.learning.optimizers.Optimizer`, found {found}. '
      f'{cure}'
  )


def dense_gradients(weights: Any, gradients: Any) -> Any:
  """Returns gradients without `tf.IndexedSlices`, checked against the weights.

  Args:
    weights: A structure of tensors.
    gradients: A structure like it, of tensors, `tf.IndexedSlices` and `None`.

  Returns:
    A structure of `None` and of tensors with the static shapes of the weights.

  Raises:
    ValueError: If the structures differ.
  """
  gradients = tff.learning.optimizers.handle_indexed_slices_gradients(gradients)
  tff.learning.optimizers.check_weights_gradients_match(weights, gradients)
  return tf.nest.map_structure(_with_static_shape, weights, gradients)


def _with_static_shape(weight: Any, gradient: Any) -> Any:
  # Former slices may have no static shape.
  if gradient is None or tf.TensorShape(gradient.shape).is_fully_defined():
    return gradient
  return tf.ensure_shape(gradient, weight.shape)


def check_moments(
    weights: Any, state: Mapping[str, Any], keys: Iterable[str]
) -> None:
  """Raises unless parts of the state are moments of the weights.

  Args:
    weights: A structure of tensors.
    state: The optimizer's state.
    keys: The parts of the state made by `vectors.fill_moments`.

  Raises:
    ValueError: If structure, shapes or dtypes differ.
  """
  specs = vectors.moment_specs(weights)
  for key in keys:
    check_weights_state_match(specs, state[key], key)


def check_weights_state_match(weights: Any, state: Any, name: str) -> None:
  """Raises unless a part of the state fits the weights.

  Args:
    weights: A structure of tensors.
    state: A part of the optimizer's state, with one tensor per weight.
    name: The name of that part, for the message.

  Raises:
    ValueError: If structure, shapes or dtypes differ.
  """

  def spec(structure):
    return tf.nest.map_structure(lambda t: (t.dtype, tuple(t.shape)), structure)

  try:
    tf.nest.assert_same_structure(weights, state)
    matches = all(
        w.dtype == s.dtype and w.shape.is_compatible_with(s.shape)
        for w, s in zip(tf.nest.flatten(weights), tf.nest.flatten(state))
    )
  except (TypeError, ValueError):
    matches = False
  if not matches:
    raise ValueError(
        f'The optimizer state `{name}` must have the structure, shapes and '
        f'dtypes of the weights, found {spec(state)} for weights '
        f'{spec(weights)}. Was the state made by `initialize` for another '
        'model?'
    )
