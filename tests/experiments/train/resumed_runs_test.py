# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that a run in two parts has the bits of a whole one."""

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf

from tests import folder_testing
from tests.experiments.train import trainer_testing

_FAULTS = (
    *('--drop_clients=0.3', '--straggler_fraction=0.5'),
    *('--clients_per_round=6', '--client_batch_size=4'),
)
# With what they hold between rounds.
_RUNS = {
    # Faults come with the cohort, for any algorithm and runtime.
    'faults_native': (*_FAULTS, '--runtime=native'),
    'faults_scaffold': (*_FAULTS, '--algorithm=scaffold'),
    'centralized': ('--algorithm=centralized', '--client_optimizer=adam'),
    'samples_of_test_clients': (
        '--heldout_fraction=0.5',
        '--evaluation_data=test_clients',
        '--evaluation_examples=40',
    ),
    'tuned_rates': (
        *('--client_optimizer=sgd', '--client_learning_rate=0.01'),
        *('--server_optimizer=fedadam', '--server_learning_rate=0.01'),
        *('--tune_rates=hypergradient', '--tune_rates_step=0.5'),
        '--tune_rates_rounds=2',
    ),
}
_PRIVATE_RUNS = {
    'fed_opt': (),
    **{
        name: (f'--client_optimizer={name}',)
        for name in (
            'adgd',
            'cocob',
            'schedule_free_polyak_adam',
            'schedule_free_plus',
            'fedadamw',
            'fedlion',
            'fedmuon',
            'fedmuon_lmo',
            'fedpac_soap',
            'fedpac_sophia',
        )
    },
    **{
        name: (
            f'--client_optimizer={name}',
            f'--{name}_carry_state',
            f'--{name}_initial_scale=0.01',
        )
        for name in ('mechanic_adam', 'mechanic_sgd')
    },
    **{
        name: (f'--server_optimizer={name}', '--server_schedule=inverse_sqrt')
        for name in ('fedadamom', 'gpa', 'fed_schedule_free')
    },
    'fedavgm': ('--server_optimizer=fedavgm', '--fedavgm_nesterov'),
    **{name: (f'--algorithm={name}',) for name in ('fedsls', 'fedexpsls')},
}
_PRIVATE = (*trainer_testing.PRIVATE, '--keep_best')


class ResumedRunsTest(folder_testing.FolderTestCase):

  def _train(self, name, *arguments):
    result, _ = trainer_testing.train(
        self.folder, f'--experiment_name={name}', *arguments
    )
    return result

  def _rows(self, name):
    rows = folder_testing.read_rows(self.folder / name / 'metrics.csv')
    for row in rows:
      del row['seconds']
    return rows

  @parameterized.named_parameters(
      *((name, *given) for name, given in _RUNS.items()),
      *(
          (f'private_{name}', *_PRIVATE, *given)
          for name, given in _PRIVATE_RUNS.items()
      ),
  )
  @pytest.mark.slow
  def test_resumed_run_has_the_same_bits(self, *arguments):
    whole = self._train('whole', *arguments, '--total_rounds=3')
    self._train('resumed', *arguments, '--total_rounds=1')
    resumed = self._train('resumed', *arguments, '--total_rounds=3')
    self.assertEqual(resumed.num_new_rounds, 2)
    for weights in tf.nest.flatten(whole.state.global_model_weights):
      self.assertTrue(np.all(np.isfinite(weights)))
    self.assertEqual(self._rows('resumed'), self._rows('whole'))
    # With the states of clients that keep one.
    checkpoint = 'checkpoints/checkpoint_00000003.npz'
    self.assertEqual(
        (self.folder / 'resumed' / checkpoint).read_bytes(),
        (self.folder / 'whole' / checkpoint).read_bytes(),
    )
