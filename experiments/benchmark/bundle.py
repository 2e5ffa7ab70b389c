# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes workloads as programs, for an accelerator on a machine with JAX alone.

A folder gets a file for each workload, with the program of some rounds, its
inputs and the results of the CPU, and `run_bundle.py`, which measures them.
"""

from collections.abc import Iterator, Sequence
import io
import pathlib
import shutil
from typing import Any

import attrs
import numpy as np
import tensorflow as tf

from experiments.benchmark import measurement
from experiments.benchmark import models
from experiments.benchmark import workloads
from tff_adaptive import _files
from tff_adaptive import runtime
from tff_adaptive.runtime import values

RUNNER = pathlib.Path(__file__).with_name('run_bundle.py')
# For small files: how many distinct examples clients share, and about how many
# entries of each array of a result are kept.
_MAX_ROWS = 500
_MAX_EXPECTED = 10_000


def write(
    chosen: Sequence[workloads.Workload],
    output_dir: str,
    settings: measurement.Settings,
) -> Iterator[str]:
  """Writes workloads to a folder; yields a line for each file.

  Args:
    chosen: The workloads; those that do not compare runtimes are left out.
    output_dir: The folder, which is made if need be.
    settings: The settings: how many rounds are one program.

  Raises:
    OSError: If a file cannot be written.
    UnsupportedComputationError: If a round cannot be a program of XLA.
  """
  folder = pathlib.Path(output_dir)
  folder.mkdir(parents=True, exist_ok=True)
  shutil.copy(RUNNER, folder)
  for workload in chosen:
    if workload.kind != workloads.COMPARE_RUNTIMES:
      continue
    for clients_per_round in workload.clients_per_round:
      name = f'{workload.name}_{clients_per_round}'
      data = _export(workload, clients_per_round, settings)
      path = folder / f'{name}.npz'
      _files.write(path, data)
      yield f'{path}  {len(data) / 2**20:.1f} MiB'


def _export(
    workload: workloads.Workload,
    clients_per_round: int,
    settings: measurement.Settings,
) -> bytes:
  """Returns the file of a workload with so many clients in a round."""
  num_rows = min(_MAX_ROWS, workload.num_rows or _MAX_ROWS)
  source, cohort_fn = measurement.build_cohort_fn(
      attrs.evolve(workload, num_rows=num_rows), clients_per_round
  )
  tf.keras.utils.set_random_seed(measurement.SEED)
  process = models.build_process(workload, source.element_spec)
  cohorts = list(map(cohort_fn, range(settings.num_rounds)))
  with runtime.CompiledContext(devices='CPU', strict=True, seed=0):
    state = first = tf.nest.map_structure(_shorten, process.initialize())
    for cohort in cohorts:
      state = process.next(state, cohort).state
  exported = runtime.export_rounds(
      process,
      cohorts,
      state=first,
      num_parallel_clients=settings.num_parallel_clients,
  )
  flatten = values.build_flatten(process.next.type_signature.result.state)
  return _with_more(
      exported,
      num_rounds=len(cohorts),
      num_clients=clients_per_round,
      **{
          f'expected/{place:03}': _sample(np.asarray(leaf))
          for place, leaf in enumerate(flatten(state))
      },
  )


def _shorten(leaf: Any) -> Any:
  """Returns an array of fewer digits, those of bfloat16, to be compressed."""
  array = np.asarray(leaf)
  if array.dtype != np.float32 or not array.ndim:
    return leaf
  bits = array.view(np.uint32) & np.uint32(0xFFFF0000)
  return bits.view(np.float32)


def _sample(array: np.ndarray) -> np.ndarray:
  """Returns evenly spaced entries of an array."""
  return array.ravel()[:: max(1, array.size // _MAX_EXPECTED)]


def _with_more(exported: bytes, **more: Any) -> bytes:
  """Returns an `.npz` file with more arrays."""
  with np.load(io.BytesIO(exported)) as arrays:
    found = {**arrays, **more}
  file = io.BytesIO()
  np.savez_compressed(file, **found)
  return file.getvalue()
