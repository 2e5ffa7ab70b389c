# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Weights that a run keeps besides the final ones: the best, and averages."""

import abc
import collections
import pathlib
from typing import Any, Optional

import numpy as np
import tensorflow as tf

from tff_adaptive import _files
from tff_adaptive.data import specs
from tff_adaptive.simulation import callbacks
from tff_adaptive.simulation import checkpoints
from tff_adaptive.simulation import metrics_writers

_FILE_NAME = 'best.npz'


class BestCheckpoint(callbacks.Callback):
  """Keeps the global model weights of the round with the best metric.

  They are in `best.npz`, in the format of the checkpoints, which is replaced
  atomically after a better round. Of equal rounds the first is kept. An
  evaluation that is only made because a callback ends the run does not count.
  After a run was killed, the file may be of a round after its newest
  checkpoint, until the resumed run reaches that round again.
  `simulation.read_weights` reads it.

  Attributes:
    path: The file of the best round.

  Example:
    >>> keep_best = BestCheckpoint('runs/demo/checkpoints')
    >>> keep_best.path
    PosixPath('runs/demo/checkpoints/best.npz')
  """

  def __init__(
      self,
      directory: _files.PathLike,
      metric: str = callbacks.DEFAULT_METRIC,
      *,
      mode: Optional[str] = None,
      average: Optional['_WeightsAverage'] = None,
  ):
    """Initializes the callback; the first write creates the folder.

    Args:
      directory: The folder of the file, for example that of the checkpoints.
      metric: The name of a column of `metrics.csv`. If another callback
        measures it, list that callback first. Defaults to
        'evaluation/accuracy'.
      mode: 'max' if larger values are better, or 'min'. Defaults to what the
        name says: 'min' for losses and errors, such as 'evaluation/loss' or
        'clients/false_positives', 'max' for such as 'evaluation/recall'.
      average: A `WeightsMovingAverage` or `LastWeightsAverage` whose weights
        are kept instead, as for a metric of its evaluation; list it first.
        Defaults to None.

    Raises:
      ValueError: If an argument is invalid, or `mode` is None and the name does
        not tell.
    """
    self._monitor = callbacks.Monitor(metric, mode)
    self._average = average
    self.path = pathlib.Path(directory) / _FILE_NAME
    self._round_num = np.int64(0)

  def on_training_start(self, start: callbacks.TrainingStart):
    self._monitor.start(start)
    self._round_num = np.int64(0)

  def on_round_end(self, round_end: callbacks.RoundEnd):
    value = self._monitor.read(round_end)
    if value is None or not self._monitor.improve(value):
      return
    round_num = round_end.round_num
    weights = (self._average or round_end).get_weights()
    structure = collections.OrderedDict(
        round_num=np.int64(round_num),
        metric=self._monitor.metric,
        value=np.float64(value),
        weights=weights,
    )
    checkpoints.write_structure(self.path, round_num, structure)
    self._round_num = np.int64(round_num)

  def get_state(self):
    return {'best': self._monitor.best, 'round_num': self._round_num}

  def set_state(self, state):
    """Restores the state; see the base class.

    Args:
      state: The structure from the checkpoint.

    Raises:
      CheckpointError: If the file of the best round is missing or damaged.
    """
    if state['round_num'] > 0:
      try:
        checkpoints.read_leaves(self.path)
      except (FileNotFoundError, checkpoints.CheckpointError) as error:
        raise checkpoints.CheckpointError(
            f'{error}; it held the weights of the best round, '
            f'{state["round_num"]}; restore the file or remove the folder of '
            'the run'
        ) from error
    self._monitor.best = state['best']
    self._round_num = state['round_num']


_DEFAULT_NAME = 'average'


def _is_floating(array: np.ndarray) -> bool:
  return tf.as_dtype(array.dtype).is_floating


def _widened(leaf: Any) -> np.ndarray:
  """Returns a leaf's array, 16-bit floats as float32."""
  array = np.asarray(leaf)
  is_narrow = _is_floating(array) and array.dtype.itemsize < 4
  return array.astype(np.float32) if is_narrow else array


class _WeightsAverage(callbacks.Callback, abc.ABC):
  """Base class of averages of weights; measures their evaluation."""

  def __init__(self, name: str):
    if not name or '/' in name:
      raise ValueError(
          f'`name` must be a non-empty text without slashes, found {name!r}.'
      )
    self._prefix = f'{metrics_writers.EVALUATION_PREFIX}_{name}'

  @abc.abstractmethod
  def get_weights(self) -> Any:
    """Returns the average, as model weights."""

  def measure(self, round_end: callbacks.RoundEnd):
    if round_end.evaluation is None or round_end.evaluate is None:
      return {}
    evaluation = round_end.evaluate(self.get_weights())
    return {
        f'{self._prefix}/{name}': value for name, value in evaluation.items()
    }


class WeightsMovingAverage(_WeightsAverage):
  """An exponential moving average of the global model weights over rounds.

  After round t the average is

  ```
  average_t = sum_i(decay**(t - i) * weights_i) / sum_i(decay**(t - i))
  ```

  over the rounds i = 1, ..., t, without the initial weights; the denominator
  corrects the bias of sums that start at zero. It is computed as
  `average += (weights - average) / sum`, in the dtype of the weights, or in
  float32 for 16-bit weights. Integer weights are those of the last round.

  The average does not affect training. It is evaluated in every round with
  central evaluation; the columns of `metrics.csv` are `evaluation_average/` and
  the name of the metric.

  Example:
    >>> average = WeightsMovingAverage(0.9)
    >>> result = run_training(
    ...     process, cohort_fn=cohort_fn, total_rounds=3, callbacks=[average])
    >>> average.get_weights().trainable[0].shape
    (64, 10)
  """

  def __init__(self, decay: float, name: str = _DEFAULT_NAME):
    """Initializes the callback.

    Args:
      decay: The factor of a round's weights in the sum one round later, from 0
        (the current weights) to 1 (the mean of all rounds).
      name: The name of the columns, `evaluation_{name}/`. Defaults to
        'average'.

    Raises:
      ValueError: If an argument is invalid.
    """
    super().__init__(name)
    if not 0.0 <= decay <= 1.0:
      raise ValueError(f'`decay` must be in [0, 1], found {decay}.')
    self._decay = np.float64(decay)
    self._sum = np.float64(0)
    self._average: Any = None
    self._template: Any = None

  def on_training_start(self, start: callbacks.TrainingStart):
    self._template = tf.nest.map_structure(np.asarray, start.get_weights())
    self._sum = np.float64(0)
    self._average = tf.nest.map_structure(
        lambda leaf: np.zeros_like(_widened(leaf)), self._template
    )

  def on_round_end(self, round_end: callbacks.RoundEnd):
    self._sum = self._decay * self._sum + np.float64(1)

    def update(average, leaf):
      array = _widened(leaf)
      if not _is_floating(array):
        return array
      step = array.dtype.type(1 / self._sum)
      # Without rounding, and without a NaN of rounds that no longer count.
      if step == 1:
        return array
      return np.asarray(average + (array - average) * step)

    self._average = tf.nest.map_structure(
        update, self._average, round_end.get_weights()
    )

  def get_weights(self) -> Any:
    """Returns the average, or the initial weights before the first round."""
    if self._sum == 0:
      return self._template
    return tf.nest.map_structure(
        lambda average, leaf: average.astype(leaf.dtype),
        self._average,
        self._template,
    )

  def get_state(self):
    return {'sum': self._sum, 'average': self._average}

  def set_state(self, state):
    self._sum = state['sum']
    self._average = state['average']


class LastWeightsAverage(_WeightsAverage):
  """The mean of the global model weights of the last rounds.

  It is evaluated like `WeightsMovingAverage`. It keeps the weights of
  `num_rounds` rounds, also in checkpoints. FedExP's experiments evaluate the
  mean of two rounds. Integer weights are those of the last round.

  References:
    Divyansh Jhunjhunwala, Shiqiang Wang, Gauri Joshi: FedExP: Speeding Up
    Federated Averaging via Extrapolation. ICLR 2023,
    https://arxiv.org/abs/2301.09604

  Example:
    >>> last_two = LastWeightsAverage(2)
    >>> result = run_training(
    ...     process, cohort_fn=cohort_fn, total_rounds=3, callbacks=[last_two])
    >>> last_two.get_weights().trainable[0].shape
    (64, 10)
  """

  def __init__(self, num_rounds: int, name: str = _DEFAULT_NAME):
    """Initializes the callback.

    Args:
      num_rounds: The number of rounds, a positive integer. Before that many
        rounds, it is the mean of all of them, without the initial weights.
      name: The name of the columns, `evaluation_{name}/`. Defaults to
        'average'.

    Raises:
      TypeError: If `num_rounds` is not an integer.
      ValueError: If an argument is invalid.
    """
    super().__init__(name)
    specs.check_positive('num_rounds', num_rounds)
    self._num_rounds = num_rounds
    self._num_filled = np.int64(0)
    self._newest_first: list[Any] = []

  def on_training_start(self, start: callbacks.TrainingStart):
    weights = tf.nest.map_structure(np.asarray, start.get_weights())
    self._num_filled = np.int64(0)
    self._newest_first = [weights] * self._num_rounds

  def on_round_end(self, round_end: callbacks.RoundEnd):
    weights = tf.nest.map_structure(np.asarray, round_end.get_weights())
    self._newest_first = [weights, *self._newest_first[:-1]]
    self._num_filled = np.int64(min(self._num_filled + 1, self._num_rounds))

  def get_weights(self) -> Any:
    """Returns the mean, or the initial weights before the first round."""

    def mean(*leaves):
      if not _is_floating(leaves[0]):
        return leaves[0]
      total = sum(leaf.astype(np.float64) for leaf in leaves)
      return np.asarray(total / len(leaves)).astype(leaves[0].dtype)

    num_used = max(self._num_filled, 1)
    return tf.nest.map_structure(mean, *self._newest_first[:num_used])

  def get_state(self):
    return {'num_filled': self._num_filled, 'newest_first': self._newest_first}

  def set_state(self, state):
    self._num_filled = state['num_filled']
    self._newest_first = state['newest_first']
