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
"""Rebuilds a run from its files, and trains one round of it with a trace."""

from collections.abc import Iterator
import contextlib
import csv
import dataclasses
import pathlib
import shutil
import tempfile
from typing import Any, Optional

from absl import logging
import attrs
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from experiments import command_line
from experiments import hparams
from experiments import registry
from experiments import run_parts
from experiments import trainer
from experiments import warm_start
from tff_adaptive import analysis
from tff_adaptive.simulation import checkpoint_files
from tff_adaptive.simulation import checkpoints
from tff_adaptive.simulation import client_states
from tff_adaptive.simulation import client_store
from tff_adaptive.simulation import run_directory
from tff_adaptive.simulation import structures
from tff_adaptive.simulation import task as task_lib

_COMPILED = 'compiled'
_PROCESS_KEY = 'process'
_MAX_CLIENTS_SHOWN = 20


@attrs.frozen
class _Run:
  """A run, from its files.

  Attributes:
    directory: Its folder.
    recorded: Its hyperparameters.
    choices: Its rows of the registry.
    settings: Its other flags.
  """

  directory: run_directory.RunDirectory
  recorded: dict[str, Any]
  choices: dict[str, hparams.Choice]
  settings: hparams.Settings

  def num_rounds(self) -> int:
    """Returns how many rounds are finished."""
    with open(self.directory.metrics_csv, encoding='utf-8', newline='') as file:
      return max((int(r['round_num']) for r in csv.DictReader(file)), default=0)


def _read_run(path: pathlib.Path, data_dir: Optional[str]) -> _Run:
  """Reads what a run was trained with."""
  directory = run_directory.RunDirectory(path.parent, path.name)
  recorded = directory.read_hparams() or {}
  try:
    choices = {
        kind: hparams.recorded_choice(kind, recorded) for kind in registry.ROWS
    }
  except hparams.HparamError as error:
    raise command_line.UserError(
        f'{directory.hparams_json} describes no run that this version knows '
        f'({error})'
    ) from error
  task = choices[registry.TASK].row
  if 'data_dir' in task.supplied and not data_dir:
    raise command_line.UserError(
        f'the run is of the task {task.name}, which needs --data_dir, the '
        'folder of the data sets'
    )
  if choices[registry.RUNTIME].row.name != _COMPILED:
    print(
        "The run was trained on TFF's native runtime; this is the compiled "
        'one, which rounds differently and draws other dropout masks.'
    )
    row = registry.ROWS[registry.RUNTIME][_COMPILED]
    choices[registry.RUNTIME] = hparams.Choice(row, {})
  values: dict[str, Any] = {
      field.name: recorded.get(field.name)
      for field in dataclasses.fields(hparams.Settings)
  }
  values['data_dir'] = data_dir
  return _Run(directory, recorded, choices, hparams.Settings(**values))


class _Replay:
  """The training of a run again, between two rounds."""

  def __init__(
      self,
      run: _Run,
      process: tff.learning.templates.LearningProcess,
      task: task_lib.Task,
      store: Optional[client_store.ClientStateStore],
  ):
    self._run = run
    self._process = process
    self._cohort_fn = run_parts.build_cohort_fn(
        task,
        run.settings.seed,
        pools_clients=run.choices[registry.ALGORITHM].row.pools_clients,
    )
    self._task = task
    self._store = store
    self._states = client_states.bind(process, store, None)
    self.round_num = 0
    self.state = None

  def start(self, newest: int, from_start: bool):
    """Goes to the newest checkpoint at or before a round, or to the start."""
    manager = checkpoints.CheckpointManager(self._run.directory.checkpoints)
    round_nums = manager.round_nums()
    for round_num in reversed([n for n in round_nums if n <= newest]):
      try:
        self._load(round_num, manager.path(round_num))
        return
      except checkpoint_files.CheckpointError as error:
        logging.warning('Skipping a checkpoint (%s).', error)
    if newest and not from_start:
      found = ', '.join(map(str, round_nums)) or 'no round'
      raise command_line.UserError(
          f'{self._run.directory.path} has no checkpoint that fits before '
          f'round {newest + 1}; there are those of {found}, and --from_start '
          'trains from the first round on'
      )
    start = warm_start.read(
        self._run.settings.initial_weights,
        self._run.recorded,
        self._run.directory.path,
    )
    self.state = start.initial_state_fn(self._process, self._task)()

  def _load(self, round_num: int, path: pathlib.Path):
    """Loads a checkpoint of the training loop."""
    template = {
        name: leaf
        for name, leaf in checkpoint_files.read_leaves(path).items()
        if not name.startswith(f'{_PROCESS_KEY}/')
    }
    template[_PROCESS_KEY] = self._process.initialize()
    snapshot = checkpoint_files.read_structure(path, template)
    if self._states is not None:
      self._states.load(snapshot[client_states.SNAPSHOT_KEY].item())
    self.state = snapshot[_PROCESS_KEY]
    self.round_num = round_num

  def train_one_round(self):
    """Trains a round, of which nothing is recorded."""
    cohort = self._cohort_fn(self.round_num)
    if self._states is not None:
      cohort = self._states.add_to(cohort)
    output = self._process.next(self.state, cohort)
    self.state = output.state
    self.round_num += 1
    if self._states is not None:
      self._states.keep(self.round_num, output.metrics)

  def trace_round(self) -> analysis.RoundTrace:
    """Trains a round with a trace."""
    return analysis.trace_round(
        self._process,
        self.state,
        self._cohort_fn(self.round_num),
        client_store=self._store,
    )


@contextlib.contextmanager
def _copied_store(
    process: tff.learning.templates.LearningProcess,
    directory: run_directory.RunDirectory,
) -> Iterator[Optional[client_store.ClientStateStore]]:
  """Yields a store of copies, since training again writes and removes files."""
  if client_states.get_state_spec(process) is None:
    yield None
    return
  with tempfile.TemporaryDirectory() as folder:
    copies = pathlib.Path(folder) / 'client_states'
    if directory.client_states.is_dir():
      shutil.copytree(directory.client_states, copies)
    yield client_store.ClientStateStore(copies)


def _show(trace: analysis.RoundTrace):
  """Prints a line a client: how many steps, and the mean of each value."""
  names = list(trace.values)
  header = ['client', 'steps', *(f'mean {name}' for name in names)]
  clients = list(trace.clients())
  rows = [
      [
          client_id,
          str(rows.stop - rows.start),
          *(f'{np.mean(trace.values[name][rows]):.4g}' for name in names),
      ]
      for client_id, rows in clients[:_MAX_CLIENTS_SHOWN]
  ]
  widths = [max(map(len, column)) for column in zip(header, *rows)]
  for row in [header, *rows]:
    cells = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
    print('  '.join([row[0].ljust(widths[0]), *cells]))
  if len(clients) > len(rows):
    print(f'... and {len(clients) - len(rows)} more')


def _compare(trace: analysis.RoundTrace, round_num: int, path: pathlib.Path):
  """Prints how far the weights are from those of the round's checkpoint."""
  try:
    leaves = checkpoint_files.read_leaves(path)
  except (FileNotFoundError, checkpoint_files.CheckpointError):
    return
  key = 'global_model_weights'
  errors = [
      np.max(
          np.abs(leaf - leaves['/'.join((_PROCESS_KEY, key, *name))]),
          initial=0.0,
      )
      for name, leaf in structures.flatten_with_path(getattr(trace.state, key))
  ]
  largest = max(errors)
  verdict = f'differ by at most {largest:.2g} from' if largest else 'equal'
  print(f'The weights after round {round_num} {verdict} those of {path}.')


def trace(
    path: pathlib.Path,
    round_num: int,
    *,
    from_start: bool,
    data_dir: Optional[str],
):
  """Traces a round of a run, and prints where the table and the picture are.

  Args:
    path: The folder of the run.
    round_num: The number of the round, counted from 1.
    from_start: Whether to train from the first round on where no checkpoint is
      early enough.
    data_dir: The folder of the data sets, for a task that reads one.

  Raises:
    UserError: If the folder is not that of a run, the run has no such round or
      no checkpoint before it, or the data cannot be trained on.
    EnvironmentalError: If a file could not be read or written.
  """
  with (
      command_line.errors_as(command_line.EnvironmentalError, OSError),
      command_line.errors_as(
          command_line.UserError,
          TypeError,
          ValueError,
          FileNotFoundError,
          checkpoint_files.CheckpointError,
          run_directory.RunDirectoryError,
      ),
  ):
    run = _read_run(path, data_dir)
    num_rounds = run.num_rounds()
    if round_num > num_rounds:
      raise command_line.UserError(
          f'--round={round_num} is beyond the {num_rounds} rounds that '
          f'{path} has finished'
      )
    trainer.set_threads(run.choices)
    tf.keras.utils.set_random_seed(run.settings.seed)
    protocol = run_parts.build_protocol(run.choices, run.settings)
    task = run_parts.build_task(run.choices, run.settings, protocol)
    process = run_parts.build_process(run.choices, task, trace_steps=True)
    # Only now: random operations of a model may not even be built after this.
    tf.config.experimental.enable_op_determinism()
    with (
        run.choices[registry.RUNTIME].build(),
        _copied_store(process, run.directory) as store,
    ):
      found = _trace_round(
          _Replay(run, process, task, store), round_num, from_start
      )
    title = f'{trainer.describe(run.choices)}, round {round_num}'
    file = run.directory.plots / f'trace_{round_num:04d}'
    found.to_csv(file.with_suffix('.csv'))
    analysis.plot_trace(found, file.with_suffix('.png'), title)
  _show(found)
  manager = checkpoints.CheckpointManager(run.directory.checkpoints)
  _compare(found, round_num, manager.path(round_num))
  print(f'table: {file.with_suffix(".csv")}')
  print(f'picture: {file.with_suffix(".png")}')


def _trace_round(
    replay: _Replay, round_num: int, from_start: bool
) -> analysis.RoundTrace:
  """Trains up to a round, and that round with a trace."""
  replay.start(round_num - 1, from_start)
  begun = replay.round_num
  for _ in range(begun, round_num - 1):
    replay.train_one_round()
  trained = f', trained again from round {begun + 1} on'
  print(f'round {round_num}{trained if begun < round_num - 1 else ""}')
  return replay.trace_round()
