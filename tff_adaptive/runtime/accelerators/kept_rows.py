# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rows whose number is known only when a round has run.

XLA has no arrays of such sizes. What clients report row by row, such as their
kept states, is therefore held with room for all rows, beside how many there
are, and cut on the way to the user. Ops may pass it on; none computes with it.
"""

from typing import Any

import attrs
import jax
import numpy as np

from tff_adaptive.runtime.accelerators import lowerings


class RowsAreUsedError(lowerings.NoLoweringError):
  """An op computes with rows whose number is not known."""


@attrs.frozen(eq=False)
class KeptRows:
  """Some of the rows of an array, the first ones.

  Attributes:
    rows: The array, [room, ...]; of several clients, [clients, room, ...].
    counts: The number of rows, a scalar; of several clients, [clients].
  """

  rows: Any
  counts: Any

  def to_numpy(self) -> np.ndarray:
    """Returns the rows of all clients, one after the other."""
    rows, counts = np.asarray(self.rows), np.asarray(self.counts)
    is_kept = np.arange(rows.shape[1]) < counts[:, np.newaxis]
    return rows[is_kept]


jax.tree_util.register_pytree_node(
    KeptRows,
    lambda kept: ((kept.rows, kept.counts), None),
    lambda _, leaves: KeptRows(*leaves),
)


def check_not_used(node: lowerings.Node, inputs: Any) -> None:
  """Raises an error if an op would compute with such rows."""
  if any(isinstance(value, KeptRows) for value in inputs):
    raise RowsAreUsedError(
        f'{node.op} computes with rows whose number is not known'
    )
