# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The initial weights of a training run: the task's own, or from a file."""

from collections.abc import Callable, Iterator, Mapping
import contextlib
import os
from typing import Any, Optional

import attrs
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from experiments import command_line
from tff_adaptive.client_works import model_adapter
from tff_adaptive.data import specs
from tff_adaptive.simulation import checkpoints
from tff_adaptive.simulation import task as task_lib
from tff_adaptive.simulation import weights_files

_FLAG = 'initial_weights'
_DIGEST_KEY = f'{_FLAG}_sha256'


@contextlib.contextmanager
def _errors_of_flag() -> Iterator[None]:
  """Converts errors about the file to a sentence about the flag."""
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
  """The initial weights of a run.

  Attributes:
    path: The path recorded in `hparams.json`; None for the task's own weights.
    stored: The weights from the file, or None.
  """

  path: Optional[str] = None
  stored: Optional[weights_files.StoredWeights] = None

  def hparams(self) -> dict[str, Any]:
    """Returns the entries for `hparams.json`."""
    if self.stored is None:
      return {}
    return {_FLAG: self.path, _DIGEST_KEY: self.stored.digest()}

  def initial_state_fn(
      self, process: tff.learning.templates.LearningProcess, task: task_lib.Task
  ) -> Callable[[], Any]:
    """Returns a function that builds the state before the first round.

    Args:
      process: The learning process of the run.
      task: The task of the run.

    Returns:
      A function without arguments, to be called in the context of the process.

    Raises:
      UserError: If the weights do not match the model, or are not finite.
    """
    if self.stored is None:
      return process.initialize
    adapter = model_adapter.build_model_adapter(task.model)
    # In a graph, so that no variables of this model remain.
    with tf.Graph().as_default(), _errors_of_flag():
      weights = self.stored.to_model_weights(adapter.initial_weights())
    for name, array in self.stored.arrays.items():
      if specs.kind(array.dtype) in 'fc' and not np.all(np.isfinite(array)):
        raise command_line.UserError(
            f'--{_FLAG}: `{name}` in {self.stored.path} is not finite; give '
            'weights that are finite'
        )
    print(f'initial weights: {self.stored.path}', flush=True)
    return lambda: process.set_model_weights(process.initialize(), weights)


def read(
    path: Optional[str],
    recorded: Optional[Mapping[str, Any]],
    folder: os.PathLike,
) -> WarmStart:
  """Reads the initial weights of a run.

  A resumed run needs the same weights, which may be in another file by now; the
  recorded path is kept.

  Args:
    path: A path for `weights_files.read_weights`; None for the task's own
      weights.
    recorded: The hyperparameters of a resumed run; None for a new one.
    folder: The folder of the run, for error messages.

  Returns:
    The weights, not yet compared with the model.

  Raises:
    UserError: If the file is missing or damaged, or has changed since the run
      started.
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
        f'the run in {folder} started from other weights than those now in '
        f'--{_FLAG}={path}; choose another --experiment_name, or restore the '
        'file'
    )
  return WarmStart(path, stored)
