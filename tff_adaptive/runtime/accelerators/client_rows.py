# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""One client's sequence in an XLA program: rows that a loop picks.

XLA knows the shapes of all arrays, so each size of a batch is a branch of its
own; where the batches stand, and how many there are, are numbers of the round.
"""

from collections.abc import Callable, Sequence
from typing import Any

import attrs
from jax import lax
import jax.numpy as jnp

from tff_adaptive.runtime.accelerators import control_lowerings
from tff_adaptive.runtime.accelerators import lowerings

Step = Callable[..., Sequence[Any]]


@attrs.frozen(eq=False)
class ClientRows:
  """The elements of a client's sequence.

  Attributes:
    rows: For each component of an element, the rows of all clients.
    order: The row numbers of all elements, one after the other, int32; `()` if
      elements are single rows.
    begins: The start of each element in `order`, int32.
    places: The place of each element's size in `sizes`, int32.
    start: The number of the client's first element, a scalar int32.
    count: The number of its elements, likewise.
    sizes: The sizes that elements have, known.
  """

  rows: tuple[Any, ...]
  order: Any
  begins: Any
  places: Any
  start: Any
  count: Any
  sizes: tuple[int, ...]

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
    begin = self.begins[number]

    def of_length(length):
      def run(*values):
        picks = lax.dynamic_slice(self.order, [begin], [length])
        found = [_take(rows, picks) for rows in self.rows]
        return step(*values[:size], *found, *values[size:])

      return run

    if len(self.sizes) == 1:
      return of_length(self.sizes[0])(*states, *captured)
    return control_lowerings.switch(
        self.places[number],
        list(map(of_length, self.sizes)),
        [*states, *captured],
    )


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
