# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The protocol of client optimizers whose state crosses rounds.

An ordinary client optimizer starts every round with a new state. In the rules
of this kind, part of the state is either shared, sent by the server with the
model and returned to it, or kept by the client until it participates again.
"""

import abc
import collections
from collections.abc import Collection, Mapping
from typing import Any, Optional, TypeVar

import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import _autograph
from tff_adaptive.optimizers import optimizer as optimizer_lib

State = TypeVar('State')
Weights = TypeVar('Weights')
Hparams = TypeVar('Hparams')

# Maps names to structures of tensors.
Parts = collections.OrderedDict[str, Any]


def check_caller(value: Optional[tf.Tensor], owner: str) -> None:
  """Raises if the caller of `next` does not start and finish rounds.

  Stock TFF's loops silently make a new state for every client in every round;
  SCAFFOLD would be SGD there. They never pass a loss, which gives them away.

  Args:
    value: The argument `value` of `next`.
    owner: The rule's name, for the message.

  Raises:
    ValueError: If `value` is `None`.
  """
  if value is None:
    raise ValueError(
        f'{owner} keeps state between rounds and needs a loop that restores '
        'it, but the caller of `next` passed no `value`, so it does not: train '
        'with `tff_adaptive.algorithms`.'
    )


class Survey(abc.ABC):
  """A look at a client's data before the first step of a round."""

  @abc.abstractmethod
  def num_examples(self) -> tf.Tensor:
    """Returns the number of examples, over all epochs; a float32 scalar."""

  @abc.abstractmethod
  def mean_gradient(self) -> tuple[tf.Tensor, ...]:
    """Returns the mean gradient of all examples at the received weights.

    It costs one more pass over the data, and is in float32 or float64. Of a
    loss that is a sum over a batch, it is the mean over the batches, so that it
    has the size of a batch's gradient.
    """


class FederatedOptimizer(
    optimizer_lib.ExtraArgsOptimizer[State, Weights, Hparams]
):
  """A client optimizer with state that crosses rounds.

  In a round the client work calls, on every client,

  ```
  found = survey(data)
  state = initialize(specs)
  state = start_round(state, {**shared, **found}, kept, round_num)
  state, weights = next(state, weights, gradients, ...)      # every local step
  update = sent_update(state, update)
  sent, kept = finish_round(state)
  ```

  and then, on the server, `shared = update_shared(shared, mean of sent, ...)`.
  An unhealthy client sends nothing and keeps its old parts. If no client is
  healthy, or the result is not finite, neither `shared` nor the round number
  changes. A rule that would be another one without these calls
  calls `check_caller` in `next`, which raises if the loop does not make them.

  Attributes:
    averages_uniformly: Whether all healthy clients have equal weight in the
      mean of `sent`, whatever their weights in the mean of the model updates.
    averages_surveys: Whether `start_round` gets the mean of `survey` over all
      clients of the round in place of the client's own. This needs an exchange
      before training.
  """

  averages_uniformly: bool = False
  averages_surveys: bool = False

  def initialize_shared(self, specs: Any) -> Parts:
    """Returns the shared parts that the server holds before the first round.

    Args:
      specs: A structure of `tf.TensorSpec`s, the trainable weights.

    Returns:
      An ordered dictionary of names to structures of tensors; empty, the
      default, for a rule that shares nothing.
    """
    del specs
    return collections.OrderedDict()

  def initialize_kept(self, specs: Any) -> Parts:
    """Returns the parts that a client holds before its first participation.

    Args:
      specs: A structure of `tf.TensorSpec`s, the trainable weights.

    Returns:
      An ordered dictionary of names to structures of tensors; empty, the
      default, for a rule that keeps nothing.
    """
    del specs
    return collections.OrderedDict()

  def survey(self, data: Survey) -> Parts:
    """Returns what the rule needs to know of a client's data.

    Args:
      data: The data of the round.

    Returns:
      An ordered dictionary of names to structures of tensors in floating point,
      which `start_round` finds in `shared`; empty, the default, for a rule that
      looks at nothing.
    """
    del data
    return collections.OrderedDict()

  def start_round(
      self, state: Any, shared: Parts, kept: Parts, round_num: tf.Tensor
  ) -> Any:
    """Returns the state for the first local step of a round.

    Args:
      state: The state of `initialize`, with this round's hyperparameters.
      shared: The parts sent by the server, like `initialize_shared`, and those
        of `survey`.
      kept: The parts held by the client, like `initialize_kept`.
      round_num: The number of finished rounds that updated `shared`, an int32
        scalar; without shared parts, of those with a healthy client.

    Returns:
      A state like `state`; by default `state` with the parts, by their names.
    """
    del round_num
    return collections.OrderedDict(state, **shared, **kept)

  @abc.abstractmethod
  def finish_round(self, state: State) -> tuple[Parts, Parts]:
    """Returns the parts that the client sends and those that it keeps.

    Args:
      state: The state after the last local step.

    Returns:
      The pair (sent, kept): ordered dictionaries like `initialize_shared` and
      `initialize_kept`.
    """

  def sent_update(self, state: State, update: Any) -> Any:
    """Returns what the client sends in place of its model update.

    Args:
      state: The state after the last local step.
      update: The received model minus the trained one.

    Returns:
      A structure like `update`, which is the default.
    """
    del state
    return update

  def update_shared(
      self, shared: Parts, mean_sent: Parts, num_clients: tf.Tensor
  ) -> Parts:
    """Returns the parts that the server sends in the next round.

    Args:
      shared: The parts sent in this round.
      mean_sent: The mean of the parts that healthy clients sent.
      num_clients: The number of healthy clients, an int64 scalar above zero.

    Returns:
      An ordered dictionary like `shared`; by default `mean_sent`.
    """
    del shared, num_clients
    return mean_sent

  def at_server(
      self,
      optimizer: tff.learning.optimizers.Optimizer,
      client_weighting: tff.learning.ClientWeighting,
  ) -> tff.learning.optimizers.Optimizer:
    """Returns the server optimizer, with what this rule does at the server.

    Args:
      optimizer: The server optimizer.
      client_weighting: How clients are weighted.

    Returns:
      The optimizer that takes the server's steps; by default `optimizer`.

    Raises:
      ValueError: If the rule does not allow one of both.
    """
    del client_weighting
    return optimizer


def _to_shared(value: Any) -> tf.Tensor:
  """Returns a tensor of the state in floating point, as aggregators require."""
  tensor = tf.convert_to_tensor(value)
  # Aggregators average floating point only; float64 is exact for step counts.
  return tensor if tensor.dtype.is_floating else tf.cast(tensor, tf.float64)


def _from_shared(shared: Any, like: Any) -> Any:
  """Returns a shared part of the state, cast to the dtypes of `like`."""
  return tf.nest.map_structure(
      lambda value, old: tf.cast(value, tf.convert_to_tensor(old).dtype),
      shared,
      like,
  )


class _WrappingOptimizer(FederatedOptimizer):
  """Takes the steps of another optimizer, whose state outlives the round.

  Hyperparameters do not: the client work holds them.
  """

  def __init__(self, optimizer: tff.learning.optimizers.Optimizer):
    """Initializes the optimizer.

    Args:
      optimizer: The `tff.learning.optimizers.Optimizer` or `ExtraArgsOptimizer`
        that takes the steps. Its state must be a mapping.

    Raises:
      TypeError: If its state is not a mapping.
    """
    self._optimizer = optimizer
    self._takes_extra_args = optimizer_lib.takes_extra_args(optimizer)
    self.evaluates_again = optimizer_lib.evaluates_again(optimizer)
    state = optimizer.initialize(tf.TensorSpec([], tf.float32))
    if not isinstance(state, Mapping):
      raise TypeError(
          'An optimizer whose state is carried from round to round must have a '
          f'mapping as state, found a {type(state).__name__} of '
          f'{optimizer_lib.name_of(optimizer)}.'
      )
    self._hparam_names = frozenset(optimizer.get_hparams(state))

  def initialize(self, specs):
    return _autograph.call(self._optimizer.initialize, specs)

  def get_hparams(self, state):
    return self._optimizer.get_hparams(state)

  def set_hparams(self, state, hparams):
    return self._optimizer.set_hparams(state, hparams)

  def next(
      self, state, weights, gradients, *, value=None, value_and_grad_fn=None
  ):
    extra_args = {}
    if self._takes_extra_args:
      extra_args = {'value': value, 'value_and_grad_fn': value_and_grad_fn}
    return _autograph.call(
        self._optimizer.next, state, weights, gradients, **extra_args
    )

  def report(self, state):
    return optimizer_lib.step_report(self._optimizer, state)

  def _restore(
      self, state: Mapping[str, Any], parts: Mapping[str, Any]
  ) -> Mapping[str, Any]:
    """Returns the state with other parts and its own hyperparameters."""
    restored = {
        name: _from_shared(part, state[name]) for name, part in parts.items()
    }
    # Hyperparameters that are nested in the state have been restored, too.
    return self._optimizer.set_hparams(
        collections.OrderedDict(state, **restored), self.get_hparams(state)
    )


class CarriedOptimizer(_WrappingOptimizer):
  """An optimizer whose state the server averages and sends in the next round.

  It wraps another optimizer, whose state it shares under the same names,
  without the hyperparameters. Integers and booleans are shared as float64.
  """

  averages_uniformly = True

  def initialize_shared(self, specs):
    return self._share(self.initialize(specs))

  def start_round(self, state, shared, kept, round_num):
    del kept, round_num  # Unused.
    return self._restore(state, shared)

  def finish_round(self, state):
    return self._share(state), collections.OrderedDict()

  def _share(self, state: Mapping[str, Any]) -> Parts:
    return collections.OrderedDict(
        (name, tf.nest.map_structure(_to_shared, part))
        for name, part in state.items()
        if name not in self._hparam_names
    )


class KeptOptimizer(_WrappingOptimizer):
  """An optimizer whose state the client keeps until it participates again.

  It wraps another optimizer, whose state it keeps without the hyperparameters.
  A client that participates for the first time starts with a new state. Clients
  send nothing but the model update.

  The optimizer must step from the weights that it gets. One that steps from a
  point in its state, as Schedule-Free does, undoes what other clients have done
  since.

  Attributes:
    name: The name for messages.
  """

  def __init__(
      self,
      optimizer: tff.learning.optimizers.Optimizer,
      *,
      starts_anew: Collection[str] = (),
  ):
    """Initializes the optimizer.

    Args:
      optimizer: The `tff.learning.optimizers.Optimizer` or `ExtraArgsOptimizer`
        that takes the steps. Its state must be a mapping.
      starts_anew: The parts of its state that are reset in every round. Empty
        by default.

    Raises:
      TypeError: If its state is not a mapping.
    """
    super().__init__(optimizer)
    self._not_kept = self._hparam_names | frozenset(starts_anew)
    self.name = f'{optimizer_lib.name_of(optimizer)} with `carry_state=True`'

  def next(
      self, state, weights, gradients, *, value=None, value_and_grad_fn=None
  ):
    check_caller(value, optimizer_lib.name_of(self._optimizer))
    return super().next(
        state,
        weights,
        gradients,
        value=value,
        value_and_grad_fn=value_and_grad_fn,
    )

  def final_weights(self, state, weights):
    return optimizer_lib.final_weights(self._optimizer, state, weights)

  def initialize_kept(self, specs):
    return self._keep(self.initialize(specs))

  def start_round(self, state, shared, kept, round_num):
    del shared, round_num  # Unused.
    return self._restore(state, kept)

  def finish_round(self, state):
    return collections.OrderedDict(), self._keep(state)

  def _keep(self, state: Mapping[str, Any]) -> Parts:
    return collections.OrderedDict(
        (name, part)
        for name, part in state.items()
        if name not in self._not_kept
    )
