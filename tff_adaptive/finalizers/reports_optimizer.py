# Copyright 2026 The tff_adaptive Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""The protocol of server optimizers that see what clients report."""

import abc
import collections
from collections.abc import Mapping, Sequence
from typing import Any, Optional, TypeVar

import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.aggregators import reports as reports_lib

State = TypeVar('State')
Weights = TypeVar('Weights')
Hparams = TypeVar('Hparams')


class ReportsOptimizer(
    tff.learning.optimizers.Optimizer[State, Weights, Hparams]
):
  """A server optimizer whose `next` also sees aggregated reports of clients.

  It is to servers what `tff_adaptive.optimizers.ExtraArgsOptimizer` is to
  clients: a keyword superset of TFF's protocol. `build_fed_opt` has the clients
  report what it names. A rule implements `step`.
  """

  @property
  @abc.abstractmethod
  def client_reports(self) -> Sequence[reports_lib.ClientReport]:
    """What it wants to know, at least one report."""

  def next(
      self,
      state: State,
      weights: Weights,
      gradients: Any,
      *,
      reports: Optional[Mapping[str, tf.Tensor]] = None,
  ) -> tuple[State, Weights]:
    """Takes one step, see `step`.

    Args:
      state: As for `step`.
      weights: As for `step`.
      gradients: As for `step`.
      reports: As for `step`; None, the default, is what the algorithms of
        `tff.learning` give, which have no reports.

    Returns:
      The new state and the new weights.

    Raises:
      ValueError: If there are no reports.
    """
    if reports is None:
      names = [report.value for report in self.client_reports]
      raise ValueError(
          f'This server rule needs what clients report ({", ".join(names)}), '
          'which was not given: use it as the server optimizer of '
          '`tff_adaptive.algorithms.build_fed_opt`. The algorithms of '
          '`tff.learning` have no such reports, and clients none of each other.'
      )
    return self.step(state, weights, gradients, reports)

  @abc.abstractmethod
  def step(
      self,
      state: State,
      weights: Weights,
      gradients: Any,
      reports: Mapping[str, tf.Tensor],
  ) -> tuple[State, Weights]:
    """Takes one step.

    Args:
      state: What `initialize` or the call of `next` before returned.
      weights: A structure of tensors, the global model.
      gradients: A structure like it, minus the mean change of the clients.
      reports: A float32 scalar for the name of each of `client_reports`, its
        mean or maximum over the healthy clients.

    Returns:
      The new state and the new weights.
    """

  def report(self, state: State) -> 'collections.OrderedDict[str, tf.Tensor]':
    """Scalars that describe the step after which `state` was returned.

    Args:
      state: A state that `next` returned.

    Returns:
      An ordered dictionary from names to scalars; they become metrics of the
      round.
    """
    del state
    return collections.OrderedDict()
