# Copyright 2026 The tff_adaptive Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
r"""Measures rounds on Ray workers, and says what many workers would take.

For example:

  python -m experiments.scaling --workload=emnist_cnn --rounds=10 \
    --output_dir=docs/results/scaling

trains on the compiled runtime and with 1 and 2 workers of this machine, in
turns, and takes each round apart: the clients' work, what is sent, what the
driver does. From the parts of a round with one worker it predicts rounds of a
large cohort on up to 100 machines: `emnist_cnn.csv` and `.png`.
"""

from collections.abc import Iterator
import pathlib

from absl import flags

from experiments import command_line
from experiments.benchmark import reports
from experiments.benchmark import workloads
from experiments.scaling import model as model_lib

_RAY = {
    str(runtime.arguments['num_workers']): runtime
    for runtime in workloads.RUNTIMES.values()
    if runtime.row == 'ray'
}
_PREDICTED = ('1', '2', '4', '8', '16', '32', '64', '100')


def define(flag_values: flags.FlagValues = flags.FLAGS):
  """Defines the flags.

  Args:
    flag_values: Where to define them.
  """
  names = [
      name
      for name, workload in workloads.WORKLOADS.items()
      if workload.kind == workloads.RUNTIMES_OF_A_MODEL
  ]
  flags.DEFINE_enum(
      'workload', 'emnist_cnn', names, 'What to train.', flag_values=flag_values
  )
  for name, default, text in (
      (
          'workers',
          ['1', '2'],
          f'The numbers of workers to measure, of {", ".join(_RAY)}; with 1.',
      ),
      ('predict', list(_PREDICTED), 'The numbers of workers to predict.'),
  ):
    flags.DEFINE_list(name, default, text, flag_values=flag_values)
  for name, number, text in (
      ('rounds', 10, 'Rounds whose time counts.'),
      ('clients', 1000, 'Clients a round to predict.'),
  ):
    flags.DEFINE_integer(
        name, number, text, lower_bound=1, flag_values=flag_values
    )
  flags.DEFINE_float(
      'gigabits_per_second',
      10.0,
      "What the driver's network carries, to predict.",
      lower_bound=1e-6,
      flag_values=flag_values,
  )
  flags.DEFINE_enum(
      'plan',
      'parallel',
      ['loop', 'parallel'],
      'How clients work.',
      flag_values=flag_values,
  )
  flags.DEFINE_string(
      'output_dir',
      'runs/scaling',
      'The folder that gets the table and the picture.',
      flag_values=flag_values,
  )


def main(flag_values: flags.FlagValues = flags.FLAGS):
  """Measures and predicts as the flags say.

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
  from experiments.scaling import speedup
  # pylint: enable=import-outside-toplevel

  settings = measurement.Settings(flag_values.rounds, flag_values.plan)
  settings.apply()
  workload = workloads.WORKLOADS[flag_values.workload]
  measured = speedup.measure(workload, runtimes, settings)
  print(reports.format_table(measured.lines), end='\n\n')
  model = model_lib.ScalingModel(
      measured.costs[1],
      workload.clients_per_round[0],
      flag_values.gigabits_per_second * 1e9 / 8,
  )
  for line in _compare(model, measured.costs):
    print(line)
  predictions = speedup.predict(measured, model, predicted, flag_values.clients)
  print()
  for line in _format(predictions):
    print(line)
  with command_line.errors_as(command_line.EnvironmentalError, OSError):
    path = folder / f'{workload.name}.csv'
    speedup.write_csv(predictions, path)
    speedup.draw(
        predictions,
        path.with_suffix('.png'),
        f'{workload.name}: {flag_values.clients} clients a round',
    )
  print(f'\ntable: {path}\npicture: {path.with_suffix(".png")}')


def _runtimes(names: list[str]) -> list[workloads.Runtime]:
  """Returns the runtimes with these numbers of workers, and that with one."""
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


def _compare(model: model_lib.ScalingModel, costs) -> Iterator[str]:
  """Yields the parts of the measured rounds, and their predictions."""
  yield (
      'workers   seconds predicted      work     merge    server  bytes down'
      '    bytes up'
  )
  for number, found in costs.items():
    prediction = model.predict(number, model.num_clients, found.num_chunks)
    yield (
        f'{number:7d}{found.seconds:10.4f}{prediction.seconds:10.4f}'
        f'{found.work_seconds:10.4f}{found.merge_seconds:10.4f}'
        f'{found.server_seconds:10.4f}'
        f'{found.broadcast_bytes + found.chunk_bytes:12,.0f}'
        f'{found.sum_bytes:12,.0f}'
    )


def _format(
    predictions: list[model_lib.Prediction],
) -> Iterator[str]:
  """Yields the lines of the predictions."""
  yield (
      f'{predictions[0].num_clients} clients a round, predicted\n'
      'workers   seconds      work   network    driver    faster'
  )
  for p in predictions:
    yield (
        f'{p.num_workers:7d}{p.seconds:10.3f}{p.work_seconds:10.3f}'
        f'{p.network_seconds:10.3f}{p.driver_seconds:10.3f}'
        f'{predictions[0].seconds / p.seconds:10.1f}'
    )


if __name__ == '__main__':
  define()
  command_line.run(main)
