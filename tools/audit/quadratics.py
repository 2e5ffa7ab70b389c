# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Quadratic losses for the checks, with one batch per local step."""

from typing import Any, NamedTuple

import numpy as np


class Client(NamedTuple):
  """A client with the loss curvature / 2 * (x - center)^2.

  Attributes:
    curvature: The second derivative.
    center: The minimizer.
  """

  curvature: float
  center: float

  def loss(self, x: float) -> float:
    """Returns the loss at a weight."""
    return 0.5 * self.curvature * (x - self.center) ** 2


CLIENTS = (Client(10.0, 1.0), Client(1.0, -1.0))
# The minimizer of the mean loss.
MINIMIZER = 9 / 11
NUM_LOCAL_STEPS = 5
LEARNING_RATE = 0.05

_SGD = {'name': 'sgd', 'lr': LEARNING_RATE}
_MEAN = {'name': 'sgd', 'lr': 1.0}


def fedavg(**changed: Any) -> dict[str, Any]:
  """Returns the configuration of FedAvg with SGD, with some parts replaced.

  Args:
    **changed: 'client', 'server' or 'loss': the part's 'name' and arguments, as
      in a file of reference trajectories.

  Returns:
    The configuration of a process.
  """
  return {'client': _SGD, 'server': _MEAN, **changed}


class Batches(NamedTuple):
  """The losses 1/2 x'Ax + b'x of local steps, one per step.

  Attributes:
    hessians: A, [steps, size, size].
    slopes: b, [steps, size].
  """

  hessians: np.ndarray
  slopes: np.ndarray

  def value(self, k: int, x: np.ndarray) -> float:
    """Returns the loss of batch `k` at `x`."""
    return float(0.5 * x @ self.hessians[k] @ x + self.slopes[k] @ x)


def repeat(hessian: np.ndarray, num_steps: int) -> Batches:
  """Returns the loss 1/2 x'Ax, whose minimum is 0 at 0, for every step."""
  size = len(hessian)
  return Batches(
      np.tile(hessian, [num_steps, 1, 1]), np.zeros([num_steps, size])
  )


def of_client(client: Client, num_steps: int) -> Batches:
  """Returns the loss of a client, up to a constant, for every step."""
  batches = repeat(np.array([[client.curvature]]), num_steps)
  slope = -client.curvature * client.center
  return batches._replace(slopes=np.full([num_steps, 1], slope))


def linear(slopes: Any) -> Batches:
  """Returns losses whose gradients are `slopes`, [steps, size], at every x."""
  slopes = np.asarray(slopes, np.float64)
  return Batches(np.zeros([*slopes.shape, slopes.shape[1]]), slopes)


def draw_hessians(num_problems: int, size: int, seed: int = 0) -> np.ndarray:
  """Samples symmetric matrices with random axes and log-uniform curvatures.

  Args:
    num_problems: The number of matrices.
    size: The size of a matrix.
    seed: The random seed.

  Returns:
    The matrices, [num_problems, size, size]; their curvatures are from 0.1 to
    100.
  """
  rng = np.random.default_rng(seed)
  axes = np.linalg.qr(rng.normal(size=[num_problems, size, size]))[0]
  logs = rng.uniform(np.log(0.1), np.log(100.0), size=[num_problems, 1, size])
  return (axes * np.exp(logs)) @ axes.transpose(0, 2, 1)
