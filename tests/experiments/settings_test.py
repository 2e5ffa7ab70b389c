# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the flags of a training run that belong to no row."""

from importlib import util

from absl import flags
from absl.testing import parameterized

from experiments import hparams
from tests.experiments import hparams_testing

_read = hparams_testing.read_settings
_ACCURACY = 'evaluation/accuracy'
_PRIVATE = (
    '--client_weighting=uniform',
    '--dp_noise_multiplier=1.0',
)
_FIXED = (*_PRIVATE, '--dp_clip_norm=0.5')
_ADAPTIVE = (*_PRIVATE, '--dp_adaptive_clip_quantile=0.5')


class SettingsTest(parameterized.TestCase):

  def test_task_that_reads_files_needs_their_folder(self):
    with self.assertRaisesRegex(
        hparams.HparamError, '^--task=mnist needs --data_dir, the folder'
    ):
      _read('--task=mnist')

  @parameterized.parameters(
      (
          ['--task=digits', '--use_synthetic_data'],
          '--task=digits includes its data, drop --use_synthetic_data',
      ),
      (
          ['--task=mnist', '--use_synthetic_data', '--data_dir=data'],
          '--use_synthetic_data and --data_dir cannot be combined',
      ),
  )
  def test_synthetic_data_that_do_not_fit_are_refused(self, given, sentence):
    with self.assertRaisesRegex(hparams.HparamError, f'^{sentence}'):
      _read(*given)

  def test_synthetic_data_need_no_folder(self):
    settings = _read('--task=mnist', '--use_synthetic_data')
    self.assertTrue(settings.hparams()['use_synthetic_data'])

  def test_settings(self):
    settings = _read('--total_rounds=7', '--data_dir=somewhere')
    self.assertEqual(settings.total_rounds, 7)
    self.assertIsNone(settings.client_epochs)
    self.assertEqual(
        settings.experiment_name, 'digits.fed_opt.delta_sgd.fedavg'
    )
    settings = _read('--loss_term=fedprox')
    self.assertEqual(
        settings.experiment_name, 'digits.fed_opt.delta_sgd.fedavg.fedprox'
    )

  def test_recorded_settings(self):
    settings = _read('--total_rounds=7', '--data_dir=somewhere')
    recorded = settings.hparams()
    self.assertEqual(recorded['seed'], 0)
    self.assertNoCommonElements(
        recorded,
        [
            'data_dir',
            'output_dir',
            'experiment_name',
            'rounds_per_checkpoint',
            'checkpoints_to_keep',
            'client_states_memory_mb',
            'max_rejected_rounds',
            'profile',
            'wandb',
            'mlflow',
        ],
    )

  @parameterized.parameters('wandb', 'mlflow')
  def test_a_tracker_that_is_missing_is_named_with_what_to_install(self, name):
    if util.find_spec(name) is not None:
      self.skipTest(f'{name} is installed.')
    with self.assertRaisesRegex(
        hparams.HparamError,
        f'^--{name}: the package {name} is not installed; install it with '
        f'.* -m pip install {name}$',
    ):
      _read(f'--{name}')

  def test_a_default_that_is_given_is_the_same_run(self):
    personalized = ['--evaluations=central,personalized']
    given = ['--evaluation_data=test', '--personalization_epochs=1']
    without, default, other = (
        _read(*personalized, *flags).hparams()
        for flags in ([], given, ['--personalization_epochs=2'])
    )
    self.assertEqual(without, default)
    self.assertNotEqual(without, other)

  @parameterized.named_parameters(
      ('off', [], None, None),
      ('patience', ['--early_stopping_patience=3'], _ACCURACY, 'max'),
      ('keep_best', ['--keep_best'], _ACCURACY, 'max'),
      (
          'loss',
          ['--keep_best', '--monitored_metric=evaluation/loss'],
          'evaluation/loss',
          'min',
      ),
      (
          'error',
          ['--keep_best', '--monitored_metric=evaluation/mean_squared_error'],
          'evaluation/mean_squared_error',
          'min',
      ),
      (
          'count',
          ['--keep_best', '--monitored_metric=evaluation/false_positives'],
          'evaluation/false_positives',
          'min',
      ),
      (
          'unknown',
          ['--keep_best', '--monitored_metric=foo', '--monitored_mode=max'],
          'foo',
          'max',
      ),
      (
          'mode',
          ['--keep_best', '--monitored_metric=loss', '--monitored_mode=max'],
          'loss',
          'max',
      ),
  )
  def test_the_monitored_metric_is_filled_in(self, arguments, metric, mode):
    settings = _read(*arguments)
    recorded = settings.hparams()
    self.assertEqual(recorded['monitored_metric'], metric)
    self.assertEqual(recorded['monitored_mode'], mode)
    self.assertEqual(recorded['keep_best'], '--keep_best' in arguments)
    self.assertIsNone(recorded['weights_average_decay'])

  @parameterized.named_parameters(
      ('test', ['--keep_best'], None, True),
      (
          'fraction',
          ['--keep_best', '--validation_fraction=0.1'],
          'validation',
          False,
      ),
      (
          'test_is_told',
          [
              '--early_stopping_patience=3',
              '--validation_fraction=0.1',
              '--evaluation_data=test',
          ],
          None,
          True,
      ),
      (
          'clients',
          ['--keep_best', '--monitored_metric=clients/loss'],
          None,
          False,
      ),
      ('nothing_is_chosen', ['--validation_fraction=0.1'], None, False),
      (
          'published',
          ['--keep_best', '--task=stackoverflow_lr', '--data_dir=data'],
          'validation',
          False,
      ),
      (
          'held_out_users_test',
          [
              '--keep_best',
              '--task=stackoverflow_lr',
              '--stackoverflow_lr_test_split=heldout',
              '--data_dir=data',
          ],
          None,
          True,
      ),
  )
  def test_validation_data_choose_where_there_are_any(
      self, arguments, data, on_test
  ):
    settings = _read(*arguments)
    self.assertEqual(settings.hparams()['evaluation_data'], data)
    self.assertEqual(settings.chooses_on_test_data, on_test)

  @parameterized.named_parameters(
      (
          'metric',
          ['--monitored_metric=loss'],
          '--monitored_metric needs --early_stopping_patience or --keep_best',
      ),
      (
          'mode',
          ['--monitored_mode=min'],
          '--monitored_mode needs --early_stopping_patience or --keep_best',
      ),
      (
          'direction',
          ['--keep_best', '--monitored_metric=evaluation/turnover'],
          '--monitored_metric=evaluation/turnover: the name of the metric '
          "'evaluation/turnover' does not tell whether larger values are "
          "better; give --monitored_mode: 'max' if they are, 'min' if smaller "
          'ones are',
      ),
      (
          'modes',
          ['--evaluations=per_client', '--metric_modes=turnover'],
          '--metric_modes takes comma-separated name:max and name:min pairs, '
          "found 'turnover'",
      ),
      (
          'modes_of_central',
          ['--metric_modes=turnover:max'],
          '--metric_modes needs --evaluations=per_client or personalized',
      ),
      (
          'averages',
          ['--weights_average_decay=0.9', '--weights_average_rounds=2'],
          '--weights_average_decay and --weights_average_rounds cannot be '
          'combined, drop one of them',
      ),
  )
  def test_flags_that_do_not_fit_are_one_sentence(self, arguments, sentence):
    self.assertEqual(hparams_testing.find_error(*arguments), sentence)

  @parameterized.parameters('', '..', 'a/../../b', '/root', 'a//b')
  def test_experiment_name_stays_in_the_output_folder(self, name):
    with self.assertRaisesRegex(
        hparams.HparamError, '--experiment_name must name a folder'
    ):
      _read(f'--experiment_name={name}')


class PrivacyTest(parameterized.TestCase):

  def test_by_default_runs_are_those_of_before(self):
    recorded = _read().hparams()
    names = [name for name in recorded if name.startswith('dp_')]
    self.assertLen(names, 7)
    for name in ('sampling', *names):
      self.assertIsNone(recorded[name])

  def test_fixed_clipping(self):
    settings = _read(
        *_FIXED,
        '--dp_payload_clip_norms=control:2, squared_norm:0.1',
        '--dp_delta=1e-5',
        '--sampling=poisson',
    )
    recorded = settings.hparams()
    self.assertEqual(recorded['sampling'], 'poisson')
    self.assertEqual(recorded['dp_noise_multiplier'], 1.0)
    self.assertEqual(recorded['dp_clip_norm'], 0.5)
    self.assertEqual(
        recorded['dp_payload_clip_norms'],
        {'control': 2.0, 'squared_norm': 0.1},
    )
    self.assertEqual(recorded['dp_delta'], 1e-5)
    self.assertIsNone(recorded['dp_adaptive_clip_learning_rate'])

  def test_adaptive_clipping_has_the_defaults_of_its_paper(self):
    settings = _read(*_ADAPTIVE)
    self.assertEqual(settings.dp_clip_norm, 0.1)
    self.assertEqual(settings.dp_adaptive_clip_learning_rate, 0.2)
    self.assertIsNone(settings.dp_adaptive_clip_count_stddev)
    settings = _read(*_ADAPTIVE, '--dp_adaptive_clip_learning_rate=0')
    self.assertEqual(settings.dp_adaptive_clip_learning_rate, 0.0)

  @parameterized.named_parameters(
      (
          'no_noise',
          ['--dp_clip_norm=1'],
          '--dp_clip_norm needs --dp_noise_multiplier',
      ),
      (
          'no_bound',
          _PRIVATE,
          '--dp_noise_multiplier needs --dp_clip_norm, or '
          '--dp_adaptive_clip_quantile for bounds that adapt',
      ),
      (
          'not_adaptive',
          [*_FIXED, '--dp_adaptive_clip_count_stddev=1'],
          '--dp_adaptive_clip_count_stddev needs --dp_adaptive_clip_quantile',
      ),
      (
          'weights_by_examples',
          ['--dp_noise_multiplier=1', '--dp_clip_norm=1'],
          '--dp_noise_multiplier needs --client_weighting=uniform: weights by '
          'examples do not bound the contribution of a client',
      ),
      (
          'negative_noise',
          [*_FIXED, '--dp_noise_multiplier=-1'],
          '--dp_noise_multiplier must be at least 0, found -1',
      ),
      (
          'far_too_much_noise',
          [*_FIXED, '--dp_noise_multiplier=1e300'],
          '--dp_noise_multiplier must be at most 1e+18, found 1e+300',
      ),
      (
          'nothing_held_out',
          ['--heldout_fraction=0'],
          '--heldout_fraction must be in (0, 1), found 0',
      ),
      (
          'all_for_validation',
          ['--validation_fraction=1'],
          '--validation_fraction must be in (0, 1), found 1',
      ),
      (
          'quantile',
          [*_PRIVATE, '--dp_adaptive_clip_quantile=50'],
          '--dp_adaptive_clip_quantile must be in [0, 1], found 50',
      ),
      (
          'delta',
          [*_FIXED, '--dp_delta=1'],
          '--dp_delta must be in (0, 1), found 1',
      ),
      (
          'no_pair',
          [*_FIXED, '--dp_payload_clip_norms=control=1'],
          '--dp_payload_clip_norms takes comma-separated name:bound pairs, '
          "found 'control=1'",
      ),
      (
          'bound_of_a_payload',
          [*_FIXED, '--dp_payload_clip_norms=control:0'],
          '--dp_payload_clip_norms must be above 0, found 0',
      ),
      (
          'no_cohorts',
          ['--algorithm=centralized', '--sampling=poisson'],
          '--algorithm=centralized trains on the pooled examples of all '
          'clients and has no cohorts, drop --sampling',
      ),
      (
          'no_clients',
          [
              '--algorithm=centralized',
              '--dp_noise_multiplier=1',
              '--dp_clip_norm=1',
          ],
          '--algorithm=centralized trains on the pooled examples of all '
          'clients and has no cohorts, drop --dp_noise_multiplier',
      ),
  )
  def test_data_that_do_not_fit_are_one_sentence(self, arguments, sentence):
    self.assertEqual(hparams_testing.find_error(*arguments), sentence)


@parameterized.parameters('drop_clients', 'straggler_fraction')
class FaultsTest(parameterized.TestCase):

  def test_value_is_recorded(self, flag):
    settings = _read(f'--{flag}=0.25')
    self.assertEqual(getattr(settings, flag), 0.25)
    self.assertEqual(settings.hparams()[flag], 0.25)

  def test_none_is_recorded_as_in_a_run_of_before_there_was_the_flag(
      self, flag
  ):
    for arguments in ([], [f'--{flag}=0']):
      self.assertIsNone(_read(*arguments).hparams()[flag])

  def test_all_clients_may_fail(self, flag):
    self.assertEqual(getattr(_read(f'--{flag}=1'), flag), 1.0)

  def test_no_probability_is_refused(self, flag):
    for value in ('-0.1', '1.1', 'nan'):
      with self.assertRaisesRegex(flags.IllegalFlagValueError, flag):
        _read(f'--{flag}={value}')

  def test_pooled_clients_cannot_fail(self, flag):
    with self.assertRaisesRegex(
        hparams.HparamError,
        f'^--algorithm=centralized trains on the pooled .*, drop --{flag}$',
    ):
      _read('--algorithm=centralized', f'--{flag}=0.1')
    self.assertIsNone(
        getattr(_read('--algorithm=centralized', f'--{flag}=0'), flag)
    )
