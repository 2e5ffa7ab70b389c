# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The numbers of training on a task."""

from typing import Optional

import attrs

from tff_adaptive.data import batching
from tff_adaptive.data import specs


@attrs.frozen
class Protocol:
  """The numbers of a training run that belong to a task's publication.

  They are what a run uses where its flags say nothing else.

  Attributes:
    client_batch_size: Examples in a batch of local training.
    client_epochs: Passes over a client's examples in a round.
    clients_per_round: Clients in a cohort.
    total_rounds: Rounds of training.
    max_examples: How many examples of a client count, the first ones in stored
      order; None (the default) for all.

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
    """Returns how a client walks over its examples in a round."""
    return batching.BatchPlan(
        batch_size=self.client_batch_size,
        num_epochs=self.client_epochs,
        max_examples=self.max_examples,
    )
