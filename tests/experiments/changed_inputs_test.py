# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that old results are not shown as those of changed code or data."""

import contextlib
import pathlib
import sys
from unittest import mock

import numpy as np
import pytest

from experiments import command_line
from experiments import registry
from tests import folder_testing
from tests import program_testing
from tests.experiments.train import trainer_testing
from tff_adaptive.simulation import training_loop

_IMPORTED = 'FACTOR = 1.0\n'
_RULE = '''
import tensorflow_federated as tff

import own_factor

def build_mine(learning_rate: float = 0.1) -> tff.learning.optimizers.Optimizer:
  """Builds SGD.

  Args:
    learning_rate: The step size, not negative.
  """
  return tff.learning.optimizers.build_sgdm(learning_rate * own_factor.FACTOR)
'''
_TASK = """
import numpy as np
from tasks import definitions
from docs.examples import wine

MINE = definitions.ClassificationTask(
    name='mine',
    data=definitions.NpzData('mine.npz', shape=(3,), classes=2),
    models=wine.build_logistic,
    clients=definitions.Partition(num_clients=2, alpha=0.5, noun='rows'),
    protocol=definitions.Protocol(
        client_batch_size=4, client_epochs=1, clients_per_round=2,
        total_rounds=2,
    ),
)
"""


class ChangedInputsTest(folder_testing.FolderTestCase):

  def setUp(self):
    super().setUp()
    (self.folder / 'own_factor.py').write_text(_IMPORTED)
    (self.folder / 'own_rule.py').write_text(_RULE)
    (self.folder / 'own_task.py').write_text(_TASK)
    self._write_data(0)
    # Programs begin with the paths of this process.
    folder_testing.import_from(self, self.folder)

  def _write_data(self, seed):
    generator = np.random.default_rng(seed)
    arrays = {}
    for split in ('train', 'test'):
      arrays[f'x_{split}'] = generator.normal(size=(40, 3)).astype('float32')
      arrays[f'y_{split}'] = np.arange(40) % 2
    (self.folder / 'data').mkdir(exist_ok=True)
    np.savez(self.folder / 'data' / 'mine.npz', **arrays)

  def _call(self, program, *arguments):
    return program_testing.run(
        f'experiments.{program}',
        '--output_dir=runs',
        *arguments,
        cwd=self.folder,
        PYTHONPATH=f'{self.folder}:{program_testing.ROOT}',
    )

  def _compare(self):
    return self._call(
        'train',
        '--task=digits',
        '--total_rounds=1',
        '--num_clients=5',
        '--clients_per_round=2',
        '--compare=sgd,own_rule:build_mine',
        '--jobs=1',
    )

  @pytest.mark.slow
  def test_an_import_of_a_rule_that_changed_is_named(self):
    result = self._compare()
    self.assertEqual(result.returncode, 0, result.stderr)
    again = self._compare()
    self.assertEqual(again.returncode, 0, again.stderr)
    self.assertIn('mine', again.stdout)
    (self.folder / 'own_factor.py').write_text('FACTOR = 0.0\n')
    result = self._compare()
    self.assertEqual(result.returncode, 2)
    self.assertRegex(
        result.stderr,
        '^error: the module own_factor.py has changed since the run in '
        'runs/digits.compare/mine/seed_0 began; choose another',
    )
    self.assertNotIn('last 10', result.stdout)
    (self.folder / 'own_factor.py').write_text(_IMPORTED)
    self.assertEqual(self._compare().returncode, 0)

  def _train(self, *arguments):
    """Begins a training, as a process of its own would."""
    with (
        mock.patch.dict(registry.ROWS[registry.TASK]),
        mock.patch.dict(sys.modules),
        trainer_testing.interrupting(pathlib.Path('runs/run')),
        contextlib.chdir(self.folder),
    ):
      trainer_testing.train_as_told(
          pathlib.Path('runs'),
          '--task=own_task:MINE',
          '--data_dir=data',
          '--client_optimizer=sgd',
          '--experiment_name=run',
          *arguments,
      )

  def test_data_and_modules_of_a_task_that_changed_are_named(self):
    begun = training_loop.TrainingInterrupted
    refused = command_line.UserError
    self.assertRaises(begun, self._train)
    self._write_data(1)
    for more in ([], ['--total_rounds=3']):
      with self.assertRaisesRegex(
          refused, '^the data file data/mine.npz has changed .* runs/run '
      ):
        self._train(*more)
    self._write_data(0)
    self.assertRaises(begun, self._train)
    (self.folder / 'own_task.py').write_text(f'{_TASK}\n')
    with self.assertRaisesRegex(refused, '^the module own_task.py has changed'):
      self._train()

  @pytest.mark.slow
  def test_a_sweep_does_not_show_them_as_done(self):
    def sweep():
      return self._call(
          'sweep',
          '--task=own_task:MINE',
          '--data_dir=data',
          '--client_optimizer=sgd',
          '--sweep_name=rates',
          '--grid=client_learning_rate=0.1',
          '--jobs=1',
      )

    result = sweep()
    self.assertEqual(result.returncode, 0, result.stderr)
    self._write_data(1)
    result = sweep()
    self.assertEqual(result.returncode, 1)
    self.assertIn('1 of 1 trials failed', result.stderr)
    logs = ''.join(
        path.read_text() for path in (self.folder / 'runs').rglob('*.log')
    )
    self.assertIn('the data file data/mine.npz has changed', logs)
