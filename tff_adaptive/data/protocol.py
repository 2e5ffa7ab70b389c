# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The training protocol of a task."""

from typing import Optional

import attrs

from tff_adaptive.data import batching
from tff_adaptive.data import specs


@attrs.frozen
class Protocol:
  """The numbers of a training run in a task's publication.

  They are the defaults of the run's flags.

  Attributes:
    client_batch_size: Examples per batch in local training.
    client_epochs: Passes over a client's examples in a round.
    clients_per_round: Clients in a cohort.
    total_rounds: Rounds of training.
    max_examples: The maximum number of examples of a client, the first ones in
      stored order; None (the default) for all.

  Raises:
    TypeError: If a number is not an integer.
    ValueError: If a number is not positive.

  Example:

    >>> protocol = Protocol(64, 1, clients_per_round=10, total_rounds=500)
    >>> protocol.batch_plan().batch_size
    64
  """

  client_batch_size: int = attrs.field(validator=specs.positive_integer)
  client_epochs: int = attrs.field(validator=specs.positive_integer)
  clients_per_round: int = attrs.field(validator=specs.positive_integer)
  total_rounds: int = attrs.field(validator=specs.positive_integer)
  max_examples: Optional[int] = attrs.field(
      default=None,
      validator=attrs.validators.optional(specs.positive_integer),
  )

  def batch_plan(self) -> batching.BatchPlan:
    """Returns the rule for a client's batches in a round."""
    return batching.BatchPlan(
        batch_size=self.client_batch_size,
        num_epochs=self.client_epochs,
        max_examples=self.max_examples,
    )
