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
"""One training run: its parts, the loop and the curve, wired together."""

from collections.abc import Mapping
import contextlib
from typing import Any, Optional

import tensorflow as tf
import tensorflow_federated as tff

from experiments import command_line
from experiments import hparams
from experiments import registry
from experiments import run_parts
from experiments import warm_start
from tff_adaptive import runtime
from tff_adaptive.analysis import curves
from tff_adaptive.analysis import partition_plot
from tff_adaptive.simulation import callbacks
from tff_adaptive.simulation import checkpoints
from tff_adaptive.simulation import evaluation
from tff_adaptive.simulation import metrics_writers
from tff_adaptive.simulation import run_directory
from tff_adaptive.simulation import task as task_lib
from tff_adaptive.simulation import training_loop

_COMPILED = 'compiled'

_Choices = Mapping[str, hparams.Choice]


class _Device(callbacks.Callback):
  """Puts where clients work into the metrics: TFF's own runtime has no GPU."""

  def __init__(self, choices: _Choices):
    values = choices[registry.RUNTIME].hparams()
    self._device = values.get('devices', 'CPU:0')

  def measure(self, round_end):
    del round_end  # Unused.
    return {'device': self._device}


def describe(choices: _Choices) -> str:
  """Returns the title of a run: its methods and its task.

  Args:
    choices: The chosen rows.

  Returns:
    A line such as 'digits: fed_opt, delta_sgd on the clients, ...'.
  """
  names = {kind: choice.row.name for kind, choice in choices.items()}
  return (
      f'{names[registry.TASK]}: {names[registry.ALGORITHM]}, '
      f'{names[registry.CLIENT_OPTIMIZER]} on the clients, '
      f'{names[registry.SERVER_OPTIMIZER]} on the server'
  )


def set_threads(choices: _Choices):
  """Sets TensorFlow's threads as the runtime needs them; to be called first.

  Args:
    choices: The chosen rows.

  Raises:
    UserError: If the runtime is to use a device that there is not.
  """
  choice = choices[registry.RUNTIME]
  if choice.row.name == _COMPILED:
    with (
        command_line.errors_as(command_line.UserError, ValueError),
        # Where TensorFlow runs already, its threads are its user's.
        contextlib.suppress(RuntimeError),
    ):
      runtime.set_threads(**choice.hparams())


def collect_hparams(
    choices: _Choices,
    settings: hparams.Settings,
    protocol: task_lib.Protocol,
    start: warm_start.WarmStart,
) -> dict[str, Any]:
  """Returns every hyperparameter in force by flag, defaults filled in.

  Args:
    choices: The chosen rows.
    settings: The other flags.
    protocol: The numbers of training.
    start: The weights that the run begins with.

  Returns:
    What goes into `hparams.json`.
  """
  values = {kind: choice.row.name for kind, choice in choices.items()}
  for choice in choices.values():
    values.update(choice.hparams())
  values.update(settings.hparams())
  values.update({name: getattr(protocol, name) for name in run_parts.PROTOCOL})
  values.update(start.hparams())
  return values


def keep_plan(
    choices: _Choices, recorded: Optional[Mapping[str, Any]]
) -> _Choices:
  """Returns the choices with the plan of a run that is resumed.

  Args:
    choices: The chosen rows.
    recorded: The hyperparameters of the run; None for a new one.

  Returns:
    The choices; what the flags left to us is what it was before.
  """
  choice = choices[registry.RUNTIME]
  kept = {
      name: (recorded or {})[name]
      for name, value in choice.hparams().items()
      if value == runtime.AUTO and name in (recorded or {})
  }
  return {**choices, registry.RUNTIME: choice.with_values(**kept)}


def choose_plan(
    choices: _Choices, process: tff.learning.templates.LearningProcess
) -> _Choices:
  """Returns the choices with the device and the plan that suit a process.

  They go into `hparams.json`, so that the run can be resumed with the same.

  Args:
    choices: The chosen rows.
    process: The learning process of the run.

  Returns:
    The choices; those that the flags made stay.
  """
  choice = choices[registry.RUNTIME]
  if choice.row.name != _COMPILED:
    return choices
  plan = runtime.choose_plan(process, **choice.hparams())
  print(f"clients' work: {plan.device}, plan {plan.name}", flush=True)
  chosen = choice.with_values(devices=plan.device, plan=plan.name)
  return {**choices, registry.RUNTIME: chosen}


def train(choices: _Choices, settings: hparams.Settings):
  """Trains, or goes on with a run that was interrupted, and draws its curve.

  Args:
    choices: The chosen rows.
    settings: The other flags.

  Raises:
    UserError: If the data, the flags or the folder of the run do not fit.
    EnvironmentalError: If a file could not be written.
    TrainingInterrupted: After Ctrl-C.
  """
  directory = run_directory.RunDirectory(
      settings.output_dir, settings.experiment_name
  )
  tf.keras.utils.set_random_seed(settings.seed)
  with (
      command_line.errors_as(command_line.EnvironmentalError, OSError),
      command_line.errors_as(
          command_line.UserError,
          TypeError,
          ValueError,
          FileNotFoundError,
          run_directory.RunDirectoryError,
      ),
  ):
    protocol = run_parts.build_protocol(choices, settings)
    recorded = directory.read_hparams()
    choices = keep_plan(choices, recorded)
    start = warm_start.read(settings.initial_weights, recorded, directory.path)
    values = collect_hparams(choices, settings, protocol, start)
    # Kinds of rows that are built from the number of rounds: schedules.
    uses_total_rounds = [
        kind
        for kind, choice in choices.items()
        if 'total_rounds' in choice.row.supplied
    ]
    directory.check(values, uses_total_rounds)
    run_callbacks = run_parts.build_callbacks(settings, directory)
    task = run_parts.build_task(choices, settings, protocol)
    cohort_fn = run_parts.build_cohort_fn(task, settings.seed)
    process = run_parts.build_process(choices, task)
    client_store = run_parts.build_client_store(process, settings, directory)
    initial_state_fn = start.initial_state_fn(process, task)
    choices = choose_plan(choices, process)
    values = collect_hparams(choices, settings, protocol, start)
    evaluate_fn = evaluation.build_central_evaluation(
        task.functional_model or task.variable_model_fn, task.central_test
    )
  # Only now: random operations of a model may not even be built after this.
  tf.config.experimental.enable_op_determinism()
  with (
      command_line.errors_as(command_line.EnvironmentalError, OSError),
      command_line.errors_as(
          command_line.UserError,
          callbacks.UnknownMetricError,
          checkpoints.CheckpointError,
          metrics_writers.MetricsFileError,
      ),
  ):
    directory.open(values, uses_total_rounds)
    draw_partition(task, directory)
    # So that a resumed run on the native runtime draws the same numbers.
    with choices[registry.RUNTIME].build(seeded_clients=True):
      result = training_loop.run_training(
          process,
          cohort_fn=cohort_fn,
          total_rounds=protocol.total_rounds,
          evaluate_fn=evaluate_fn,
          rounds_per_evaluation=settings.rounds_per_evaluation,
          rounds_per_checkpoint=settings.rounds_per_checkpoint,
          checkpoints=checkpoints.CheckpointManager(
              directory.checkpoints, keep_total=settings.checkpoints_to_keep
          ),
          writers=[
              metrics_writers.CSVMetricsWriter(directory.metrics_csv),
              metrics_writers.TensorBoardMetricsWriter(directory.tensorboard),
          ],
          callbacks=[_Device(choices), *run_callbacks],
          initial_state_fn=initial_state_fn,
          client_store=client_store,
      )
    report(result, directory, describe(choices))


def draw_partition(task: task_lib.Task, directory: run_directory.RunDirectory):
  """Draws the clients by their classes, if the task has classes.

  Args:
    task: What is trained on.
    directory: The folder of the run.
  """
  picture = directory.plots / 'partition.png'
  if picture.exists() or task.num_classes is None:
    return
  if partition_plot.has_class_labels(task.train_data):
    partition_plot.plot_client_labels(
        task.train_data, task.num_classes, picture, f'clients of {task.name}'
    )
    print(f'partition: {picture}', flush=True)


def report(
    result: training_loop.TrainingResult,
    directory: run_directory.RunDirectory,
    title: str,
):
  """Draws the curve and prints where everything is; the accuracy comes last.

  Args:
    result: What the training ended with.
    directory: The folder of the run.
    title: The title of the curve.
  """
  curve = directory.plots / 'training.png'
  curves.plot_training_curve(directory.metrics_csv, curve, title)
  if result.stopped:
    print(
        f'Training ended after round {result.round_num}: the metric that is '
        'watched has not become better any more.'
    )
  elif result.num_new_rounds == 0:
    print(
        f'This run is finished: all {result.round_num} rounds were trained '
        'before; a larger --total_rounds goes on from here.'
    )
  print(f'metrics: {directory.metrics_csv}')
  print(f'curve: {curve}')
  print(f'checkpoints: {directory.checkpoints}')
  print(f'TensorBoard: tensorboard --logdir {directory.tensorboard}')
  evaluation_metrics = result.evaluation or {}
  for name in ('accuracy', 'loss'):
    if name in evaluation_metrics:
      print(f'test {name}: {evaluation_metrics[name]:.2f}')
      break
