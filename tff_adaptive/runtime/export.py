# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Exports rounds as StableHLO programs, for any XLA compiler."""

import io
import re
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import _error_texts
from tff_adaptive.data import batching
from tff_adaptive.runtime import compiled
from tff_adaptive.runtime import computations
from tff_adaptive.runtime import dataset_cache
from tff_adaptive.runtime import graph_functions
from tff_adaptive.runtime import plans
from tff_adaptive.runtime import round_keys
from tff_adaptive.runtime import rounds
from tff_adaptive.runtime import values


def export_round(
    process: tff.templates.IterativeProcess,
    clients: Any,
    *,
    state: Any = None,
    seed: int = 0,
) -> bytes:
  """Exports one round of a process as a StableHLO program with its inputs.

  The program runs wherever XLA does, without TensorFlow: see
  `docs/examples/run_exported_round.py`, which needs only NumPy and JAX. Shapes
  are static, so a program is for the batches of one cohort: the state, the
  examples and the random seeds are inputs; the number and sizes of batches are
  constants. Results equal those of the compiled runtime up to rounding, except
  for random draws, such as dropout: XLA has its own generator.

  Args:
    process: The process, with a `tff.learning.models.FunctionalModel`.
    clients: The clients' data, as `process.next` takes them: a
      `tff_adaptive.data.Cohort`, or a list with a `tf.data.Dataset` or a
      list of batches for each client.
    state: The state at the server. Defaults to `process.initialize()`.
    seed: The seed of the initial state and of random draws, a non-negative
      integer. A `Cohort` brings the seed of its draws. Defaults to 0.

  Returns:
    The bytes of an `.npz` file. `program` is the StableHLO text in UTF-8; the
    inputs follow in the program's order, with keys such as
    `input/000/state/global_model_weights/trainable/0`; `results` lists the
    names of the outputs, in order.

  Raises:
    UnsupportedComputationError: If XLA cannot compile the round, or a client's
      `tf.data` pipeline would have to run.
    TypeError: If the state or the clients' data do not match the process.
    ValueError: If no client has a batch.

  Example:
    ```python
    from tff_adaptive import runtime

    with open('round.npz', 'wb') as file:
      file.write(runtime.export_round(process, cohort))
    ```
  """
  computation = process.next
  with compiled.CompiledContext(strict=True, seed=seed):
    if state is None:
      state = process.initialize()
    exported = _ExportedRound(computation, clients, state, seed)
    program = exported.lower()
  return _to_npz(program, exported.inputs, exported.result_names)


class _ExportedRound(rounds.CompiledRound):
  """A round of one cohort, with constant batch sizes.

  Attributes:
    inputs: The inputs of the program, by name.
    result_names: The names of its outputs.
  """

  def __init__(
      self,
      computation: tff.framework.ConcreteComputation,
      clients: Any,
      state: Any,
      seed: int,
  ):
    super().__init__(
        computation,
        plans.Plan('CPU:0', num_parallel_clients=1),
        dataset_cache.DatasetCache(),
        _refuse_pipelines,
    )
    self._merges_chunks = False  # One loop of constant length.
    key = round_keys.RoundKey.of(clients) or round_keys.RoundKey(seed, 0)
    collected = self._collect(clients, key)
    self._note(collected.pipelines)
    self._leaves = collected.leaves
    sizes = [
        leaf.sizes
        for leaf in self._leaves
        if isinstance(leaf, batching.PackedClients)
    ]
    # Sequences of single rows have none.
    if not all(map(len, tf.nest.flatten(sizes))):
      raise ValueError(
          'The clients have no batches, which determine the shapes of the '
          'program; give at least one client with examples.'
      )
    self._num_clients = len(clients)
    seeds = self._seeds(self._num_clients, key)
    # The batches of a client determine shapes, so they are not inputs.
    self._arguments = (
        self._convert_state(state),
        tuple(map(_rows_of, self._leaves)),
        tf.constant(seeds.server),
        tf.constant(seeds.clients),
    )
    form = self._form
    names = [f'state/{name}' for name in values.leaf_names(form.state_type)]
    for leaf, rows in zip(
        values.leaf_names(form.clients_type), self._arguments[1]
    ):
      numbers = range(len(tf.nest.flatten(rows)))
      names += [f'clients/{leaf}/{number}' for number in numbers]
    names += ['seeds/server', 'seeds/clients']
    self.inputs = dict(zip(names, tf.nest.flatten(self._arguments)))
    self.result_names = values.leaf_names(form.result_type)

  def lower(self) -> str:
    """Returns the program as text."""

    def run(*flat):
      state, rows, server_seed, client_seeds = tf.nest.pack_sequence_as(
          self._arguments, flat
      )
      return self._whole(
          state,
          tuple(map(_with_rows, self._leaves, rows)),
          tf.constant(self._num_clients),
          tf.constant(self.plan.chunk_size_of(self._num_clients)),
          server_seed,
          client_seeds,
          num_turns=self._num_clients,
      )

    specs = [
        tf.TensorSpec(tensor.shape, tensor.dtype)
        for tensor in self.inputs.values()
    ]
    built = graph_functions.build(run, specs, for_xla=True)
    compiled_by_xla = tf.function(built, jit_compile=True, autograph=False)
    try:
      lowered = compiled_by_xla.experimental_get_compiler_ir(*specs)
      return lowered(stage='stablehlo', platform_name='CPU')
    except (tf.errors.OpError, ValueError) as e:
      raise computations.UnsupportedComputationError(
          f'XLA cannot compile the round: {_explain(e)}.'
      ) from e


# Ops that XLA does not have, and how to avoid them.
_HINTS = {
    'VarHandleOp': (
        'make the model functional, as with '
        '`tff.learning.models.functional_model_from_keras`'
    ),
    'OptionalFromValue': (
        'build the process with '
        '`loop_implementation=tff.learning.LoopImplementation.DATASET_REDUCE`'
    ),
    'RangeDataset': "shuffle the clients' data before the round",
}
# In what TensorFlow says of a shape that depends on inputs.
_NOT_CONSTANT = 'must be a compile-time constant'


def _explain(error: Exception) -> str:
  """Returns the problem, and its fix if that is known."""
  missing = re.search(
      r'unsupported operations .*: (\w+) \(No registered', str(error)
  )
  if _NOT_CONSTANT in str(error):
    return (
        "a shape is not constant, as those of `batch` inside the clients' work;"
        ' batch their data before the round, as a `Cohort` does'
    )
  if missing is None:
    return _error_texts.first_line(error)
  op = missing.group(1)
  hint = f'; {_HINTS[op]}' if op in _HINTS else ''
  return f'it does not have the op {op}{hint}'


def _refuse_pipelines(reason: str) -> None:
  raise computations.UnsupportedComputationError(
      f"Clients' `tf.data` pipelines cannot be exported, because {reason}."
  )


def _rows_of(leaf: Any) -> Any:
  """Returns the part of a leaf that is an input of the program."""
  if isinstance(leaf, batching.PackedClients):
    return leaf.rows, leaf.order
  return leaf


def _with_rows(leaf: Any, given: Any) -> Any:
  """Replaces the inputs in a leaf; the rest become constants."""
  if not isinstance(leaf, batching.PackedClients):
    return given
  constants = tf.nest.map_structure(
      lambda tensor: tf.constant(tensor.numpy()), leaf[2:]
  )
  return batching.PackedClients(*given, *constants)


def _to_npz(
    program: str, inputs: dict[str, tf.Tensor], result_names: list[str]
) -> bytes:
  file = io.BytesIO()
  np.savez_compressed(
      file,
      program=np.frombuffer(program.encode(), np.uint8),
      **{
          f'input/{place:03}/{name}': tensor.numpy()
          for place, (name, tensor) in enumerate(inputs.items())
      },
      results=np.array(result_names),
  )
  return file.getvalue()
