# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rounds as programs that JAX loads without TensorFlow."""

from collections.abc import Sequence
import io
from typing import Any

import attrs
import jax
from jax import export as jax_export
from jax import lax
import numpy as np

from tff_adaptive.runtime import round_keys
from tff_adaptive.runtime import values
from tff_adaptive.runtime.accelerators import cohort_arrays
from tff_adaptive.runtime.accelerators import kept_rows
from tff_adaptive.runtime.accelerators import xla_rounds

_PLATFORMS = ('cpu', 'cuda', 'tpu')
_SEEDS = ('server', 'clients')
# The kinds of inputs, see `_Inputs`.
_CARRIED = 'carried'
_SHARED = 'shared'
_OF_ROUND = 'of_round'

# The values at the clients, and the key of random numbers.
_Round = tuple[Sequence[Any], round_keys.RoundKey]


@attrs.frozen
class _Inputs:
  """The inputs of a program of rounds, in its order.

  Attributes:
    structure: The structure of a round's arguments.
    paths: The place of each input in it.
    arrays: The inputs.
    kinds: Of each input, whether it is carried from round to round, shared by
      all rounds, or has an entry for each.
  """

  structure: Any
  paths: Sequence[Any]
  arrays: Sequence[np.ndarray]
  kinds: Sequence[str]

  def of_kind(self, kind: str, flat: Sequence[Any]) -> list[Any]:
    """Returns the values of a kind among those of all inputs."""
    return [value for value, one in zip(flat, self.kinds) if one == kind]

  def pack(self, carried: Any, shared: Any, of_round: Any) -> Any:
    """Returns the arguments of a round."""
    given = {_CARRIED: carried, _SHARED: shared, _OF_ROUND: of_round}
    iterators = {kind: iter(flat) for kind, flat in given.items()}
    flat = [next(iterators[kind]) for kind in self.kinds]
    return jax.tree.unflatten(self.structure, flat)


def _collect(
    program: xla_rounds.XlaRound, state: Any, rounds: Sequence[_Round]
) -> tuple[cohort_arrays.Layout, _Inputs]:
  """Returns the layout of all rounds, and their inputs."""
  for _ in range(2):  # Twice, so that all rounds know all sizes of batches.
    found = [program.arguments(state, *one) for one in rounds]
  layout = max((one for one, _ in found), key=lambda one: one.num_clients)
  paths, structure = jax.tree_util.tree_flatten_with_path(found[0][1])
  kinds, arrays = [], []
  for (path, first), *others in zip(
      paths, *(jax.tree.leaves(arguments) for _, arguments in found[1:])
  ):
    if path[0].idx == 0:
      kind = _CARRIED
    elif all(other is first for other in others):
      kind = _SHARED
    else:
      kind = _OF_ROUND
      first = _stack([first, *others])
    kinds.append(kind)
    arrays.append(np.asarray(first))
  return layout, _Inputs(structure, [path for path, _ in paths], arrays, kinds)


def _stack(values: Sequence[Any]) -> np.ndarray:
  """Stacks arrays, which are padded along their first axis if need be."""
  arrays = list(map(np.asarray, values))
  if arrays[0].ndim:
    size = max(map(len, arrays))
    arrays = [cohort_arrays.pad(array, size) for array in arrays]
  return np.stack(arrays)


def to_npz(
    program: xla_rounds.XlaRound, state: Any, rounds: Sequence[_Round]
) -> bytes:
  """Returns rounds as a file, see `runtime.export_rounds`.

  Args:
    program: The round.
    state: The state at the server.
    rounds: For each round, the values at the clients and the key of random
      numbers.

  Raises:
    NoLoweringError: If the round cannot be a program.
  """
  with jax.enable_x64(True):
    layout, inputs = _collect(program, state, rounds)
    results: list[str] = []

    def train(carried, shared, of_round):
      given = inputs.pack(carried, shared, of_round)
      found = program.trace(*given, layout=layout)
      results[:] = _result_names(program, found)
      size = len(carried)
      # As the state that came, so that a loop can carry it.
      state = [
          lax.convert_element_type(leaf, old.dtype)
          for leaf, old in zip(found[:size], carried)
      ]
      return state, found[size:]

    def run(*flat):
      carried, shared, of_rounds = (
          inputs.of_kind(kind, flat) for kind in (_CARRIED, _SHARED, _OF_ROUND)
      )
      if len(rounds) == 1:
        found = train(carried, shared, of_rounds)
      else:
        found = lax.scan(
            lambda state, of_round: train(state, shared, of_round),
            carried,
            of_rounds,
        )
      return jax.tree.leaves(found)

    exported = jax_export.export(jax.jit(run), platforms=_PLATFORMS)(
        *(
            jax.ShapeDtypeStruct(value.shape, value.dtype)
            for value in inputs.arrays
        )
    )
  file = io.BytesIO()
  np.savez_compressed(
      file,
      program=np.frombuffer(bytes(exported.serialize()), np.uint8),
      **{
          f'input/{place:03}/{_input_name(program, path)}': value
          for place, (path, value) in enumerate(
              zip(inputs.paths, inputs.arrays)
          )
      },
      results=np.array(results),
  )
  return file.getvalue()


def _input_name(program: xla_rounds.XlaRound, path: Sequence[Any]) -> str:
  """Returns the name of an argument, see `XlaRound.arguments`."""
  kind, *places = (key.idx for key in path)
  state, of_clients = program.argument_names()
  if kind == 0:
    return f'state/{state[places[0]]}'
  if kind == 1:
    of_rows = f'/rows/{places[1]}' if places[1:] else ''
    return f'clients/{of_clients[places[0]]}{of_rows}'
  if kind == 2:
    field = cohort_arrays.NUMBERS[places[1]]
    return f'clients/{of_clients[places[0]]}/{field}'
  return f'seeds/{_SEEDS[places[0]]}' if places else 'num_clients'


def _result_names(
    program: xla_rounds.XlaRound, results: Sequence[Any]
) -> list[str]:
  """Returns the names of outputs, of which kept rows have two."""
  names = []
  for name, result in zip(values.leaf_names(program.result_type), results):
    if isinstance(result, kept_rows.KeptRows):
      names += [f'{name}/rows', f'{name}/counts']
    else:
      names.append(name)
  return names
