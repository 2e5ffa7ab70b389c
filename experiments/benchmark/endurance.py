# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a process holds while it trains for a long time."""

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

# Caches, allocators and compiled graphs are full by then.
_WARM_UP_SHARE = 0.25


class Sample(NamedTuple):
  """What this process and its children hold after a round.

  Attributes:
    round_num: The number of finished rounds.
    seconds: The time since the first round began.
    megabytes: Their resident memory.
    num_files: Their open files and sockets.
    num_threads: Their threads.
  """

  round_num: int
  seconds: float
  megabytes: float
  num_files: int
  num_threads: int


class Growth(NamedTuple):
  """How what is held has grown over the rounds after the first quarter.

  Attributes:
    megabytes_per_1000_rounds: The slope of a line through the memory.
    num_files: How many files more there are at the end than at the beginning.
    num_threads: Likewise, threads.
  """

  megabytes_per_1000_rounds: float
  num_files: int
  num_threads: int


def _take_sample(round_num: int, start: float) -> Sample:
  """Returns what is held now."""
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
  """Trains, with another cohort in every round.

  Args:
    workload: The workload.
    runtime: What executes the rounds.
    settings: How many rounds, and how.
    rounds_per_sample: How often to look.

  Yields:
    What is held before the first round, and after every so many.

  Raises:
    ValueError: If the plan is not known.
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
  """Returns how what is held has grown.

  Args:
    samples: What `train` has yielded; those of the first quarter of the rounds
      do not count.

  Returns:
    The growth.

  Raises:
    ValueError: If less than two samples are left.
  """
  last = samples[-1].round_num if samples else 0
  kept = [s for s in samples if s.round_num >= _WARM_UP_SHARE * last]
  if len(kept) < 2:
    raise ValueError(
        'Growth needs two samples or more after the first quarter of the '
        f'rounds, found {len(kept)}: look more often.'
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
  """Writes a row a sample.

  Args:
    samples: The samples.
    path: The file.

  Raises:
    OSError: If it cannot be written; names it.
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
  """Draws memory, files and threads over the rounds.

  Args:
    samples: The samples.
    path: The picture.
    title: What was trained.

  Raises:
    OSError: If it cannot be written; names it.
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
