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
_BY_CLIENTS = '--heldout_fraction=0.2 --evaluations=central,personalized'
_PRIVATE = '--client_weighting=uniform --dp_noise_multiplier=1.0'
_ADAPTIVE = f'{_PRIVATE} --dp_adaptive_clip_quantile=0.5'
# Recorded as in a run of before there were the flags.
_DEFAULTS = {
    'seed': 0,
    'client_epochs': None,
    'sampling': None,
    'keep_best': False,
    'monitored_metric': None,
    'monitored_mode': None,
    'weights_average_decay': None,
    'evaluations': None,
    'evaluation_data': None,
    'evaluation_examples': None,
    'evaluation_clients': None,
    'personalization_epochs': None,
    'tune_rates_step': None,
    'drop_clients': None,
    'straggler_fraction': None,
}
# Flags, and what is recorded of them.
_RECORDED = (
    ('', _DEFAULTS),
    ('--total_rounds=7 --data_dir=somewhere', {'total_rounds': 7}),
    ('--task=mnist --use_synthetic_data', {'use_synthetic_data': True}),
    # The monitored metric is filled in.
    (
        '--early_stopping_patience=3',
        {
            'monitored_metric': _ACCURACY,
            'monitored_mode': 'max',
            'keep_best': False,
        },
    ),
    (
        '--keep_best',
        {
            'monitored_metric': _ACCURACY,
            'monitored_mode': 'max',
            'keep_best': True,
        },
    ),
    *(
        (
            f'--keep_best --monitored_metric={metric}',
            {'monitored_metric': metric, 'monitored_mode': 'min'},
        )
        for metric in (
            'evaluation/loss',
            'evaluation/mean_squared_error',
            'evaluation/false_positives',
        )
    ),
    *(
        (
            f'--keep_best --monitored_metric={metric} --monitored_mode=max',
            {'monitored_metric': metric, 'monitored_mode': 'max'},
        )
        for metric in ('foo', 'loss')
    ),
    # Privacy; clipping that adapts has the defaults of its paper.
    (
        f'{_PRIVATE} --dp_clip_norm=0.5 --dp_delta=1e-5 --sampling=poisson '
        '--dp_payload_clip_norms=control:2,squared_norm:0.1',
        {
            'sampling': 'poisson',
            'dp_noise_multiplier': 1.0,
            'dp_clip_norm': 0.5,
            'dp_payload_clip_norms': {'control': 2.0, 'squared_norm': 0.1},
            'dp_delta': 1e-5,
            'dp_adaptive_clip_learning_rate': None,
        },
    ),
    (
        _ADAPTIVE,
        {
            'dp_clip_norm': 0.1,
            'dp_adaptive_clip_learning_rate': 0.2,
            'dp_adaptive_clip_count_stddev': None,
        },
    ),
    (
        f'{_ADAPTIVE} --dp_adaptive_clip_learning_rate=0',
        {'dp_adaptive_clip_learning_rate': 0.0},
    ),
    (
        '--drop_clients=0.25 --straggler_fraction=1',
        {'drop_clients': 0.25, 'straggler_fraction': 1.0},
    ),
    ('--drop_clients=0 --straggler_fraction=0', _DEFAULTS),
    (
        '--algorithm=centralized --drop_clients=0 --straggler_fraction=0',
        {'drop_clients': None, 'straggler_fraction': None},
    ),
    ('--tune_rates=hypergradient', {'tune_rates_step': 0.1}),
    # Of evaluations those that change the metrics.
    ('--evaluations=central', _DEFAULTS),
    (
        '--final_evaluations=personalized --evaluation_clients=5 '
        '--personalization_epochs=2',
        _DEFAULTS,
    ),
    (
        '--evaluations=personalized,central --final_evaluations=per_client '
        '--evaluation_examples=10 --evaluation_data=train '
        '--evaluation_clients=5 --personalization_epochs=2 '
        '--metric_modes=turnover:max,a/drift:min',
        {
            'evaluations': ['central', 'personalized'],
            'evaluation_examples': 10,
            'evaluation_data': 'train',
            'evaluation_clients': 5,
            'personalization_epochs': 2,
            'metric_modes': {'turnover': 'max', 'a/drift': 'min'},
        },
    ),
)


class SettingsTest(parameterized.TestCase):

  @parameterized.parameters(*_RECORDED)
  def test_what_is_recorded(self, given, expected):
    recorded = _read(given).hparams()
    self.assertEqual({name: recorded[name] for name in expected}, expected)

  def test_flags_that_change_no_result_are_not_recorded(self):
    recorded = _read().hparams()
    self.assertNoCommonElements(
        recorded,
        [
            *('data_dir', 'output_dir', 'experiment_name', 'final_evaluations'),
            *('rounds_per_checkpoint', 'checkpoints_to_keep', 'profile'),
            *('client_states_memory_mb', 'max_rejected_rounds'),
            *('wandb', 'mlflow'),
        ],
    )
    privacy = [recorded[name] for name in recorded if name.startswith('dp_')]
    self.assertEqual(privacy, [None] * 7)

  @parameterized.parameters(
      ('', 'digits.fed_opt.delta_sgd.fedavg'),
      ('--loss_term=fedprox', 'digits.fed_opt.delta_sgd.fedavg.fedprox'),
  )
  def test_an_experiment_is_named_after_its_rows(self, given, name):
    self.assertEqual(_read(given).experiment_name, name)

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
    without, default, other = (
        _read('--evaluations=central,personalized', flags).hparams()
        for flags in (
            '',
            '--evaluation_data=test --personalization_epochs=1',
            '--personalization_epochs=2',
        )
    )
    self.assertEqual(without, default)
    self.assertNotEqual(without, other)

  @parameterized.parameters(
      ('--keep_best', None, True),
      ('--keep_best --validation_fraction=0.1', 'validation', False),
      (
          '--keep_best --validation_fraction=0.1 --evaluation_data=test',
          None,
          True,
      ),
      ('--keep_best --monitored_metric=clients/loss', None, False),
      # Validation examples belong to no client's test examples.
      *(
          (
              f'--keep_best --validation_fraction=0.1 {_BY_CLIENTS}'
              f' --monitored_metric={column}',
              'validation',
              is_of_clients,
          )
          for column, is_of_clients in (
              ('evaluation/clients/accuracy_mean', True),
              ('evaluation/personalized/after/accuracy_mean', True),
              ('evaluation_average/clients/accuracy_mean', True),
              ('evaluation_average/accuracy', False),
          )
      ),
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
