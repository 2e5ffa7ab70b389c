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
# Clients share so many distinct examples, so that files are small.
_MAX_ROWS = 1500


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
    if workload.kind != workloads.RUNTIMES_OF_A_MODEL:
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
    state = first = process.initialize()
    for cohort in cohorts:
      output = process.next(state, cohort)
      state = output.state
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
          f'expected/{place:03}': np.asarray(leaf)
          for place, leaf in enumerate(flatten(state))
      },
  )


def _with_more(exported: bytes, **more: Any) -> bytes:
  """Returns an `.npz` file with more arrays."""
  with np.load(io.BytesIO(exported)) as arrays:
    found = {**arrays, **more}
  file = io.BytesIO()
  np.savez_compressed(file, **found)
  return file.getvalue()
