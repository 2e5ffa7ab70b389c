# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Exports rounds as programs for any device of XLA."""

from collections.abc import Sequence
from typing import Any, Optional

import tensorflow_federated as tff

from tff_adaptive.runtime import compiled
from tff_adaptive.runtime import computations
from tff_adaptive.runtime import plans
from tff_adaptive.runtime import round_keys
from tff_adaptive.runtime import rounds
from tff_adaptive.runtime.accelerators import devices
from tff_adaptive.runtime.datasets import dataset_cache

# Where rounds are traced; the program is for all devices.
_DEVICE = 'XLA:CPU'


def export_round(
    process: tff.templates.IterativeProcess,
    clients: Any,
    *,
    state: Any = None,
    seed: int = 0,
    num_parallel_clients: Optional[int] = None,
) -> bytes:
  """Exports one round of a process as a program of XLA, with its inputs.

  The program runs on CPUs, CUDA GPUs and TPUs, without TensorFlow: see
  `docs/examples/run_exported_round.py`, which needs only NumPy and JAX. It is
  for cohorts like the given one: the state, the examples, the numbers of
  batches and clients and the seeds are inputs; the sizes of batches and the
  most clients are not. Results equal those of the compiled runtime up to
  rounding, random draws included.

  Args:
    process: The process, see `CompiledContext` for what can be a program.
    clients: The clients' data, as `process.next` takes them: a
      `tff_adaptive.data.Cohort`, or a list with a `tf.data.Dataset` or a
      list of batches for each client.
    state: The state at the server. Defaults to `process.initialize()`.
    seed: The seed of the initial state and of random draws, a non-negative
      integer. A `Cohort` brings the seed of its draws. Defaults to 0.
    num_parallel_clients: The number of clients that train at once, a positive
      integer. Defaults to 16 or 1, by the model.

  Returns:
    The bytes of an `.npz` file. `program` is what `jax.export.deserialize`
    takes; the inputs follow in the program's order, with keys such as
    `input/000/state/global_model_weights/trainable/0`; `results` lists the
    names of the outputs, in order. What clients report row by row has two
    outputs, `rows` of [clients, most rows, ...], and the `counts` of each.

  Raises:
    UnsupportedComputationError: If the round cannot be a program of XLA.
    TypeError: If the state or the clients' data do not match the process.
    ValueError: If JAX is not installed.

  Example:
    ```python
    from tff_adaptive import runtime

    with open('round.npz', 'wb') as file:
      file.write(runtime.export_round(process, cohort))
    ```
  """
  return export_rounds(
      process,
      [clients],
      state=state,
      seed=seed,
      num_parallel_clients=num_parallel_clients,
  )


def export_rounds(
    process: tff.templates.IterativeProcess,
    cohorts: Sequence[Any],
    *,
    state: Any = None,
    seed: int = 0,
    num_parallel_clients: Optional[int] = None,
) -> bytes:
  """Exports several rounds of a process as one program of XLA.

  A device then runs them in one call, each from the state of the one before.

  Args:
    process: The process.
    cohorts: The clients' data of each round, see `export_round`.
    state: The state before the first round. Defaults to `process.initialize()`.
    seed: The seed, see `export_round`.
    num_parallel_clients: The number of clients at once, see `export_round`.

  Returns:
    The bytes of a file as that of `export_round`, except that what differs from
    round to round has an entry for each along a first axis: inputs such as row
    numbers and seeds, and outputs other than the state. The state is that after
    the last round.

  Raises:
    UnsupportedComputationError: If the round cannot be a program of XLA.
    TypeError: If the state or the clients' data do not match the process.
    ValueError: If JAX is not installed, or there are no cohorts.
  """
  if not cohorts:
    raise ValueError('`cohorts` must hold the clients of a round or more.')
  devices.find(_DEVICE)
  # JAX is imported where it is needed.
  # pylint: disable=import-outside-toplevel
  from tff_adaptive.runtime.accelerators import exported_rounds
  from tff_adaptive.runtime.accelerators import lowerings
  from tff_adaptive.runtime.accelerators import xla_rounds
  # pylint: enable=import-outside-toplevel

  if state is None:
    with compiled.CompiledContext(strict=True, seed=seed):
      state = process.initialize()
  rounds_of_file = [
      (clients, round_keys.RoundKey.of(clients) or round_keys.RoundKey(seed, n))
      for n, clients in enumerate(cohorts)
  ]
  setting = rounds.Setting(
      plans.choose(_DEVICE, num_parallel_clients),
      dataset_cache.DatasetCache(),
      lambda reason: None,
  )
  try:
    form = computations.get_round_form(process.next)
    program = xla_rounds.XlaRound(form, setting)
    return program.until_traced(
        lambda: exported_rounds.to_npz(program, state, rounds_of_file)
    )
  except lowerings.NoLoweringError as error:
    raise computations.UnsupportedComputationError(
        f'The round cannot be a program of XLA, because {error}.'
    ) from error
