# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Ops that call functions: calls, branches and loops, in JAX.

They take the graph's functions as a mapping from names to callables, before
their inputs.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import attrs
import jax
from jax import lax
import jax.numpy as jnp

from tff_adaptive.runtime.accelerators import list_lowerings
from tff_adaptive.runtime.accelerators import lowerings
from tff_adaptive.runtime.accelerators import padding
from tff_adaptive.runtime.accelerators import variable_lowerings

Function = Callable[..., Sequence[Any]]
Functions = Mapping[str, Function]

# The lowerings here, by op.
CALLING: dict[str, Callable[..., Any]] = {}


def _calls(*ops: str) -> Callable[..., Any]:
  def register(lowering):
    CALLING.update(dict.fromkeys(ops, lowering))
    return lowering

  return register


@_calls('PartitionedCall', 'StatefulPartitionedCall')
def _call(node, functions, *inputs):
  return tuple(functions[node.function('f')](*inputs))


def as_arrays(values: Iterable[Any]) -> list[Any]:
  """Returns the leaves of values as arrays of JAX."""
  return [jax.tree.map(jnp.asarray, value) for value in values]


@_calls('If', 'StatelessIf')
def _if(node, functions, condition, *inputs):
  then, otherwise = (
      functions[node.function(f'{name}_branch')] for name in ('then', 'else')
  )
  if lowerings.is_known(condition):
    return tuple((then if condition else otherwise)(*inputs))
  return switch(jnp.logical_not(_truth(condition)), [then, otherwise], inputs)


def _truth(condition: Any) -> Any:
  return condition if condition.dtype == jnp.bool_ else condition != 0


def switch(place: Any, branches: Sequence[Function], inputs: Any) -> Any:
  """Calls one of several functions; what is known stays known in them."""
  variables = variable_lowerings.handles_in(inputs)
  variable_lowerings.check_have_values(variables)
  values = as_arrays([one.value for one in variables])

  def run(branch):
    called = variable_lowerings.with_values(branch, variables)
    return lambda: as_arrays(called(values, *inputs))

  found = lax.switch(place.astype(jnp.int32), list(map(run, branches)))
  return tuple(_assign(variables, found))


def _assign(variables: Sequence[Any], found: Sequence[Any]) -> list[Any]:
  """Assigns the values behind results; returns the results."""
  end = len(found) - len(variables)
  for one, value in zip(variables, found[end:]):
    one.value = value
  return list(found[:end])


@_calls('Case', 'StatelessCase')
def _case(node, functions, place, *inputs):
  branches = [functions[name] for name in node.functions('branches')]
  is_valid = (place >= 0) & (place < len(branches))
  module = lowerings.numpy_for(place)
  chosen = module.where(is_valid, place, len(branches) - 1)
  if lowerings.is_known(chosen):
    return tuple(branches[int(chosen)](*inputs))
  return switch(chosen, branches, inputs)


@_calls('While', 'StatelessWhile')
def _while(node, functions, *inputs):
  condition = functions[node.function('cond')]
  body = functions[node.function('body')]
  return tuple(run_loop(condition, body, inputs))


def run_loop(
    condition: Function,
    body: Function,
    inputs: Sequence[Any],
    captured: Sequence[Any] = (),
) -> list[Any]:
  """Runs a loop whose state may hold what is known, or no array at all.

  What each turn passes on unchanged is no part of the state, so that it stays
  known in the loop. The values of variables are a part of it.

  Args:
    condition: Returns whether to go on, as a list of one.
    body: Maps a state to the next one.
    inputs: The first state.
    captured: What the body reads besides. Defaults to nothing.

  Returns:
    The last state.
  """
  variables = variable_lowerings.handles_in([*inputs, *captured])
  if not variables:
    return _loop(condition, body, inputs)
  variable_lowerings.check_have_values(variables)
  size = len(variables)
  go_on, turn = (
      variable_lowerings.with_values(function, variables)
      for function in (condition, body)
  )

  def turn_with_values(*state):
    results = turn(state[:size], *state[size:])
    return [*results[len(results) - size :], *results[: len(results) - size]]

  final = _loop(
      lambda *state: go_on(state[:size], *state[size:]),
      turn_with_values,
      [*(one.value for one in variables), *inputs],
  )
  for one, value in zip(variables, final):
    one.value = value
  return final[size:]


def _loop(
    condition: Function, body: Function, inputs: Sequence[Any]
) -> list[Any]:
  """Runs a loop without variables, see `run_loop`."""
  inputs = _with_room(condition, body, inputs)
  changed, after = _find_changed(body, inputs)

  def whole(carried):
    state = list(inputs)
    for place, value in zip(changed, carried):
      state[place] = value
    return state

  def go_on(carried):
    return _truth(jnp.asarray(condition(*whole(carried))[0])).reshape([])

  def turn(carried):
    state = body(*whole(carried))
    return as_arrays([state[place] for place in changed])

  first = [_as_after(inputs[p], shape) for p, shape in zip(changed, after)]
  return whole(lax.while_loop(go_on, turn, as_arrays(first)))


def _as_after(value: Any, after: Any) -> Any:
  """Returns a value before a loop, a list with room as it has it later."""
  own = padding.bare(value)
  if not isinstance(own, list_lowerings.TensorList):
    return value
  ready = own.like(padding.bare(after))
  if isinstance(after, padding.Padded):
    return after.with_values(ready)
  return ready


def _find_changed(
    body: Function, inputs: Sequence[Any]
) -> tuple[list[int], list[Any]]:
  """Returns the places of a state that turns of a loop change.

  Returns also what is at these places after a turn, as shapes.
  """
  found: list[int] = []
  while True:
    more, after = _find_changed_by_turn(body, inputs, found)
    if more == found:
      return found, after
    # What is known at first and changes may decide what else changes.
    found = more


def _find_changed_by_turn(
    body: Function, inputs: Sequence[Any], unknown: Sequence[int]
) -> tuple[list[int], list[Any]]:
  """Returns the places that a turn changes, and those that are `unknown`."""
  found: list[int] = []

  def turn(values):
    before = list(inputs)
    for place, value in zip(unknown, values):
      before[place] = value
    after = body(*before)
    changed = {p for p, value in enumerate(after) if value is not before[p]}
    found[:] = sorted(changed.union(unknown))
    return as_arrays([after[place] for place in found])

  shapes = jax.eval_shape(turn, as_arrays([inputs[place] for place in unknown]))
  return found, shapes


# The most turns of a loop that are counted while a program is traced.
_MAX_COUNTED_TURNS = 4096


def _with_room(
    condition: Function, body: Function, inputs: Sequence[Any]
) -> list[Any]:
  """Returns the state of a loop with room in lists for what its turns add."""
  lists = {
      place
      for place, value in enumerate(inputs)
      if isinstance(padding.bare(value), list_lowerings.TensorList)
      and padding.bare(value).room is None
  }
  if not lists:
    return list(inputs)
  # Whatever their room, it does not matter for the number of turns.
  state = [
      _with_room_for(value, 1) if place in lists else value
      for place, value in enumerate(inputs)
  ]
  added: dict[int, int] = {}

  def first_turn(*state):
    after = body(*state)
    for place in lists:
      lists_then = [padding.bare(values[place]) for values in (after, state)]
      more = lists_then[0].length - lists_then[1].length
      added[place] = int(lowerings.as_known(more, 'the length of a list'))
    return after

  num_turns, turn = 0, first_turn
  while _goes_on(condition, state):
    state, turn = _abstractly(turn, state), body
    num_turns += 1
    if num_turns > _MAX_COUNTED_TURNS:
      raise lowerings.NoLoweringError('a loop has too many turns to count')
  return [
      _with_room_for(
          value, int(padding.bare(value).length) + added[place] * num_turns
      )
      if place in added
      else value
      for place, value in enumerate(inputs)
  ]


def _with_room_for(value: Any, num_items: int) -> Any:
  """Returns a list with room for a number of items."""
  ready = attrs.evolve(padding.bare(value), room=num_items)
  if isinstance(value, padding.Padded):
    return value.with_values(ready)
  return ready


def _goes_on(condition: Function, state: Sequence[Any]) -> bool:
  """Returns whether a loop goes on, of which only shapes may be known."""
  found, *_ = _abstractly(condition, state)  # Before the values of variables.
  return bool(lowerings.as_known(found, 'the number of turns of a loop'))


def _abstractly(function: Function, state: Sequence[Any]) -> list[Any]:
  """Returns results: what is known, variables, and shapes of the others."""
  shapes = [
      place
      for place, value in enumerate(state)
      if any(
          isinstance(leaf, jax.ShapeDtypeStruct)
          for leaf in jax.tree.leaves(value)
      )
  ]
  known: dict[int, Any] = {}

  def run(values):
    given = list(state)
    for place, value in zip(shapes, values):
      given[place] = value
    results = function(*given)
    known.update(
        (place, value)
        for place, value in enumerate(results)
        if lowerings.is_known(value)
        or isinstance(value, variable_lowerings.Variable)
    )
    return [
        None if place in known else jax.tree.map(jnp.asarray, value)
        for place, value in enumerate(results)
    ]

  found = jax.eval_shape(run, [state[place] for place in shapes])
  return [known.get(place, shape) for place, shape in enumerate(found)]
