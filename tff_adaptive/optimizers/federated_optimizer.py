# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The protocol of client optimizers whose state crosses rounds.

The state of a client optimizer is new in every round. The rules of this kind
are the exception: a part of it starts from what the server sends beside the
model and goes back to the server, or stays with the client until its next
participation.
"""

import abc
import collections
from collections.abc import Collection, Mapping, Sequence
import enum
from typing import Any, Optional, TypeVar

import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.optimizers import optimizer as optimizer_lib

State = TypeVar('State')
Weights = TypeVar('Weights')
Hparams = TypeVar('Hparams')

# Names to structures of tensors.
Parts = collections.OrderedDict[str, Any]


def check_caller(name: str, value: Optional[tf.Tensor]):
  """Raises where `next` is called by a loop that starts and finishes no rounds.

  Stock TFF's loops make the state anew on every client in every round, without
  a word: SCAFFOLD would be SGD there. They never give a loss.

  Args:
    name: What the rule is called, for the error.
    value: What `next` was given.

  Raises:
    ValueError: If there is no value.
  """
  if value is None:
    raise ValueError(
        f'{name} begins each round from what the server or the client kept of '
        'the one before, which only the client work of this library brings; '
        'the caller of `next` gave no `value`, so it is another one: train '
        'with `tff_adaptive.algorithms`.'
    )


class Survey(enum.Enum):
  """What a rule may want to know of a client's data before the first step.

  The values are the names under which `start_round` finds it.

  Attributes:
    NUM_EXAMPLES: How many examples it has in the round, every epoch counted; a
      float32 scalar.
    GRADIENT: The mean gradient of all examples at the received weights; a pass
      over the data more.
  """

  NUM_EXAMPLES = 'survey_num_examples'
  GRADIENT = 'survey_gradient'


class FederatedOptimizer(
    optimizer_lib.ExtraArgsOptimizer[State, Weights, Hparams]
):
  """A client optimizer of whose state a part crosses rounds.

  In a round the client work calls, on every client,

  ```
  state = initialize(specs)
  state = start_round(state, shared, kept, round_num)
  state, weights = next(state, weights, gradients, ...)      # every local step
  sent, kept = finish_round(state)
  ```

  and then, on the server, `shared = update_shared(shared, mean of sent, ...)`.
  A client that is not healthy sends nothing and keeps what it had. In a round
  without a healthy client, or with a result that is not finite, `shared` stays;
  only the round number moves on. A rule calls `check_caller` in `next`, so that
  a loop that leaves out the other calls is not taken for a training.

  Attributes:
    averages_uniformly: Whether every healthy client counts the same in the mean
      of what is sent, however the model's change is weighted.
    surveys: What is found out of the data before the first step, and handed to
      `start_round` with what is shared.
    averages_surveys: Whether `start_round` gets the mean of the gradients of
      all clients of the round in place of the client's own: an exchange before
      the training. The compiled runtime does not take such rounds.
    corrects_server: Whether the server's step is along another direction than
      the mean change, see `correct_change`. Clients must count the same then.
  """

  averages_uniformly: bool = False
  surveys: Sequence[Survey] = ()
  averages_surveys: bool = False
  corrects_server: bool = False

  def initialize_shared(self, specs: Any) -> Parts:
    """What the server holds before the first round.

    Args:
      specs: A structure of `tf.TensorSpec`s, the trainable weights.

    Returns:
      An ordered dictionary of names to structures of tensors; empty, the
      default, for a rule that shares nothing.
    """
    del specs
    return collections.OrderedDict()

  def initialize_kept(self, specs: Any) -> Parts:
    """What a client holds before it takes part for the first time.

    Args:
      specs: A structure of `tf.TensorSpec`s, the trainable weights.

    Returns:
      An ordered dictionary of names to structures of tensors; empty, the
      default, for a rule that keeps nothing.
    """
    del specs
    return collections.OrderedDict()

  @abc.abstractmethod
  def start_round(
      self, state: State, shared: Parts, kept: Parts, round_num: tf.Tensor
  ) -> State:
    """The state that the first local step of a round sees.

    Args:
      state: What `initialize` returned, with the hyperparameters in force.
      shared: What the server sent, like `initialize_shared`.
      kept: What the client holds, like `initialize_kept`.
      round_num: The number of finished rounds, an int32 scalar.

    Returns:
      The state.
    """

  @abc.abstractmethod
  def finish_round(self, state: State) -> tuple[Parts, Parts]:
    """What the client sends and keeps.

    Args:
      state: The state after the last local step.

    Returns:
      The pair (sent, kept): ordered dictionaries like `initialize_shared` and
      `initialize_kept`.
    """

  def update_shared(
      self, shared: Parts, mean_sent: Parts, num_clients: tf.Tensor
  ) -> Parts:
    """What the server sends in the next round.

    Args:
      shared: What it has sent in this round.
      mean_sent: The mean of what healthy clients sent.
      num_clients: How many healthy clients there were, an int64 scalar above
        zero.

    Returns:
      An ordered dictionary like `shared`; by default `mean_sent`.
    """
    del shared, num_clients
    return mean_sent

  def initialize_correction(self, specs: Any) -> Parts:
    """Returns what the server's step is corrected by before the first round.

    Args:
      specs: A structure of `tf.TensorSpec`s, the trainable weights.

    Returns:
      An ordered dictionary of names to structures of tensors; empty, the
      default, unless `corrects_server`.
    """
    del specs
    return collections.OrderedDict()

  def correct_change(
      self, held: Parts, change: Any, num_clients: tf.Tensor
  ) -> tuple[Parts, Any]:
    """Returns the direction of the server's step.

    Args:
      held: What the server holds, like `initialize_correction`.
      change: The mean change of the clients' models.
      num_clients: How many healthy clients there were, a float32 scalar.

    Returns:
      What the server holds from now on, and what takes the place of the change;
      by default both are as they were.
    """
    del num_clients
    return held, change


def _to_shared(value: Any) -> tf.Tensor:
  """A tensor of the state as aggregators take it: in floating point."""
  tensor = tf.convert_to_tensor(value)
  # Of the dtypes that aggregators average, the one that holds every step count.
  return tensor if tensor.dtype.is_floating else tf.cast(tensor, tf.float64)


def _from_shared(shared: Any, like: Any) -> Any:
  """A part of the state from what was shared, with the dtypes of another."""
  return tf.nest.map_structure(
      lambda value, old: tf.cast(value, tf.convert_to_tensor(old).dtype),
      shared,
      like,
  )


class CarriedOptimizer(FederatedOptimizer):
  """An optimizer that goes on in a round where the last one ended.

  Its steps are those of another optimizer. What it shares is the state of that
  one, under its own names, without the hyperparameters, which the client work
  has. Counts and switches are shared as float64.
  """

  averages_uniformly = True

  def __init__(self, optimizer: tff.learning.optimizers.Optimizer):
    """Initializes the optimizer.

    Args:
      optimizer: What takes the steps, a `tff.learning.optimizers.Optimizer` or
        an `ExtraArgsOptimizer` whose state is a mapping.

    Raises:
      TypeError: If its state is no mapping.
    """
    self._optimizer = optimizer
    self._takes_extra_args = optimizer_lib.takes_extra_args(optimizer)
    self.evaluates_again = optimizer_lib.evaluates_again(optimizer)
    state = optimizer.initialize(tf.TensorSpec([], tf.float32))
    if not isinstance(state, Mapping):
      raise TypeError(
          'The state of an optimizer must map names to its parts to be carried '
          f'from round to round, found a {type(state).__name__} of '
          f'{type(optimizer).__name__}.'
      )
    self._hparam_names = frozenset(optimizer.get_hparams(state))

  def initialize(self, specs):
    return self._optimizer.initialize(specs)

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
    return self._optimizer.next(state, weights, gradients, **extra_args)

  def report(self, state):
    return optimizer_lib.step_report(self._optimizer, state)

  def initialize_shared(self, specs):
    return self._share(self._optimizer.initialize(specs))

  def start_round(self, state, shared, kept, round_num):
    del kept, round_num  # Unused.
    carried = {
        name: _from_shared(part, state[name]) for name, part in shared.items()
    }
    # Where hyperparameters are not on top of the state, they were carried, too.
    return self._optimizer.set_hparams(
        collections.OrderedDict(state, **carried), self.get_hparams(state)
    )

  def finish_round(self, state):
    return self._share(state), collections.OrderedDict()

  def _share(self, state: Mapping[str, Any]) -> Parts:
    return collections.OrderedDict(
        (name, tf.nest.map_structure(_to_shared, part))
        for name, part in state.items()
        if name not in self._hparam_names
    )


class KeptOptimizer(CarriedOptimizer):
  """An optimizer whose state stays with the client until it takes part again.

  Its steps are those of another optimizer, whose state, without the
  hyperparameters, is kept as it is. A client that takes part for the first time
  begins with a new state. Nothing but the model's change is sent.
  """

  averages_uniformly = False

  def __init__(
      self,
      optimizer: tff.learning.optimizers.Optimizer,
      *,
      starts_anew: Collection[str] = (),
  ):
    """Initializes the optimizer.

    Args:
      optimizer: What takes the steps, see `CarriedOptimizer`.
      starts_anew: The parts of its state that are new in every round. Default
        empty: all but the hyperparameters is kept.

    Raises:
      TypeError: If its state is no mapping.
    """
    super().__init__(optimizer)
    self._not_kept = self._hparam_names | frozenset(starts_anew)
    class_name = type(optimizer).__name__.lstrip('_')
    self._name = getattr(optimizer, 'name', class_name)

  def next(
      self, state, weights, gradients, *, value=None, value_and_grad_fn=None
  ):
    check_caller(self._name, value)
    return super().next(
        state,
        weights,
        gradients,
        value=value,
        value_and_grad_fn=value_and_grad_fn,
    )

  def final_weights(self, state, weights):
    return optimizer_lib.final_weights(self._optimizer, state, weights)

  def initialize_shared(self, specs):
    return collections.OrderedDict()

  def initialize_kept(self, specs):
    return self._keep(self._optimizer.initialize(specs))

  def start_round(self, state, shared, kept, round_num):
    return super().start_round(state, kept, shared, round_num)

  def finish_round(self, state):
    return collections.OrderedDict(), self._keep(state)

  def _keep(self, state: Mapping[str, Any]) -> Parts:
    return collections.OrderedDict(
        (name, part)
        for name, part in state.items()
        if name not in self._not_kept
    )
