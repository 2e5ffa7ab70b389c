# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of whether a run has the hyperparameters that are wanted."""

from absl.testing import parameterized

from experiments import published
from experiments.run_results import agreement
from tasks import digits

_ROUNDS = digits.DIGITS.protocol.total_rounds
_ARGUMENTS = ('--task=digits', '--client_optimizer=sgd', '--seed=2')


def _recorded(**hparams):
  """Returns the records of a run of `_ARGUMENTS`, with the plan it found."""
  wanted = agreement.of_arguments(_ARGUMENTS)
  return {**wanted.values, 'devices': 'CPU:0', **hparams}


class AgreementTest(parameterized.TestCase):

  def _differences(self, recorded, *arguments):
    wanted = agreement.of_arguments([*_ARGUMENTS, *arguments])
    return wanted.find_differences(recorded)

  def test_values_are_those_in_force(self):
    values = agreement.of_arguments(_ARGUMENTS).values
    self.assertEqual(values['total_rounds'], _ROUNDS)
    self.assertEqual(values['server_optimizer'], 'fedavg')
    self.assertEqual(values['rounds_per_evaluation'], 5)
    self.assertEqual(values['seed'], 2)
    self.assertIsNone(values['num_clients'])

  @parameterized.named_parameters(
      ('the_same', (), {}),
      ('default_given', (f'--total_rounds={_ROUNDS}',), {}),
      ('elsewhere', ('--devices=GPU', '--num_parallel_clients=1'), {}),
      ('more_is_kept', (), {'keep_best': True, 'monitored_mode': 'max'}),
      ('more_is_averaged', (), {'weights_average_rounds': 3}),
      ('more_is_evaluated', (), {'evaluations': ['central', 'per_client']}),
  )
  def test_runs_that_are_wanted(self, arguments, recorded):
    self.assertEmpty(self._differences(_recorded(**recorded), *arguments))

  @parameterized.named_parameters(
      ('fewer_clients', (), 'num_clients', 5, None),
      ('other_cohort', (), 'clients_per_round', 3, 10),
      ('other_rows', (), 'server_optimizer', 'fedadam', 'fedavg'),
      ('argument_of_a_row', (), 'sgd_momentum', 0.9, 0.0),
      ('evaluated_more_often', (), 'rounds_per_evaluation', 1, 5),
      ('made_up_data', (), 'use_synthetic_data', True, False),
      ('other_weights', (), 'initial_weights', 'w.npz', None),
      ('not_evaluated', (), 'evaluations', ['per_client'], None),
      ('asked_to_keep', ('--keep_best',), 'keep_best', False, True),
  )
  def test_runs_that_are_not_wanted(self, arguments, name, found, wanted):
    recorded = _recorded(**{name: found})
    differences = self._differences(recorded, *arguments)
    self.assertIn((name, found, wanted), differences)

  def test_a_run_of_before_a_flag_has_its_default(self):
    recorded = _recorded()
    for name in ('sgd_momentum', 'loss_term', 'keep_best', 'client_epochs'):
      del recorded[name]
    self.assertEmpty(self._differences(recorded))
    self.assertEqual(
        self._differences(recorded, '--sgd_momentum=0.5'),
        [('sgd_momentum', 0.0, 0.5)],
    )

  @parameterized.parameters('always', 'if_moved')
  def test_a_run_older_than_a_flag_fits_several_values(self, growth):
    arguments = ('--client_optimizer=delta_sgd', f'--delta_sgd_growth={growth}')
    wanted = agreement.of_arguments(arguments)
    recorded = dict(wanted.values)
    del recorded['delta_sgd_growth']
    self.assertEmpty(wanted.find_differences(recorded))
    other = {'always': 'if_moved', 'if_moved': 'always'}[growth]
    recorded['delta_sgd_growth'] = other
    self.assertEqual(
        wanted.find_differences(recorded), [('delta_sgd_growth', other, growth)]
    )

  def test_only_some_names_may_matter(self):
    wanted = agreement.of_arguments(_ARGUMENTS)
    recorded = _recorded(seed=7, num_clients=5)
    self.assertEqual(
        wanted.find_differences(recorded, ['num_clients', 'task']),
        [('num_clients', 5, None)],
    )

  def test_a_cell_has_the_flags_of_its_files(self):
    cell = published.find_table('delta_sgd/table_1').cell(
        'alpha = 1', 'SGD', 'MNIST'
    )
    values = agreement.of_cell(cell, seed=3).values
    self.assertEqual(values['seed'], 3)
    self.assertEqual(values['total_rounds'], 500)
    self.assertEqual(values['mnist_alpha'], 1.0)
