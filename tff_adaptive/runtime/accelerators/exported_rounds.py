# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rounds as programs that JAX loads without TensorFlow."""

from collections.abc import Sequence
import io
from typing import Any

import jax
from jax import export as jax_export
import numpy as np

from tff_adaptive.runtime import round_keys
from tff_adaptive.runtime import values
from tff_adaptive.runtime.accelerators import cohort_arrays
from tff_adaptive.runtime.accelerators import kept_rows
from tff_adaptive.runtime.accelerators import xla_rounds

_PLATFORMS = ('cpu', 'cuda', 'tpu')
_SEEDS = ('server', 'clients')


def to_npz(
    program: xla_rounds.XlaRound,
    state: Any,
    clients: Sequence[Any],
    key: round_keys.RoundKey,
) -> bytes:
  """Returns a round as a file, see `runtime.export_round`.

  Args:
    program: The round.
    state: The state at the server.
    clients: The values at the clients.
    key: The key of random numbers.

  Raises:
    NoLoweringError: If the round cannot be a program.
  """
  with jax.enable_x64(True):
    layout, arguments = program.arguments(state, clients, key)
    paths, structure = jax.tree_util.tree_flatten_with_path(arguments)
    inputs = [np.asarray(value) for _, value in paths]
    results: list[str] = []

    def run(*flat):
      given = jax.tree.unflatten(structure, flat)
      found = program.trace(*given, layout=layout)
      results[:] = _result_names(program, found)
      return jax.tree.leaves(found)

    exported = jax_export.export(jax.jit(run), platforms=_PLATFORMS)(
        *(jax.ShapeDtypeStruct(value.shape, value.dtype) for value in inputs)
    )
  names = [_input_name(program, path) for path, _ in paths]
  file = io.BytesIO()
  np.savez_compressed(
      file,
      program=np.frombuffer(bytes(exported.serialize()), np.uint8),
      **{
          f'input/{place:03}/{name}': value
          for place, (name, value) in enumerate(zip(names, inputs))
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
