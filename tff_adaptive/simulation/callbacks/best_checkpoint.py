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
"""Keeps the weights of the best round in a file of their own."""

import collections
import os
import pathlib
from typing import Any, Union

import attrs
import numpy as np

from tff_adaptive.simulation import checkpoint_files
from tff_adaptive.simulation.callbacks import callback
from tff_adaptive.simulation.callbacks import monitor as monitor_lib

_FILE_NAME = 'best.npz'

_PathLike = Union[str, os.PathLike]


@attrs.frozen
class BestWeights:
  """The best round of a run.

  Attributes:
    round_num: Its number, counted from 1.
    metric: The name of the metric by which it is the best.
    value: The value of the metric.
    weights: The global model weights after the round.
  """

  round_num: int
  metric: str
  value: float
  weights: Any


def _to_structure(round_num: int, metric: str, value: float, weights: Any):
  return collections.OrderedDict(
      round_num=np.int64(round_num),
      metric=metric,
      value=np.float64(value),
      weights=weights,
  )


class BestCheckpoint(callback.Callback):
  """Keeps the global model weights of the round with the best metric.

  They are in `best.npz`, in the format of the checkpoints, replaced atomically
  in the round that is better. Of equal rounds the first is kept. A run that was
  killed may leave the file of a round beyond its newest checkpoint, until it is
  resumed and comes there again.

  Example:
    >>> keep_best = BestCheckpoint('runs/demo/checkpoints')
    >>> keep_best.path
    PosixPath('runs/demo/checkpoints/best.npz')
  """

  def __init__(
      self,
      directory: _PathLike,
      metric: str = monitor_lib.DEFAULT_METRIC,
      *,
      mode: str = 'max',
  ):
    """Initializes the callback; the folder is made on the first write.

    Args:
      directory: The folder of the file; that of the checkpoints will do.
      metric: The name of a column of `metrics.csv`. For what another callback
        measures, that one has to come first. Defaults to 'evaluation/accuracy'.
      mode: Whether a value is better if it is larger, 'max', the default, or
        smaller, 'min'.

    Raises:
      ValueError: If an argument is not as above.
    """
    self._monitor = monitor_lib.Monitor(metric, mode)
    self._directory = pathlib.Path(directory)
    self._best = np.float64(self._monitor.worst)
    self._round_num = np.int64(0)

  @property
  def path(self) -> pathlib.Path:
    """The file of the best round."""
    return self._directory / _FILE_NAME

  def on_training_start(self, start: callback.TrainingStart):
    self._monitor.check(start)

  def on_round_end(self, round_end: callback.RoundEnd):
    value = self._monitor.read(round_end)
    if value is None or not self._monitor.is_better(value, self._best):
      return
    checkpoint_files.write_structure(
        self.path,
        round_end.round_num,
        _to_structure(
            round_end.round_num,
            self._monitor.metric,
            value,
            round_end.get_weights(),
        ),
    )
    self._best = np.float64(value)
    self._round_num = np.int64(round_end.round_num)

  def get_state(self):
    return {'best': self._best, 'round_num': self._round_num}

  def set_state(self, state):
    """Takes the state back; see the base class.

    Args:
      state: The structure from the checkpoint.

    Raises:
      CheckpointError: If the file of the best round is not there any more, or
        damaged.
    """
    if state['round_num'] > 0:
      try:
        checkpoint_files.read_leaves(self.path)
      except (FileNotFoundError, checkpoint_files.CheckpointError) as error:
        raise checkpoint_files.CheckpointError(
            f'{error}, which held the weights of round {state["round_num"]}, '
            'the best one; bring the file back or remove the folder of the run'
        ) from error
    self._best = state['best']
    self._round_num = state['round_num']


def load_best(directory: _PathLike, template: Any) -> BestWeights:
  """Loads what `BestCheckpoint` has kept.

  Args:
    directory: The folder of the file.
    template: Model weights whose leaves give the names, shapes and dtypes that
      are expected, such as those of a new state of the process.

  Returns:
    The best round with its weights.

  Raises:
    FileNotFoundError: If there is no such file.
    CheckpointError: If the file is damaged, or holds the weights of another
      model.

  Example:
    >>> template = process.get_model_weights(process.initialize())
    >>> best = load_best('runs/demo/checkpoints', template)
    >>> best.metric
    'evaluation/accuracy'
  """
  structure = checkpoint_files.read_structure(
      pathlib.Path(directory) / _FILE_NAME, _to_structure(0, '', 0.0, template)
  )
  return BestWeights(
      round_num=int(structure['round_num']),
      metric=structure['metric'],
      value=float(structure['value']),
      weights=structure['weights'],
  )
