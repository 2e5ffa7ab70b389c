# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""A process that is quickly trained, and a test case that trains it."""

import collections
import io
import os
from unittest import mock

import numpy as np

from tests import folder_testing
from tff_adaptive.simulation import callbacks
from tff_adaptive.simulation import checkpoints
from tff_adaptive.simulation import kept_weights
from tff_adaptive.simulation import metrics_writers
from tff_adaptive.simulation import training_loop

_Output = collections.namedtuple('_Output', ['state', 'metrics'])


class Process:
  """Adds the sum of a cohort to its state; looks like a learning process."""

  def __init__(self, on_next=lambda state: None):
    self._on_next = on_next

  def initialize(self):
    return {'weights': np.float32(0), 'rounds': np.int32(0)}

  def next(self, state, cohort):
    self._on_next(state)
    weights = np.float32(state['weights'] + np.float32(0.1) * sum(cohort))
    loss = np.float32(1 / (1 + weights))
    clients = collections.OrderedDict(loss=loss, num=len(cohort))
    # In every second round the first client is.
    rejections = np.array([2 * (state['rounds'] % 2), 0], np.int64)
    return _Output(
        {'weights': weights, 'rounds': state['rounds'] + np.int32(1)},
        collections.OrderedDict(
            client_work=collections.OrderedDict(
                clients=clients, rejections=rejections
            )
        ),
    )

  def get_model_weights(self, state):
    return state['weights']


def round_end(**changes):
  """Returns the input of callbacks after the first round, with changes."""
  arguments = dict(
      round_num=1,
      state=None,
      get_weights=lambda: None,
      metrics={},
      evaluation=None,
  )
  return callbacks.RoundEnd(**{**arguments, **changes})


class LoopTestCase(folder_testing.FolderTestCase):
  """Runs the loop in a temporary folder, ten rounds unless told."""

  def setUp(self):
    super().setUp()
    self.stderr = io.StringIO()
    self.enter_context(mock.patch('sys.stderr', self.stderr))
    # A killed process leaves what it has written to the system.
    self.enter_context(mock.patch.object(os, 'fsync', lambda file: None))

  def run_loop(self, name='run', process=None, **kwargs):
    folder = self.folder / name
    folder.mkdir(exist_ok=True)
    arguments = dict(
        cohort_fn=lambda round_index: [round_index, 1],
        total_rounds=10,
        evaluate_fn=lambda weights: {'accuracy': float(weights) / 100},
        rounds_per_evaluation=4,
        rounds_per_checkpoint=3,
        checkpoints=checkpoints.CheckpointManager(folder / 'checkpoints'),
        writers=[metrics_writers.CSVMetricsWriter(folder / 'metrics.csv')],
    )
    arguments.update(kwargs)
    return training_loop.run_training(process or Process(), **arguments)

  def run_in_directory(self, directory, writers=(), **kwargs):
    """Runs it in a run directory, as `experiments.train` does."""
    return self.run_loop(
        directory.path.name,
        evaluate_fn=lambda weights: {'accuracy': float(weights) % 0.4},
        checkpoints=checkpoints.CheckpointManager(
            directory.checkpoints, keep_total=2
        ),
        writers=[
            metrics_writers.CSVMetricsWriter(directory.metrics_csv),
            metrics_writers.RejectedClientsWriter(
                directory.rejected_clients_csv
            ),
            *writers,
        ],
        callbacks=[
            kept_weights.WeightsMovingAverage(0.5),
            kept_weights.BestCheckpoint(directory.checkpoints),
        ],
        **kwargs,
    )

  def rows(self, name='run'):
    """Returns the lines of metrics.csv without the seconds, the last column."""
    text = (self.folder / name / 'metrics.csv').read_text()
    return [line.rpartition(',')[0] for line in text.splitlines()]

  def run_in_two_parts(self, name, killed_in, make_callbacks, **kwargs):
    """Runs until round `killed_in` fails, and then to the end.

    Returns the result and the callbacks of the second part.
    """

    def fail(state):
      if state['rounds'] == killed_in - 1:
        raise RuntimeError('killed')

    folder = self.folder / name
    with self.assertRaisesRegex(RuntimeError, 'killed'):
      self.run_loop(
          name, Process(fail), callbacks=make_callbacks(folder), **kwargs
      )
    callbacks = make_callbacks(folder)
    return self.run_loop(name, callbacks=callbacks, **kwargs), callbacks

  def assert_same_run(self, name, other):
    """Asserts that metrics, but seconds, and files are the same bytes."""
    self.assertEqual(self.rows(name), self.rows(other))
    paths = sorted((self.folder / name).glob('*/*'))
    self.assertEqual(
        [path.name for path in paths],
        [path.name for path in sorted((self.folder / other).glob('*/*'))],
    )
    for path in paths:
      twin = self.folder / other / path.parent.name / path.name
      self.assertEqual(path.read_bytes(), twin.read_bytes(), path.name)
