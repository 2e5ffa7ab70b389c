# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The parts of the report, each a process; imports no TensorFlow."""

from collections.abc import Iterator, Mapping
import json
import math
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import time
from typing import Any, NamedTuple, Optional

from experiments import command_line
from experiments import published
from experiments.benchmark import workloads
from experiments.sweep import processes
from tff_adaptive import _files

GOLDENS = ('goldens', 'tuning_free', 'methods_2026')
# 10,000 clients would take two of the ten minutes on a GPU.
WORKLOADS = tuple(name for name in workloads.OF_RUNTIMES if name != 'scaling')
PROTOCOLS = published.ROOT / 'experiments/presets/simulators'
_LIMIT_SECONDS = 300.0


class Part(NamedTuple):
  """A process whose output is on the page.

  Attributes:
    name: The name of its output files.
    command: The program and its arguments.
    environment: Environment variables to set.
    num_cores: The number of cores that it may use; None for all.
  """

  name: str
  command: tuple[str, ...]
  environment: Mapping[str, str] = {}
  num_cores: Optional[int] = None


class Setup(NamedTuple):
  """A device and a number of clients at once for the workloads.

  Attributes:
    device: 'CPU' or 'GPU'.
    num_parallel_clients: The number of clients that run at once.
  """

  device: str
  num_parallel_clients: int

  def __str__(self) -> str:
    """Returns a text such as 'GPU, 4 at once'."""
    return f'{self.device}, {self.num_parallel_clients} at once'


class _Size(NamedTuple):
  """The amount of work.

  Attributes:
    rounds: The timed rounds of a workload.
    goldens: The reference trajectories to replay from each file.
    protocol: Flags for the trainings of protocols.
  """

  rounds: int
  goldens: int
  protocol: tuple[str, ...]


_WHOLE = _Size(3, 30, ('--total_rounds=20', '--rounds_per_evaluation=10'))
_DRY = _Size(1, 4, ('--total_rounds=3', '--max_examples=20'))


class Report:
  """The parts that have run in a folder, and their output.

  Attributes:
    folder: The folder.
    temporary: A folder in it that nothing needs at the end.
    results: For each part by name: its `command`, its `seconds` and its
      `error`, which is None for a success.
  """

  def __init__(self, folder: pathlib.Path):
    """Reads the results of an earlier call, if any.

    Raises:
      ValueError: If the file of the results is damaged.
    """
    self.folder = folder
    # A name that no folder of a user has.
    self.temporary = folder / '.gpu_report'
    self.results: dict[str, dict[str, Any]] = {}
    self._path = folder / 'parts.json'
    if self._path.exists():
      try:
        self.results = json.loads(self._path.read_text(encoding='utf-8'))
      except ValueError as error:
        raise ValueError(
            f'{self._path} is damaged ({error}); delete it to begin anew'
        ) from error

  def path(self, name: str, suffix: str = '.txt') -> pathlib.Path:
    """Returns the path of a part's output.

    Args:
      name: The part.
      suffix: `.txt` (the default) for what it printed, `.jsonl` for times,
        `.csv` for the metrics of a training.
    """
    return self.folder / 'output' / f'{name}{suffix}'

  def read(self, name: str) -> str:
    """Returns what a part printed; empty if it has not run."""
    path = self.path(name)
    if not path.exists():
      return ''
    return path.read_text(encoding='utf-8', errors='replace').strip()

  def run(self, part: Part) -> bool:
    """Runs a part, unless the same command has succeeded before.

    Args:
      part: The part.

    Returns:
      Whether it ran.

    Raises:
      OSError: If its output cannot be written.
    """
    found = self.results.get(part.name)
    command = shlex.join(part.command)
    if found and found['command'] == command and not found['error']:
      return False
    # Not by a pattern: a protocol may have the name of a workload.
    for suffix in ('.txt', '.jsonl', '.csv'):
      self.path(part.name, suffix).unlink(missing_ok=True)
    run = self.temporary / part.name
    shutil.rmtree(run, ignore_errors=True)
    start = time.monotonic()
    error = _run(part, self.path(part.name))
    seconds = round(time.monotonic() - start, 1)
    if (run / 'metrics.csv').exists():
      shutil.copy(run / 'metrics.csv', self.path(part.name, '.csv'))
    self.results[part.name] = dict(
        command=command, seconds=seconds, error=error
    )
    _files.write(self._path, json.dumps(self.results, indent=2) + '\n')
    return True


def _run(part: Part, log: pathlib.Path) -> Optional[str]:
  """Runs a process to its end; returns the reason if it fails."""
  process = processes.start(
      processes.Job(part.command, log, environment=part.environment),
      processes.available_cores()[: part.num_cores],
  )
  try:
    code = process.wait(_LIMIT_SECONDS)
  except subprocess.TimeoutExpired:
    return f'stopped after {_LIMIT_SECONDS:.0f} seconds'
  finally:
    command_line.kill_group(process)
  return f'exit code {code}: {processes.read_last_line(log)}' if code else None


def list_machine_parts() -> list[Part]:
  """Returns the parts that look at the machine; the first is the doctor."""
  # Not in a fork, where TensorFlow is imported already.
  doctor = (sys.executable, '-u', '-m', 'tff_adaptive.doctor')
  found = [Part('doctor', doctor)]
  if shutil.which('nvidia-smi'):
    found.append(Part('nvidia_smi', ('nvidia-smi',)))
  return found


def find_gpus(report: Report) -> Optional[str]:
  """Returns the GPUs that the doctor has listed; None if there are none."""
  found = re.search(r'^GPUs +(/.*)$', report.read('doctor'), re.M)
  return found[1] if found else None


def list_setups(has_gpu: bool) -> list[Setup]:
  """Returns the devices and numbers of clients at once to compare.

  Args:
    has_gpu: Whether TensorFlow sees a GPU.
  """
  num_cores = len(processes.available_cores())
  found = [Setup('CPU', 1), Setup('CPU', num_cores)]
  if has_gpu:
    found += [Setup('GPU', 1), Setup('GPU', min(4, num_cores))]
  return list(dict.fromkeys(found))


def list_parts(
    report: Report, has_gpu: bool, data_dir: Optional[str]
) -> Iterator[Part]:
  """Yields the parts that train.

  Args:
    report: The report.
    has_gpu: Whether TensorFlow sees a GPU; otherwise it is a dry run.
    data_dir: The folder of the data sets; None for synthetic data.
  """
  size = _WHOLE if has_gpu else _DRY
  for name in GOLDENS:
    # The name tells a dry run, on the CPU, from one on a GPU.
    path = report.temporary / f'{name}.{size.goldens}.json'
    _sample_goldens(name, path, size.goldens)
    yield Part(
        name,
        (*processes.PYTHON, 'experiments.conformance', f'--goldens={path}'),
        # TensorFloat-32 has three digits, too few for the tolerances.
        {'NVIDIA_TF32_OVERRIDE': '0'},
    )
  for workload in WORKLOADS:
    for setup in list_setups(has_gpu):
      yield _time_workload(report, workload, setup, size.rounds)
  for name in read_published_times():
    command = (
        *processes.PYTHON,
        'experiments.train',
        f'--flagfile={PROTOCOLS / name}.flags',
        *([f'--data_dir={data_dir}'] if data_dir else _on_synthetic_data(name)),
        *size.protocol,
        f'--output_dir={report.temporary}',
    )
    yield Part(name, command)


def _on_synthetic_data(name: str) -> list[str]:
  """Returns flags that train a protocol on synthetic data."""
  found = ['--use_synthetic_data']
  if name == 'pfl_cifar10':
    # There are fewer examples; a round has as many clients as before.
    found.append('--cifar10_num_clients=80')
  return found


def name_of(workload: str, setup: Setup) -> str:
  """Returns the name of the part that times a workload."""
  return f'{workload}.{setup.device}_{setup.num_parallel_clients}'


def _time_workload(
    report: Report, workload: str, setup: Setup, rounds: int
) -> Part:
  name = name_of(workload, setup)
  command = (
      *processes.PYTHON,
      'experiments.benchmark',
      f'--workload={workload}',
      '--runtimes=compiled',
      f'--num_parallel_clients={setup.num_parallel_clients}',
      f'--rounds={rounds}',
      f'--json={report.path(name, ".jsonl")}',
  )
  hidden = {} if setup.device == 'GPU' else {'CUDA_VISIBLE_DEVICES': '-1'}
  # Clients at once have a core each; one at a time may use all cores.
  at_once = setup.num_parallel_clients
  return Part(name, command, hidden, at_once if at_once > 1 else None)


def _sample_goldens(name: str, path: pathlib.Path, number: int):
  """Writes some of the reference trajectories of a file, evenly spaced."""
  source = published.ROOT / f'tests/goldens/{name}.json'
  content = json.loads(source.read_text(encoding='utf-8'))
  runs = content['runs']
  content['runs'] = runs[:: math.ceil(len(runs) / number)]
  path.parent.mkdir(parents=True, exist_ok=True)
  _files.write(path, json.dumps(content))


def read_published_times() -> dict[str, str]:
  """Returns the published time of each protocol, by the name of its preset."""
  text = (PROTOCOLS / 'README.md').read_text(encoding='utf-8')
  return dict(re.findall(r'^\| `(\w+)\.flags` \|.*\| (.+) \|$', text, re.M))
