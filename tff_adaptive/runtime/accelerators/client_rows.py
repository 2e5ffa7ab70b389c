# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""One client's sequence in an XLA program: rows that a loop picks.

XLA knows the shapes of all arrays. Where the batches stand, how many there are,
and how many rows they have, are numbers of the round.
"""

from collections.abc import Callable, Sequence
from typing import Any

import attrs
from jax import lax
import jax.numpy as jnp
import numpy as np

from tff_adaptive.runtime.accelerators import control_lowerings
from tff_adaptive.runtime.accelerators import lowerings
from tff_adaptive.runtime.accelerators import padding

Step = Callable[..., Sequence[Any]]


@attrs.frozen(eq=False)
class ClientRows:
  """The elements of a client's sequence.

  Attributes:
    rows: For each component of an element, the rows of all clients.
    order: The row numbers of all elements, one after the other, int32; `()` if
      elements are single rows.
    begins: The start of each element in `order`, int32.
    lengths: The number of rows of each element, int32.
    start: The number of the client's first element, a scalar int32.
    count: The number of its elements, likewise.
    sizes: The sizes for which there are branches, known, in ascending order.
    is_padded: Whether there is room in a branch for fewer rows than its size.
  """

  rows: tuple[Any, ...]
  order: Any
  begins: Any
  lengths: Any
  start: Any
  count: Any
  sizes: tuple[int, ...]
  is_padded: bool

  def reduce(
      self, step: Step, initial: Sequence[Any], captured: Sequence[Any]
  ) -> list[Any]:
    """Returns the states after a step for each element.

    Args:
      step: Maps states, the components of an element and what is captured to
        states.
      initial: The states before the first element.
      captured: What each step takes besides.
    """

    def go_on(turn, *_):
      return [turn < self.count]

    def body(turn, *states):
      return [turn + 1, *self._visit(self.start + turn, step, states, captured)]

    first = jnp.zeros([], jnp.int32)
    final = control_lowerings.run_loop(go_on, body, [first, *initial], captured)
    return final[1:]

  def _visit(
      self,
      number: Any,
      step: Step,
      states: Sequence[Any],
      captured: Sequence[Any],
  ) -> Sequence[Any]:
    """Applies a step to an element."""
    size = len(states)
    if isinstance(self.order, tuple):
      return step(*states, *(rows[number] for rows in self.rows), *captured)

    def of_size(length):
      def run(*values):
        found = self._batch(number, length)
        after = step(*values[:size], *found, *values[size:])
        padding.check_has_none(after, 'what a step returns')
        return after

      return run

    branches = list(map(of_size, self.sizes))
    if len(branches) == 1:
      return branches[0](*states, *captured)
    place = jnp.searchsorted(np.asarray(self.sizes), self.lengths[number])
    return control_lowerings.switch(place, branches, [*states, *captured])

  def _batch(self, number: Any, size: int) -> list[Any]:
    """Returns the components of a batch of at most `size` rows."""
    begin = self.begins[number]
    if not self.is_padded:
      picks = lax.dynamic_slice(self.order, [begin], [size])
      return [_take(rows, picks) for rows in self.rows]
    batch = padding.Batch(size, self.lengths[number])
    # The room holds the last row again, which is in the bounds of everything.
    last = jnp.maximum(batch.count - 1, 0)
    picks = self.order[begin + jnp.minimum(np.arange(size), last)]
    return [padding.rows(_take(rows, picks), batch) for rows in self.rows]


def _take(rows: Any, picks: Any) -> Any:
  return jnp.take(rows, picks, 0, mode='clip')


def _reduce(node, functions, sequence, *inputs):
  """Lowers the reduction of a sequence."""
  if not isinstance(sequence, ClientRows):
    raise lowerings.NoLoweringError('a sequence is made of another one')
  num_states = node.num_dtypes('Tstate')
  states, captured = inputs[:num_states], inputs[num_states:]
  function = functions[node.function('f')]
  return tuple(sequence.reduce(function, states, captured))


control_lowerings.CALLING['ReduceDataset'] = _reduce
