# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the flags of a training run that belong to no row."""

from importlib import util

from absl.testing import parameterized

from experiments import hparams
from tests.experiments import hparams_testing

_read = hparams_testing.read_settings
_ACCURACY = 'evaluation/accuracy'
_PUBLISHED = '--task=stackoverflow_lr --data_dir=data'
_PRIVATE = '--client_weighting=uniform --dp_noise_multiplier=1.0'
_ADAPTIVE = f'{_PRIVATE} --dp_adaptive_clip_quantile=0.5'


class SettingsTest(parameterized.TestCase):

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

  @parameterized.parameters(
      ('', None, None),
      ('--early_stopping_patience=3', _ACCURACY, 'max'),
      ('--keep_best', _ACCURACY, 'max'),
      *(
          (f'--keep_best --monitored_metric={metric}', metric, 'min')
          for metric in (
              'evaluation/loss',
              'evaluation/mean_squared_error',
              'evaluation/false_positives',
          )
      ),
      *(
          (
              f'--keep_best --monitored_metric={metric} --monitored_mode=max',
              metric,
              'max',
          )
          for metric in ('foo', 'loss')
      ),
  )
  def test_the_monitored_metric_is_filled_in(self, arguments, metric, mode):
    recorded = _read(arguments).hparams()
    self.assertEqual(recorded['monitored_metric'], metric)
    self.assertEqual(recorded['monitored_mode'], mode)
    self.assertEqual(recorded['keep_best'], '--keep_best' in arguments)
    self.assertIsNone(recorded['weights_average_decay'])

  @parameterized.parameters(
      ('--keep_best', None, True),
      ('--keep_best --validation_fraction=0.1', 'validation', False),
      (
          '--early_stopping_patience=3 --validation_fraction=0.1 '
          '--evaluation_data=test',
          None,
          True,
      ),
      ('--keep_best --monitored_metric=clients/loss', None, False),
      ('--validation_fraction=0.1', None, False),
      (f'--keep_best {_PUBLISHED}', 'validation', False),
      (
          f'--keep_best {_PUBLISHED} --stackoverflow_lr_test_split=heldout',
          None,
          True,
      ),
  )
  def test_validation_data_choose_where_there_are_any(
      self, arguments, data, on_test
  ):
    settings = _read(arguments)
    self.assertEqual(settings.hparams()['evaluation_data'], data)
    self.assertEqual(settings.chooses_on_test_data, on_test)


class PrivacyTest(parameterized.TestCase):

  def test_by_default_runs_are_those_of_before(self):
    recorded = _read().hparams()
    names = [name for name in recorded if name.startswith('dp_')]
    self.assertLen(names, 7)
    for name in ('sampling', *names):
      self.assertIsNone(recorded[name])

  def test_fixed_clipping(self):
    settings = _read(
        _PRIVATE,
        '--dp_clip_norm=0.5',
        '--dp_payload_clip_norms=control:2,squared_norm:0.1',
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
    settings = _read(_ADAPTIVE)
    self.assertEqual(settings.dp_clip_norm, 0.1)
    self.assertEqual(settings.dp_adaptive_clip_learning_rate, 0.2)
    self.assertIsNone(settings.dp_adaptive_clip_count_stddev)
    settings = _read(_ADAPTIVE, '--dp_adaptive_clip_learning_rate=0')
    self.assertEqual(settings.dp_adaptive_clip_learning_rate, 0.0)


@parameterized.parameters('drop_clients', 'straggler_fraction')
class FaultsTest(parameterized.TestCase):

  def test_a_probability_is_recorded(self, flag):
    for value in (0.25, 1.0):
      settings = _read(f'--{flag}={value}')
      self.assertEqual(getattr(settings, flag), value)
      self.assertEqual(settings.hparams()[flag], value)

  def test_none_is_recorded_as_in_a_run_of_before_there_was_the_flag(
      self, flag
  ):
    for arguments in ([], [f'--{flag}=0'], ['--algorithm=centralized']):
      self.assertIsNone(_read(*arguments).hparams()[flag])
    self.assertIsNone(
        getattr(_read('--algorithm=centralized', f'--{flag}=0'), flag)
    )
