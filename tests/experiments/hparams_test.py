# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of reading and checking the hyperparameters of a training run."""

from unittest import mock

from absl.testing import parameterized

from experiments import hparams
from experiments import registry
from tests.experiments import hparams_testing

# Each with its client optimizer, server optimizer and weighting.
_ALGORITHMS = (
    ('fed_opt', 'delta_sgd', 'fedavg', 'examples'),
    ('fedcada', 'fedcada_adam', 'fedavg', 'uniform'),
    ('fedli_ls', 'armijo', 'line_search_step', 'examples'),
    ('fedli_lu', 'delta_sgd', 'frank_wolfe', 'examples'),
    ('fedsls', 'armijo', 'fedavg', 'examples'),
    ('fedexpsls', 'armijo', 'fedexp', 'examples'),
    ('scaffold', 'scaffold_sgd', 'fedavg', 'uniform'),
    ('feddyn', 'feddyn', 'fedavg', 'uniform'),
    ('fafed', 'fafed', 'fedavg', 'uniform'),
    ('adaalter', 'adaalter', 'fedavg', 'uniform'),
)


def _choices(*arguments):
  return hparams.read_choices(hparams_testing.parse(*arguments))


class DefineTest(parameterized.TestCase):

  def test_help_shows_defaults(self):
    values = hparams_testing.parse()
    self.assertIn('Default 2.0.', values['delta_sgd_gamma'].help)
    self.assertIn('sgd: ', values['client_learning_rate'].help)
    self.assertIn('delta_sgd: ', values['client_learning_rate'].help)

  def test_help_shows_what_rows_have_in_common_once(self):
    text = hparams_testing.parse()['client_weighting'].help
    self.assertEqual(text.count('Weight clients'), 1)
    self.assertIn('By default as the client optimizer asks', text)

  def test_optimizers_have_no_default_but_help_tells_it(self):
    values = hparams_testing.parse()
    for side, default in (('client', 'delta_sgd'), ('server', 'fedavg')):
      flag = values[f'{side}_optimizer']
      self.assertIsNone(flag.value)
      self.assertEndsWith(
          flag.help, f"Default: the algorithm's, or {default} if it has none."
      )


class HparamsTest(parameterized.TestCase):

  @parameterized.named_parameters(
      ('of_the_library', 'delta_sgd', 'examples'),
      ('with_equal_weights', 'feddyn', 'uniform'),
      ('by_its_arguments', 'fedspeed', None),
      ('own', 'docs.examples.majority_vote:build_majority_vote', None),
  )
  def test_weights_are_those_that_the_client_optimizer_asks_for(
      self, name, expected
  ):
    # Other tests look at all rules that there are.
    rows = registry.ROWS[registry.CLIENT_OPTIMIZER]
    self.enter_context(mock.patch.dict(rows))
    found = _choices(f'--client_optimizer={name}')[registry.ALGORITHM]
    self.assertEqual(found.hparams()['client_weighting'], expected)

  def test_flags_reach_the_chosen_builder_alone(self):
    choices = _choices(
        '--client_optimizer=sgd',
        '--client_learning_rate=0.5',
        '--sgd_momentum=0.9',
        '--digits_alpha=inf',
        '--digits_model=logistic',
    )
    self.assertEqual(
        choices[registry.CLIENT_OPTIMIZER].given,
        {'learning_rate': 0.5, 'momentum': 0.9},
    )
    self.assertEqual(
        choices[registry.TASK].given,
        {'alpha': float('inf'), 'model_id': 'logistic'},
    )
    self.assertEmpty(choices[registry.SERVER_OPTIMIZER].given)

  def test_build_calls_the_builder(self):
    row = registry.Row(
        'row',
        'builtins:dict',
        (
            registry.Argument(
                'a',
                'x',
                'Help.',
                choices=('x', 'y'),
                references=('math:pi', 'math:e'),
            ),
            registry.Argument('b', 1, 'Help.'),
        ),
        supplied=('c',),
    )
    choice = hparams.Choice(row, {'a': 'y'})
    self.assertEqual(
        choice.build(c=3, unknown_to_it=4), {'a': 2.718281828459045, 'c': 3}
    )
    self.assertEqual(choice.hparams(), {'row_a': 'y', 'row_b': 1})

  @parameterized.parameters(
      ('digits', 'cnn', 23946),
      ('digits', 'logistic', 650),
      ('mnist', 'cnn', 21840),
      ('mnist', 'logistic', 7850),
  )
  def test_recorded_flags_build_the_model_without_data(
      self, task, model, num_weights
  ):
    chosen = _choices(f'--task={task}', f'--{task}_model={model}')
    recorded = {'task': task, **chosen[registry.TASK].hparams()}
    choice = hparams.recorded_choice(registry.TASK, recorded)
    self.assertEqual(choice.hparams(), chosen[registry.TASK].hparams())
    built = choice.build_keras_model(seed=1)
    self.assertEqual(built.count_params(), num_weights)
    # Names that do not depend on what was built before.
    names = [variable.path for variable in built.variables]
    self.assertEqual(names[-2:], ['logits/kernel', 'logits/bias'])
    self.assertLen(set(names), len(names))

  def test_unrecorded_flags_have_their_defaults(self):
    choice = hparams.recorded_choice(registry.TASK, {'task': 'digits'})
    self.assertEmpty(choice.given)
    self.assertEqual(choice.build_keras_model(seed=1).count_params(), 23946)

  @parameterized.parameters(
      ({'task': 'digit'}, '--task=digit .*digits'),
      ({}, f'--task=None .*{", ".join(registry.ROWS[registry.TASK])}'),
      (
          {'task': 'digits', 'digits_model': 'mlp'},
          "--digits_model .*cnn, logistic, .*'mlp'",
      ),
  )
  def test_unknown_records_are_named(self, recorded, named):
    with self.assertRaisesRegex(hparams.HparamError, f'^{named}'):
      hparams.recorded_choice(registry.TASK, recorded)

  def test_choice_of_nothing_builds_none(self):
    row = registry.ROWS[registry.LOSS_TERM]['none']
    self.assertIsNone(hparams.Choice(row, {}).build(total_rounds=3))

  def test_parts_of_every_algorithm_are_known(self):
    # Centralized training has neither a server rule nor weights.
    self.assertCountEqual(
        [row[0] for row in _ALGORITHMS] + ['centralized'],
        registry.ROWS[registry.ALGORITHM],
    )

  @parameterized.parameters(*_ALGORITHMS)
  def test_algorithm_brings_its_parts(
      self, algorithm, client, server, client_weighting
  ):
    choices, settings = hparams_testing.read(f'--algorithm={algorithm}')
    self.assertEqual(choices[registry.CLIENT_OPTIMIZER].row.name, client)
    self.assertEqual(choices[registry.SERVER_OPTIMIZER].row.name, server)
    self.assertEqual(
        choices[registry.ALGORITHM].hparams()['client_weighting'],
        client_weighting,
    )
    self.assertEqual(
        settings.experiment_name, f'digits.{algorithm}.{client}.{server}'
    )
    # Flags may repeat the algorithm's own parts.
    said = [f'--client_optimizer={client}', f'--server_optimizer={server}']
    self.assertEqual(_choices(f'--algorithm={algorithm}', *said), choices)

  @parameterized.parameters(
      ('fedcada', '--server_optimizer=fedadam', '--fedadam_epsilon=0.1'),
      ('fedli_ls', '--client_optimizer=sps', '--sps_c=1'),
      ('fedli_lu', '--client_optimizer=sgd', '--client_learning_rate=1'),
      ('fed_opt', '--client_optimizer=fafed', '--fafed_rho=0.1'),
      ('fed_opt', '--server_optimizer=frank_wolfe', '--server_learning_rate=1'),
  )
  def test_other_parts_may_be_chosen(self, algorithm, part, argument):
    choices = _choices(f'--algorithm={algorithm}', part, argument)
    kind, _, name = part[2:].partition('=')
    self.assertEqual(choices[kind].row.name, name)
    self.assertLen(choices[kind].given, 1)

  @parameterized.parameters(
      ('max', 'max'), ('unit', 'unit'), ('0.5', 0.5), ('1', 1.0)
  )
  def test_scale_of_the_line_search_step(self, text, expected):
    choices = _choices(
        '--algorithm=fedli_ls', f'--line_search_step_scale={text}'
    )
    row = choices[registry.SERVER_OPTIMIZER].row
    self.assertEqual(row.arguments[0].to_builder_value(text), expected)
    choices[registry.SERVER_OPTIMIZER].build()

  def test_memory_makes_no_other_run(self):
    recorded = _choices(
        '--task=emnist_cr', '--emnist_cr_max_bytes_in_memory=0'
    )[registry.TASK].hparams()
    self.assertIn('emnist_cr_model', recorded)
    self.assertNotIn('emnist_cr_max_bytes_in_memory', recorded)


_PRIVATE = '--client_weighting=uniform --dp_noise_multiplier=1'
_FIXED = f'{_PRIVATE} --dp_clip_norm=1'
_POOLED = '--algorithm=centralized --client_optimizer=adam'
_TUNED = '--tune_rates=hypergradient'
# Flags of which the last one is refused, and what else the error names.
_REFUSED = (
    ('--client_learning_rate=fast',),
    ('--total_rounds=0',),
    ('--total_rounds=1.5',),
    ('--seed=-1',),
    ('--seed=4294967296',),
    ('--bad_clients=ignore',),
    ('--delta_sgd_previous_gradient=guess',),
    ('--client_weighting=some',),
    ('--delta_sgd_gama=2',),
    ('--clients_per_round=-3',),
    ('--checkpoints_to_keep=0',),
    ('--early_stopping_patience=0',),
    ('--monitored_mode=best',),
    ('--weights_average_decay=1.5',),
    ('--weights_average_rounds=0',),
    ('--weights_average_rounds=1001',),
    ('--client_states_memory_mb=-1',),
    ('--fedcada_adam_option=5',),
    # Names of rows.
    ('--task=digit', 'no task', 'mean digits?'),
    ('--client_optimizer=delta-sgd', 'mean delta_sgd or sgd?'),
    ('--server_optimizer=xyz', *registry.ROWS[registry.SERVER_OPTIMIZER]),
    ('--algorithm=fedopt', 'no algorithm', 'mean fed_opt or fafed?'),
    ('--algorithm=fedprox', 'mean --loss_term=fedprox?'),
    ('--client_optimizer=fedadam', 'mean --server_optimizer=fedadam?'),
    ('--runtime=cloud', 'choose one of compiled, native, ray'),
    # Arguments of rows.
    (
        '--sgd_momentum=0.9',
        '--client_optimizer=sgd',
        '--client_optimizer=delta_sgd',
    ),
    ('--client_schedule=table', '--client_schedule_table'),
    ('--client_learning_rate=-0.1', 'above 0', '-0.1'),
    ('--server_learning_rate=-1', 'at least 0', '-1'),
    ('--delta_sgd_gamma=nan', 'a finite number', 'nan'),
    ('--client_learning_rate=inf', 'a finite number', 'inf'),
    ('--digits_num_clients=0', 'at least 1', '0'),
    ('--client_learning_rate=2e18', 'at most 1e+18', '2e+18'),
    ('--digits_num_clients=2147483648', 'at most 2147483647', '2147483648'),
    # Rules of another algorithm.
    ('--algorithm=fedcada --client_optimizer=sgd', 'fedcada_adam'),
    ('--algorithm=scaffold --client_optimizer=adam', 'scaffold_sgd'),
    ('--algorithm=fafed --client_optimizer=adaalter', '=fafed', 'adaalter'),
    ('--algorithm=adaalter --client_optimizer=fafed', '=adaalter', 'fafed'),
    ('--algorithm=fedli_ls --server_optimizer=fedavg', 'line_search_step'),
    ('--algorithm=fedli_lu --server_optimizer=fedexp', 'frank_wolfe'),
    # Pooled examples have no federation.
    (f'{_POOLED} --server_optimizer=fedadam', 'no server optimizer', 'drop'),
    (f'{_POOLED} --server_learning_rate=0.5', 'takes no'),
    (f'{_POOLED} --server_schedule=inverse_sqrt', 'no server schedule'),
    (f'{_POOLED} --loss_term=fedprox', 'no loss term', 'drop'),
    (f'{_POOLED} --client_weighting=uniform', 'belongs to'),
    (f'{_POOLED} --sampling=poisson', 'no cohorts', 'drop'),
    (f'{_POOLED} --dp_clip_norm=1 --dp_noise_multiplier=1', 'pooled', 'drop'),
    (f'{_POOLED} --drop_clients=0.1', 'pooled', 'drop'),
    (f'{_POOLED} --straggler_fraction=0.1', 'pooled', 'drop'),
    # Data.
    ('--task=mnist', '--data_dir, the folder'),
    ('--task=digits --use_synthetic_data', '--task=digits', 'drop'),
    ('--task=mnist --data_dir=data --use_synthetic_data', '--data_dir'),
    ('--heldout_fraction=0', '(0, 1)', '0'),
    ('--validation_fraction=1', '(0, 1)', '1'),
    # The monitored metric, and averages.
    ('--monitored_metric=loss', '--early_stopping_patience or --keep_best'),
    ('--monitored_mode=min', '--early_stopping_patience or --keep_best'),
    (
        '--keep_best --monitored_metric=evaluation/turnover',
        "'evaluation/turnover'",
        '--monitored_mode',
    ),
    ('--weights_average_decay=0.9 --weights_average_rounds=2', 'drop'),
    # Evaluations.
    (
        '--evaluations=per_client --metric_modes=turnover',
        'name:max and name:min',
        "'turnover'",
    ),
    ('--metric_modes=turnover:max', '--evaluations=per_client or personalized'),
    ('--evaluations=per_clients', 'per_client or personalized'),
    ('--final_evaluations=central,x', '--final_evaluations=x'),
    ('--evaluations=', 'central'),
    ('--evaluation_clients=3', '--evaluations'),
    (
        '--evaluations=per_client --personalization_epochs=3',
        '--evaluations=personalized',
    ),
    (
        '--evaluations=per_client --evaluation_examples=3',
        '--evaluations=central',
    ),
    # Privacy and faults.
    ('--dp_clip_norm=1', '--dp_noise_multiplier'),
    (_PRIVATE, '--dp_clip_norm, or --dp_adaptive_clip_quantile'),
    (
        f'{_FIXED} --dp_adaptive_clip_count_stddev=1',
        '--dp_adaptive_clip_quantile',
    ),
    (
        '--dp_clip_norm=1 --dp_noise_multiplier=1',
        '--client_weighting=uniform',
        'do not bound',
    ),
    (f'{_FIXED} --dp_noise_multiplier=-1', 'at least 0', '-1'),
    (f'{_FIXED} --dp_noise_multiplier=1e300', 'at most 1e+18', '1e+300'),
    (f'{_PRIVATE} --dp_adaptive_clip_quantile=50', '[0, 1]', '50'),
    (f'{_FIXED} --dp_delta=1', '(0, 1)', '1'),
    (
        f'{_FIXED} --dp_payload_clip_norms=control=1',
        'name:bound pairs',
        "'control=1'",
    ),
    (f'{_FIXED} --dp_payload_clip_norms=control:0', 'above 0', '0'),
    *(
        (f'--{flag}={value}',)
        for flag in ('drop_clients', 'straggler_fraction')
        for value in ('-0.1', '1.1', 'nan')
    ),
    # Rates that learn.
    ('--tune_rates_step=0.1', 'needs --tune_rates'),
    ('--tune_rates_rounds=2', 'needs --tune_rates'),
    (f'{_TUNED} --tune_rates_step=0',),
    (f'{_TUNED} --runtime=native',),
    (f'{_FIXED} {_TUNED}', 'noise'),
    # Folders.
    *(
        (f'--experiment_name={name}', 'name a folder')
        for name in ('', '..', 'a/../../b', '/root', 'a//b')
    ),
)


class RefusedFlagsTest(parameterized.TestCase):

  @parameterized.parameters(*_REFUSED)
  def test_an_error_names_the_flag_and_what_does_not_fit(self, given, *named):
    message = hparams_testing.find_error(given)
    last_flag = given.split()[-1].partition('=')[0]
    for name in (last_flag.lstrip('-'), *named):
      self.assertIn(name, message)
    self.assertNotIn('\n', message)
