# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Trains for a long time, and checks that memory, files and threads stay flat.

For example:

  python -m experiments.benchmark --mode=soak --rounds=2000 \
    --output_dir=docs/results/soak

trains with a new cohort in every round, and writes `tiny_many.compiled.csv` and
`.png`: the memory, files and threads of the process and its children by round.
Exits with 1 if any of them grows.
"""

from collections.abc import Iterator, Sequence
import contextlib
import dataclasses
import pathlib
import time
from typing import Any, NamedTuple

from absl import flags
import numpy as np
import psutil

from experiments import command_line
from experiments import flag_table
from experiments import folders
from experiments import formatting
from experiments.benchmark import workloads
from experiments.flag_table import field

# By then, caches and allocators are full and graphs are compiled.
_WARM_UP_SHARE = 0.25
# Allocators and Python's caches fluctuate by some megabytes.
_MAX_MEGABYTES_PER_1000_ROUNDS = 5.0


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
  held = []
  for process in processes:
    with contextlib.suppress(psutil.NoSuchProcess):
      held.append(
          (process.memory_info().rss, process.num_fds(), process.num_threads())
      )
  num_bytes, num_files, num_threads = map(sum, zip(*held))
  seconds = time.perf_counter() - start
  return Sample(round_num, seconds, num_bytes / 2**20, num_files, num_threads)


def _train(
    workload: workloads.Workload,
    runtime: workloads.Runtime,
    num_rounds: int,
    rounds_per_sample: int,
) -> Iterator[Sample]:
  """Yields samples before the first round and after every few rounds."""
  # TensorFlow takes seconds to import, so --help and typos do without it.
  # pylint: disable=import-outside-toplevel
  from experiments.benchmark import measurement
  from experiments.benchmark import models
  # pylint: enable=import-outside-toplevel

  settings = measurement.Settings(num_rounds)
  settings.apply()
  source, cohort_fn = measurement.build_cohort_fn(
      workload, workload.clients_per_round[0]
  )
  with measurement.open_contexts([runtime], settings) as (context,):
    trainer = measurement.Trainer(
        runtime,
        context,
        workload,
        lambda: models.build_process(workload, source.element_spec),
        cohort_fn,
    )
    start = time.perf_counter()
    yield _take_sample(0, start)
    for round_num in range(1, num_rounds + 1):
      trainer.train_round(round_num)
      if round_num % rounds_per_sample == 0:
        yield _take_sample(round_num, start)
    trainer.distance()


def compute_growth(samples: Sequence[Sample]) -> Growth:
  """Returns the growth of the resources.

  Args:
    samples: The samples by round; those of the first quarter of the rounds are
      ignored.

  Returns:
    The growth.
  """
  last = samples[-1].round_num
  kept = [s for s in samples if s.round_num >= _WARM_UP_SHARE * last]
  slope, _ = np.polyfit(
      [s.round_num for s in kept], [s.megabytes for s in kept], 1
  )
  return Growth(
      1000 * float(slope),
      kept[-1].num_files - kept[0].num_files,
      kept[-1].num_threads - kept[0].num_threads,
  )


def _write_csv(samples: Sequence[Sample], path: pathlib.Path):
  """Writes one row per sample."""
  formatting.write_csv(
      path,
      Sample._fields,
      [
          (s.round_num, f'{s.seconds:.3f}', f'{s.megabytes:.1f}', *s[3:])
          for s in samples
      ],
  )


def _draw(samples: Sequence[Sample], path: pathlib.Path, title: str):
  """Plots memory, files and threads by round."""
  from tff_adaptive import analysis  # pylint: disable=import-outside-toplevel

  rounds = [sample.round_num for sample in samples]

  def curves(name: str) -> dict[str, Any]:
    values = [getattr(sample, name) for sample in samples]
    return {'held': analysis.BandCurve.of_line(rounds, values)}

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


@dataclasses.dataclass
class _Flags:
  """The flags.

  Attributes:
    workload: The workload to train.
    runtime: The runtime.
    rounds: The number of rounds.
    rounds_per_sample: The number of rounds between samples of the resources.
    output_dir: The folder for the table and the picture.
  """

  workload: str = field('tiny_many', enum_values=workloads.OF_RUNTIMES)
  runtime: str = field('compiled', enum_values=workloads.RUNTIMES)
  rounds: int = field(2000, lower_bound=1)
  rounds_per_sample: int = field(20, lower_bound=1)
  output_dir: str = 'runs/soak'


def define(flag_values: flags.FlagValues = flags.FLAGS):
  """Defines the flags."""
  flag_table.define(_Flags, flag_values)


def main(flag_values: flags.FlagValues = flags.FLAGS):
  """Trains according to the flags.

  Args:
    flag_values: The parsed flags.

  Raises:
    EnvironmentalError: If a resource grows, or a file cannot be written.
    UserError: If there are too few samples to decide.
  """
  rounds, every = flag_values.rounds, flag_values.rounds_per_sample
  if rounds < 4 * every:
    raise command_line.UserError(
        f'--rounds={rounds} yields too few samples with '
        f'--rounds_per_sample={every}; set --rounds={4 * every} or more'
    )
  folders.check_output_dir(flag_values.output_dir)
  command_line.prepare_libraries()
  workload, runtime = flag_values.workload, flag_values.runtime
  folder = pathlib.Path(flag_values.output_dir)
  table = folder / f'{workload}.{runtime}.csv'
  picture = table.with_suffix('.png')
  samples = []
  for sample in _train(
      workloads.WORKLOADS[workload], workloads.RUNTIMES[runtime], rounds, every
  ):
    samples.append(sample)
    if len(samples) % 10 == 1:
      with command_line.errors_as(command_line.EnvironmentalError, OSError):
        _write_csv(samples, table)
      print(
          f'round {sample.round_num}: {sample.megabytes:.0f} MB, '
          f'{sample.num_files} files, {sample.num_threads} threads',
          flush=True,
      )
  growth = compute_growth(samples)
  with command_line.errors_as(command_line.EnvironmentalError, OSError):
    _write_csv(samples, table)
    _draw(samples, picture, f'{workload} on {runtime}')
  text = (
      f'{growth.megabytes_per_1000_rounds:+.2f} MB per 1,000 rounds, '
      f'{growth.num_files:+d} files, {growth.num_threads:+d} threads'
  )
  print(f'table: {table}\npicture: {picture}\n{text}')
  if (
      growth.megabytes_per_1000_rounds > _MAX_MEGABYTES_PER_1000_ROUNDS
      or growth.num_files > 0
      or growth.num_threads > 0
  ):
    raise command_line.EnvironmentalError(f'resources grow: {text}')
