# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs a round that `runtime.export_round` exported, with NumPy and JAX alone.

    python run_exported_round.py round.npz results.npz

runs it on the first device that JAX sees and times ten runs.
"""

import sys
import time

import jax
from jax import export
import numpy as np


def load(path):
  """Returns the program of a file, its inputs, and its results' names."""
  with np.load(path) as file:
    inputs = [file[key] for key in file if key.startswith('input/')]
    return bytes(file['program']), inputs, list(file['results'])


def compile_program(program):
  """Compiles a program for JAX's first device.

  Args:
    program: What `jax.export` serialized.

  Returns:
    A function from a list of JAX's arrays to a list of them.
  """
  exported = export.deserialize(bytearray(program))
  return jax.jit(lambda inputs: exported.call(*inputs))


def main(path, results_path):
  """Runs a round, writes its results, and prints how long it takes."""
  program, inputs, names = load(path)
  run = compile_program(program)
  on_device = jax.device_put(inputs)
  np.savez(results_path, **dict(zip(names, map(np.asarray, run(on_device)))))
  start = time.perf_counter()
  for _ in range(10):
    results = run(on_device)
  jax.block_until_ready(results)
  seconds = (time.perf_counter() - start) / 10
  print(f'{jax.devices()[0].device_kind}: {seconds:.6f} s a round')


if __name__ == '__main__':
  jax.config.update('jax_enable_x64', True)  # Counts may have 64 bits.
  main(*sys.argv[1:])
