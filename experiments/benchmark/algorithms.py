# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The algorithms to compare, one row each; imports no TensorFlow."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs

from experiments import hparams
from experiments import registry

# The rows that an algorithm uses by default.
_ROWS = {
    registry.CLIENT_OPTIMIZER: 'sgd',
    registry.SERVER_OPTIMIZER: 'fedavg',
    registry.LOSS_TERM: 'none',
}
# In units of a gradient: a loss is a forward pass, and the backward pass has
# twice its arithmetic.
_COST_OF_LOSS = 1 / 3


@attrs.frozen(kw_only=True)
class Algorithm:
  """An algorithm made of rows of the registry with their defaults.

  Attributes:
    name: The name on the command line and in the files.
    algorithm: The row that builds the process.
    rows: The names of other rows by kind.
    client_arguments: Arguments of the client optimizer.
    extra_gradients: Gradients per step that no metric counts, since they belong
      to a term of the loss.
    extra_losses: Forward passes per step that no metric counts, since they
      belong to a term of the loss or to a report.
  """

  name: str
  algorithm: str = 'fed_opt'
  rows: Mapping[str, str] = attrs.field(factory=dict)
  client_arguments: Mapping[str, Any] = attrs.field(factory=dict)
  extra_gradients: int = 0
  extra_losses: int = 0

  def build(
      self,
      model: Any,
      num_clients: int,
      build_representation_fn: Callable[[], Any],
  ) -> Any:
    """Builds the learning process.

    Args:
      model: The model, in any form that TFF accepts.
      num_clients: The number of clients.
      build_representation_fn: Builds the representation of the model, called
        only for algorithms that need it.

    Returns:
      The process.
    """
    row = registry.ROWS[registry.ALGORITHM][self.algorithm]
    names = {**_ROWS, **row.part_names, **self.rows}
    parts = {
        kind: hparams.Choice(registry.ROWS[kind][name], {})
        for kind, name in names.items()
    }
    client_optimizer = parts[registry.CLIENT_OPTIMIZER].with_values(
        **self.client_arguments
    )
    term = parts[registry.LOSS_TERM]
    needed = {}
    if 'representation_fn' in term.row.supplied:
      needed['representation_fn'] = build_representation_fn()
    return hparams.Choice(row, {}).build(
        model=model,
        client_optimizer=client_optimizer.build(num_clients=num_clients),
        server_optimizer=parts[registry.SERVER_OPTIMIZER].build(),
        loss_term=term.build(**needed),
    )

  def explained_cost(
      self, gradients_per_step: float, trials_per_step: float
  ) -> float:
    """Returns the cost of a step's evaluations, in units of a gradient.

    Args:
      gradients_per_step: The gradients counted by the metrics.
      trials_per_step: The losses evaluated at trial step sizes.

    Example:

      >>> ALGORITHMS['fedavg'].explained_cost(1.0, 0.0)
      1.0
    """
    losses = trials_per_step + self.extra_losses
    return gradients_per_step + self.extra_gradients + _COST_OF_LOSS * losses


_EXTRA: Mapping[str, Mapping[str, Any]] = {
    # The representation of a step, and those of the two other models.
    'moon': {'extra_gradients': 1, 'extra_losses': 2},
    # The loss of every batch at the final model.
    'fedexprox_stops': {'extra_losses': 1},
}
# Two exchanges a round, which the compiled runtime leaves to TFF's.
_NOT_COMPILED = frozenset({'mime'})


def _rules() -> Iterator[tuple[str, str]]:
  """Yields kind and name of the rules that combine with any others."""
  for kind, usual in _ROWS.items():
    for name, row in registry.ROWS[kind].items():
      needs_values = any(argument.is_required for argument in row.arguments)
      if name != usual and name not in registry.FIXED | _NOT_COMPILED:
        if not needs_values:
          yield kind, name


ALGORITHMS: Mapping[str, Algorithm] = {
    algorithm.name: algorithm
    for algorithm in (
        # The first is the baseline of the comparison.
        Algorithm(name='fedavg'),
        *(
            Algorithm(name=name, rows={kind: name}, **_EXTRA.get(name, {}))
            for kind, name in _rules()
        ),
        Algorithm(
            name='delta_sgd_reuse',
            rows={registry.CLIENT_OPTIMIZER: 'delta_sgd'},
            client_arguments={'previous_gradient': 'reuse'},
        ),
        *(
            Algorithm(name=name, algorithm=name)
            for name, row in registry.ROWS[registry.ALGORITHM].items()
            if row.parts
        ),
    )
}
