# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The protocol of server optimizers that see more than the mean update."""

import abc
import collections
from collections.abc import Mapping
from typing import Any, Optional, TypeVar

import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import _autograph
from tff_adaptive.optimizers import client_reports as client_reports_lib
from tff_adaptive.optimizers import federated_optimizer
from tff_adaptive.optimizers import optimizer as optimizer_lib

State = TypeVar('State')
Weights = TypeVar('Weights')
Hparams = TypeVar('Hparams')


class ServerOptimizer(
    tff.learning.optimizers.Optimizer[State, Weights, Hparams]
):
  """A server optimizer that says what clients report and send.

  It extends TFF's protocol by a keyword of `next`, as
  `tff_adaptive.optimizers.ExtraArgsOptimizer` does for clients, and is for
  `tff_adaptive.algorithms.build_fed_opt`.

  Attributes:
    client_reports: What each client reports besides its update, by name. The
      names are also those of `payload_aggregators`. None by default.
  """

  client_reports: Mapping[str, client_reports_lib.Report] = {}

  @abc.abstractmethod
  def next(
      self,
      state: State,
      weights: Weights,
      gradients: Any,
      *,
      reports: Optional[Mapping[str, tf.Tensor]] = None,
  ) -> tuple[State, Weights]:
    """Takes one step.

    Args:
      state: The state returned by `initialize` or by the previous `next`.
      weights: A structure of tensors, the global model.
      gradients: A structure like it, the mean of the clients' updates: of the
        received models minus the trained ones.
      reports: Maps each name of `client_reports` to what the healthy clients'
        scalars are reduced to, a float32 scalar; `None` if the caller has no
        reports.

    Returns:
      The new state and the new weights.
    """

  def check_client(self, optimizer: tff.learning.optimizers.Optimizer) -> None:
    """Raises a `ValueError` if clients must not use an optimizer.

    Args:
      optimizer: The client optimizer. By default all are allowed.
    """
    del optimizer

  def client_update(self, end: client_reports_lib.ClientRoundEnd) -> Any:
    """Returns what a client sends in place of its update.

    Args:
      end: The end of the client's round; nothing is gathered.

    Returns:
      A tuple of tensors like `end.update`, which is the default.
    """
    return end.update

  def client_rate_scale(self, state: State) -> Optional[tf.Tensor]:
    """Returns a factor of the clients' learning rate in the next round.

    Args:
      state: The state before the round.

    Returns:
      A scalar; `None`, the default, leaves the rate as it is.
    """
    del state
    return None

  def after_rejection(
      self, state: State, gradients: Any, reports: Mapping[str, tf.Tensor]
  ) -> State:
    """Returns the state after a round whose step was rejected.

    Args:
      state: The state before the step.
      gradients: As for `next`, of any values.
      reports: As for `next`.

    Returns:
      A state like `state`, which is the default.
    """
    del gradients, reports
    return state

  def report(self, state: State) -> 'collections.OrderedDict[str, tf.Tensor]':
    """Returns scalars that describe the step that ended in `state`.

    Args:
      state: A state returned by `next`.

    Returns:
      An ordered dictionary from names to scalars, which become metrics of the
      round.
    """
    del state
    return collections.OrderedDict()


class Reports(dict[str, tf.Tensor]):
  """The reports that a rule asked for."""

  def __missing__(self, name: str):
    raise ValueError(
        f'The server rule reads the report {name!r}, but its `client_reports` '
        f'name {list(self)} alone: name it there, too.'
    )


def check_reports(
    reports: Optional[Mapping[str, tf.Tensor]], rule: ServerOptimizer
) -> None:
  """Raises a `ValueError` if `next` of a rule was called without reports."""
  if reports is None and rule.client_reports:
    raise ValueError(
        f'{optimizer_lib.name_of(rule)} needs reports of clients '
        f'({", ".join(rule.client_reports)}), which were not given: use it as '
        'the server optimizer of `tff_adaptive.algorithms.build_fed_opt`. '
        'Clients and the algorithms of `tff.learning` have no such reports.'
    )


class _WithoutReports(ServerOptimizer):
  """An optimizer of another protocol as a `ServerOptimizer`."""

  def __init__(self, optimizer: tff.learning.optimizers.Optimizer):
    self._optimizer = optimizer
    self.name = optimizer_lib.name_of(optimizer)

  def initialize(self, specs):
    return self._optimizer.initialize(specs)

  def next(self, state, weights, gradients, *, reports=None):
    del reports  # Unused.
    return _autograph.call(self._optimizer.next, state, weights, gradients)

  def get_hparams(self, state):
    return self._optimizer.get_hparams(state)

  def set_hparams(self, state, hparams):
    return self._optimizer.set_hparams(state, hparams)


def to_server_optimizer(optimizer: Any) -> ServerOptimizer:
  """Returns an optimizer with the protocol of `ServerOptimizer`.

  Args:
    optimizer: Any `tff.learning.optimizers.Optimizer` that a server can use.

  Returns:
    The optimizer itself if it has the protocol, or else a wrapper with the same
    state, hyperparameters and steps.

  Raises:
    TypeError: If it is not an optimizer, or its `client_reports` are no
      reports.
    ValueError: If it is a rule of clients.
  """
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
  if not isinstance(optimizer, ServerOptimizer):
    return _WithoutReports(optimizer)
  found = optimizer.client_reports
  if not isinstance(found, Mapping) or not all(
      isinstance(report, client_reports_lib.Report) for report in found.values()
  ):
    raise TypeError(
        '`client_reports` must map names to `tff_adaptive.optimizers.Report`s, '
        f'found {found}.'
    )
  return optimizer
