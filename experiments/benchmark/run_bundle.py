# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Measures the programs beside this file; needs NumPy and JAX alone.

    python run_bundle.py

runs each on the first device that JAX sees, in a process of its own, and prints
a line of JSON: the seconds of a round (the median, least and most over calls,
each of several rounds), those to load and to compile, the peak memory, and how
far the state after the first call is from that of the CPU: the largest
difference, and the norm of all relative to that of how far the state moved. The
lines are added to `results.jsonl`, too. `python run_bundle.py FILE` runs one.
"""

import json
import pathlib
import resource
import statistics
import subprocess
import sys
import time

import numpy as np

_FOLDER = pathlib.Path(__file__).resolve().parent
# Most files take a tenth of it.
_LIMIT_SECONDS = 120
_TIMED_SECONDS = 10.0
_MAX_CALLS = 10
_MAX_EXPECTED = 10_000


def _sample(array):
  """Returns the entries of an array that a file has; `bundle.py` chose them."""
  flat = np.ravel(array)
  return flat[:: max(1, flat.size // _MAX_EXPECTED)].astype(np.float64)


def _compare(found, expected, first):
  """Returns the largest difference, and that of all to how far all moved."""
  apart = [_sample(one) - other for one, other in zip(found, expected)]
  moved = [other - _sample(one) for one, other in zip(first, expected)]
  apart, moved = np.concatenate(apart), np.concatenate(moved)
  relative = np.linalg.norm(apart) / np.linalg.norm(moved)
  return float(np.max(np.abs(apart))), float(relative)


def _peak_megabytes(device):
  """Returns the peak memory of a device; of this process, if it has none."""
  stats = device.memory_stats() or {}
  peak = stats.get('peak_bytes_in_use')
  if peak is None:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
  return round(peak / 2**20, 1)


def _read(path):
  """Returns what is in a file: a dict of arrays, and the inputs in order."""
  with np.load(path) as file:
    arrays = dict(file)
  keys = [key for key in arrays if key.startswith('input/')]
  is_state = [key.split('/')[2] == 'state' for key in keys]
  size = sum(is_state)
  # The state comes first, and is given away to each call.
  assert all(is_state[:size])
  inputs = [arrays[key] for key in keys]
  return arrays, inputs[:size], inputs[size:]


def _run(path):
  """Runs a file; returns the line of its measurement."""
  start = time.perf_counter()
  import jax  # pylint: disable=import-outside-toplevel
  from jax import export  # pylint: disable=import-outside-toplevel

  jax.config.update('jax_enable_x64', True)  # Counts may have 64 bits.
  device = jax.devices()[0]
  arrays, state, others = _read(path)
  exported = export.deserialize(bytearray(arrays['program'].tobytes()))
  first_state = state
  state, others = jax.device_put((state, others), device)
  loaded = time.perf_counter()

  def call(state, others):
    found = exported.call(*state, *others)
    return found[: len(state)], found[len(state) :]

  run = jax.jit(call, donate_argnums=0).lower(state, others).compile()
  compiled = time.perf_counter()
  state, _ = jax.block_until_ready(run(state, others))
  first = time.perf_counter() - compiled
  expected = [arrays[key] for key in sorted(arrays) if 'expected/' in key]
  difference, relative = _compare(state, expected, first_state)
  seconds = []
  while not seconds or (
      sum(seconds) < _TIMED_SECONDS and len(seconds) < _MAX_CALLS
  ):
    start_call = time.perf_counter()
    state, _ = jax.block_until_ready(run(state, others))
    seconds.append(time.perf_counter() - start_call)
  num_rounds = int(arrays['num_rounds'])
  return {
      'workload': pathlib.Path(path).stem,
      'device': device.device_kind,
      'jax': jax.__version__,
      'sec_per_round_median': statistics.median(seconds) / num_rounds,
      'min': min(seconds) / num_rounds,
      'max': max(seconds) / num_rounds,
      'first_round': first / num_rounds,
      'rounds_per_call': num_rounds,
      'calls': len(seconds),
      'load_seconds': round(loaded - start, 3),
      'compile_seconds': round(compiled - loaded, 3),
      'peak_memory_mb': _peak_megabytes(device),
      'difference': difference,
      'relative_difference': relative,
  }


def _run_in_process(path):
  """Returns the line of a file, run in a process of its own."""
  command = [sys.executable, __file__, str(path)]
  try:
    ended = subprocess.run(
        command,
        capture_output=True,
        check=False,
        text=True,
        timeout=_LIMIT_SECONDS,
    )
  except subprocess.TimeoutExpired:
    error = f'stopped after {_LIMIT_SECONDS} seconds'
  else:
    if ended.returncode == 0:
      return json.loads(ended.stdout.splitlines()[-1])
    said = (ended.stderr.strip() or 'nothing on stderr').splitlines()
    error = f'exit code {ended.returncode}: {said[-1]}'
  return {'workload': path.stem, 'error': error}


def main(paths):
  """Runs the file that is given, or all of the folder."""
  if paths:
    print(json.dumps(_run(paths[0])))
    return
  with open(_FOLDER / 'results.jsonl', 'a', encoding='utf-8') as results:
    for path in sorted(_FOLDER.glob('*.npz')):
      line = json.dumps(_run_in_process(path))
      print(line, flush=True)
      print(line, file=results, flush=True)


if __name__ == '__main__':
  main(sys.argv[1:])
