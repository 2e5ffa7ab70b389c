# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The weights that a training run begins with: the task's own, or a file's."""

from collections.abc import Callable, Iterator, Mapping
import contextlib
import functools
import os
from typing import Any, Optional

import attrs
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from experiments import command_line
from tff_adaptive.client_works import model_adapter
from tff_adaptive.simulation import checkpoints
from tff_adaptive.simulation import task as task_lib
from tff_adaptive.simulation import weights_files

_FLAG = 'initial_weights'
_DIGEST_KEY = f'{_FLAG}_sha256'


@contextlib.contextmanager
def _errors_of_flag() -> Iterator[None]:
  """Turns what is wrong with the file into a sentence about the flag."""
  try:
    yield
  except (
      FileNotFoundError,
      checkpoints.CheckpointError,
      weights_files.WeightsFileError,
  ) as error:
    raise command_line.UserError(f'--{_FLAG}: {error}') from error


@attrs.frozen
class WarmStart:
  """What a run begins with.

  Attributes:
    path: What `hparams.json` says of where the weights are from; None for the
      task's own.
    stored: The weights of the file, or None.
  """

  path: Optional[str] = None
  stored: Optional[weights_files.StoredWeights] = None

  def hparams(self) -> dict[str, Any]:
    """Returns what goes into `hparams.json`."""
    if self.stored is None:
      return {}
    return {_FLAG: self.path, _DIGEST_KEY: self.stored.digest()}

  def initial_state_fn(
      self,
      process: tff.learning.templates.LearningProcess,
      task: task_lib.Task,
  ) -> Callable[[], Any]:
    """Returns what makes the state that the first round begins with.

    Args:
      process: The learning process of the run.
      task: What it trains on.

    Returns:
      A function without arguments, to be called where the process runs.

    Raises:
      UserError: If the weights do not fit the model, or are not finite.
    """
    if self.stored is None:
      return process.initialize
    adapter = model_adapter.build_model_adapter(
        task.functional_model or task.variable_model_fn
    )
    # In a graph, so that no variable of this model outlives it.
    with tf.Graph().as_default(), _errors_of_flag():
      weights = self.stored.to_model_weights(adapter.initial_weights())
    for name, array in self.stored.arrays.items():
      if array.dtype.kind == 'f' and not np.all(np.isfinite(array)):
        raise command_line.UserError(
            f'--{_FLAG}: `{name}` in {self.stored.path} is not finite, so that '
            'no client could be trained'
        )
    print(f'initial weights: {self.stored.path}', flush=True)
    return functools.partial(_initialize, process, weights)


def _initialize(process, weights):
  """Returns the initial state of a process, with other weights."""
  return process.set_model_weights(process.initialize(), weights)


def read(
    path: Optional[str],
    recorded: Optional[Mapping[str, Any]],
    folder: os.PathLike,
) -> WarmStart:
  """Reads the weights that a run is to begin with.

  A resumed run needs the same weights. They may be in another file by now; the
  recorded path stays.

  Args:
    path: What `weights_files.read_weights` takes; None for the task's own.
    recorded: The hyperparameters of the run that is resumed; None for a new
      one.
    folder: The folder of the run, for the error's sentence.

  Returns:
    The weights, not yet compared with the model.

  Raises:
    UserError: If the file is missing or damaged, or was another one when the
      run began.
  """
  if path is None:
    return WarmStart()
  with _errors_of_flag():
    stored = weights_files.read_weights(path)
  recorded = recorded or {}
  if recorded.get(_DIGEST_KEY) == stored.digest():
    return WarmStart(recorded.get(_FLAG), stored)
  if recorded.get(_FLAG) == path:
    raise command_line.UserError(
        f'{folder} holds a run that began with other weights than '
        f'--{_FLAG}={path} has now; choose another --experiment_name, or bring '
        'the file back'
    )
  return WarmStart(path, stored)
