# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Measures a GPU against the CPU, and writes one page.

  python -m experiments.benchmark --mode=gpu

checks the machine; replays reference trajectories on the GPU; trains the
workloads of experiments.benchmark on GPU and CPU, with one client at a time and
with several; and some rounds of the protocols of FLUTE and pfl-research. That
takes about ten minutes. Without a GPU it is a dry run on the CPU, with fewer
rounds.

OUTPUT_DIR gets report.md and the output of each part; send the
whole folder to share the measurements. If a part fails, the page has its error,
and the others run. The same command again runs only what failed or is missing.
"""

import dataclasses
import pathlib
import shutil
from typing import Optional

from absl import flags

from experiments import command_line
from experiments import flag_table
from experiments import folders
from experiments import formatting
from experiments.benchmark import gpu_page as page
from experiments.benchmark import gpu_parts as parts_lib

_NO_GPU = 'no GPU found: dry run on the CPU'
_NO_LIBRARIES = (
    'nvidia-smi runs here, but TensorFlow sees no GPU: docs/guide/gpu.md says '
    'what to install.'
)


@dataclasses.dataclass
class _Flags:
  """The flags.

  Attributes:
    output_dir: The folder of the page.
    data_dir: The folder of the data sets of the protocols. Default: synthetic
      data of the same shapes.
  """

  output_dir: str = 'runs/gpu_report'
  data_dir: Optional[str] = None


def define(flag_values: flags.FlagValues = flags.FLAGS):
  """Defines the flags."""
  flag_table.define(_Flags, flag_values)


def main(flag_values: flags.FlagValues = flags.FLAGS):
  """Runs all parts and writes the page.

  Args:
    flag_values: The parsed flags.

  Raises:
    EnvironmentalError: If a part failed, after the others have run, or a file
      cannot be written.
    UserError: If a folder does not exist or cannot be used.
  """
  folders.check_output_dir(flag_values.output_dir)
  folders.check_data_dir(flag_values.data_dir)
  folder = pathlib.Path(flag_values.output_dir).resolve()
  with (
      command_line.errors_as(command_line.EnvironmentalError, OSError),
      folders.locked(folder),
  ):
    with command_line.errors_as(command_line.UserError, ValueError):
      report = parts_lib.Report(folder)
    failed = _run(report, flag_values.data_dir)
  print(f'page: {report.folder / "report.md"}')
  if failed:
    raise command_line.EnvironmentalError(
        f'{len(failed)} parts failed, see the end of the page: '
        f'{", ".join(failed)}'
    )


def _run(report: parts_lib.Report, data_dir: Optional[str]) -> list[str]:
  """Runs all parts; returns the names of those that failed."""
  machine = parts_lib.list_machine_parts()
  print('Looking at the machine ...', flush=True)
  for part in machine:
    # Its drivers may have changed since an earlier call.
    report.results.pop(part.name, None)
    report.run(part)
  gpus = parts_lib.find_gpus(report)
  print(gpus or _NO_GPU, flush=True)
  drivers = machine[1:]  # nvidia-smi, where it is installed.
  if gpus is None and drivers and not page.list_failed(report, drivers):
    print(_NO_LIBRARIES, flush=True)
  if data_dir is not None:
    data_dir = str(pathlib.Path(data_dir).resolve())
  page.write(report, machine, gpus)
  others = list(parts_lib.list_parts(report, gpus is not None, data_dir))
  for number, part in enumerate(others, start=1):
    print(f'[{number}/{len(others)}] {part.name}', end=' ', flush=True)
    is_new = report.run(part)
    result = report.results[part.name]
    took = formatting.format_seconds(result['seconds'])
    print('' if is_new else 'before:', result['error'] or took, flush=True)
    page.write(report, [*machine, *others[:number]], gpus)
  shutil.rmtree(report.temporary)
  return page.list_failed(report, [*machine, *others])
