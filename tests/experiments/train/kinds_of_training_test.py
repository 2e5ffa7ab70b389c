# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of trainings from the flags to the files: private, pooled, tuned."""

import contextlib
import functools
import io
import json

from absl.testing import parameterized
import pytest
import tensorflow as tf

from experiments import command_line
from experiments import published
from experiments import registry
from experiments.train import run_parts
from experiments.train import training_run
from tests import folder_testing
from tests.experiments import hparams_testing
from tests.experiments.train import trainer_testing
from tests.tff_adaptive.optimizers import rules_testing
from tff_adaptive import optimizers
from tff_adaptive import privacy

_ADAPTIVE = trainer_testing.PRIVATE
_FIXED_BOUND = (*_ADAPTIVE[:3], '--dp_clip_norm=0.5')
# With the rules that each brings, or one that makes it go with privacy.
_ALGORITHMS = {
    'fed_opt': ('--server_optimizer=fedexp',),
    'fedcada': ('--fedcada_adam_time=global_step',),
    'fedli_ls': ('--line_search_step_scale=unit',),
    'fedli_lu': (),
    'fedsls': (),
    'fedexpsls': (),
    'scaffold': (),
    'feddyn': (),
    'fafed': (),
    'adaalter': (),
}


class PrivateTrainingTest(folder_testing.FolderTestCase):

  def _train(self, *arguments):
    return trainer_testing.train(self.folder, *arguments)

  def _rows(self):
    return folder_testing.read_rows(self.folder / 'run' / 'metrics.csv')

  def _assert_epsilon(self, rows, sampling):
    accountant = privacy.RoundAccountant(
        noise_multiplier=0.3,
        num_clients=20,
        clients_per_round=3,
        sampling=sampling,
    )
    delta = privacy.default_delta(20)
    for row in rows:
      expected = accountant.get_epsilon(int(row['round_num']), delta)
      self.assertAlmostEqual(float(row['privacy/epsilon']), expected)

  @pytest.mark.slow
  def test_metrics_have_epsilon_and_the_bound(self):
    _, out = self._train(*_ADAPTIVE, '--total_rounds=3')
    rows = self._rows()
    self._assert_epsilon(rows, privacy.CohortSampling.POISSON)
    bounds = {float(row['privacy/clip_norm']) for row in rows}
    self.assertLen(bounds, 3)
    self.assertIn(
        f'privacy: epsilon {float(rows[-1]["privacy/epsilon"]):.3g} at delta '
        '0.037 after 3 rounds with 3 of 20 clients, poisson sampling\n',
        out,
    )
    recorded = json.loads((self.folder / 'run/hparams.json').read_text())
    self.assertEqual(recorded['dp_adaptive_clip_quantile'], 0.5)
    self.assertEqual(recorded['sampling'], 'poisson')

  @parameterized.parameters('compiled', 'native')
  @pytest.mark.slow
  def test_cohorts_vary_and_may_be_empty(self, runtime):
    self._train(
        *_FIXED_BOUND,
        '--clients_per_round=1',
        '--total_rounds=8',
        '--algorithm=scaffold',
        '--dp_payload_clip_norms=control:0.1',
        f'--runtime={runtime}',
    )
    rows = self._rows()
    sizes = [int(row['clients/num_clients']) for row in rows]
    self.assertIn(0, sizes)
    self.assertGreater(max(sizes), 1)
    for row in rows:
      self.assertGreater(float(row['update_norm']), 0.0)

  @pytest.mark.slow
  def test_poisson_sampling_without_privacy(self):
    self._train(
        '--sampling=poisson', '--clients_per_round=1', '--total_rounds=8'
    )
    rows = self._rows()
    self.assertNotIn('privacy/epsilon', rows[0])
    self.assertGreater(len({row['clients/num_clients'] for row in rows}), 1)

  @pytest.mark.slow
  def test_cohorts_of_a_fixed_size_have_an_epsilon(self):
    self._train(*_FIXED_BOUND, '--sampling=fixed')
    rows = self._rows()
    self._assert_epsilon(rows, privacy.CohortSampling.FIXED)
    self.assertNotIn('privacy/clip_norm', rows[0])

  def test_payloads_of_the_algorithm_must_have_a_bound(self):
    with self.assertRaisesRegex(
        command_line.UserError, "send .'squared_norm'.*payload_clip_norms"
    ):
      self._train(*_FIXED_BOUND, '--server_optimizer=fedexp')
    self.assertFalse((self.folder / 'run').exists())


def _read(*arguments):
  return hparams_testing.read('--digits_model=logistic', *arguments)


def _build(algorithm, *arguments):
  choices, settings = _read(
      f'--algorithm={algorithm}',
      '--client_weighting=uniform',
      '--dp_noise_multiplier=0.1',
      '--dp_adaptive_clip_quantile=0.5',
      *arguments,
  )
  task = run_parts.build_task(choices, settings)
  return run_parts.build_process(choices, settings, task)


class EveryAlgorithmTest(parameterized.TestCase):

  def test_none_is_forgotten(self):
    rows = registry.ROWS[registry.ALGORITHM]
    self.assertCountEqual(_ALGORITHMS, set(rows) - {'centralized'})
    for name in _ALGORITHMS:
      self.assertIn('privacy', rows[name].supplied)

  @parameterized.parameters(*_ALGORITHMS)
  @pytest.mark.slow
  def test_is_built_with_privacy(self, algorithm):
    process = _build(algorithm, *_ALGORITHMS[algorithm])
    state_type = process.initialize.type_signature.result.member
    self.assertIn('dp_event=', str(state_type['aggregator']))
    shared = str(state_type['client_work']).partition('shared=')[2]
    if shared and not shared.startswith('<>'):
      self.assertIn('dp_event=', str(state_type['client_work']))

  @pytest.mark.slow
  def test_a_maximum_is_refused(self):
    with self.assertRaisesRegex(ValueError, "'last_step_size'.*not a sum"):
      _build('fedli_ls')


_FEDERATED = [
    name
    for name, build in rules_testing.builders(registry.CLIENT_OPTIMIZER).items()
    if isinstance(build(), optimizers.FederatedOptimizer)
]
_CENTRALIZED = ('--algorithm=centralized', '--client_optimizer=adam')


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


_TASKS = tuple(registry.ROWS[registry.TASK])


class SentDataTest(tf.test.TestCase, parameterized.TestCase):

  def _check(self, *arguments):
    """Sends the clients of a task; what is read then must be the same."""
    if '--task=digits' not in arguments:  # They come with a package.
      arguments = (*arguments, '--use_synthetic_data')
    choices, settings = published.parse_flags(
        [
            *arguments,
            '--clients_per_round=2',
            f'--output_dir={self.get_temp_dir()}',
        ]
    )
    with contextlib.redirect_stdout(io.StringIO()):
      task = run_parts.build_task(choices, settings)
    from ray import cloudpickle

    sent = cloudpickle.loads(cloudpickle.dumps(task.train_data))
    self.assertEqual(sent.client_ids, task.train_data.client_ids)
    for client_id in sent.client_ids[:3]:
      expected = task.train_data.examples(client_id)
      found = sent.examples(client_id)
      self.assertEqual(list(found), list(expected))
      tf.nest.map_structure(self.assertAllEqual, found, expected)

  def test_files_that_are_preprocessed(self):
    self._check('--task=shakespeare', '--num_clients=5')

  @parameterized.parameters(*_TASKS)
  @pytest.mark.slow
  def test_every_task_with_held_out_examples(self, name):
    self._check(f'--task={name}', '--heldout_fraction=0.2', '--num_clients=3')
