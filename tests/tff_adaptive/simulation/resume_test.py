# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that a loop killed at any instant ends as one that was not."""

import pytest
from tensorboard.backend.event_processing import event_accumulator

from tests.tff_adaptive import file_testing
from tests.tff_adaptive.simulation import killed_loop_testing
from tff_adaptive.simulation import metrics_writers
from tff_adaptive.simulation import run_directory

_HPARAMS = {'total_rounds': 7, 'seed': 1}


class ResumeTest(killed_loop_testing.KilledLoopTestCase):

  def run_to_the_end(self, name):
    """Runs a small loop as `experiments.train` does."""
    directory = run_directory.RunDirectory(self.folder, name)
    directory.open(_HPARAMS)
    self.run_in_directory(
        directory,
        [metrics_writers.TensorBoardMetricsWriter(directory.tensorboard)],
        total_rounds=7,
        # The best round comes before, with and after a checkpoint.
        rounds_per_evaluation=2,
    )

  def contents(self, name):
    """Returns what must be equal: rows, other files, TensorBoard's scalars."""
    files = file_testing.read_files(self.folder / name)
    del files['metrics.csv']
    for path in [path for path in files if path.startswith('tensorboard/')]:
      del files[path]
    events = event_accumulator.EventAccumulator(
        str(self.folder / name / 'tensorboard'), purge_orphaned_data=True
    )
    events.Reload()
    scalars = {
        tag: [(event.step, event.value) for event in events.Scalars(tag)]
        for tag in events.Tags()['scalars']
        if tag != metrics_writers.SECONDS_KEY
    }
    return self.rows(name), files, scalars

  @pytest.mark.slow
  def test_killed_at_every_third_instant(self):
    self.check_killed_runs(
        3,
        [
            'before replace best.npz.tmp',
            'after replace checkpoint_00000003.npz.tmp',
            'within a checkpoint',
            'within a row',
        ],
    )
    _, files, scalars = self.contents('whole')
    self.assertEqual(
        list(files),
        [
            'checkpoints/best.npz',
            'checkpoints/checkpoint_00000006.npz',
            'checkpoints/checkpoint_00000007.npz',
            'hparams.json',
            'rejected_clients.csv',
        ],
    )
    self.assertEqual(
        files['rejected_clients.csv'].decode().splitlines(),
        [
            'round_num,client_id,reason',
            *(f'{round_num},0,not_finite' for round_num in (2, 4, 6)),
        ],
    )
    self.assertEqual(
        [step for step, _ in scalars['evaluation_average/accuracy']],
        [2, 4, 6, 7],
    )

  @pytest.mark.slow
  def test_killed_again_and_again(self):
    self.assertEqual(self.train('whole')[0], 0)
    whole = self.contents('whole')
    for step in (3, 17):
      name = f'step_{step}'
      num_killed = 0
      # A later instant each time: some are far enough for a checkpoint.
      while (
          self.train(name, 1 + step * num_killed)[0]
          == killed_loop_testing.KILLED
      ):
        num_killed += 1
      self.assertGreater(num_killed, 2)
      self.assertEqual(self.contents(name), whole)
