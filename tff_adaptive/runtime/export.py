# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Exports rounds as programs for any device of XLA."""

from typing import Any

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
  key = round_keys.RoundKey.of(clients) or round_keys.RoundKey(seed, 0)
  setting = rounds.Setting(
      plans.choose(_DEVICE), dataset_cache.DatasetCache(), lambda reason: None
  )
  try:
    program = xla_rounds.XlaRound(process.next, setting)
    return program.until_traced(
        lambda: exported_rounds.to_npz(program, state, clients, key)
    )
  except lowerings.NoLoweringError as error:
    raise computations.UnsupportedComputationError(
        f'The round cannot be a program of XLA, because {error}.'
    ) from error
