# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""A server step whose direction the client rule corrects."""

import collections
from collections.abc import Mapping
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import _autograph
from tff_adaptive.aggregators import reports as reports_lib
from tff_adaptive.finalizers import measured_update
from tff_adaptive.optimizers import federated_optimizer
from tff_adaptive.optimizers import optimizer as optimizer_lib
from tff_adaptive.optimizers import vectors


class CorrectedStep(measured_update.ReportsOptimizer):
  """A server optimizer whose gradient the client rule corrects.

  Its state is that of the server optimizer and that of the correction.
  """

  def __init__(
      self,
      server_optimizer: tff.learning.optimizers.Optimizer,
      client_optimizer: federated_optimizer.FederatedOptimizer,
  ):
    """Initializes the optimizer.

    Args:
      server_optimizer: The optimizer that takes the step, with a mapping as
        state.
      client_optimizer: The rule of the clients.

    Raises:
      TypeError: If it is not an optimizer, or its state is not a mapping.
      ValueError: If it is a rule of clients.
    """
    measured_update.check_server_optimizer(server_optimizer)
    self._inner = server_optimizer
    self._client_optimizer = client_optimizer
    self.scales_client_rate = getattr(
        server_optimizer, 'scales_client_rate', False
    )
    own = reports_lib.ClientReport.NUM_CLIENTS
    self._inner_reports = tuple(getattr(server_optimizer, 'client_reports', ()))
    self.client_reports = (*self._inner_reports, own)
    state = server_optimizer.initialize(tf.TensorSpec([], tf.float32))
    if not isinstance(state, Mapping):
      raise TypeError(
          'A server optimizer whose step the client rule corrects must have a '
          f'mapping as state, found a {type(state).__name__} of '
          f'{optimizer_lib.name_of(server_optimizer)}.'
      )
    self._inner_names = frozenset(state)

  def initialize(self, specs):
    return collections.OrderedDict(
        self._inner.initialize(specs),
        **self._client_optimizer.initialize_correction(specs),
    )

  def _split(self, state: Mapping[str, Any]) -> tuple[Any, Any]:
    """Returns the state of the server optimizer and that of the correction."""
    inner: dict[str, Any] = collections.OrderedDict()
    held: dict[str, Any] = collections.OrderedDict()
    for name, part in state.items():
      (inner if name in self._inner_names else held)[name] = part
    return inner, held

  def _correct(self, held: Any, gradients: Any, reports: Any) -> Any:
    """Returns the new state of the correction and the corrected change."""
    return _autograph.call(
        self._client_optimizer.correct_change,
        held,
        tf.nest.map_structure(tf.negative, gradients),
        reports[reports_lib.ClientReport.NUM_CLIENTS.value],
    )

  def step(self, state, weights, gradients, reports):
    inner, held = self._split(state)
    held, change = self._correct(held, gradients, reports)
    gradients = tf.nest.map_structure(tf.negative, change)
    options = {'reports': reports} if self._inner_reports else {}
    inner, moved = _autograph.call(
        self._inner.next, inner, weights, gradients, **options
    )
    return collections.OrderedDict(inner, **held), moved

  def after_rejection(self, state, gradients, reports):
    # The clients keep their new duals even if the server rejects the step, so
    # the correction follows them.
    inner, held = self._split(state)
    new_held, _ = self._correct(held, gradients, reports)
    is_finite = vectors.all_finite(new_held)
    held = tf.nest.map_structure(
        lambda new, old: tf.where(is_finite, new, old), new_held, held
    )
    return collections.OrderedDict(inner, **held)

  def report(self, state):
    if isinstance(self._inner, measured_update.ReportsOptimizer):
      return _autograph.call(self._inner.report, self._split(state)[0])
    return collections.OrderedDict()

  def client_rate_scale(self, state: Any) -> tf.Tensor:
    """See `build_fedhyper_server_local`."""
    return self._inner.client_rate_scale(self._split(state)[0])

  def get_hparams(self, state):
    return self._inner.get_hparams(state)

  def set_hparams(self, state, hparams):
    return self._inner.set_hparams(state, hparams)
