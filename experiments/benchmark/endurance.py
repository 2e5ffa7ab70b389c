# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Memory, files and threads of a process that trains for a long time."""

from collections.abc import Iterator, Sequence
import pathlib
import time
from typing import NamedTuple

import numpy as np
import psutil

from experiments import pages
from experiments.benchmark import measurement
from experiments.benchmark import models
from experiments.benchmark import workloads
from tff_adaptive import analysis

# By then, caches and allocators are full and graphs are compiled.
_WARM_UP_SHARE = 0.25


class Sample(NamedTuple):
  """The resources of this process and its children after a round.

  Attributes:
    round_num: The number of finished rounds.
    seconds: The time since the start of the first round.
    megabytes: The resident memory.
    num_files: The number of open files and sockets.
    num_threads: The number of threads.
  """

  round_num: int
  seconds: float
  megabytes: float
  num_files: int
  num_threads: int


class Growth(NamedTuple):
  """The growth of the resources after the first quarter of the rounds.

  Attributes:
    megabytes_per_1000_rounds: The slope of a line fitted to the memory.
    num_files: The change in the number of open files.
    num_threads: The change in the number of threads.
  """

  megabytes_per_1000_rounds: float
  num_files: int
  num_threads: int


def _take_sample(round_num: int, start: float) -> Sample:
  """Returns a sample of the current resources."""
  this = psutil.Process()
  processes = [this, *this.children(recursive=True)]
  held = [
      (process.memory_info().rss, process.num_fds(), process.num_threads())
      for process in processes
      if process.is_running()
  ]
  num_bytes, num_files, num_threads = map(sum, zip(*held))
  seconds = time.perf_counter() - start
  return Sample(round_num, seconds, num_bytes / 2**20, num_files, num_threads)


def train(
    workload: workloads.Workload,
    runtime: workloads.Runtime,
    settings: measurement.Settings,
    *,
    rounds_per_sample: int,
) -> Iterator[Sample]:
  """Trains with a new cohort in every round.

  Args:
    workload: The workload.
    runtime: The runtime.
    settings: The number of rounds and the settings of the measurement.
    rounds_per_sample: The number of rounds between samples.

  Yields:
    Samples before the first round and after every `rounds_per_sample` rounds.

  Raises:
    ValueError: If the plan is unknown.
  """
  source, cohort_fn = measurement.build_cohort_fn(
      workload, workload.clients_per_round[0]
  )
  with measurement.open_context(runtime, settings) as context:
    trainer = measurement.Trainer(
        runtime,
        context,
        workload,
        lambda: models.build_process(workload, source.element_spec),
    )
    start = time.perf_counter()
    yield _take_sample(0, start)
    for round_num in range(1, settings.num_rounds + 1):
      trainer.train_round(round_num, cohort_fn)
      if round_num % rounds_per_sample == 0:
        yield _take_sample(round_num, start)
    trainer.distance()


def compute_growth(samples: Sequence[Sample]) -> Growth:
  """Returns the growth of the resources.

  Args:
    samples: The samples that `train` yielded; those of the first quarter of the
      rounds are ignored.

  Returns:
    The growth.

  Raises:
    ValueError: If fewer than two samples remain.
  """
  last = samples[-1].round_num if samples else 0
  kept = [s for s in samples if s.round_num >= _WARM_UP_SHARE * last]
  if len(kept) < 2:
    raise ValueError(
        'Growth needs at least two samples after the first quarter of the '
        f'rounds, found {len(kept)}: take samples more often.'
    )
  slope, _ = np.polyfit(
      [s.round_num for s in kept], [s.megabytes for s in kept], 1
  )
  return Growth(
      1000 * float(slope),
      kept[-1].num_files - kept[0].num_files,
      kept[-1].num_threads - kept[0].num_threads,
  )


def write_csv(samples: Sequence[Sample], path: pathlib.Path):
  """Writes one row per sample.

  Args:
    samples: The samples.
    path: The file.

  Raises:
    OSError: If the file cannot be written; names it.
  """
  pages.write_csv(
      path,
      Sample._fields,
      [
          (s.round_num, f'{s.seconds:.3f}', f'{s.megabytes:.1f}', *s[3:])
          for s in samples
      ],
  )


def draw(samples: Sequence[Sample], path: pathlib.Path, title: str):
  """Plots memory, files and threads by round.

  Args:
    samples: The samples.
    path: The picture to write.
    title: The title of the picture.

  Raises:
    OSError: If the picture cannot be written; names the file.
  """
  rounds = [sample.round_num for sample in samples]

  def curves(name: str) -> dict[str, analysis.BandCurve]:
    values = [getattr(sample, name) for sample in samples]
    return {'held': measurement.curve(rounds, values)}

  analysis.plot_band_curves(
      {
          'memory (MB)': curves('megabytes'),
          'open files': curves('num_files'),
          'threads': curves('num_threads'),
      },
      path,
      title=title,
      y_min=0.0,
  )
