# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trains small runs in this process, for the tests of what uses runs."""

import contextlib
import functools
import io
import pathlib
import tempfile
from typing import Any
from unittest import mock

import numpy as np

from experiments.train import training_run
from tests.experiments import hparams_testing
from tff_adaptive.simulation import training_loop

_SMALL = (
    *hparams_testing.SMALL,
    '--total_rounds=2',
    '--rounds_per_evaluation=1',
    '--rounds_per_checkpoint=1',
    '--experiment_name=run',
)
# With the best weights, and with parts of checkpoints that a process has no use
# for: the averages, and what early stopping knows.
SHARED = (
    '--total_rounds=3',
    '--delta_sgd_previous_gradient=reuse',
    '--keep_best',
    '--weights_average_decay=0.5',
    '--early_stopping_patience=9',
)
# Three clients are too few for the noise on the count that the paper has.
PRIVATE = (
    '--sampling=poisson',
    '--client_weighting=uniform',
    '--dp_noise_multiplier=0.3',
    '--dp_adaptive_clip_quantile=0.5',
    '--dp_adaptive_clip_count_stddev=3',
)


def train(
    output_dir: pathlib.Path, *arguments: str
) -> tuple[training_loop.TrainingResult, str]:
  """Trains two rounds of logistic regression on digits, with further flags.

  The run is 'run'. Returns the result of the training and the output.
  """
  return train_as_told(output_dir, *_SMALL, *arguments)


@functools.cache
def _train_shared() -> tuple[tempfile.TemporaryDirectory, list[np.ndarray]]:
  folder = tempfile.TemporaryDirectory()  # It goes with the process.
  result, _ = train(pathlib.Path(folder.name), *SHARED)
  return folder, list(result.state.global_model_weights.trainable)


def shared_run() -> tuple[pathlib.Path, list[np.ndarray]]:
  """Returns a run of the flags `SHARED`, trained once, and its last weights.

  Tests that change the run copy it before.
  """
  folder, weights = _train_shared()
  return pathlib.Path(folder.name, 'run'), weights


def interrupting(run: pathlib.Path) -> Any:
  """Returns a patch: the loop trains, as it were, a round, and is ended."""

  def train_a_round(*unused_args, **unused_kwargs):
    (run / 'metrics.csv').touch()
    raise training_loop.TrainingInterrupted('Stop.')

  return mock.patch.object(training_loop, 'run_training', train_a_round)


def train_as_told(
    output_dir: pathlib.Path, *arguments: str
) -> tuple[training_loop.TrainingResult, str]:
  """Trains with these flags; returns the result and the output."""
  choices, settings = hparams_testing.read(
      f'--output_dir={output_dir}', *arguments
  )
  results = []
  run_training = training_loop.run_training

  def record(*args, **kwargs):
    results.append(run_training(*args, **kwargs))
    return results[0]

  out = io.StringIO()
  with contextlib.ExitStack() as stack:
    # It would stay for other tests.
    stack.enter_context(
        mock.patch('tensorflow.config.experimental.enable_op_determinism')
    )
    stack.enter_context(
        mock.patch.object(training_loop, 'run_training', record)
    )
    stack.enter_context(contextlib.redirect_stdout(out))
    stack.enter_context(contextlib.redirect_stderr(io.StringIO()))
    training_run.train(choices, settings)
  return results[0], out.getvalue()
