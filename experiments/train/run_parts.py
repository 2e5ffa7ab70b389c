# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Builds the parts of a training run from its flags: task, process, cohorts."""

from collections.abc import Callable, Iterator, Mapping
import contextlib
import os
from typing import Any, Optional

import attrs
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from experiments import hparams
from experiments import registry
from experiments import settings as settings_lib
from tff_adaptive import privacy as privacy_lib
from tff_adaptive import runtime
from tff_adaptive.data import checks
from tff_adaptive.data import client_data
from tff_adaptive.data import cohort
from tff_adaptive.data import sampling
from tff_adaptive.data import transforms
from tff_adaptive.optimizers import optimizer
from tff_adaptive.simulation import callbacks
from tff_adaptive.simulation import client_states
from tff_adaptive.simulation import cohorts
from tff_adaptive.simulation import kept_weights
from tff_adaptive.simulation import run_directory
from tff_adaptive.simulation import task as task_lib
from tff_adaptive.tuning import rate_tuning

# For clients that are read from files one by one, so that a run starts quickly.
_MAX_CHECKED_CLIENTS = 100
# The folder of synthetic data in --output_dir.
SYNTHETIC_DATA = 'synthetic_data'

_Choices = Mapping[str, hparams.Choice]


def build_privacy_callbacks(
    settings: hparams.Settings, task: task_lib.Task
) -> list[callbacks.Callback]:
  """Builds the callback that reports epsilon, and prints its final value.

  Args:
    settings: The flags that belong to no row.
    task: The task.

  Returns:
    The callback in a list, which is empty without privacy.

  Raises:
    ValueError: If a round has more clients than the task.
  """
  if settings.dp_noise_multiplier is None:
    return []
  protocol, num_clients = task.protocol, len(task.train_data.client_ids)
  sampling_name = settings.sampling or settings_lib.FIXED
  accountant = privacy_lib.RoundAccountant(
      noise_multiplier=settings.dp_noise_multiplier,
      num_clients=num_clients,
      clients_per_round=protocol.clients_per_round,
      sampling=privacy_lib.CohortSampling(sampling_name),
  )
  delta = settings.dp_delta or privacy_lib.default_delta(num_clients)
  epsilon = accountant.get_epsilon(protocol.total_rounds, delta)
  print(
      f'privacy: epsilon {epsilon:.3g} at delta {delta:.2g} after '
      f'{protocol.total_rounds} rounds with {protocol.clients_per_round} of '
      f'{num_clients} clients, {sampling_name} sampling',
      flush=True,
  )
  return [callbacks.PrivacySpent(accountant, delta)]


def build_protocol(
    choices: _Choices, settings: hparams.Settings
) -> task_lib.Protocol:
  """Returns the protocol of the task, with the values that flags override.

  Args:
    choices: The chosen rows.
    settings: The other flags.
  """
  task = choices[registry.TASK].row.definition
  given = {name: getattr(settings, name) for name in settings_lib.PROTOCOL}
  return attrs.evolve(
      task.protocol,
      **{name: value for name, value in given.items() if value is not None},
  )


def build_task(choices: _Choices, settings: hparams.Settings) -> task_lib.Task:
  """Builds the task and checks its data.

  Args:
    choices: The chosen rows.
    settings: The other flags.

  Returns:
    The task. It still contains bad clients to be rejected, which local training
    skips, unless the algorithm pools the clients.

  Raises:
    ValueError: If the data is unsuitable for training.
  """
  choice = choices[registry.TASK]
  task = choice.build(
      data_dir=_prepare_data_dir(choice, settings),
      protocol=build_protocol(choices, settings),
      seed=settings.seed,
  )
  task = _choose_clients(task, settings)
  for name, examples in (
      ('The test set', task.central_test),
      ('The validation data', task.validation),
  ):
    if examples is not None:
      checks.check_central_examples(
          examples, name=name, num_classes=task.num_classes
      )
  flag = f'--bad_clients={checks.REJECT}'
  with _naming_flag(checks.REJECTING, flag):
    bad_clients = checks.check_clients(
        task.train_data,
        num_classes=task.num_classes,
        bad_clients=settings.bad_clients,
        max_clients=_max_checked_clients(task),
    )
  if bad_clients:
    print(
        f'{len(bad_clients)} of {len(task.train_data.client_ids)} '
        'clients are bad and will be ignored in every round.'
    )
    if choices[registry.ALGORITHM].row.pools_clients:
      clients = task.train_data
      # Empty ones are no part of the pool, but of the mean size of a client.
      pooled = [
          client_id
          for client_id in clients.client_ids
          if client_id not in bad_clients or not clients.num_examples(client_id)
      ]
      task = attrs.evolve(
          task, train_data=transforms.select_clients(clients, pooled)
      )
  return task


@contextlib.contextmanager
def _naming_flag(argument: str, flag: str) -> Iterator[None]:
  """Names a flag in errors of a block that name an argument of the library."""
  try:
    yield
  except ValueError as error:
    if argument not in str(error):
      raise
    raise ValueError(str(error).replace(argument, flag)) from error


def _prepare_data_dir(
    choice: hparams.Choice, settings: hparams.Settings
) -> Optional[str]:
  """Returns the folder of the data sets, after writing synthetic ones."""
  if not settings.use_synthetic_data:
    return settings.data_dir
  data_dir = os.path.join(settings.output_dir, SYNTHETIC_DATA)
  choice.row.definition.write_synthetic_data(data_dir)
  print(
      f'synthetic data in the format of {choice.row.name}: the metrics are '
      'meaningless.',
      flush=True,
  )
  return data_dir


def _max_checked_clients(task: task_lib.Task) -> Optional[int]:
  """Returns the number of clients to check; None for all, if in memory."""
  if isinstance(task.train_data, client_data.PackedClientArrays):
    return None
  if len(task.train_data.client_ids) > _MAX_CHECKED_CLIENTS:
    print(
        f'{_MAX_CHECKED_CLIENTS} of {len(task.train_data.client_ids)} clients '
        'are checked for bad data.'
    )
  return _MAX_CHECKED_CLIENTS


def _choose_clients(
    task: task_lib.Task, settings: hparams.Settings
) -> task_lib.Task:
  """Returns the task with the clients and data that the flags choose."""
  seed = settings.seed
  if settings.heldout_clients is not None:
    with _naming_flag('`num_clients`', '--heldout_clients'):
      task = task_lib.hold_out_clients(task, settings.heldout_clients, seed)
  if settings.num_clients is not None:
    with _naming_flag('`num_clients`', '--num_clients'):
      task = task_lib.take_clients(task, settings.num_clients, seed)
  if settings.heldout_fraction is not None:
    tested = task_lib.hold_out_examples(task, settings.heldout_fraction, seed)
    if settings.heldout_clients is not None:
      # The server tests on the held-out clients, as in FedCAda.
      tested = attrs.evolve(tested, central_test=task.central_test)
    task = tested
  fraction = settings.validation_fraction
  if fraction is not None:
    task = task_lib.hold_out_validation(task, fraction, seed)
  return task


def _build_loss_term(choice: hparams.Choice, task: task_lib.Task) -> Any:
  """Builds the loss term, with the task's representations if needed."""
  name = 'representation_fn'
  if name in choice.row.supplied and task.representation_fn is None:
    raise ValueError(
        f'--{registry.LOSS_TERM}={choice.row.name} compares representations, '
        f'but the model of --{registry.TASK}={task.name} has none before its '
        'last layer; choose a deeper model or another loss term'
    )
  return choice.build(**{name: task.representation_fn})


def _build_privacy(
    settings: hparams.Settings, protocol: task_lib.Protocol
) -> Optional[privacy_lib.DifferentialPrivacy]:
  """Builds the clipping and the noise; None for a run without privacy."""
  if settings.dp_noise_multiplier is None:
    return None
  clip_norm: Any = settings.dp_clip_norm
  learning_rate: Any = settings.dp_adaptive_clip_learning_rate
  adaptive = None
  if settings.dp_adaptive_clip_quantile is not None:
    adaptive = privacy_lib.AdaptiveClipping(
        target_quantile=settings.dp_adaptive_clip_quantile,
        learning_rate=learning_rate,
        count_stddev=settings.dp_adaptive_clip_count_stddev,
    )
  return privacy_lib.DifferentialPrivacy(
      noise_multiplier=settings.dp_noise_multiplier,
      clients_per_round=protocol.clients_per_round,
      clip_norm=clip_norm,
      payload_clip_norms=settings.dp_payload_clip_norms or {},
      adaptive_clipping=adaptive,
  )


def build_client_optimizer(choices: _Choices, task: task_lib.Task) -> Any:
  """Builds the chosen client optimizer.

  Args:
    choices: The chosen rows.
    task: The task.
  """
  return choices[registry.CLIENT_OPTIMIZER].build(
      num_clients=len(task.train_data.client_ids)
  )


def build_process(
    choices: _Choices,
    settings: hparams.Settings,
    task: task_lib.Task,
    *,
    client_optimizer: Any = None,
    trace_steps: bool = False,
) -> tff.learning.templates.LearningProcess:
  """Builds the learning process of a run.

  Args:
    choices: The chosen rows.
    settings: The other flags; only those of privacy are used.
    task: The task.
    client_optimizer: The client optimizer. Default: the chosen one.
    trace_steps: Whether its metrics contain every local step. Default False.

  Returns:
    The process of the chosen algorithm.

  Raises:
    ValueError: If the choices conflict, or the loss term needs representations
      that the task lacks.
  """
  return choices[registry.ALGORITHM].build(
      model=task.model,
      client_optimizer=(
          client_optimizer or build_client_optimizer(choices, task)
      ),
      server_optimizer=choices[registry.SERVER_OPTIMIZER].build(),
      loss_term=_build_loss_term(choices[registry.LOSS_TERM], task),
      privacy=_build_privacy(settings, task.protocol),
      trace_steps=trace_steps,
      **{
          kind: choices[kind].build(total_rounds=task.protocol.total_rounds)
          for kind in (registry.CLIENT_SCHEDULE, registry.SERVER_SCHEDULE)
      },
  )


def build_get_weights(
    choices: _Choices, process: tff.learning.templates.LearningProcess
) -> Callable[[Any], tff.learning.models.ModelWeights]:
  """Builds the function from a state of a run to the weights to evaluate.

  Args:
    choices: The chosen rows; only the server optimizer is used.
    process: The process.

  Returns:
    A function from the state to the model's weights, or to those at which a
    server optimizer that averages over rounds ends.
  """
  rule = choices[registry.SERVER_OPTIMIZER].build()
  if not optimizer.has_final_weights(rule):
    return process.get_model_weights

  def get_weights(state):
    weights = process.get_model_weights(state)
    # A schedule of the server's rate wraps the state of the rule.
    held = state.finalizer.get('inner', state.finalizer)
    final = optimizer.final_weights(rule, held, weights.trainable)
    return tff.learning.models.ModelWeights(
        tf.nest.map_structure(np.asarray, final), weights.non_trainable
    )

  return get_weights


def build_cohort_fn(
    choices: _Choices, settings: hparams.Settings, task: task_lib.Task
) -> Callable[[int], Any]:
  """Builds the function that returns the client data of a round.

  Args:
    choices: The chosen rows; only the algorithm is used.
    settings: The other flags.
    task: The task.

  Returns:
    A pure function of the number of finished rounds.
  """
  if choices[registry.ALGORITHM].row.pools_clients:
    return cohorts.build_pooled_cohort_fn(task, settings.seed)
  build_sampling = (
      sampling.build_poisson_client_sampling
      if settings.sampling == settings_lib.POISSON
      else sampling.build_client_sampling
  )
  sample = build_sampling(
      task.train_data.client_ids, task.protocol.clients_per_round, settings.seed
  )
  plan = task.protocol.batch_plan()

  def cohort_fn(round_index):
    return cohort.Cohort(
        task.train_data,
        sample(round_index),
        round_num=round_index,
        seed=settings.seed,
        plan=plan,
        augmentation=task.augmentation,
    )

  if settings.drop_clients or settings.straggler_fraction:
    return cohorts.inject_faults(
        cohort_fn,
        drop_clients=settings.drop_clients or 0.0,
        straggler_fraction=settings.straggler_fraction or 0.0,
    )
  return cohort_fn


def build_callbacks(
    settings: hparams.Settings, directory: run_directory.RunDirectory
) -> list[callbacks.Callback]:
  """Builds the callbacks that the flags enable.

  Callbacks that measure come first, so that the others can monitor their
  metrics.

  Args:
    settings: The flags that belong to no row.
    directory: The folder of the run.

  Returns:
    The callbacks.

  Raises:
    ValueError: If a flag has an invalid value.
  """
  watched: dict[str, Any] = {
      'metric': settings.monitored_metric,
      'mode': settings.monitored_mode,
  }
  found: list[callbacks.Callback] = []
  if settings.drop_clients or settings.straggler_fraction:
    found.append(cohorts.FaultCounts())
  average: Any = None
  if settings.weights_average_decay is not None:
    average = kept_weights.WeightsMovingAverage(settings.weights_average_decay)
  if settings.weights_average_rounds is not None:
    average = kept_weights.LastWeightsAverage(settings.weights_average_rounds)
  if average is not None:
    found.append(average)
  if settings.chooses_on_test_data:
    print(
        f'{settings.monitored_metric} of test data chooses the round: its test '
        'metrics are for replication only. To choose by other examples, '
        'monitor a metric of central evaluations with '
        '--validation_fraction=0.1.',
        flush=True,
    )
  if settings.keep_best:
    metric = settings.monitored_metric or ''
    is_of_average = metric.startswith(settings_lib.AVERAGE)
    found.append(
        kept_weights.BestCheckpoint(
            directory.checkpoints,
            average=average if is_of_average else None,
            **watched,
        )
    )
  if settings.early_stopping_patience is not None:
    found.append(
        callbacks.EarlyStopping(
            patience=settings.early_stopping_patience, **watched
        )
    )
  return found


def max_rejections(settings: hparams.Settings) -> Optional[int]:
  """Returns the argument of that name of `ClientStateStore`.

  Args:
    settings: The flags that belong to no row.
  """
  value = settings.client_states_max_rejections
  if value is None:
    return client_states.DEFAULT_MAX_REJECTIONS
  return value or None


def build_client_store(
    process: tff.learning.templates.LearningProcess,
    settings: hparams.Settings,
    directory: run_directory.RunDirectory,
) -> Optional[client_states.ClientStateStore]:
  """Builds the store of client states.

  Args:
    process: The learning process of the run.
    settings: The flags that belong to no row.
    directory: The folder of the run.

  Returns:
    The store; None for a process whose clients keep no state.
  """
  if client_states.get_state_spec(process) is None:
    return None
  return client_states.ClientStateStore(
      directory.client_states,
      max_bytes=settings.client_states_memory_mb * 2**20,
      max_rejections=max_rejections(settings),
  )


def build_rate_tuner(
    process: tff.learning.templates.LearningProcess,
    settings: hparams.Settings,
    task: task_lib.Task,
    cohort_fn: Callable[[int], Any],
) -> Optional[Callable[[Any, int], Any]]:
  """Builds the function that moves the learning rates between rounds.

  Args:
    process: The learning process of the run.
    settings: The flags that belong to no row.
    task: The task.
    cohort_fn: From a round to its client data.

  Returns:
    A function of a state and the number of finished rounds to a state; None
    without --tune_rates.

  Raises:
    ValueError: If the rounds of the process cannot be differentiated.
  """
  if settings.tune_rates is None:
    return None
  step_size: Any = settings.tune_rates_step
  num_rounds: Any = settings.tune_rates_rounds
  try:
    return rate_tuning.build_rate_tuner(
        process,
        task.model,
        cohort_fn,
        step_size=step_size,
        num_rounds=num_rounds,
    )
  except (runtime.UnsupportedComputationError, ValueError) as error:
    raise ValueError(f'--tune_rates={settings.tune_rates}: {error}') from error
