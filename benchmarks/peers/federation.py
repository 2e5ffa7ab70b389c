# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The federation that every peer trains, and the stopwatch of its rounds.

Needs NumPy alone: each peer has an environment of its own.
"""

from collections.abc import Iterator
import contextlib
import json
import resource
import time
from typing import Any

import numpy as np

# Compilation and the growth of memory are over by then.
WARM_UP_ROUNDS = 3


class Federation:
  """Data, cohorts and settings of a workload.

  Attributes:
    workload: The name of the workload in `experiments.benchmark`.
    model: The name of its model.
    batch_size: The number of examples in a batch.
    num_steps: The number of batches of a client in a round.
    client_learning_rate: The learning rate of SGD on the clients.
    server_optimizer: One of 'adam' (epsilon 1e-5), 'adagrad' (epsilon 1e-7) and
      'sgd'.
    server_learning_rate: Its learning rate.
    cohorts: The clients of each round, int array of shape [num_rounds,
      clients_per_round].
    num_clients: The number of clients.
    examples_per_client: The number of examples of each.
  """

  workload: str
  model: str
  batch_size: int
  client_learning_rate: float
  server_optimizer: str
  server_learning_rate: float

  def __init__(self, path: str):
    """Reads the file that `save` wrote."""
    with np.load(path) as file:
      vars(self).update(json.loads(str(file['settings'])))
      self._x, self._y = file['x'], file['y']
      self.cohorts = file['cohorts']
    self.num_clients, self.examples_per_client = self._x.shape[:2]
    self.num_steps = self.examples_per_client // self.batch_size

  def client(self, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the examples of a client and their labels."""
    return self._x[number], self._y[number]

  def clients(self) -> list[tuple[np.ndarray, np.ndarray]]:
    """Returns the examples and labels of all clients."""
    return [self.client(number) for number in range(self.num_clients)]


def save(path: str, settings: dict[str, Any], **arrays: np.ndarray) -> None:
  """Writes a federation.

  Args:
    path: The file.
    settings: The attributes of a `Federation` that are no arrays.
    **arrays: Its `cohorts`, and the clients' examples `x` and labels `y`, of
      shape [num_clients, examples_per_client, ...].
  """
  np.savez(path, settings=np.array(json.dumps(settings)), **arrays)


class Stopwatch:
  """Takes the time of rounds."""

  def __init__(self) -> None:
    self._seconds: list[float] = []

  @contextlib.contextmanager
  def round(self) -> Iterator[None]:
    """Takes the time of the block."""
    start = time.perf_counter()
    yield
    self._seconds.append(time.perf_counter() - start)

  def report(
      self,
      federation: Federation,
      peer: str,
      version: str,
      variant: str,
      before: list[np.ndarray],
      after: list[np.ndarray],
  ) -> None:
    """Prints a JSON line for `experiments.benchmark --peers`.

    Args:
      federation: What was trained.
      peer: The name of the framework.
      version: Its version.
      variant: The way in which it was used.
      before: The weights before the first round.
      after: The weights after the last one.

    Raises:
      RuntimeError: If the weights did not change or are not finite.
    """
    delta = np.sqrt(
        sum(np.sum(np.square(a - b)) for a, b in zip(after, before))
    )
    if not 0 < delta < np.inf:
      raise RuntimeError(f'{peer} did not train: the weights moved by {delta}.')
    seconds = self._seconds[WARM_UP_ROUNDS:]
    line = {
        'peer': peer,
        'version': version,
        'variant': variant,
        'workload': federation.workload,
        'clients_per_round': federation.cohorts.shape[1],
        'rounds': len(seconds),
        'sec_per_round_median': round(float(np.median(seconds)), 6),
        'min': round(min(seconds), 6),
        'max': round(max(seconds), 6),
        'first_round': round(self._seconds[0], 3),
        'peak_rss_mb': (
            resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        ),
        'delta': round(float(delta), 6),
    }
    print(json.dumps(line), flush=True)
