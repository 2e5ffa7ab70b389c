# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Measures rounds on Ray workers, and predicts rounds on many workers.

For example:

  python -m experiments.scaling --workload=emnist_cnn --rounds=10 \
    --output_dir=docs/results/scaling

trains on the compiled runtime and with 1 and 2 workers on this machine, in
turns, and splits each round into the clients' work, the network traffic and the
driver's work. From a round with one worker it predicts rounds of a large cohort
on up to 100 machines, in `emnist_cnn.csv` and `.png`.
"""

from collections.abc import Iterator, Sequence
import dataclasses
import pathlib

from absl import flags

from experiments import command_line
from experiments import flag_table
from experiments.benchmark import reports
from experiments.benchmark import workloads
from experiments.flag_table import field

_RAY = {
    str(runtime.arguments['num_workers']): runtime
    for runtime in workloads.RUNTIMES.values()
    if runtime.row == 'ray'
}


@dataclasses.dataclass
class _Flags:
  """The flags.

  Attributes:
    workload: The workload to train.
    workers: The numbers of workers to measure, of {workers}; 1 is always added.
    predict: The numbers of workers to predict.
    rounds: The number of timed rounds.
    clients: The number of clients per round to predict.
    gigabits_per_second: The bandwidth of the driver's network, to predict.
    plan: The plan for running clients.
    output_dir: The folder for the table and the picture.
  """

  workload: str = field('emnist_cnn', enum_values=workloads.OF_RUNTIMES)
  workers: Sequence[str] = ('1', '2')
  predict: Sequence[str] = ('1', '2', '4', '8', '16', '32', '64', '100')
  rounds: int = field(10, lower_bound=1)
  clients: int = field(1000, lower_bound=1)
  gigabits_per_second: float = field(10.0, lower_bound=1e-6)
  plan: str = field('parallel', enum_values=('loop', 'parallel'))
  output_dir: str = 'runs/scaling'


def define(flag_values: flags.FlagValues = flags.FLAGS):
  """Defines the flags."""
  flag_table.define(_Flags, flag_values, workers=', '.join(_RAY))


def main(flag_values: flags.FlagValues = flags.FLAGS):
  """Measures and predicts rounds according to the flags.

  Args:
    flag_values: The parsed flags.

  Raises:
    UserError: If a number of workers cannot be measured or predicted.
    EnvironmentalError: If a file cannot be written.
  """
  runtimes = [workloads.RUNTIMES['compiled'], *_runtimes(flag_values.workers)]
  predicted = sorted(_positive_integers(flag_values.predict))
  folder = pathlib.Path(flag_values.output_dir)
  with command_line.errors_as(command_line.EnvironmentalError, OSError):
    folder.mkdir(parents=True, exist_ok=True)
  command_line.prepare_libraries()
  # pylint: disable=import-outside-toplevel
  from experiments.benchmark import measurement
  from experiments.benchmark import speedup
  # pylint: enable=import-outside-toplevel

  settings = measurement.Settings(flag_values.rounds, flag_values.plan)
  settings.apply()
  workload = workloads.WORKLOADS[flag_values.workload]
  measured = speedup.measure(workload, runtimes, settings)
  print(reports.format_table(measured.lines), end='\n\n')
  model = speedup.ScalingModel(
      measured.costs[1],
      workload.clients_per_round[0],
      flag_values.gigabits_per_second * 1e9 / 8,
  )
  print(command_line.align(_compare(model, measured.costs)), end='\n\n')
  predictions = speedup.predict(measured, model, predicted, flag_values.clients)
  print(f'{flag_values.clients} clients per round, predicted')
  print(command_line.align(_format(predictions)))
  with command_line.errors_as(command_line.EnvironmentalError, OSError):
    path = folder / f'{workload.name}.csv'
    speedup.write_csv(predictions, path)
    speedup.draw(
        predictions,
        path.with_suffix('.png'),
        f'{workload.name}: {flag_values.clients} clients per round',
    )
  print(f'\ntable: {path}\npicture: {path.with_suffix(".png")}')


def _runtimes(names: list[str]) -> list[workloads.Runtime]:
  """Returns the runtimes with the given numbers of workers, and with one."""
  for name in names:
    if name not in _RAY:
      raise command_line.UserError(
          f'--workers takes {", ".join(_RAY)}, found {name!r}'
      )
  return [_RAY[name] for name in sorted({'1', *names})]


def _positive_integers(texts: list[str]) -> Iterator[int]:
  for text in texts:
    if not text.isdecimal() or not int(text):
      raise command_line.UserError(
          f'--predict takes positive integers, found {text!r}'
      )
    yield int(text)


def _compare(model, costs) -> Iterator[list[str]]:
  """Yields the parts of the measured rounds and their predictions."""
  yield (
      'workers,seconds,predicted,work,merge,server,bytes down,bytes up'
  ).split(',')
  for number, found in costs.items():
    seconds = (
        found.seconds,
        model.predict(number, model.num_clients, found.num_chunks).seconds,
        found.work_seconds,
        found.merge_seconds,
        found.server_seconds,
    )
    num_bytes = found.broadcast_bytes + found.chunk_bytes, found.sum_bytes
    yield [
        str(number),
        *(f'{value:.4f}' for value in seconds),
        *(f'{value:,.0f}' for value in num_bytes),
    ]


def _format(predictions) -> Iterator[list[str]]:
  """Yields the rows of the predictions."""
  yield 'workers,seconds,work,network,driver,faster'.split(',')
  for p in predictions:
    seconds = p.seconds, p.work_seconds, p.network_seconds, p.driver_seconds
    yield [
        str(p.num_workers),
        *(f'{value:.3f}' for value in seconds),
        f'{predictions[0].seconds / p.seconds:.1f}',
    ]


if __name__ == '__main__':
  define()
  command_line.run(main)
