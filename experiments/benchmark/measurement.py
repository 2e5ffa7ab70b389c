# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Times a workload on several runtimes, which take turns."""

from collections.abc import Callable, Iterator, Sequence
import contextlib
import functools
import gc
import os
import statistics
import threading
import time
from typing import Any, Optional

import attrs
import numpy as np
import psutil
import tensorflow as tf
import tensorflow_federated as tff

from experiments import registry
from experiments import rounds as rounds_lib
from experiments.benchmark import models
from experiments.benchmark import reports
from experiments.benchmark import workloads
import tff_adaptive
from tff_adaptive import runtime as runtime_lib
from tff_adaptive.data import batching
from tff_adaptive.data import client_data
from tff_adaptive.data import cohort
from tff_adaptive.data import sampling
from tff_adaptive.runtime.scale_out import clusters

SEED = 0
_SECONDS_PER_SAMPLE = 0.1

CohortFn = Callable[[int], cohort.Cohort]


@attrs.frozen
class Settings:
  """The settings of a measurement.

  Attributes:
    num_rounds: The number of timed rounds.
    devices: The device of the compiled runtime.
    num_parallel_clients: The number of clients at once, of runtimes in this
      process; None for their own choice.
    inter_op_threads: Threads of this process for independent ops; 0 to suit the
      clients at once.
    intra_op_threads: Threads of this process within an op; 0 likewise.
  """

  num_rounds: int
  devices: str = attrs.field(default=runtime_lib.AUTO, kw_only=True)
  num_parallel_clients: Optional[int] = attrs.field(default=None, kw_only=True)
  inter_op_threads: int = attrs.field(default=0, kw_only=True)
  intra_op_threads: int = attrs.field(default=0, kw_only=True)

  def apply(self) -> None:
    """Sets the numbers of threads, before any TensorFlow op runs."""
    runtime_lib.set_threads(self.devices, self.num_parallel_clients)
    threading_config = tf.config.threading
    if number := self.inter_op_threads:
      threading_config.set_inter_op_parallelism_threads(number)
    if number := self.intra_op_threads:
      threading_config.set_intra_op_parallelism_threads(number)


class _PeakMemory:
  """The peak resident memory of this process, optionally with its children."""

  def __init__(self, with_children: bool):
    self._with_children = with_children
    self.megabytes = 0.0

  @contextlib.contextmanager
  def watch(self) -> Iterator[None]:
    """Samples the memory periodically, and at the end of the block."""
    processes = [psutil.Process()]
    if self._with_children:
      processes += processes[0].children(recursive=True)
    is_over = threading.Event()

    def sample():
      while not is_over.wait(_SECONDS_PER_SAMPLE):
        self._sample(processes)

    sampler = threading.Thread(target=sample)
    sampler.start()
    try:
      yield
    finally:
      is_over.set()
      sampler.join()
      self._sample(processes)

  def _sample(self, processes: list[psutil.Process]) -> None:
    num_bytes = 0
    for process in processes:
      with contextlib.suppress(psutil.NoSuchProcess):
        num_bytes += process.memory_info().rss
    self.megabytes = max(self.megabytes, num_bytes / 2**20)


def _distance(first: Any, second: Any) -> float:
  """Returns the Euclidean distance between the weights of two models."""
  squares = [
      np.sum(np.square(np.subtract(a, b, dtype=np.float64)))
      for a, b in zip(tf.nest.flatten(first), tf.nest.flatten(second))
  ]
  return float(np.sqrt(np.sum(squares)))


class Trainer:
  """The training of a workload on one runtime.

  Attributes:
    load_before: The load average of the machine before the process was built.
    runtime: The runtime.
    context: The runtime's context.
    workload: The workload.
    num_warm_up_turns: The number of turns that are not timed. By the default,
      tracing, compilation and the growth of memory are over.
    seconds: The seconds of each round so far.
    measured: What `measure` returned after each of them.
    memory: The peak memory so far.
  """

  def __init__(
      self,
      runtime: workloads.Runtime,
      context: tff.framework.SyncContext,
      workload: workloads.Workload,
      build_process: Callable[[], tff.learning.templates.LearningProcess],
      cohort_fn: CohortFn,
      *,
      num_warm_up_turns: int = 3,
      measure: Callable[['Trainer', Any], Any] = lambda trainer, metrics: None,
  ):
    """Builds the process.

    Args:
      runtime: The runtime.
      context: Its context.
      workload: The workload.
      build_process: Builds the learning process.
      cohort_fn: Maps a round number to its cohort.
      num_warm_up_turns: The number of turns that are not timed.
      measure: Measures a round of a turn, besides its time, given the trainer
        and the metrics of the round. By default nothing.
    """
    self.load_before = os.getloadavg()[0]
    self.runtime = runtime
    self.context = context
    self.workload = workload
    self.num_warm_up_turns = num_warm_up_turns
    self.seconds: list[float] = []
    self.measured: list[Any] = []
    self._cohort_fn = cohort_fn
    self._measure = measure
    self.memory = _PeakMemory(with_children=runtime.row != registry.COMPILED)
    # Every runtime starts from the same weights.
    tf.keras.utils.set_random_seed(SEED)
    self.rounds = rounds_lib.Rounds(build_process())
    with self._installed():
      self.rounds.state = self.rounds.process.initialize()
    self._first_weights = self._weights()
    # Collecting the imports takes 0.2 s, which must not fall into a round.
    gc.collect()

  def _installed(self):
    return tff.framework.get_context_stack().install(self.context)

  def _weights(self) -> Any:
    return self.rounds.state.global_model_weights.trainable

  def train_round(self, round_num: int) -> Any:
    """Trains a round without timing it, and returns its metrics."""
    with self._installed():
      clients = self._cohort_fn(round_num)
      return self.rounds.train(
          clients if self.runtime.takes_cohorts else list(clients)
      )

  def take_turn(self, turn: int) -> None:
    """Trains and times two rounds with different clients.

    Only the second counts: in the first, the processor's caches and clock are
    still in the state that another runtime left.
    """
    with self.memory.watch():
      for round_num in (2 * turn, 2 * turn + 1):
        start = time.perf_counter()
        metrics = self.train_round(round_num)
        self.seconds.append(time.perf_counter() - start)
        self.measured.append(self._measure(self, metrics))

  def timed(self, values: Sequence[Any]) -> Sequence[Any]:
    """Returns the values of the timed rounds, out of those of all rounds."""
    return values[2 * self.num_warm_up_turns + 1 :: 2]

  @property
  def plan(self) -> Any:
    """The plan for running clients, if the runtime has plans."""
    return self.context.plan_of(self.rounds.process.next)

  def distance(self) -> float:
    """Returns the distance of the weights from their initial values.

    Raises:
      RuntimeError: If the weights did not move or are not finite, which makes
        the measured times meaningless.
    """
    distance = _distance(self._first_weights, self._weights())
    if not 0 < distance < float('inf'):
      raise RuntimeError(
          f'The runtime {self.runtime.name!r} did not train: the weights moved '
          f'by {distance}.'
      )
    return distance


def build_cohort_fn(
    workload: workloads.Workload, clients_per_round: int
) -> tuple[client_data.ClientArrays, CohortFn]:
  """Builds the data of a workload and the cohorts of its rounds.

  Args:
    workload: The workload.
    clients_per_round: The number of clients in a round.

  Returns:
    The data of all clients, and a function that maps a round to its cohort.
  """
  source = models.build_clients(workload, SEED)
  sample = sampling.build_client_sampling(
      source.client_ids, clients_per_round, SEED
  )
  plan = batching.BatchPlan(batch_size=workload.batch_size)

  def build_cohort(round_num: int) -> cohort.Cohort:
    return cohort.Cohort(
        source, sample(round_num), round_num=round_num, seed=SEED, plan=plan
    )

  return source, build_cohort


@contextlib.contextmanager
def open_contexts(
    runtimes: Sequence[workloads.Runtime], settings: Settings
) -> Iterator[list[tff.framework.SyncContext]]:
  """Opens the contexts of several runtimes at once.

  Args:
    runtimes: The runtimes. Those with workers share a cluster that claims one
      core per worker, even if this machine has fewer, so that they can take
      turns.
    settings: The settings of the measurement.

  Yields:
    The contexts, in order.
  """
  num_workers = sum(r.arguments.get('num_workers', 0) for r in runtimes)
  with contextlib.ExitStack() as stack:
    if num_workers and clusters.connect(None, num_workers):
      stack.callback(clusters.disconnect)
    contexts = []
    for runtime in runtimes:
      arguments = dict(runtime.arguments)
      if runtime.row == registry.COMPILED:
        arguments.setdefault('devices', settings.devices)
      if runtime.takes_cohorts:
        arguments['num_parallel_clients'] = settings.num_parallel_clients
      build = registry.resolve(str(registry.RUNTIMES[runtime.row]))
      contexts.append(stack.enter_context(build(**arguments)))
    yield contexts


def _environment(trainer: Trainer) -> dict[str, Any]:
  """Returns the device, clients at once, threads and load."""
  if not trainer.runtime.takes_cohorts:
    # Its worker is another process, with TensorFlow's default threads.
    threads, plan = (0, 0), None
  else:
    threads = (
        tf.config.threading.get_inter_op_parallelism_threads(),
        tf.config.threading.get_intra_op_parallelism_threads(),
    )
    plan = trainer.plan
  return {
      'device': plan.device if plan else 'CPU:0',
      'num_parallel_clients': plan.num_parallel_clients if plan else None,
      'threads': dict(zip(('inter_op', 'intra_op'), threads)),
      'load_before': trainer.load_before,
      'load_after': os.getloadavg()[0],
  }


def report(clients_per_round: int, trainer: Trainer) -> reports.Line:
  """Returns the line of a finished measurement.

  Args:
    clients_per_round: The number of clients in a round.
    trainer: The trainer.
  """
  workload = trainer.workload
  seconds = trainer.timed(trainer.seconds)
  median = statistics.median(seconds)
  return {
      'peer': 'tff_adaptive',
      'version': tff_adaptive.__version__,
      'workload': workload.name,
      'peer_name': workload.peer_name or workload.name,
      'runtime': trainer.runtime.name,
      'variant': f'{workload.model} {workload.form}',
      'clients_per_round': clients_per_round,
      'rounds': len(seconds),
      'sec_per_round_median': round(median, 6),
      'min': round(min(seconds), 6),
      'max': round(max(seconds), 6),
      'first_round': round(trainer.seconds[0], 6),
      # Conversion, tracing and the optimization of graphs.
      'first_call_overhead': round(trainer.seconds[0] - median, 6),
      'sec_per_client': round(median / clients_per_round, 9),
      'peak_rss_mb': round(trainer.memory.megabytes, 1),
      'delta': round(trainer.distance(), 6),
      **_environment(trainer),
  }


def take_turns(trainers: Sequence[Trainer], settings: Settings) -> None:
  """Trains two rounds with each trainer in turn.

  Taking turns spreads the other load of the machine over all trainers.

  Args:
    trainers: The trainers, all with the same number of warm-up turns.
    settings: The settings of the measurement.
  """
  for turn in range(trainers[0].num_warm_up_turns + settings.num_rounds):
    for trainer in trainers:
      trainer.take_turn(turn)


@contextlib.contextmanager
def trained(
    workload: workloads.Workload,
    clients_per_round: int,
    runtimes: Sequence[workloads.Runtime],
    settings: Settings,
    **options: Any,
) -> Iterator[list[Trainer]]:
  """Trains a workload on all runtimes, two rounds each in turn.

  The memory of a runtime includes what this process keeps for the others: to
  compare memory, measure one runtime at a time.

  Args:
    workload: The workload.
    clients_per_round: The number of clients in a round.
    runtimes: The runtimes, in order.
    settings: The settings of the measurement.
    **options: Arguments of `Trainer`.

  Yields:
    One trainer per runtime, whose contexts are open.
  """
  with open_contexts(runtimes, settings) as contexts:
    source, cohort_fn = build_cohort_fn(workload, clients_per_round)
    trainers = [
        Trainer(
            runtime,
            context,
            workload,
            functools.partial(
                models.build_process, workload, source.element_spec
            ),
            cohort_fn,
            **options,
        )
        for runtime, context in zip(runtimes, contexts)
    ]
    take_turns(trainers, settings)
    yield trainers


def measure(
    workload: workloads.Workload,
    clients_per_round: int,
    runtimes: Sequence[workloads.Runtime],
    settings: Settings,
) -> list[reports.Line]:
  """Returns one line per runtime; see `trained` for the arguments.

  Raises:
    RuntimeError: If a runtime did not train.
  """
  with trained(workload, clients_per_round, runtimes, settings) as trainers:
    return [report(clients_per_round, trainer) for trainer in trainers]
