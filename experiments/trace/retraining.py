# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rebuilds a run from its files, and retrains some of its rounds."""

import collections
from collections.abc import Iterator
import contextlib
import copy
import dataclasses
import pathlib
import shutil
import tempfile
from typing import Any, Optional

from absl import logging
import attrs
import tensorflow as tf
import tensorflow_federated as tff

from experiments import command_line
from experiments import folders
from experiments import hparams
from experiments import registry
from experiments import rounds as rounds_lib
from experiments.run_results import inputs
from experiments.run_results import run_folder
from experiments.train import run_parts
from experiments.train import training_run
from experiments.train import warm_start
from tff_adaptive import analysis
from tff_adaptive.optimizers import federated_optimizer
from tff_adaptive.simulation import checkpoints
from tff_adaptive.simulation import client_states
from tff_adaptive.simulation import run_directory
from tff_adaptive.simulation import task as task_lib

PROCESS_KEY = 'process'


@attrs.frozen
class RecordedRun:
  """A run as recorded in its files.

  Attributes:
    directory: The folder of the run.
    recorded: The hyperparameters.
    choices: The rows of the registry.
    settings: The other flags.
  """

  directory: run_directory.RunDirectory
  recorded: dict[str, Any]
  choices: dict[str, hparams.Choice]
  settings: hparams.Settings


def _read_run(path: pathlib.Path, data_dir: Optional[str]) -> RecordedRun:
  """Reads the hyperparameters of a run, for the compiled runtime."""
  directory = run_directory.RunDirectory(path.parent, path.name)
  recorded = directory.read_hparams() or {}
  try:
    choices = {
        kind: hparams.recorded_choice(kind, recorded) for kind in registry.ROWS
    }
  except hparams.HparamError as error:
    raise command_line.UserError(
        f'{directory.hparams_json} describes a run unknown to this version '
        f'({error})'
    ) from error
  task = choices[registry.TASK].row
  if task.reads_files and not data_dir:
    raise command_line.UserError(
        f'the task of the run, {task.name}, needs --data_dir, the folder of '
        'the data sets; synthetic data are in OUTPUT_DIR/'
        f'{run_parts.SYNTHETIC_DATA}'
    )
  change = inputs.describe_change(path, data_dir, 'restore it')
  if change is not None:
    raise command_line.UserError(f'cannot repeat a round: {change}')
  trained_on = choices[registry.RUNTIME].row.name
  if trained_on == registry.NATIVE:
    print(
        "The run was trained on TFF's native runtime. The compiled runtime, "
        'used here, rounds differently and samples other dropout masks.'
    )
  if trained_on != registry.COMPILED:
    # A Ray run has the bits of the compiled runtime.
    choices[registry.RUNTIME] = hparams.recorded_choice(
        registry.RUNTIME, {**recorded, registry.RUNTIME: registry.COMPILED}
    )
  values: dict[str, Any] = {
      field.name: recorded.get(field.name)
      for field in dataclasses.fields(hparams.Settings)
  }
  values['data_dir'] = data_dir
  # That folder may also hold synthetic data.
  values['use_synthetic_data'] = False
  return RecordedRun(directory, recorded, choices, hparams.Settings(**values))


def _keeping_sent(optimizer: Any) -> Any:
  """Returns a client optimizer whose clients also keep what they send.

  Args:
    optimizer: The client optimizer of the run.

  Returns:
    A client optimizer with the same steps; None if clients keep a state anyway,
    or send only the model update.
  """
  if not isinstance(optimizer, federated_optimizer.FederatedOptimizer):
    return None
  spec = tf.TensorSpec([], tf.float32)
  if optimizer.initialize_kept(spec) or not optimizer.initialize_shared(spec):
    return None

  class KeepsSent(type(optimizer)):  # type: ignore[misc]
    """Keeps what it sends."""

    def initialize_kept(self, specs):
      return self.initialize_shared(specs)

    def start_round(self, state, shared, kept, round_num):
      del kept  # Kept only to be read.
      nothing: Any = collections.OrderedDict()
      return super().start_round(state, shared, nothing, round_num)

    def finish_round(self, state):
      sent, _ = super().finish_round(state)
      return sent, sent

  changed = copy.copy(optimizer)
  changed.__class__ = KeepsSent
  return changed


class Replay:
  """The retraining of some rounds of a run.

  Attributes:
    begun_at: The round of the checkpoint from which it started.
    keeps_sent: Whether clients keep what they sent in their newest round, which
      the clients of the run do not.
  """

  def __init__(
      self,
      run: RecordedRun,
      process: tff.learning.templates.LearningProcess,
      task: task_lib.Task,
      store: Optional[client_states.ClientStateStore],
      keeps_sent: bool,
  ):
    self._run = run
    self.keeps_sent = keeps_sent
    self._rounds = rounds_lib.Rounds(process, store)
    self._cohort_fn = run_parts.build_cohort_fn(run.choices, run.settings, task)
    self._task = task
    self._adjust_state = run_parts.build_rate_tuner(
        process, run.settings, task, self._cohort_fn
    )
    self.begun_at = 0

  @property
  def state(self) -> Any:
    """The state of the process after the last round."""
    return self._rounds.state

  @property
  def keeps_states(self) -> bool:
    """Whether clients keep state across rounds."""
    return self._rounds.store is not None

  def train_until(self, round_num: int, from_start: bool):
    """Advances to the end of a round, from the newest usable checkpoint.

    If clients keep what they send, the last round is always trained.

    Args:
      round_num: The number of finished rounds.
      from_start: Whether to train from the first round if no checkpoint is
        early enough.

    Raises:
      UserError: If there is no such checkpoint and `from_start` is False.
      CheckpointError: If a required file is missing or damaged.
    """
    self._start(round_num - int(self.keeps_sent), from_start)
    self.begun_at = self._rounds.round_num
    while self._rounds.round_num < round_num:
      self._rounds.train(self._begin_round())

  def _begin_round(self) -> Any:
    """Tunes the rates, if the run does, and returns the cohort of the round."""
    round_num = self._rounds.round_num
    if self._adjust_state is not None:
      self._rounds.state = self._adjust_state(self._rounds.state, round_num)
    return self._cohort_fn(round_num)

  def _start(self, newest: int, from_start: bool):
    """Loads the newest checkpoint at or before a round, or the start."""
    manager = checkpoints.CheckpointManager(self._run.directory.checkpoints)
    round_nums = manager.round_nums()
    for round_num in reversed([n for n in round_nums if n <= newest]):
      try:
        self._load(round_num, manager.path(round_num))
        return
      except checkpoints.CheckpointError as error:
        logging.warning('Skipping a checkpoint (%s).', error)
    if newest and not from_start:
      raise folders.no_checkpoint_error(self._run.directory.path, newest)
    path = self._run.settings.initial_weights
    try:
      start = warm_start.read(
          path, self._run.recorded, self._run.directory.path
      )
    except command_line.UserError as error:
      raise command_line.UserError(
          f'the first round starts from {path}, which must be there as it was '
          f'({error})'
      ) from error
    initial_state_fn = start.initial_state_fn(self._rounds.process, self._task)
    self._rounds.state = initial_state_fn()

  def _load(self, round_num: int, path: pathlib.Path):
    """Loads a checkpoint of the training loop."""
    template = {
        name: leaf
        for name, leaf in checkpoints.read_leaves(path).items()
        if not name.startswith(f'{PROCESS_KEY}/')
    }
    template[PROCESS_KEY] = self._rounds.process.initialize()
    snapshot = checkpoints.read_structure(path, template)
    if self._rounds.client_states is not None and not self.keeps_sent:
      index = snapshot[client_states.SNAPSHOT_KEY].item()
      self._rounds.client_states.load(index)
    self._rounds.state = snapshot[PROCESS_KEY]
    self._rounds.round_num = round_num

  def trace_round(self) -> analysis.RoundTrace:
    """Trains the next round with a trace."""
    cohort = self._begin_round()
    return analysis.trace_round(
        self._rounds.process,
        self._rounds.state,
        cohort,
        client_store=self._rounds.store,
    )

  def kept_states(self) -> Iterator[tuple[str, Any]]:
    """Yields the id and state of every client that keeps state.

    If clients keep what they send, only those of the newest round.
    """
    store = self._rounds.store
    if store is None:
      return
    client_ids = self._task.train_data.client_ids
    if self.keeps_sent:
      newest = set(self._cohort_fn(self._rounds.round_num - 1).client_ids)
      client_ids = tuple(i for i in client_ids if i in newest)
    for client_id in client_ids:
      state = store.get(client_id)
      if state is not None:
        yield client_id, state


@contextlib.contextmanager
def _copied_store(
    process: tff.learning.templates.LearningProcess, run: RecordedRun
) -> Iterator[Optional[client_states.ClientStateStore]]:
  """Yields a copy of the store, since retraining writes and removes files."""
  if client_states.get_state_spec(process) is None:
    yield None
    return
  with tempfile.TemporaryDirectory() as folder:
    copies = pathlib.Path(folder) / 'client_states'
    if run.directory.client_states.is_dir():
      shutil.copytree(run.directory.client_states, copies)
    yield client_states.ClientStateStore(
        copies, max_rejections=run_parts.max_rejections(run.settings)
    )


@contextlib.contextmanager
def open_run(
    path: pathlib.Path,
    round_num: int,
    data_dir: Optional[str],
    *,
    keep_sent: bool = False,
    trace_steps: bool = False,
) -> Iterator[tuple[RecordedRun, Replay]]:
  """Opens a run to retrain some of its rounds, without changing its files.

  Args:
    path: The folder of the run.
    round_num: The last round to retrain, counted from 1.
    data_dir: The folder of the data sets, for a task that reads one.
    keep_sent: Whether clients that keep no state store what they send in a
      round, so that it can be read. Default False.
    trace_steps: Whether rounds can be traced. Default False.

  Yields:
    The recorded run and its replay, which has not started.

  Raises:
    UserError: If the folder contains no run, the run has no such round, or the
      data is unsuitable; also for such errors raised in the block.
    EnvironmentalError: If a file cannot be read or written.
  """
  with command_line.reporting(
      TypeError,
      ValueError,
      FileNotFoundError,
      checkpoints.CheckpointError,
      run_directory.RunDirectoryError,
  ):
    run = _read_run(path, data_dir)
    num_rounds = run_folder.read_run(path).rounds_done
    if round_num > num_rounds:
      raise command_line.UserError(
          f'--round={round_num} is beyond the {num_rounds} finished rounds of '
          f'{path}'
      )
    training_run.set_threads(run.choices)
    tf.keras.utils.set_random_seed(run.settings.seed)
    with inputs.watched() as reads:
      task = run_parts.build_task(run.choices, run.settings)
    training_run.check_reads(run.choices, reads, run.directory, data_dir)
    changed = None
    if keep_sent:
      changed = _keeping_sent(
          run_parts.build_client_optimizer(run.choices, task)
      )
    process = run_parts.build_process(
        run.choices,
        run.settings,
        task,
        client_optimizer=changed,
        trace_steps=trace_steps,
    )
    # Only now, since afterwards a model's random ops cannot even be built.
    tf.config.experimental.enable_op_determinism()
    with (
        run.choices[registry.RUNTIME].build(),
        _copied_store(process, run) as store,
    ):
      yield run, Replay(run, process, task, store, changed is not None)
