# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rounds of a `FederatedOptimizer` in plain TensorFlow, without a process.

Weights are one float64 vector; the server takes the means of the clients'
changes and of what they send.
"""

import collections
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tests.tff_adaptive import testing
from tff_adaptive import algorithms
from tff_adaptive import optimizers
from tff_adaptive import runtime
from tff_adaptive.simulation import client_states

# A batch: a point to the loss and the gradient.
Batch = Callable[[Any], tuple[Any, Any]]

# Two batches of one client and three of another, which pull elsewhere.
CLIENTS = (
    ((np.array([1.0, 3.0]), 2.0), (np.array([0.5, 0.2]), 1.0)),
    (
        (np.array([2.0, 0.1]), -1.0),
        (np.array([0.3, 4.0]), -2.0),
        (np.array([1.0, 1.0]), 0.5),
    ),
)
START = np.array([1.0, -2.0])

# The tolerances of float64 against a plain loop.
EXACT = dict(rtol=1e-10, atol=1e-12)


def single(*hparams: float) -> list[float]:
  """Returns the numbers as states hold them, in float32."""
  return [float(np.float32(value)) for value in hparams]


def gradient(batch, x):
  """Returns the gradient of 1/2 sum(scale * (x - target)^2) in numpy."""
  scale, target = batch
  return scale * (x - target)


def to_batch(batch) -> Batch:
  """Returns the same with its loss in TensorFlow."""
  scale, target = batch

  def value_and_grad_fn(x):
    return 0.5 * tf.reduce_sum(scale * (x - target) ** 2), scale * (x - target)

  return value_and_grad_fn


def to_batches(client) -> list[Batch]:
  return [to_batch(batch) for batch in client]


# The batches of all clients.
COHORT = {i: to_batches(client) for i, client in enumerate(CLIENTS)}


def perturbed_gradient(batch, x, rho):
  """Returns the gradient at a distance of `rho` along the gradient at `x`."""
  g = gradient(batch, x)
  return gradient(batch, x + rho * g / np.linalg.norm(g))


def flat(weights) -> np.ndarray:
  """Returns all entries of a structure of weights as a vector."""
  return np.concatenate([np.ravel(w) for w in tf.nest.flatten(weights)])


def mean(values: Sequence[Any]) -> Any:
  """Returns the mean of structures of tensors."""
  return tf.nest.map_structure(lambda *ts: sum(ts) / len(ts), *values)


class Rounds:
  """The server and all of its clients.

  Attributes:
    x: The model.
    shared: What the server sends besides the model.
    kept: What clients keep, by id.
    round_num: The number of finished rounds.
  """

  def __init__(self, optimizer: optimizers.FederatedOptimizer, start=START):
    self._optimizer = optimizer
    self.x = tf.constant(start, tf.float64)
    self._spec = tf.TensorSpec(self.x.shape, tf.float64)
    self.shared = optimizer.initialize_shared(self._spec)
    self.kept: dict[Any, Any] = {}
    self.round_num = 0

  def train(self, batches: Sequence[Batch], client_id: Any = None):
    """Trains a client: its points, what it sends and what it keeps."""
    optimizer = self._optimizer
    kept = self.kept.get(client_id)
    if kept is None:
      kept = optimizer.initialize_kept(self._spec)
    state = optimizer.start_round(
        optimizer.initialize(self._spec), self.shared, kept, self.round_num
    )
    points = [self.x]
    for batch in batches:
      value, gradients = batch(points[-1])
      state, point = optimizer.next(
          state, points[-1], gradients, value=value, value_and_grad_fn=batch
      )
      points.append(point)
    return points, *optimizer.finish_round(state)

  def next(self, clients: Mapping[Any, Sequence[Batch]]):
    """Takes a round with clients by id; returns what each of them keeps."""
    trained = {i: self.train(batches, i) for i, batches in clients.items()}
    points, sent, kept = zip(*trained.values())
    self.x = mean([p[-1] for p in points])
    if self.shared:
      self.shared = self._optimizer.update_shared(
          self.shared, mean(sent), tf.constant(len(sent), tf.int64)
      )
    self.kept.update(zip(trained, kept))
    self.round_num += 1
    return dict(zip(trained, kept))


class Store:
  """A process and what its clients keep between rounds, on any runtime."""

  def __init__(self, process: Any):
    self.process = process
    self.state = process.initialize()
    self.kept: dict[str, Any] = {}
    self._keeps = client_states.get_state_spec(process) is not None

  def next(self, clients: Mapping[str, Any]) -> Any:
    """Takes a round with batches by client id; returns the metrics."""
    inputs = [self._bring(i, batches) for i, batches in clients.items()]
    output = self.process.next(self.state, inputs)
    self.state = output.state
    if self._keeps:
      rows = output.metrics['client_work']['client_states']
      for place, client_id in enumerate(rows['client_id']):
        self.kept[client_id.decode()] = tf.nest.map_structure(
            lambda leaf, place=place: leaf[place], rows['client_state']
        )
    return output.metrics

  def _bring(self, client_id: str, batches: Any) -> Any:
    if not self._keeps:
      return batches
    states = [self.kept[client_id]] if client_id in self.kept else []
    return collections.OrderedDict(
        data=batches, client_id=[client_id], client_state=states
    )


def run_process(optimizer, num_rounds=2, clients=None, **kwargs) -> list[Any]:
  """Trains the linear classifier on the compiled runtime.

  Returns the rounds' outputs, by default of clients of 10 and 7 examples.
  """
  clients = clients or testing.clients([10, 7])
  process = algorithms.build_fed_opt(
      testing.functional_model(), optimizer, **kwargs
  )
  outputs = []
  with runtime.CompiledContext(strict=True):
    state = process.initialize()
    for _ in range(num_rounds):
      outputs.append(process.next(state, clients))
      state = outputs[-1].state
  return outputs
