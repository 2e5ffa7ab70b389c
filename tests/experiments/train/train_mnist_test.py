# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the training binary on the file of MNIST."""

import numpy as np
import pytest

from tests import folder_testing
from tests import program_testing
from tests.tasks import data_testing
from tests.tasks.images import cifar_testing


class TrainMnistTest(folder_testing.FolderTestCase):

  def setUp(self):
    super().setUp()
    self.npz = self.folder / 'data' / 'mnist.npz'
    self.npz.parent.mkdir()

  def _write(self):
    np.savez(self.npz, **cifar_testing.arrays(300, 30, 10, (28, 28)))

  def _run(self, *arguments):
    return program_testing.run(
        'experiments.train',
        '--task=mnist',
        f'--data_dir={self.npz.parent}',
        f'--output_dir={self.folder}',
        '--experiment_name=run',
        *arguments,
    )

  @pytest.mark.slow
  def test_trains_and_plots_the_partition(self):
    self._write()
    done = self._run(
        '--mnist_num_clients=6',
        '--mnist_examples_per_client=20-40',
        '--clients_per_round=2',
        '--client_batch_size=16',
        '--total_rounds=2',
    )
    self.assertEqual(done.returncode, 0, done.stderr)
    run = self.folder / 'run'
    self.assertIn(f'partition: {run / "plots" / "partition.png"}', done.stdout)
    self.assertGreater((run / 'plots' / 'partition.png').stat().st_size, 5000)
    rows = folder_testing.read_rows(run / 'metrics.csv')
    self.assertLen(rows, 2)
    self.assertBetween(float(rows[-1]['evaluation/accuracy']), 0.0, 1.0)
    self.assertBetween(int(rows[0]['clients/num_examples']), 40, 88)

  @pytest.mark.slow
  @pytest.mark.published_data
  def test_delta_sgd_reaches_its_accuracy_in_100_rounds(self):
    done = self._run(
        f'--data_dir={data_testing.real_data("mnist")}',
        '--mnist_alpha=0.1',
        '--client_optimizer=delta_sgd',
        '--client_weighting=uniform',
        '--total_rounds=100',
        '--rounds_per_evaluation=100',
    )
    self.assertEqual(done.returncode, 0, done.stderr)
    rows = folder_testing.read_rows(self.folder / 'run/metrics.csv')
    self.assertGreaterEqual(float(rows[-1]['evaluation/accuracy']), 0.955)
