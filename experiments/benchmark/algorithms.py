# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The algorithms whose rounds are measured side by side: one row an algorithm.

No TensorFlow is imported here.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs

from experiments import hparams
from experiments import registry

# What an algorithm has where neither it nor the registry says something else.
_ROWS = {
    registry.CLIENT_OPTIMIZER: 'sgd',
    registry.SERVER_OPTIMIZER: 'fedavg',
    registry.LOSS_TERM: 'none',
}
# Of what a gradient takes: a loss is the pass forward, and the pass backward
# has twice the arithmetic of it.
_COST_OF_LOSS = 1 / 3


@attrs.frozen(kw_only=True)
class Algorithm:
  """Rows of the registry that make an algorithm, with their defaults.

  Attributes:
    name: The name on the command line and in the files.
    algorithm: The row that builds the process.
    rows: The names of other rows by their kind.
    client_arguments: Arguments of the client optimizer.
    extra_gradients: Gradients a step that no metric counts, since they are of a
      term of the loss.
    extra_losses: Likewise, passes forward.
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
      model: What TFF takes as a model.
      num_clients: How many clients there are.
      build_representation_fn: Makes the representation of the model, for an
        algorithm that needs it.

    Returns:
      The process.
    """
    row = registry.ROWS[registry.ALGORITHM][self.algorithm]
    names = {
        **_ROWS,
        **{part.kind: part.name for part in row.parts},
        **self.rows,
    }
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
    """Returns what a step costs by what it evaluates; 1 is one gradient.

    Args:
      gradients_per_step: As the metrics count them.
      trials_per_step: Losses of step sizes that were tried.

    Example:

      >>> ALGORITHMS['fedavg'].explained_cost(1.0, 0.0)
      1.0
    """
    losses = trials_per_step + self.extra_losses
    return gradients_per_step + self.extra_gradients + _COST_OF_LOSS * losses


# Of the representation a step makes, and of those of the two other models.
_EXTRA: Mapping[str, Mapping[str, Any]] = {
    'moon': {'extra_gradients': 1, 'extra_losses': 2}
}


def _rules() -> Iterator[tuple[str, str]]:
  """Yields kind and name of the rules that go with any others, as they are."""
  of_algorithms = {
      (part.kind, part.name)
      for row in registry.ROWS[registry.ALGORITHM].values()
      for part in row.parts
      if part.is_fixed
  }
  for kind, usual in _ROWS.items():
    for name, row in registry.ROWS[kind].items():
      needs_values = any(argument.is_required for argument in row.arguments)
      if name != usual and (kind, name) not in of_algorithms:
        if not needs_values:
          yield kind, name


ALGORITHMS: Mapping[str, Algorithm] = {
    algorithm.name: algorithm
    for algorithm in (
        # The first is what the others are compared with.
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
