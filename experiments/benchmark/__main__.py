# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Measures the seconds per round on several runtimes, side by side.

For example:

  python -m experiments.benchmark --workload=tiny_many,emnist_cnn \
    --runtimes=native,compiled --json=times.jsonl

prints one table per workload and appends one line per runtime to the file.
Runtimes alternate every two rounds, and only the second round is timed; medians
exclude three warm-up turns.

  python -m experiments.benchmark --workload=algorithms --rounds=3

compares algorithms, after one warm-up turn. For each algorithm the table shows
the ratio of its time to that of the first algorithm, and the ratio explained by
its evaluations of gradients and losses.

  python -m experiments.benchmark --workload=tasks --data_dir=data --rounds=3

trains every task, on synthetic data if the folder lacks the data set. One
column shows the share of a round spent waiting for prefetched clients.

  python -m experiments.benchmark --workload=all --export=bundle

writes programs and a runner for a machine that has an accelerator and JAX, but
not TensorFlow: `python run_bundle.py` in that folder measures them.

With --mode it measures something else, with flags of its own (see `--mode=soak
--help`): soak, whether memory, files and threads grow over thousands of rounds;
scaling, rounds on Ray workers.
"""

from collections.abc import Iterator, Mapping, Sequence
import dataclasses
import importlib
import tempfile
from typing import Any, Optional

from absl import flags

from experiments import command_line
from experiments import flag_table
from experiments import registry
from experiments.benchmark import reports
from experiments.benchmark import workloads
from experiments.flag_table import field

_TIMES = 'times'
# The modes, and the modules with their flags and main functions.
_MODES = {
    _TIMES: '',
    'soak': 'experiments.benchmark.soak',
    'scaling': 'experiments.benchmark.scaling',
}
_ALL = 'all'
_TASKS = registry.ROWS[registry.TASK]
# Flags that not all workloads use, and the kinds of those that do.
_USERS = {
    'runtimes': (workloads.COMPARE_RUNTIMES, workloads.TRAIN_TASKS),
    'algorithms': (workloads.COMPARE_ALGORITHMS,),
    'tasks': (workloads.TRAIN_TASKS,),
    'data_dir': (workloads.TRAIN_TASKS,),
}
_NOT_EXPORTED = (*_USERS, 'json', 'peers')


@dataclasses.dataclass
class _ModeFlags:
  """The flag of all modes.

  Attributes:
    mode: What is measured.
  """

  mode: str = field(_TIMES, enum_values=_MODES)


@dataclasses.dataclass
class _Flags:
  """The flags.

  Attributes:
    workload: The workloads to train, or all: {workloads}.
    runtimes: The runtimes, of {runtimes}. The first is the baseline. xla is the
      compiled one with programs of XLA on the CPU; ray_2 is Ray with 2 workers
      on this machine.
    algorithms: The algorithms that the workload algorithms compares on the
      compiled runtime, of {algorithms}. The first is the baseline.
    tasks: The tasks that the workload tasks trains, of {tasks}.
    peers: JSON-lines files of other libraries, to show in the tables.
    json: The file to which one JSON line per runtime is appended.
    data_dir: The folder of the data sets, for the workload tasks. Default:
      synthetic data.
    export: A folder to write the workloads to, as programs of that many rounds
      for an accelerator on a machine with JAX alone; nothing is measured.
    devices: The device of the compiled runtime, as of experiments.train.
    num_parallel_clients: The number of clients at once on the compiled runtime.
      Default: its choice.
    rounds: The number of timed rounds.
    inter_op_threads: Threads for independent ops; 0 to suit the clients.
    intra_op_threads: Threads within an op; 0 to suit the clients.
  """

  workload: Sequence[str] = ('tiny_many',)
  runtimes: Sequence[str] = ('native', 'compiled')
  algorithms: Sequence[str] = tuple(workloads.ALGORITHMS)
  tasks: Sequence[str] = tuple(_TASKS)
  peers: Sequence[str] = ()
  json: Optional[str] = None
  data_dir: Optional[str] = None
  export: Optional[str] = None
  devices: str = 'auto'
  num_parallel_clients: Optional[int] = field(None, lower_bound=1)
  rounds: int = field(10, lower_bound=1)
  inter_op_threads: int = field(0, lower_bound=0)
  intra_op_threads: int = field(0, lower_bound=0)


def define(flag_values: flags.FlagValues = flags.FLAGS):
  """Defines the flags of the mode `times`."""
  flag_table.define(_ModeFlags, flag_values)
  flag_table.define(
      _Flags,
      flag_values,
      workloads='; '.join(
          f'{name}: {workload.summary}'
          for name, workload in workloads.WORKLOADS.items()
      ),
      runtimes=', '.join(workloads.RUNTIMES),
      algorithms=', '.join(workloads.ALGORITHMS),
      tasks=', '.join(_TASKS),
  )


def _choose(flag: str, known: Mapping[str, Any]) -> list[Any]:
  """Returns the distinct rows that a flag names, in its order."""
  names = list(dict.fromkeys(flags.FLAGS[flag].value))
  unknown = [name for name in names if name not in known]
  if unknown or not names:
    found = repr(unknown[0]) if unknown else 'nothing'
    raise command_line.UserError(
        f'--{flag} takes {", ".join(known)}, found {found}'
    )
  return [known[name] for name in names]


def _choose_workloads() -> list[workloads.Workload]:
  everything = list(workloads.WORKLOADS.values())
  chosen = _choose('workload', {**workloads.WORKLOADS, _ALL: everything})
  return everything if everything in chosen else chosen


def _check_used(chosen: Sequence[workloads.Workload]):
  """Raises if a flag that was given, or an export, would have no effect."""
  exports = flags.FLAGS.export is not None
  kinds = {workload.kind for workload in chosen}
  if exports and workloads.COMPARE_RUNTIMES not in kinds:
    names = ', '.join(workload.name for workload in chosen)
    raise command_line.UserError(
        f'--export writes {", ".join(workloads.OF_RUNTIMES)}, found {names}'
    )
  for flag in _NOT_EXPORTED:
    if exports and flags.FLAGS[flag].present:
      raise command_line.UserError(
          f'--{flag} has no effect with --export, drop one of them'
      )
  for flag, users in _USERS.items():
    if flags.FLAGS[flag].present and kinds.isdisjoint(users):
      names = ' or '.join(
          name for name, w in workloads.WORKLOADS.items() if w.kind in users
      )
      raise command_line.UserError(
          f'--{flag} is used by --workload={names}; give one of them, or drop '
          f'--{flag}'
      )


def _read_peers() -> list[reports.Line]:
  """Reads the peers' files, and checks that ours can be written."""
  with command_line.errors_as(command_line.UserError, OSError, ValueError):
    if flags.FLAGS.json is not None:
      reports.append(flags.FLAGS.json, [])
    return reports.read(flags.FLAGS.peers)


def main():
  """Runs the workloads that the flags name."""
  chosen = _choose_workloads()
  # Fails on a typo before the seconds that importing TensorFlow takes.
  _choose('runtimes', workloads.RUNTIMES)
  _choose('algorithms', workloads.ALGORITHMS)
  _choose('tasks', _TASKS)
  _check_used(chosen)
  peers = _read_peers()
  command_line.prepare_libraries()
  from experiments.benchmark import measurement  # pylint: disable=import-outside-toplevel

  settings = measurement.Settings(
      num_rounds=flags.FLAGS.rounds,
      devices=flags.FLAGS.devices,
      num_parallel_clients=flags.FLAGS.num_parallel_clients,
      inter_op_threads=flags.FLAGS.inter_op_threads,
      intra_op_threads=flags.FLAGS.intra_op_threads,
  )
  with command_line.errors_as(command_line.UserError, ValueError):
    settings.apply()
  if flags.FLAGS.export is not None:
    from experiments.benchmark import bundle  # pylint: disable=import-outside-toplevel

    for line in bundle.write(chosen, flags.FLAGS.export, settings):
      print(line, flush=True)
    return
  for workload in chosen:
    for lines in _measure(workload, settings):
      print(reports.format_table(lines, peers), end='\n\n', flush=True)
      if flags.FLAGS.json is not None:
        reports.append(flags.FLAGS.json, lines)


def _measure(workload: workloads.Workload, settings) -> Iterator[list[Any]]:
  """Yields the lines of each table of a workload."""
  # pylint: disable=import-outside-toplevel
  from experiments.benchmark import comparisons
  from experiments.benchmark import measurement
  # pylint: enable=import-outside-toplevel

  runtimes = _choose('runtimes', workloads.RUNTIMES)
  if workload.kind == workloads.TRAIN_TASKS:
    with tempfile.TemporaryDirectory() as synthetic_dir:
      for row in _choose('tasks', _TASKS):
        yield comparisons.measure_task(
            row,
            runtimes,
            settings,
            data_dir=flags.FLAGS.data_dir,
            synthetic_dir=synthetic_dir,
        )
    return
  for clients_per_round in workload.clients_per_round:
    able = [r for r in runtimes if clients_per_round <= r.max_clients_per_round]
    if workload.kind == workloads.COMPARE_ALGORITHMS:
      chosen = _choose('algorithms', workloads.ALGORITHMS)
      yield comparisons.measure_algorithms(
          workload, clients_per_round, chosen, settings
      )
    elif able:
      yield measurement.measure(workload, clients_per_round, able, settings)


def _define_mode(arguments: Sequence[str]):
  """Defines the flags of the mode that the arguments name."""
  early = flags.FlagValues()
  flag_table.define(_ModeFlags, early)
  try:
    early(['benchmark', *arguments], known_only=True)
    mode = early.mode
  except flags.Error:
    mode = _TIMES  # Parsing all flags will say what is wrong.
  if mode == _TIMES:
    define()
  else:
    flag_table.define(_ModeFlags, flags.FLAGS)
    module = importlib.import_module(_MODES[mode])
    module.define()
    flags.adopt_module_key_flags(module)  # For --help.


def _run_mode():
  """Runs the mode that the flags name."""
  mode = flags.FLAGS.mode
  if mode == _TIMES:
    main()
  else:
    importlib.import_module(_MODES[mode]).main()


if __name__ == '__main__':
  command_line.run(_run_mode, _define_mode)
