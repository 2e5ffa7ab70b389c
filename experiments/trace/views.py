# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reports the local steps of a round, and the states kept after it."""

from collections.abc import Mapping
import itertools
import pathlib
from typing import Any, Optional

import numpy as np

from experiments import command_line
from experiments import formatting
from experiments import hparams
from experiments import registry
from experiments.trace import retraining
from experiments.train import training_run
from tff_adaptive import analysis
from tff_adaptive.simulation import checkpoints
from tff_adaptive.simulation import structures

_MAX_CLIENTS_SHOWN = 20


def _show(trace: analysis.RoundTrace):
  """Prints one line per client: the number of steps and mean values."""
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
  print(formatting.align([header, *rows], num_labels=1, min_width=0))
  if len(clients) > len(rows):
    print(f'... and {len(clients) - len(rows)} more')


def _compare(trace: analysis.RoundTrace, round_num: int, path: pathlib.Path):
  """Prints the distance of the weights from the round's checkpoint."""
  try:
    leaves = checkpoints.read_leaves(path)
  except (OSError, checkpoints.CheckpointError):
    return
  key = 'global_model_weights'
  errors = [
      np.max(
          np.abs(leaf - leaves['/'.join((retraining.PROCESS_KEY, key, *name))]),
          initial=0.0,
      )
      for name, leaf in structures.flatten_with_path(getattr(trace.state, key))
  ]
  largest = np.max(errors)  # NaN if one of them is.
  verdict = f'differ by at most {largest:.2g} from' if largest else 'equal'
  print(f'The weights after round {round_num} {verdict} those of {path}.')


def trace(
    path: pathlib.Path,
    round_num: int,
    *,
    from_start: bool,
    data_dir: Optional[str],
):
  """Traces a round of a run, and writes a table and a picture.

  Args:
    path: The folder of the run.
    round_num: The number of the round, counted from 1.
    from_start: Whether to train from the first round if no checkpoint is early
      enough.
    data_dir: The folder of the data sets, for a task that reads one.

  Raises:
    UserError: If the folder contains no run, the run has no such round or no
      checkpoint before it, or the data is unsuitable.
    EnvironmentalError: If a file cannot be read or written.
  """
  with retraining.open_run(path, round_num, data_dir, trace_steps=True) as (
      run,
      replay,
  ):
    replay.train_until(round_num - 1, from_start)
    is_trained = replay.begun_at < round_num - 1
    again = f', retrained from round {replay.begun_at + 1}'
    print(f'round {round_num}{again if is_trained else ""}')
    found = replay.trace_round()
    title = f'{training_run.describe(run.choices)}, round {round_num}'
    file = run.directory.plots / f'trace_{round_num:04d}'
    found.to_csv(file.with_suffix('.csv'))
    analysis.plot_trace(found, file.with_suffix('.png'), title)
  _show(found)
  manager = checkpoints.CheckpointManager(run.directory.checkpoints)
  _compare(found, round_num, manager.path(round_num))
  print(f'table: {file.with_suffix(".csv")}')
  print(f'picture: {file.with_suffix(".png")}')


def _find_part(state: Mapping[str, Any], part: str) -> Any:
  """Returns a part of a client's state by its name."""
  parts = {name: p for own in state.values() for name, p in own.items()}
  if part not in parts:
    raise command_line.UserError(
        f'--cka_part must be one of {", ".join(parts)}, found {part!r}'
    )
  return parts[part]


def _method_of(run: retraining.RecordedRun) -> str:
  """Returns the rule that a run is named by."""
  choices = run.choices
  name = choices[registry.ALGORITHM].row.name
  if name == hparams.DEFAULT_ROWS[registry.ALGORITHM]:
    name = choices[registry.CLIENT_OPTIMIZER].row.name
  return name


def draw_kept_states(
    path: pathlib.Path,
    round_num: int,
    *,
    from_start: bool,
    data_dir: Optional[str],
    part: Optional[str] = None,
    num_clients: int = 100,
):
  """Plots the linear CKA of the states that pairs of clients keep.

  If clients keep no state, compares what they send in the round besides the
  model update. The kernels of a state are weighted by their numbers of entries.

  Args:
    path: The folder of the run; the picture is its `plots/cka.png`.
    round_num: The number of the round, counted from 1.
    from_start: Whether to train from the first round if no checkpoint is early
      enough.
    data_dir: The folder of the data sets, for a task that reads one.
    part: The name of the part to compare, such as 'first_moment'; None, the
      default, for all parts.
    num_clients: The maximal number of clients; the first ones are taken.

  Raises:
    UserError: If the folder contains no run, its clients neither keep nor send
      a state or not the given part, the run has no such round or no checkpoint
      before it, or the data is unsuitable.
    EnvironmentalError: If a file cannot be read or written.

  References:
    Zhou et al., FedCAda: Adaptive Client-Side Optimization for Accelerated and
    Stable Federated Learning, 2024, https://arxiv.org/abs/2405.11811, Figure 2.
  """
  with retraining.open_run(path, round_num, data_dir, keep_sent=True) as (
      run,
      replay,
  ):
    if not replay.keeps_states:
      raise command_line.UserError(
          f'the clients of {path} keep no state for --cka to compare, and send '
          'only the model update; train with --algorithm=fedcada, for example'
      )
    replay.train_until(round_num, from_start)
    states = dict(itertools.islice(replay.kept_states(), num_clients))
    if part is not None:
      states = {name: _find_part(s, part) for name, s in states.items()}
    verb = 'send' if replay.keeps_sent else 'keep'
    similarities = analysis.pairwise_moments_cka(list(states.values()))
    picture = run.directory.plots / 'cka.png'
    what = f'{part.replace("_", " ")}s' if part else 'states'
    analysis.plot_similarity(
        similarities,
        [str(name).removeprefix('client_') for name in states],
        picture,
        f'{_method_of(run)} on {run.choices[registry.TASK].row.name}: '
        f'CKA of the {what} that clients {verb}, round {round_num}',
        axis_label='client',
    )
  pairs = similarities[np.triu_indices(len(states), k=1)]
  if len(pairs):
    print(
        f'round {round_num}: linear CKA of {len(states)} clients, mean over '
        f'pairs {np.mean(pairs):.4f}, from {np.min(pairs):.4f} to '
        f'{np.max(pairs):.4f}'
    )
  print(f'picture: {picture}')
