# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Settings and strategies of property tests.

To import this module is to load the settings: draws are the same in every run,
and nothing is written into the tree. Numbers are float32, as hyperparameters
are, and vectors of them are in float64, so that formulas hold to many digits.
"""

import os
import tempfile
from typing import Any, NamedTuple

import hypothesis
from hypothesis import configuration
from hypothesis import strategies as st
from hypothesis.extra import numpy as hypothesis_numpy
import numpy as np

# Hypothesis caches what it reads from the sources.
configuration.set_hypothesis_home_dir(
    os.path.join(tempfile.gettempdir(), 'hypothesis')
)
hypothesis.settings.register_profile(
    'tff_adaptive',
    max_examples=10,
    deadline=None,
    derandomize=True,
    database=None,
    # It measures how busy the machine is.
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile('tff_adaptive')

# The number of weights: one for all, as a step is compiled for it.
SIZE = 3


def positive(low: float = 2.0**-6, high: float = 2.0**6) -> Any:
  """Returns numbers from `low` to `high`."""
  return st.floats(low, high, width=32)


def shares() -> Any:
  """Returns numbers from 0 to 31/32: how much of an average is kept."""
  return st.one_of(st.just(0.0), positive(2.0**-6, 1.0 - 2.0**-5))


def numbers() -> Any:
  """Draws zero and numbers of both signs with `positive` sizes."""
  return st.one_of(st.just(0.0), positive(), positive().map(lambda size: -size))


def vectors(elements: Any = None) -> Any:
  """Draws weights or a gradient, [SIZE], by default of `numbers`."""
  return hypothesis_numpy.arrays(
      np.float64, SIZE, elements=numbers() if elements is None else elements
  )


def sequences(
    min_length: int = 1, max_length: int = 5, elements: Any = None
) -> Any:
  """Draws gradients of steps or changes of clients, [length, SIZE]."""
  return hypothesis_numpy.arrays(
      np.float64,
      st.tuples(st.integers(min_length, max_length), st.just(SIZE)),
      elements=numbers() if elements is None else elements,
  )


class Batches(NamedTuple):
  """The losses 1/2 x'Ax + b'x + c of a few steps, one batch each.

  Attributes:
    hessians: A, [steps, SIZE, SIZE].
    slopes: b, [steps, SIZE].
    constants: c, [steps].
  """

  hessians: np.ndarray
  slopes: np.ndarray
  constants: np.ndarray

  def value(self, k: int, x: np.ndarray) -> float:
    quadratic = 0.5 * x @ self.hessians[k] @ x
    return quadratic + self.slopes[k] @ x + self.constants[k]

  def gradient(self, k: int, x: np.ndarray) -> np.ndarray:
    return self.hessians[k] @ x + self.slopes[k]

  def __mul__(self, scale: Any) -> 'Batches':
    return Batches(*(scale * part for part in self))


def linear(slopes: Any, constant: float = 0.0) -> Batches:
  """Returns batches with constant gradients, [steps, SIZE]."""
  slopes = np.array(slopes, np.float64)
  num_steps = len(slopes)
  return Batches(
      np.zeros([num_steps, SIZE, SIZE]),
      slopes,
      np.full(num_steps, constant, np.float64),
  )


def quadratic(hessian: Any, num_steps: int = 1) -> Batches:
  """Returns the same batch again and again, with the minimum 0 at 0."""
  hessian = np.asarray(hessian, np.float64)
  return linear(np.zeros([num_steps, SIZE]))._replace(
      hessians=np.tile(hessian, [num_steps, 1, 1])
  )


class Curved(NamedTuple):
  """A positive definite matrix, [SIZE, SIZE], and its extreme eigenvalues."""

  hessian: np.ndarray
  smallest: float
  largest: float


@st.composite
def hessians(draw: Any) -> Curved:
  """Returns matrices with eigenvalues from 1/8 to 32, in any rotation."""
  curvatures = draw(vectors(positive(0.125, 32.0)))
  generator = np.random.default_rng(draw(st.integers(0, 2**16)))
  rotation, _ = np.linalg.qr(generator.normal(size=[SIZE, SIZE]))
  return Curved(
      rotation @ np.diag(curvatures) @ rotation.T,
      np.min(curvatures),
      np.max(curvatures),
  )


# Starting points on a quadratic, away from its minimum.
STARTS = vectors(positive(0.5, 4.0))


@st.composite
def batch_sequences(draw: Any, max_length: int = 5) -> Batches:
  """Draws batches of a client, each with its own curvature and minimum."""
  curved = draw(st.lists(hessians(), min_size=1, max_size=max_length))
  slopes = draw(sequences(len(curved), len(curved)))
  return linear(slopes)._replace(hessians=np.array([c.hessian for c in curved]))
