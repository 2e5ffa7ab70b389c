# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of centralized training from the flags to the metrics."""

import functools

from absl.testing import parameterized
import pytest

from experiments import registry
from experiments.train import run_parts
from experiments.train import training_run
from tests import folder_testing
from tests.experiments import hparams_testing
from tests.experiments.train import trainer_testing
from tests.tff_adaptive.optimizers import rules_testing
from tff_adaptive import optimizers

_FEDERATED = [
    name
    for name, build in rules_testing.builders(registry.CLIENT_OPTIMIZER).items()
    if isinstance(build(), optimizers.FederatedOptimizer)
]
_CENTRALIZED = ('--algorithm=centralized', '--client_optimizer=adam')


def _read(*arguments):
  return hparams_testing.read('--digits_model=logistic', *arguments)


@functools.cache
def _build_task():
  return run_parts.build_task(*_read(*_CENTRALIZED))


class CentralizedTest(folder_testing.FolderTestCase):

  def _train(self, *arguments):
    """Returns the result of the training and the rows of its metrics."""
    result, _ = trainer_testing.train(self.folder, *_CENTRALIZED, *arguments)
    return result, folder_testing.read_rows(self.folder / 'run/metrics.csv')

  def test_cohort_is_a_part_of_the_pool(self):
    cohort_fn = run_parts.build_cohort_fn(*_read(*_CENTRALIZED), _build_task())
    self.assertEqual(cohort_fn(3).client_ids, ('pool',))

  def test_title_of_a_run_names_no_server(self):
    choices, _ = _read(*_CENTRALIZED)
    self.assertEqual(
        training_run.describe(choices),
        'digits: centralized, adam on the pooled examples',
    )

  @pytest.mark.slow
  def test_trains_on_the_pool_and_keeps_the_state(self):
    result, rows = self._train()
    # Three clients of 1438/20 examples are 21.57 batches of 10.
    self.assertEqual(
        [row['clients/num_examples'] for row in rows], ['220', '220']
    )
    self.assertEqual([row['clients/num_clients'] for row in rows], ['1', '1'])
    shared = result.state.client_work['shared']
    self.assertEqual(shared['num_steps'], 2 * 22)

  def test_flags_that_say_what_holds_anyway_are_taken(self):
    choices, _ = _read(
        *_CENTRALIZED, '--server_optimizer=fedavg', '--loss_term=none'
    )
    self.assertEqual(choices['server_optimizer'].row.name, 'fedavg')

  @pytest.mark.slow
  def test_accuracy_rises(self):
    _, rows = self._train(
        '--client_learning_rate=0.01',
        '--clients_per_round=20',
        '--total_rounds=10',
    )
    accuracies = [float(row['evaluation/accuracy']) for row in rows]
    self.assertGreater(accuracies[-1], accuracies[0])
    self.assertGreater(accuracies[-1], 0.9)

  @parameterized.parameters(*_FEDERATED)
  def test_federated_rule_is_refused(self, name):
    run = _read('--algorithm=centralized', f'--client_optimizer={name}')
    with self.assertRaisesRegex(ValueError, 'a federated rule'):
      run_parts.build_process(*run, _build_task())
