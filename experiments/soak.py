# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Trains for a long time, and checks that memory, files and threads stay flat.

For example:

  python -m experiments.soak --workload=tiny_many --rounds=2000 \
    --output_dir=docs/results/soak

trains with a new cohort in every round, and writes `tiny_many.compiled.csv` and
`.png`: the memory, files and threads of the process and its children by round.
Exits with 1 if any of them grows.
"""

import dataclasses
import pathlib

from absl import flags

from experiments import command_line
from experiments import flag_table
from experiments.benchmark import workloads
from experiments.flag_table import field

# Allocators and Python's caches fluctuate by some megabytes.
_MAX_MEGABYTES_PER_1000_ROUNDS = 5.0


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
  folder = pathlib.Path(flag_values.output_dir)
  with command_line.errors_as(command_line.EnvironmentalError, OSError):
    folder.mkdir(parents=True, exist_ok=True)
  command_line.prepare_libraries()
  # pylint: disable=import-outside-toplevel
  from experiments.benchmark import endurance
  from experiments.benchmark import measurement
  # pylint: enable=import-outside-toplevel

  settings = measurement.Settings(rounds)
  settings.apply()
  samples = []
  for sample in endurance.train(
      workloads.WORKLOADS[flag_values.workload],
      workloads.RUNTIMES[flag_values.runtime],
      settings,
      rounds_per_sample=every,
  ):
    samples.append(sample)
    if len(samples) % 10 == 1:
      print(
          f'round {sample.round_num}: {sample.megabytes:.0f} MB, '
          f'{sample.num_files} files, {sample.num_threads} threads',
          flush=True,
      )
  growth = endurance.compute_growth(samples)
  name = f'{flag_values.workload}.{flag_values.runtime}'
  with command_line.errors_as(command_line.EnvironmentalError, OSError):
    endurance.write_csv(samples, folder / f'{name}.csv')
    endurance.draw(
        samples,
        folder / f'{name}.png',
        f'{flag_values.workload} on {flag_values.runtime}',
    )
  text = (
      f'{growth.megabytes_per_1000_rounds:+.2f} MB per 1,000 rounds, '
      f'{growth.num_files:+d} files, {growth.num_threads:+d} threads'
  )
  print(f'table: {folder / name}.csv\npicture: {folder / name}.png\n{text}')
  if (
      growth.megabytes_per_1000_rounds > _MAX_MEGABYTES_PER_1000_ROUNDS
      or growth.num_files > 0
      or growth.num_threads > 0
  ):
    raise command_line.EnvironmentalError(f'resources grow: {text}')


if __name__ == '__main__':
  define()
  command_line.run(main)
