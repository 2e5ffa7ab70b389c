# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of runs whose clients drop out, straggle or are rejected."""

import shutil
from unittest import mock

from absl.testing import parameterized
import numpy as np
import pytest

from experiments import command_line
from tests import folder_testing
from tests.experiments.train import trainer_testing
from tests.tff_adaptive import testing
from tff_adaptive.simulation import checkpoints

_DROPPED_OUT, _STRAGGLERS = 'clients/num_dropped_out', 'clients/num_stragglers'


class FaultyRunsTest(folder_testing.FolderTestCase):

  def _column(self, name):
    rows = folder_testing.read_rows(self.folder / 'run' / 'metrics.csv')
    return [float(row[name]) for row in rows]

  @parameterized.parameters('compiled', 'native')
  @pytest.mark.slow
  def test_run_without_clients_stays_where_it_is(self, name):
    arguments = ('--drop_clients=1', f'--runtime={name}')
    result, _ = trainer_testing.train(self.folder, *arguments)
    self.assertEqual(self._column(_DROPPED_OUT), [3, 3])
    self.assertEqual(self._column(_STRAGGLERS), [0, 0])
    self.assertEqual(self._column('clients/num_clients'), [0, 0])
    self.assertEqual(self._column('clients/num_rejected'), [0, 0])
    np.testing.assert_equal(self._column('clients/loss'), [np.nan] * 2)
    self.assertEqual(self._column('train/accuracy'), [0, 0])
    # The logistic regression begins with zero biases, that any step would move.
    _, bias = testing.trainable(result.state)
    np.testing.assert_array_equal(bias, np.zeros(10))

  @pytest.mark.slow
  def test_some_clients_drop_out_and_some_are_slow(self):
    trainer_testing.train(
        self.folder,
        *('--drop_clients=0.3', '--straggler_fraction=0.5'),
        *('--clients_per_round=6', '--client_batch_size=4'),
        '--total_rounds=4',
    )
    dropped, slow = self._column(_DROPPED_OUT), self._column(_STRAGGLERS)
    trained = self._column('clients/num_clients')
    self.assertEqual(np.add(dropped, trained).tolist(), [6.0] * 4)
    self.assertBetween(sum(dropped), 1, 16)
    self.assertBetween(sum(slow), 1, sum(trained) - 1)

  @pytest.mark.slow
  def test_stragglers_weigh_by_what_they_have_trained_on(self):
    arguments = ('--client_batch_size=1', '--total_rounds=1')
    trainer_testing.train(self.folder, *arguments)
    (whole,) = self._column('clients/num_examples')
    shutil.rmtree(self.folder / 'run')
    trainer_testing.train(self.folder, *arguments, '--straggler_fraction=1')
    self.assertEqual(self._column(_STRAGGLERS), [3])
    (examples,) = self._column('clients/num_examples')
    self.assertEqual(self._column('clients/num_steps'), [examples])
    self.assertBetween(examples, 3, whole - 3)

  @parameterized.parameters('compiled', 'native')
  @pytest.mark.slow
  def test_rejected_clients_are_named(self, runtime):
    from tff_adaptive.data import partition

    original = partition.dirichlet_per_client
    emptied = []

    def with_empty_clients(*args):
      parts = original(*args)
      emptied[:] = list(parts)[::2]
      return {
          name: part[: 0 if name in emptied else None]
          for name, part in parts.items()
      }

    with mock.patch.object(
        partition, 'dirichlet_per_client', with_empty_clients
    ):
      trainer_testing.train(
          self.folder,
          '--bad_clients=reject',
          '--clients_per_round=20',
          f'--runtime={runtime}',
      )
    rows = folder_testing.read_rows(self.folder / 'run/rejected_clients.csv')
    for round_num in ('1', '2'):
      found = [row for row in rows if row['round_num'] == round_num]
      self.assertCountEqual([row['client_id'] for row in found], emptied)
      self.assertEqual({row['reason'] for row in found}, {'no_example'})
    self.assertEqual(self._column('clients/num_rejected'), [10, 10])

  @pytest.mark.slow
  def test_exploding_clients_are_named(self):
    trainer_testing.train(
        self.folder, '--max_client_update_norm=1e-6', '--total_rounds=1'
    )
    text = (self.folder / 'run' / 'rejected_clients.csv').read_text()
    self.assertEqual(text.count(',too_large\n'), 3)
    manager = checkpoints.CheckpointManager(self.folder / 'run' / 'checkpoints')
    self.assertEqual(manager.round_nums(), [1])

  @pytest.mark.slow
  def test_a_run_of_exploding_clients_stops_and_can_be_continued(self):
    arguments = ('--max_client_update_norm=1e-6', '--total_rounds=8')
    # The second one trains no round, so it does not know the reasons.
    for reasons in (r' \(in the last one 3 too_large\)', ''):
      with self.assertRaisesRegex(
          command_line.UserError,
          f'5 rounds in a row{reasons}.*after round 5.*=0 continues this',
      ):
        trainer_testing.train(self.folder, *arguments)
      self.assertEqual(self._column('clients/num_rejected'), [3] * 5)
    manager = checkpoints.CheckpointManager(self.folder / 'run' / 'checkpoints')
    self.assertEqual(manager.round_nums()[-1], 5)
    trainer_testing.train(self.folder, *arguments, '--max_rejected_rounds=0')
    self.assertEqual(self._column('clients/num_rejected'), [3] * 8)
