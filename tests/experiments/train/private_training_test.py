# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of private runs, from the flags to the files."""

import json

from absl.testing import parameterized
import pytest

from experiments import command_line
from experiments import registry
from experiments.train import run_parts
from tests import folder_testing
from tests.experiments import hparams_testing
from tests.experiments.train import trainer_testing
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
