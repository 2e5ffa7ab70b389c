# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""A training run: wires its parts, the training loop and the curve together."""

from collections.abc import Callable, Iterator, Mapping, Sequence
import contextlib
import functools
import shlex
from typing import Any, Optional

import attrs
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from experiments import command_line
from experiments import hparams
from experiments import registry
from experiments import settings as settings_lib
from experiments.run_results import environments
from experiments.run_results import inputs
from experiments.train import evaluations as evaluations_lib
from experiments.train import run_parts
from experiments.train import warm_start
from tasks import programs
from tff_adaptive import runtime
from tff_adaptive.analysis import client_plots
from tff_adaptive.analysis import training_curve
from tff_adaptive.data import client_data
from tff_adaptive.runtime import scale_out
from tff_adaptive.simulation import callbacks
from tff_adaptive.simulation import checkpoints
from tff_adaptive.simulation import interruptions
from tff_adaptive.simulation import kept_weights
from tff_adaptive.simulation import metrics_writers
from tff_adaptive.simulation import progress
from tff_adaptive.simulation import run_directory
from tff_adaptive.simulation import task as task_lib
from tff_adaptive.simulation import trackers
from tff_adaptive.simulation import training_loop
from tff_adaptive.simulation import weights_files
from tff_adaptive.tuning import rate_tuning

_CHOOSE = {
    registry.COMPILED: runtime.choose_plan,
    registry.RAY: scale_out.choose_ray_plan,
}

_Choices = Mapping[str, hparams.Choice]


def _keep_plan(
    choices: _Choices, recorded: Optional[Mapping[str, Any]]
) -> _Choices:
  """Returns the choices; values left open are those recorded."""
  choice = choices[registry.RUNTIME]
  recorded = recorded or {}
  try:
    if registry.RUNTIME in recorded:
      hparams.recorded_choice(registry.RUNTIME, recorded)
  except hparams.HparamError as error:
    raise command_line.UserError(
        f'the run was begun with another version of tff_adaptive ({error}); '
        'continue with that version, or choose another --experiment_name'
    ) from error
  kept = {
      name: recorded[name]
      for name, value in choice.hparams().items()
      if value in (runtime.AUTO, None) and name in recorded
  }
  return {**choices, registry.RUNTIME: choice.with_values(**kept)}


def _name_device(choices: _Choices) -> _Choices:
  """Returns the choices with the full name of the device.

  It is recorded in hparams.json, to resume with. The number of clients at once
  follows it, and on a CPU the number of cores, which does not change results.
  """
  choice = choices[registry.RUNTIME]
  if choice.row.name not in _CHOOSE:
    return choices
  plan = _CHOOSE[choice.row.name](**choice.hparams())
  return {**choices, registry.RUNTIME: choice.with_values(devices=plan.device)}


def _print_plan(choices: _Choices):
  choice = choices[registry.RUNTIME]
  if choice.row.name in _CHOOSE:
    plan = _CHOOSE[choice.row.name](**choice.hparams())
    number = plan.num_parallel_clients
    at_once = f', {number} at once' if number else ''
    if choice.row.name == registry.RAY:  # Each worker has cores of its own.
      at_once = " of Ray's workers"
    print(f"clients' work: {plan.device}{at_once}", flush=True)


class _Device(callbacks.Callback):
  """Adds the device of the clients' work to the metrics."""

  def __init__(self, choices: _Choices):
    values = choices[registry.RUNTIME].hparams()
    # TFF's own runtime has no GPU.
    self._device = values.get('devices', 'CPU:0')

  def measure(self, round_end):
    del round_end  # Unused.
    return {'device': self._device}


class _LearningRates(callbacks.Callback):
  """Adds the learning rates of a process to the metrics."""

  def __init__(self, process: tff.learning.templates.LearningProcess):
    self._process = process

  def measure(self, round_end):
    return rate_tuning.read_rates(self._process, round_end.state)


def describe(choices: _Choices) -> str:
  """Returns the title of a run: its methods and its task.

  Args:
    choices: The chosen rows.

  Returns:
    A line such as 'digits: fed_opt, delta_sgd on the clients, ...'.
  """
  names = {kind: choice.row.name for kind, choice in choices.items()}
  if choices[registry.ALGORITHM].row.pools_clients:
    return (
        f'{names[registry.TASK]}: {names[registry.ALGORITHM]}, '
        f'{names[registry.CLIENT_OPTIMIZER]} on the pooled examples'
    )
  loss_term = choices[registry.LOSS_TERM].row
  added = f' with {loss_term.name}' if loss_term.builder else ''
  return (
      f'{names[registry.TASK]}: {names[registry.ALGORITHM]}, '
      f'{names[registry.CLIENT_OPTIMIZER]}{added} on the clients, '
      f'{names[registry.SERVER_OPTIMIZER]} on the server'
  )


def set_threads(choices: _Choices):
  """Sets TensorFlow's threads for the runtime; must be called first.

  Args:
    choices: The chosen rows.

  Raises:
    UserError: If the chosen device does not exist.
  """
  choice = choices[registry.RUNTIME]
  if choice.row.name in _CHOOSE:
    # Workers have their own GPUs.
    is_ray = choice.row.name == registry.RAY
    values = {} if is_ray else choice.hparams()
    with (
        command_line.errors_as(command_line.UserError, ValueError),
        # If TensorFlow is already running, its threads are kept.
        contextlib.suppress(RuntimeError),
    ):
      runtime.set_threads(**values)


def _collect_hparams(
    choices: _Choices,
    settings: hparams.Settings,
    protocol: task_lib.Protocol,
    start: warm_start.WarmStart,
) -> dict[str, Any]:
  """Returns the contents of hparams.json, including defaults."""
  values = {kind: choice.row.name for kind, choice in choices.items()}
  for choice in choices.values():
    values.update(choice.hparams())
  values.update(settings.hparams())
  values.update(
      {name: getattr(protocol, name) for name in settings_lib.PROTOCOL}
  )
  values.update(start.hparams())
  return values


@attrs.frozen(eq=False, kw_only=True)
class _Run:
  """A run that is built and checked, but not yet written.

  Attributes:
    directory: The folder of the run.
    choices: The chosen rows, with the device of the run.
    hparams: The contents of `hparams.json`.
    uses_total_rounds: The kinds of rows that depend on the number of rounds,
      such as schedules.
    task: The task.
    get_weights: Maps a state to the weights that are evaluated.
    evaluations: The evaluations.
    train: Trains from the newest checkpoint.
  """

  directory: run_directory.RunDirectory
  choices: _Choices
  hparams: Mapping[str, Any]
  uses_total_rounds: Sequence[str]
  task: task_lib.Task
  get_weights: Callable[[Any], tff.learning.models.ModelWeights]
  evaluations: evaluations_lib.Evaluations
  train: Callable[[], training_loop.TrainingResult]


def train(choices: _Choices, settings: hparams.Settings):
  """Trains a new or interrupted run, and evaluates it.

  Args:
    choices: The chosen rows.
    settings: The other flags.

  Raises:
    UserError: If the data, the flags or the folder of the run are unsuitable.
    EnvironmentalError: If a file cannot be written.
    TrainingInterrupted: After Ctrl-C.
  """
  directory = run_directory.RunDirectory(
      settings.output_dir, settings.experiment_name
  )
  with _errors_of_user(run_directory.RunDirectoryError), directory.locked():
    _train(choices, settings, directory)


def _train(
    choices: _Choices,
    settings: hparams.Settings,
    directory: run_directory.RunDirectory,
):
  """Trains in a locked folder."""
  tf.keras.utils.set_random_seed(settings.seed)
  with (
      _errors_of_user(
          TypeError,
          ValueError,
          FileNotFoundError,
          run_directory.RunDirectoryError,
      ),
      inputs.watched() as reads,
  ):
    run = _build(choices, settings, directory)
  check_reads(choices, reads, directory, settings.data_dir)
  # Only now, since afterwards a model's random ops cannot even be built.
  tf.config.experimental.enable_op_determinism()
  with (
      _errors_of_user(
          callbacks.UnknownMetricError,
          checkpoints.CheckpointError,
          metrics_writers.MetricsFileError,
          trackers.TrackerError,
          runtime.UnsupportedComputationError,
      ),
      directory.opened(run.hparams, run.uses_total_rounds),
  ):
    environments.record(directory.path)
    record_inputs = functools.partial(
        inputs.record,
        directory.path,
        data_dir=settings.data_dir,
        own=[
            choice.row.name.partition(':')[0]
            for choice in choices.values()
            if registry.is_own(choice.row.name)
        ],
    )
    record_inputs(reads)
    _draw_partition(run)
    with run.choices[registry.RUNTIME].build():
      result = _train_rounds(run, record_inputs)
      _report(run, result)
      test = _evaluate_at_end(run, result)
      best = _describe_best(run, result, test)
  for line in filter(None, (best, _describe_test(test))):
    print(line)


def _train_rounds(
    run: _Run, record_inputs: Callable[[inputs.Reads], None]
) -> training_loop.TrainingResult:
  """Trains; records the files that clients are read from meanwhile."""
  with inputs.watched() as reads:
    try:
      return run.train()
    except interruptions.AllClientsRejectedError as error:
      raise command_line.UserError(
          f'{error} Other flags need another --experiment_name; '
          '--max_rejected_rounds=0 continues this run'
      ) from error
    finally:
      record_inputs(reads)


@contextlib.contextmanager
def _errors_of_user(*caught: type[Exception]) -> Iterator[None]:
  """Converts errors of a block to those that a binary reports in a sentence."""
  with (
      command_line.errors_as(
          command_line.EnvironmentalError, scale_out.ClusterError
      ),
      command_line.reporting(*caught),
  ):
    yield


def _build(
    choices: _Choices,
    settings: hparams.Settings,
    directory: run_directory.RunDirectory,
) -> _Run:
  """Builds a run, after the cheap checks."""
  protocol = run_parts.build_protocol(choices, settings)
  recorded = directory.read_hparams()
  choices = _name_device(_keep_plan(choices, recorded))
  with inputs.unwatched():  # Their digest is recorded instead.
    start = warm_start.read(settings.initial_weights, recorded, directory.path)
  values = _collect_hparams(choices, settings, protocol, start)
  uses_total_rounds = [
      kind
      for kind, choice in choices.items()
      if 'total_rounds' in choice.row.supplied
  ]
  _check_files(choices, recorded or {}, directory, settings.data_dir)
  directory.check(values, uses_total_rounds)
  run_callbacks = run_parts.build_callbacks(settings, directory)
  task = run_parts.build_task(choices, settings)
  process = run_parts.build_process(choices, settings, task)
  get_weights = run_parts.build_get_weights(choices, process)
  initial_state_fn = start.initial_state_fn(process, task)
  _print_plan(choices)
  cohort_fn = run_parts.build_cohort_fn(choices, settings, task)
  client_store = run_parts.build_client_store(process, settings, directory)
  rate_tuner = run_parts.build_rate_tuner(process, settings, task, cohort_fn)
  run_callbacks = [
      _Device(choices),
      *run_parts.build_privacy_callbacks(settings, task),
      *([] if rate_tuner is None else [_LearningRates(process)]),
      *run_callbacks,
  ]
  evaluations = evaluations_lib.build_evaluations(choices, settings, task)

  def run_training():
    return training_loop.run_training(
        process,
        cohort_fn=cohort_fn,
        total_rounds=protocol.total_rounds,
        evaluate_fn=evaluations.during_training,
        rounds_per_evaluation=settings.rounds_per_evaluation,
        rounds_per_checkpoint=settings.rounds_per_checkpoint,
        checkpoints=checkpoints.CheckpointManager(
            directory.checkpoints, keep_total=settings.checkpoints_to_keep
        ),
        writers=_build_writers(settings, values, directory),
        callbacks=run_callbacks,
        initial_state_fn=initial_state_fn,
        get_weights=get_weights,
        client_store=client_store,
        adjust_state_fn=rate_tuner,
        # Ray workers read the data of their clients themselves.
        read_ahead=choices[registry.RUNTIME].row.name != registry.RAY,
        profile_path=directory.profile if settings.profile else None,
        max_rejected_rounds=settings.max_rejected_rounds or None,
    )

  return _Run(
      directory=directory,
      choices=choices,
      hparams=values,
      uses_total_rounds=uses_total_rounds,
      task=task,
      get_weights=get_weights,
      evaluations=evaluations,
      train=run_training,
  )


def _check_files(
    choices: _Choices,
    recorded: Mapping[str, Any],
    directory: run_directory.RunDirectory,
    data_dir: Optional[str],
):
  """Raises if the code of a user's own or the data are not those of the run."""
  for kind, choice in choices.items():
    found = recorded.get(choice.file_name)
    if found is not None and found != choice.row.digest:
      raise command_line.UserError(
          f'the file of --{kind}={choice.row.name} has changed since the run '
          f'in {directory.path} began; choose another --experiment_name, or '
          'delete that run'
      )
  change = inputs.describe_change(directory.path, data_dir)
  if change is not None:
    raise command_line.UserError(change)


def check_reads(
    choices: _Choices,
    reads: inputs.Reads,
    directory: run_directory.RunDirectory,
    data_dir: Optional[str],
):
  """Raises if the data that were read are others than those of the run.

  A task of a user's own may read what it has kept of its data.

  Args:
    choices: The chosen rows.
    reads: The files that were read.
    directory: The folder of the run.
    data_dir: The folder of the data sets, or None.

  Raises:
    UserError: If none of the run's data files was read, but others.
  """
  change = inputs.describe_replacement(directory.path, reads, data_dir)
  is_own = registry.is_own(choices[registry.TASK].row.name)
  if change is not None and not is_own:
    raise command_line.UserError(change)


def _build_writers(
    settings: hparams.Settings,
    values: Mapping[str, Any],
    directory: run_directory.RunDirectory,
) -> list[metrics_writers.MetricsWriter]:
  """Builds the writers of metrics; `values` are all hyperparameters."""
  writers: list[metrics_writers.MetricsWriter] = [
      metrics_writers.CSVMetricsWriter(directory.metrics_csv),
      metrics_writers.TensorBoardMetricsWriter(directory.tensorboard),
      metrics_writers.RejectedClientsWriter(directory.rejected_clients_csv),
  ]
  name = settings.experiment_name
  if settings.wandb:
    writers.append(trackers.WandbWriter(directory.path, values, name))
  if settings.mlflow:
    writers.append(trackers.MLflowWriter(directory.path, values, name))
  return writers


def _evaluate_at_end(
    run: _Run, result: training_loop.TrainingResult
) -> Mapping[str, float]:
  """Runs the final evaluations; returns the metrics on all test examples."""
  evaluations = run.evaluations
  weights = run.get_weights(result.state)
  found = {
      name: evaluate(weights) for name, evaluate in evaluations.final.items()
  }
  if found:
    evaluations_lib.write_results(
        found, result.round_num, run.directory, describe(run.choices)
    )
  if evaluations.includes_test:
    return result.evaluation or {}
  if central := found.get(settings_lib.CENTRAL):
    return central[settings_lib.TEST]
  return evaluations.test(weights)


def _draw_partition(run: _Run):
  """Plots each client's class counts, if the labels are in memory."""
  task, picture = run.task, run.directory.plots / 'partition.png'
  is_in_memory = isinstance(task.train_data, client_data.PackedClientArrays)
  if picture.exists() or task.num_classes is None or not is_in_memory:
    return
  if client_plots.has_class_labels(task.train_data):
    client_plots.plot_client_labels(
        task.train_data, task.num_classes, picture, f'clients of {task.name}'
    )
    print(f'partition: {picture}', flush=True)


def _report(run: _Run, result: training_loop.TrainingResult):
  """Plots the curve and prints the paths of the files."""
  directory = run.directory
  curve: Any = directory.plots / 'training.png'
  data = run.hparams['evaluation_data'] or settings_lib.TEST
  try:
    training_curve.plot_training_curve(
        directory.metrics_csv,
        curve,
        describe(run.choices),
        data=data.replace('_', ' '),
    )
  except training_curve.NoCurveError:  # No client has trained.
    curve = 'none, as no accuracy, loss or step size is finite'
  if result.stopped:
    print(
        f'Training stopped after round {result.round_num}: the monitored '
        'metric stopped improving.'
    )
  elif result.num_new_rounds == 0:
    print(
        f'This run is already finished, with {result.round_num} rounds; set a '
        'larger --total_rounds to continue.'
    )
  if result.num_new_rounds:
    print(describe_seconds(result))
  print(f'metrics: {directory.metrics_csv}')
  print(f'curve: {curve}')
  print(f'checkpoints: {directory.checkpoints}')
  script = programs.find_script('tensorboard')
  command = [script, '--logdir', str(directory.tensorboard)]
  print(f'TensorBoard: {shlex.join(command)}')
  if directory.profile.exists():
    print(f'profile: {directory.profile}, for https://ui.perfetto.dev')


def describe_seconds(result: training_loop.TrainingResult) -> str:
  """Returns a line on the time of the new rounds.

  Args:
    result: The result of the training.

  Returns:
    The time, and the share of each part other than the work of clients and
    server.

  Example:

    >>> result = training_loop.TrainingResult(
    ...     None, 3, 3, None, seconds={'rounds': 3.0, 'evaluation': 1.0})
    >>> print(describe_seconds(result))
    time of 3 rounds: 4.0 s; not clients and server: 25.0 % (evaluation 25.0 %)
  """
  seconds = dict(result.seconds)
  total = sum(seconds.values())
  shares = {name: part / total for name, part in seconds.items()}
  rest = 1.0 - shares.pop('rounds')
  parts = ', '.join(
      f'{name} {share:.1%}'
      for name, share in sorted(shares.items(), key=lambda item: -item[1])
  )
  text = (
      f'time of {result.num_new_rounds} rounds: {total:.1f} s; not clients and '
      f'server: {rest:.1%} ({parts})'
  )
  return text.replace('%', ' %')


def _describe_test(test: Mapping[str, float]) -> str:
  """Returns the test accuracy, or another metric if there is none."""
  for name in ('accuracy', 'recall_at_5', 'loss'):
    if name in test:
      value = test[name]
      is_loss = name == 'loss'
      text = progress.format_loss(value, 2) if is_loss else f'{value:.2f}'
      return f'test {name}: {text}'
  return ''


def _describe_best(
    run: _Run,
    result: training_loop.TrainingResult,
    test: Mapping[str, float],
) -> str:
  """Returns the round that --keep_best kept, if any, with its test metric.

  Args:
    run: The run.
    result: The result of its training.
    test: The metrics of its last weights on the test data.
  """
  path = kept_weights.BestCheckpoint(run.directory.checkpoints).path
  if not (run.hparams['keep_best'] and path.exists()):
    return ''
  leaves = checkpoints.read_leaves(path)
  last = run.get_weights(result.state)
  weights = weights_files.read_weights(path).to_model_weights(last)
  pairs = zip(tf.nest.flatten(weights), tf.nest.flatten(last))
  if not all(np.array_equal(one, other) for one, other in pairs):
    test = run.evaluations.test(weights)
  value = progress.format_loss(float(leaves['value']), 4)
  return (
      f'best round: {leaves["round_num"]}, with {leaves["metric"]} {value}; '
      f'{_describe_test(test).replace(":", "")}: {path}'
  )
