# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs pipelines on both runtimes, in turns, and measures their rounds."""

from collections.abc import Iterator
import functools
import math
import statistics
import time
from typing import Any, NamedTuple, Optional
import warnings

import attrs
import psutil
import tensorflow as tf
import tensorflow_federated as tff

from tests.pipelines import custom
from tests.pipelines import examples
from tests.pipelines import pipeline
from tests.pipelines import research
from tests.pipelines import scripts
from tests.pipelines import tutorials
from tff_adaptive import runtime

# Imported for their pipelines.
MODULES = (tutorials, custom, examples, research, scripts)

# The rounds whose results are compared; a later one may go wrong alone.
NUM_ROUNDS = 3
_NUM_SAMPLES = 5
# A sample of short rounds has several, as the system counts CPU time in ticks.
_SAMPLE_SECONDS = 0.3
_NUM_CLIENTS = 3


class Cost(NamedTuple):
  """The seconds of a round, as medians of five samples.

  Attributes:
    cpu: Those of the cores, in this process and its children.
    wall: Those that passed.
  """

  cpu: float
  wall: float


@attrs.frozen
class Comparison:
  """What a pipeline did on both runtimes.

  Attributes:
    difference: The difference by its law.
    path: The way that its computation took.
    native: The cost on TFF's runtime; None if it was not measured.
    compiled: The cost on the compiled runtime; None likewise.
  """

  difference: float
  path: Optional[str]
  native: Optional[Cost] = None
  compiled: Optional[Cost] = None

  @property
  def ratio(self) -> float:
    """The share of TFF's CPU seconds that the compiled runtime needed."""
    assert self.native is not None and self.compiled is not None
    return self.compiled.cpu / self.native.cpu


@functools.cache
def native_context() -> runtime.NativeContext:
  """Returns TFF's runtime, one worker for all pipelines."""
  return runtime.NativeContext(
      secure_sums_in_clear=True, default_num_clients=_NUM_CLIENTS
  )


@functools.cache
def compiled_context() -> runtime.CompiledContext:
  """Returns the compiled runtime, one context for all pipelines."""
  return runtime.CompiledContext(seed=1, default_num_clients=_NUM_CLIENTS)


def close() -> None:
  """Ends the workers of both contexts."""
  for build in (native_context, compiled_context):
    build().close()
    build.cache_clear()


def _next(context: tff.framework.SyncContext, rounds: Iterator[Any]) -> Any:
  with tff.framework.get_context_stack().install(context):
    return next(rounds)


def _cpu_seconds() -> float:
  """Returns the CPU seconds of this process and its children."""
  total = time.process_time()
  for child in psutil.Process().children(recursive=True):
    try:
      total += sum(child.cpu_times()[:2])
    except psutil.NoSuchProcess:
      pass  # A process that ended meanwhile tells no times.
  return total


def _sample(
    context: tff.framework.SyncContext, rounds: Iterator[Any], number: int
) -> Cost:
  """Returns the cost of a round, as the mean of a number of them."""
  cpu, wall = _cpu_seconds(), time.perf_counter()
  for _ in range(number):
    _next(context, rounds)
  wall = time.perf_counter() - wall
  return Cost((_cpu_seconds() - cpu) / number, wall / number)


def _number_of_rounds(
    context: tff.framework.SyncContext, rounds: Iterator[Any]
) -> int:
  """Returns how many rounds make a sample."""
  seconds = _sample(context, rounds, 1).wall
  return max(1, min(100, math.ceil(_SAMPLE_SECONDS / seconds)))


def compare(name: str, costs: bool = False) -> Comparison:
  """Runs a pipeline on both runtimes.

  Args:
    name: A key of `PIPELINES`.
    costs: Whether to measure its rounds, too. Defaults to False.

  Returns:
    What it did.
  """
  # Tests may have left one, which would seed all shuffles.
  tf.random.set_seed(None)
  chosen = pipeline.PIPELINES[name]
  contexts = (native_context(), compiled_context())
  with warnings.catch_warnings():
    # The paths are compared by name; a pipeline needs no second warning.
    warnings.simplefilter('ignore')
    run = chosen.build()
    rounds = [run.rounds() for _ in contexts]
    results = [
        [_next(*pair) for _ in range(1 + NUM_ROUNDS)]
        for pair in zip(contexts, rounds)
    ]
    difference = chosen.law.difference(*results)
    path = compiled_context().path_of(run.computation)
    if not costs:
      return Comparison(difference, path)
    numbers = list(map(_number_of_rounds, contexts, rounds))
    samples = [
        list(map(_sample, contexts, rounds, numbers))
        for _ in range(_NUM_SAMPLES)
    ]
  medians = [
      Cost(*map(statistics.median, zip(*of_one))) for of_one in zip(*samples)
  ]
  return Comparison(difference, path, *medians)
