# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""A pipeline as people write it, and the laws by which its results agree."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Optional

import attrs
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.runtime import plans


@attrs.frozen
class Law:
  """How results of the two runtimes have to agree.

  Attributes:
    text: The law in words.
    difference: Returns the difference of the results of all rounds on TFF's
      runtime and on the compiled one; infinite if they break the law.
    limit: The largest difference that the law allows.
  """

  text: str
  difference: Callable[[Sequence[Any], Sequence[Any]], float]
  limit: float


@attrs.frozen(eq=False)
class Run:
  """A pipeline that was built: it runs in the context that is installed.

  Attributes:
    rounds: Returns an iterator. Its first value is that of the start; each
      later one is the result of a round.
    computation: The computation of a round.
  """

  rounds: Callable[[], Iterator[Any]]
  computation: tff.framework.ConcreteComputation


@attrs.frozen
class Pipeline:
  """A pipeline.

  Attributes:
    name: Its name in the table.
    build: Builds its computations and clients.
    path: The way that its computation is expected to take.
    law: How its results have to agree.
    max_ratio: The share of TFF's CPU seconds that it should not exceed.
    known_ratio: The share that it does not exceed; `max_ratio` where it is as
      it should be.
    cause: Why it exceeds `max_ratio`; empty if it does not.
  """

  name: str
  build: Callable[[], Run]
  path: str
  law: Law
  max_ratio: float
  known_ratio: float
  cause: str


# By name, in the order of definition.
PIPELINES: dict[str, Pipeline] = {}


def pipeline(
    path: str,
    law: Optional[Law] = None,
    max_ratio: float = 0.3,
    known_ratio: Optional[float] = None,
    cause: str = '',
) -> Callable[[Callable[[], Run]], Callable[[], Run]]:
  """Adds the decorated builder to `PIPELINES`, under its name.

  Args:
    path: See `Pipeline`.
    law: See `Pipeline`. Defaults to `EQUAL`.
    max_ratio: See `Pipeline`. Defaults to 0.3, for data that fit in memory.
    known_ratio: See `Pipeline`. Defaults to `max_ratio`.
    cause: See `Pipeline`.
  """
  if path not in plans.PATHS:
    raise ValueError(f'`path` must be one of {plans.PATHS}, found {path!r}.')

  def add(build):
    name = build.__name__.replace('_', ' ')
    if name in PIPELINES:
      raise ValueError(f'Two pipelines have the name {name!r}.')
    PIPELINES[name] = Pipeline(
        name,
        build,
        path,
        law or EQUAL,
        max_ratio,
        known_ratio or max_ratio,
        cause,
    )
    return build

  return add


def _leaves(results: Sequence[Any]) -> list[np.ndarray]:
  return list(map(np.asarray, tf.nest.flatten(list(results))))


def _is_float(leaf: np.ndarray) -> bool:
  return np.issubdtype(leaf.dtype, np.floating)


def _differ_elsewhere(native: Sequence[Any], compiled: Sequence[Any]) -> bool:
  """Returns whether anything but the values of floats differs."""
  tf.nest.assert_same_structure(list(native), list(compiled))
  return any(
      left.shape != right.shape
      or left.dtype != right.dtype
      or not (_is_float(left) or np.array_equal(left, right))
      for left, right in zip(_leaves(native), _leaves(compiled))
  )


def _largest_difference(
    native: Sequence[Any], compiled: Sequence[Any]
) -> float:
  if _differ_elsewhere(native, compiled):
    return np.inf
  largest = 0.0
  for left, right in zip(_leaves(native), _leaves(compiled)):
    if not _is_float(left) or not left.size:
      continue
    if not np.array_equal(np.isnan(left), np.isnan(right)):
      return np.inf
    gaps = np.abs(left - right) / np.maximum(1, np.abs(left))
    largest = max(largest, float(np.nan_to_num(gaps).max()))
  return largest


# Relative for numbers above 1.
EQUAL = Law('equal', _largest_difference, 1e-5)


def _vector(result: Any) -> np.ndarray:
  floats = [leaf.ravel() for leaf in _leaves([result]) if _is_float(leaf)]
  return np.concatenate(floats)


def _share_of_way(native: Sequence[Any], compiled: Sequence[Any]) -> float:
  if _differ_elsewhere(native, compiled) or _repeat(compiled):
    return np.inf
  start, *ours = map(_vector, compiled)
  shares = [
      np.linalg.norm(left - right) / np.linalg.norm(left - start)
      for left, right in zip(map(_vector, native[1:]), ours)
  ]
  return float(max(shares))


def _repeat(results: Sequence[Any]) -> bool:
  """Returns whether two rounds have the same result to the bit."""
  vectors = [_vector(result).tobytes() for result in results]
  return len(set(vectors)) < len(vectors)


def near(share: float) -> Law:
  """Returns the law of training with random numbers of its own.

  Args:
    share: The limit of the distance between the weights on both runtimes, as a
      share of the way from the start.
  """
  return Law(
      f'weights within {share:g} of the way from the start',
      _share_of_way,
      share,
  )


def drawn(mean: float, deviation: float) -> Law:
  """Returns the law of results that are samples, drawn anew in each round.

  Args:
    mean: The mean of the distribution.
    deviation: Its standard deviation.
  """

  def errors(results):
    values = np.concatenate(list(map(_vector, results[1:])))
    if _repeat(results[1:]):
      return np.inf
    of_mean = abs(values.mean() - mean) / deviation
    # Its standard error is that of the mean, divided by the root of two.
    of_deviation = np.sqrt(2) * abs(values.std() / deviation - 1)
    return np.sqrt(len(values)) * max(of_mean, of_deviation)

  return Law(
      f'mean {mean:g} and deviation {deviation:g} within 5 standard errors, '
      'drawn anew in each round',
      lambda native, compiled: max(errors(native), errors(compiled)),
      5.0,
  )
