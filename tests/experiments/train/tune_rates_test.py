# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of runs that tune their learning rates."""

import pytest

from experiments import command_line
from tests import folder_testing
from tests.experiments.train import trainer_testing

_FEDADAM = (
    '--client_optimizer=sgd',
    '--client_learning_rate=0.01',
    '--server_optimizer=fedadam',
    '--server_learning_rate=0.01',
    '--tune_rates=hypergradient',
)


class TuneRatesTest(folder_testing.FolderTestCase):

  @pytest.mark.slow
  def test_rates_rise_every_other_round(self):
    arguments = (*_FEDADAM, '--tune_rates_rounds=2', '--tune_rates_step=0.5')
    trainer_testing.train(self.folder, *arguments, '--total_rounds=4')
    rows = folder_testing.read_rows(self.folder / 'run/metrics.csv')
    rates = [float(row['server_learning_rate']) for row in rows]
    self.assertEqual(rates[0], rates[1])
    self.assertEqual(rates[2], rates[3])
    self.assertLess(0.01, rates[0])
    self.assertLess(rates[0], rates[2])
    self.assertIn('client_learning_rate', rows[0])

  def test_a_run_that_cannot_be_differentiated_is_one_sentence(self):
    with self.assertRaisesRegex(
        command_line.UserError, '^--tune_rates=hypergradient: .*keep state'
    ):
      trainer_testing.train(
          self.folder,
          '--algorithm=scaffold',
          '--client_learning_rate=0.1',
          '--tune_rates=hypergradient',
      )
    self.assertFalse((self.folder / 'run').exists())
