# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Measures rounds on Ray workers, and predicts rounds on many workers.

For example:

  python -m experiments.benchmark --mode=scaling --rounds=10 \
    --output_dir=docs/results/scaling

trains on the compiled runtime and with 1 and 2 workers on this machine, in
turns, and splits each round into the clients' work, the network traffic and the
driver's work. From a round with one worker it predicts rounds of a large cohort
on up to 100 machines, in `emnist_cnn.csv` and `.png`.
"""

from collections.abc import Iterator, Sequence
import dataclasses
import math
import pathlib
from typing import Any, Optional

from absl import flags
import attrs

from experiments import command_line
from experiments import flag_table
from experiments import folders
from experiments import formatting
from experiments.benchmark import reports
from experiments.benchmark import workloads
from experiments.flag_table import field

_RAY = {
    str(runtime.arguments['num_workers']): runtime
    for runtime in workloads.RUNTIMES.values()
    if runtime.row == 'ray'
}


# The times of a `Prediction`: that of a round, and its parts.
_PARTS = ('seconds', 'work_seconds', 'network_seconds', 'driver_seconds')


@attrs.frozen
class Prediction:
  """The predicted time of a round.

  Attributes:
    num_workers: The number of workers, each on its own machine.
    num_clients: The number of clients.
    work_seconds: The time until the last worker has finished its chunks.
    network_seconds: The time of the driver's network traffic.
    driver_seconds: The time of the driver's own work: prepare, distribute,
      merge, report and update.
    num_bytes: The driver's network traffic.
  """

  num_workers: int
  num_clients: int
  work_seconds: float
  network_seconds: float
  driver_seconds: float
  num_bytes: int

  @property
  def seconds(self) -> float:
    """The time of the round, assuming that no parts overlap."""
    return self.work_seconds + self.network_seconds + self.driver_seconds


@attrs.frozen
class ScalingModel:
  """A model of the time of a round, from the parts of one on one worker.

  Attributes:
    costs: The costs of a measured round, or medians over several rounds.
    num_clients: The number of clients in the measured round.
    bytes_per_second: The bandwidth of the driver's network.
  """

  costs: Any  # A `scale_out.RoundCosts`, of a module with TensorFlow.
  num_clients: int
  bytes_per_second: float

  def predict(
      self, num_workers: int, num_clients: int, num_chunks: int
  ) -> Prediction:
    """Predicts a round of clients like the measured ones.

    The model assumes that all traffic passes through the driver's single
    network interface, that a worker has one core, and that work, network and
    merging do not overlap. The remaining time of the measured round is the
    packing and unpacking of messages, which grows with their bytes. The
    prediction therefore errs on the slow side, provided that all workers are as
    fast as the measured one.

    Args:
      num_workers: The number of workers.
      num_clients: The number of clients.
      num_chunks: The number of chunks of the cohort.
    """
    costs = self.costs
    clients_ratio = num_clients / self.num_clients
    chunks_ratio = num_chunks / costs.num_chunks
    work = costs.work_seconds * clients_ratio / num_chunks
    known = costs.server_seconds + costs.merge_seconds + costs.work_seconds
    overhead = max(0.0, costs.seconds - known)
    num_bytes = self._bytes(num_workers, clients_ratio, chunks_ratio)
    return Prediction(
        num_workers,
        num_clients,
        work * math.ceil(num_chunks / num_workers),
        num_bytes / self.bytes_per_second,
        costs.server_seconds
        + costs.merge_seconds * chunks_ratio
        + overhead * num_bytes / self._bytes(1, 1.0, 1.0),
        num_bytes,
    )

  def _bytes(
      self, num_workers: int, clients_ratio: float, chunks_ratio: float
  ) -> int:
    """Returns the bytes that pass through the driver's network."""
    return round(
        self.costs.broadcast_bytes * num_workers
        + self.costs.chunk_bytes * clients_ratio
        + self.costs.sum_bytes * chunks_ratio
    )


def _write_csv(predictions: Sequence[Prediction], path: pathlib.Path):
  """Writes one row per prediction."""
  rows = [
      {
          'num_workers': p.num_workers,
          'num_clients': p.num_clients,
          **{part: f'{getattr(p, part):.6f}' for part in _PARTS},
          'num_bytes': p.num_bytes,
      }
      for p in predictions
  ]
  formatting.write_csv_rows(path, rows)


def _draw(predictions: Sequence[Prediction], path: pathlib.Path, title: str):
  """Plots the speed-up of a round over the first prediction."""
  from tff_adaptive import analysis  # pylint: disable=import-outside-toplevel

  first = predictions[0]
  numbers = [p.num_workers for p in predictions]

  analysis.plot_band_curves(
      {
          'a round': {
              'predicted': analysis.BandCurve.of_line(
                  numbers, [first.seconds / p.seconds for p in predictions]
              ),
              'ideal': analysis.BandCurve.of_line(
                  numbers, [number / first.num_workers for number in numbers]
              ),
          }
      },
      path,
      title=title,
      x_label='workers',
      y_label='times faster',
      log_x=True,
      log_y=True,
  )


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
    num_parallel_clients: The number of clients at once, per worker.
    output_dir: The folder for the table and the picture.
  """

  workload: str = field('emnist_cnn', enum_values=workloads.OF_RUNTIMES)
  workers: Sequence[str] = ('1', '2')
  predict: Sequence[str] = ('1', '2', '4', '8', '16', '32', '64', '100')
  rounds: int = field(10, lower_bound=1)
  clients: int = field(1000, lower_bound=1)
  gigabits_per_second: float = field(10.0, lower_bound=1e-6)
  num_parallel_clients: Optional[int] = field(None, lower_bound=1)
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
  folders.check_output_dir(flag_values.output_dir)
  folder = pathlib.Path(flag_values.output_dir)
  command_line.prepare_libraries()
  # pylint: disable=import-outside-toplevel
  from experiments.benchmark import comparisons
  from experiments.benchmark import measurement
  # pylint: enable=import-outside-toplevel

  settings = measurement.Settings(
      num_rounds=flag_values.rounds,
      num_parallel_clients=flag_values.num_parallel_clients,
  )
  settings.apply()
  workload = workloads.WORKLOADS[flag_values.workload]
  measured = comparisons.measure_workers(workload, runtimes, settings)
  print(reports.format_table(measured.lines), end='\n\n')
  model = ScalingModel(
      measured.costs[1],
      workload.clients_per_round[0],
      flag_values.gigabits_per_second * 1e9 / 8,
  )
  print(formatting.align(_compare(model, measured.costs)), end='\n\n')
  num_clients = flag_values.clients
  num_chunks = -(-num_clients // measured.plan.chunk_size_of(num_clients))
  predictions = [
      model.predict(number, num_clients, num_chunks) for number in predicted
  ]
  title = f'{num_clients} clients per round'
  print(f'{title}, predicted')
  print(formatting.align(_format(predictions)))
  with command_line.errors_as(command_line.EnvironmentalError, OSError):
    path = folder / f'{workload.name}.csv'
    _write_csv(predictions, path)
    picture = path.with_suffix('.png')
    _draw(predictions, picture, f'{workload.name}: {title}')
  print(f'\ntable: {path}\npicture: {picture}')


def _runtimes(names: list[str]) -> list[workloads.Runtime]:
  """Returns the runtimes with the given numbers of workers, and with one."""
  for name in names:
    if name not in _RAY:
      raise command_line.UserError(
          f'--workers takes {", ".join(_RAY)}, found {name!r}'
      )
  return [_RAY[name] for name in sorted({'1', *names})]


def _positive_integers(texts: list[str]) -> Iterator[int]:
  for text in texts or ['']:
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
    yield [
        str(p.num_workers),
        *(f'{getattr(p, part):.3f}' for part in _PARTS),
        f'{predictions[0].seconds / p.seconds:.1f}',
    ]
