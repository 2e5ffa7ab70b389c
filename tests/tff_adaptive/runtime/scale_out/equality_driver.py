# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trains on several runtimes with one thread an op; prints what came out.

Threads can be set only before TensorFlow runs: this is a process of its own.
The last line is a JSON object: from the name of a workload and of a runtime to
a digest of the state after five rounds.
"""

import contextlib
import hashlib
import json
import os
import random
import signal
import threading
import time

import numpy as np
import tensorflow as tf

from experiments import command_line
from experiments.benchmark import measurement
from experiments.benchmark import models
from experiments.benchmark import workloads
from tff_adaptive import runtime
from tff_adaptive.runtime import scale_out

_NUM_ROUNDS = 5
_NUM_WORKERS = (1, 3)
# The rounds in which a worker is killed; in the one after them it is noticed at
# the latest.
_KILLED_IN = (1, 2, 3)


def _digest(state):
  """Returns what differs if one bit of a state does."""
  found = hashlib.sha256()
  for leaf in tf.nest.flatten(state):
    found.update(np.asarray(leaf).tobytes())
  return found.hexdigest()


def _kill_soon(context):
  """Kills a worker while the round that begins now is at work."""
  victim = random.Random(0).choice(context.pool.process_ids())

  def kill():
    time.sleep(0.2)
    os.kill(victim, signal.SIGKILL)

  thread = threading.Thread(target=kill)
  thread.start()
  return thread


def _train(process, cohort_fn, context=None, killed_in=()):
  state = process.initialize()
  for round_num in range(_NUM_ROUNDS):
    thread = _kill_soon(context) if round_num in killed_in else None
    state = process.next(state, cohort_fn(round_num)).state
    if thread is not None:
      thread.join()
  return _digest(state)


def main():
  """Trains, and prints the digests."""
  runtime.set_threads('CPU')
  workload = workloads.WORKLOADS['emnist_cnn']
  source, cohort_fn = measurement.build_cohort_fn(
      workload, workload.clients_per_round[0]
  )
  processes = {
      'emnist_cnn': models.build_process(workload, source.element_spec),
      'fedcada': models.build_algorithm(
          workloads.ALGORITHMS['fedcada'], workload, source.element_spec
      ),
  }
  digests = {}
  with runtime.CompiledContext(devices='CPU', strict=True):
    for name, process in processes.items():
      digests[f'{name} compiled'] = _train(process, cohort_fn)
  for num_workers in _NUM_WORKERS:
    with contextlib.ExitStack() as stack:
      context = stack.enter_context(
          scale_out.RayContext(num_workers=num_workers, strict=True)
      )
      for name, process in processes.items():
        digests[f'{name} ray {num_workers}'] = _train(process, cohort_fn)
      if num_workers == 3:
        before = context.pool.num_lost
        digests['emnist_cnn killed'] = _train(
            processes['emnist_cnn'], cohort_fn, context, _KILLED_IN
        )
        context.pool.process_ids()  # Also of those that did no work.
        digests['num_killed'] = context.pool.num_lost - before
  print(json.dumps(digests))


if __name__ == '__main__':
  main()
  command_line.free_default_context()
