# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of reading and checking the hyperparameters of a training run."""

import math
from unittest import mock

from absl import flags
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

  @parameterized.parameters(
      '--client_learning_rate=fast',
      '--total_rounds=0',
      '--total_rounds=1.5',
      '--seed=-1',
      '--seed=4294967296',
      '--bad_clients=ignore',
      '--delta_sgd_previous_gradient=guess',
      '--client_weighting=some',
      '--delta_sgd_gama=2',
      '--clients_per_round=-3',
      '--checkpoints_to_keep=0',
      '--early_stopping_patience=0',
      '--monitored_mode=best',
      '--weights_average_decay=1.5',
      '--weights_average_rounds=0',
      '--weights_average_rounds=1001',
      '--client_states_memory_mb=-1',
      '--fedcada_adam_option=5',
  )
  def test_absl_refuses(self, argument):
    name = argument.partition('=')[0].lstrip('-')
    with self.assertRaisesRegex(flags.Error, name):
      hparams_testing.parse(argument)

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

  def test_defaults_are_those_of_the_builders(self):
    choices = _choices()
    self.assertEqual(
        choices[registry.CLIENT_OPTIMIZER].hparams(),
        {
            'client_learning_rate': 0.2,
            'delta_sgd_theta': 1.0,
            'delta_sgd_gamma': 2.0,
            'delta_sgd_delta': 0.1,
            'delta_sgd_carry_state': False,
            'delta_sgd_previous_gradient': 'recompute',
            'delta_sgd_growth': 'if_moved',
            'delta_sgd_max_step_size': math.inf,
            'delta_sgd_amplify_first': False,
        },
    )
    # As Delta-SGD asks.
    weighting = {'client_weighting': 'examples'}
    for kind, choice in choices.items():
      self.assertEqual(
          choice.given, weighting if kind == registry.ALGORITHM else {}
      )

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
      ({'task': 'digit'}, '--task=digit names no task; did you mean digits?'),
      (
          {},
          '--task=None names no task; choose one of '
          + ', '.join(registry.ROWS[registry.TASK]),
      ),
      (
          {'task': 'digits', 'digits_model': 'mlp'},
          "--digits_model takes cnn, logistic, found 'mlp'",
      ),
  )
  def test_unknown_records_are_one_sentence(self, recorded, sentence):
    with self.assertRaises(hparams.HparamError) as caught:
      hparams.recorded_choice(registry.TASK, recorded)
    self.assertEqual(str(caught.exception), sentence)

  def test_choice_of_nothing_builds_none(self):
    row = registry.ROWS[registry.LOSS_TERM]['none']
    self.assertIsNone(hparams.Choice(row, {}).build(total_rounds=3))

  def test_required_argument_must_be_given(self):
    values = hparams_testing.parse('--client_schedule=table')
    with self.assertRaisesRegex(
        flags.Error, '--client_schedule=table needs --client_schedule_table'
    ):
      hparams.read_choices(values)
    values['client_schedule_table'].value = '0:1,5:0.5'
    choice = hparams.read_choices(values)[registry.CLIENT_SCHEDULE]
    self.assertEqual(float(choice.build()(6)), 0.5)

  @parameterized.named_parameters(
      (
          'task',
          '--task=digit',
          '--task=digit names no task; did you mean digits?',
      ),
      (
          'client_optimizer',
          '--client_optimizer=delta-sgd',
          '--client_optimizer=delta-sgd names no client optimizer; did you '
          'mean delta_sgd or sgd?',
      ),
      (
          'server_optimizer',
          '--server_optimizer=xyz',
          '--server_optimizer=xyz names no server optimizer; choose one of '
          + ', '.join(registry.ROWS[registry.SERVER_OPTIMIZER]),
      ),
      (
          'algorithm',
          '--algorithm=fedopt',
          '--algorithm=fedopt names no algorithm; did you mean fed_opt or '
          'fafed?',
      ),
      (
          'loss_term',
          '--algorithm=fedprox',
          '--algorithm=fedprox names no algorithm; did you mean '
          '--loss_term=fedprox?',
      ),
      (
          'server_optimizer_of_clients',
          '--client_optimizer=fedadam',
          '--client_optimizer=fedadam names no client optimizer; did you mean '
          '--server_optimizer=fedadam?',
      ),
      (
          'runtime',
          '--runtime=cloud',
          '--runtime=cloud names no runtime; choose one of compiled, native, '
          'ray',
      ),
      (
          'foreign',
          '--sgd_momentum=0.9',
          '--sgd_momentum belongs to --client_optimizer=sgd, but '
          '--client_optimizer=delta_sgd was chosen',
      ),
      (
          'negative_client_rate',
          '--client_learning_rate=-0.1',
          '--client_learning_rate must be above 0, found -0.1',
      ),
      (
          'negative_server_rate',
          '--server_learning_rate=-1',
          '--server_learning_rate must be at least 0, found -1',
      ),
      (
          'nan',
          '--delta_sgd_gamma=nan',
          '--delta_sgd_gamma must be a finite number, found nan',
      ),
      (
          'infinite',
          '--client_learning_rate=inf',
          '--client_learning_rate must be a finite number, found inf',
      ),
      (
          'no_client',
          '--digits_num_clients=0',
          '--digits_num_clients must be at least 1, found 0',
      ),
      (
          'beyond_float32',
          '--client_learning_rate=2e18',
          '--client_learning_rate must be at most 1e+18, found 2e+18',
      ),
      (
          'beyond_int32',
          '--digits_num_clients=2147483648',
          '--digits_num_clients must be at most 2147483647, found 2147483648',
      ),
  )
  def test_bad_values_are_one_sentence(self, argument, sentence):
    self.assertEqual(hparams_testing.find_error(argument), sentence)

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
        settings.experiment_name,
        f'digits.{algorithm}.{client}.{server}',
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
      ('fedcada', 'client_optimizer=fedcada_adam', 'client_optimizer=sgd'),
      ('scaffold', 'client_optimizer=scaffold_sgd', 'client_optimizer=adam'),
      ('fafed', 'client_optimizer=fafed', 'client_optimizer=adaalter'),
      ('adaalter', 'client_optimizer=adaalter', 'client_optimizer=fafed'),
      (
          'fedli_ls',
          'server_optimizer=line_search_step',
          'server_optimizer=fedavg',
      ),
      ('fedli_lu', 'server_optimizer=frank_wolfe', 'server_optimizer=fedexp'),
  )
  def test_part_of_another_algorithm_is_one_sentence(
      self, algorithm, part, other
  ):
    found = other.partition('=')[2]
    self.assertEqual(
        hparams_testing.find_error(f'--algorithm={algorithm}', f'--{other}'),
        f'--algorithm={algorithm} requires --{part}, found {found}',
    )

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

  def test_unknown_scale_names_the_known_ones(self):
    choices = _choices('--algorithm=fedli_ls', '--line_search_step_scale=mean')
    with self.assertRaisesRegex(
        ValueError, "'max', 'unit' or a number.*'mean'"
    ):
      choices[registry.SERVER_OPTIMIZER].build()

  def test_memory_makes_no_other_run(self):
    recorded = _choices(
        '--task=emnist_cr', '--emnist_cr_max_bytes_in_memory=0'
    )[registry.TASK].hparams()
    self.assertIn('emnist_cr_model', recorded)
    self.assertNotIn('emnist_cr_max_bytes_in_memory', recorded)
