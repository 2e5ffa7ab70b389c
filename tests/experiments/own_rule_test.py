# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of your own rules, `--client_optimizer=package.module:build_NAME`."""

import json
from unittest import mock

from absl import flags
from absl.testing import parameterized
import pytest

from experiments import hparams
from experiments import published
from experiments import registry
from experiments.leaderboard import __main__ as leaderboard
from experiments.leaderboard import board
from experiments.run_results import agreement
from experiments.train import __main__ as train
from experiments.train import compare
from tests import folder_testing
from tests import page_testing
from tests import program_testing
from tests.experiments import binary_testing
from tff_adaptive import ranges

_PLACE = 'docs.examples.sign_descent:build_sign_descent'
_SOURCE = '''
import math
import typing
from typing import Callable, Literal, Optional
import tensorflow_federated as tff
from tff_adaptive import client_works
from tff_adaptive import optimizers
from tff_adaptive import ranges
from tff_adaptive.ranges import Limit

HALF: float = 0.5

def build_typed(
    learning_rate: ranges.NotNegative, *, kind: Literal['a', 'b'] = 'a',
    steps: ranges.Count = 3,
    decay: float = 0.0):
  """Builds a rule.

  Args:
    learning_rate: The step size.
    kind: Which one. Another sentence.
    steps: The number of steps.
    decay: See `another`.
  """

def build_untyped(learning_rate=HALF, is_fast=False, bound=math.inf, f=None):
  return optimizers.build_fedavgm(learning_rate)

def build_pull(mu=0.1):
  return client_works.build_fedprox(mu)

def build_kinds(
    one: Literal['sign'] = 'sign',
    maybe: Optional[Literal['a', 'b']] = None,
    dotted: typing.Literal[1, 2] = 1,
    quoted: 'ranges.Steps' = 3,
    piped: float | None = None,
    betas: tuple[float, float] = (0.9, 0.99),
    schedule: Optional[Callable[[int], float]] = None,
    table: dict[str, float] = None,
):
  """Builds a rule.

  Args:
    quoted: A number
  """

def build_ranges(
    scale: ranges.Positive = 1.0,
    size: Optional[Limit] = None,
    power: float = 1.0,
):
  """Builds a rule."""

def build_half(learning_rate=1.0) -> tff.learning.optimizers.Optimizer:
  pass

def build_measured(learning_rate=1.0) -> 'optimizers.ServerOptimizer':
  pass

def build_penalty(mu=0.1) -> client_works.LossTerm:
  pass

def build_mixed(mode: Literal['a', None] = 'a'):
  pass

def build_number():
  return 3

def build_Upper():
  pass

def build_sgd():
  pass

def build_client(batch_size=1):
  pass

def build_needy(values):
  pass

def build_computed(rate=1 / 3):
  pass
'''


class OwnRuleTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    # Other tests look at all rules that there are.
    for kind in registry.RULES:
      self.enter_context(mock.patch.dict(registry.ROWS[kind]))
    self._folder = folder_testing.new(self)
    package = self._folder / 'own_rules'
    package.mkdir()
    (package / 'rules.py').write_text(_SOURCE, encoding='utf-8')
    (package / '__init__.py').write_text(
        'from .rules import build_untyped\n', encoding='utf-8'
    )
    (package / 'wrong.py').write_text('\ndef build_x()\n', encoding='utf-8')
    folder_testing.import_from(self, self._folder)

  def test_flags_follow_from_the_signature(self):
    choices, settings = published.parse_flags(
        [
            '--client_optimizer=own_rules.rules:build_typed',
            '--client_learning_rate=0.5',
            '--typed_kind=b',
        ]
    )
    choice = choices[registry.CLIENT_OPTIMIZER]
    self.assertEqual(choice.given, {'learning_rate': 0.5, 'kind': 'b'})
    self.assertEqual(
        choice.hparams(),
        {
            'client_learning_rate': 0.5,
            'typed_kind': 'b',
            'typed_steps': 3,
            'typed_decay': 0.0,
            'typed_file': choice.row.digest,
        },
    )
    kind = choice.row.arguments[1]
    self.assertEqual((kind.help, kind.choices), ('Which one.', ('a', 'b')))
    self.assertIn('.typed.', settings.experiment_name)

  @parameterized.parameters(
      ([], 'needs --client_learning_rate'),
      (['--client_learning_rate=1', '--typed_steps=0'], '--typed_steps must'),
      (['--client_learning_rate=-1'], 'must be at least 0'),
  )
  def test_values_are_checked(self, arguments, message):
    with self.assertRaisesRegex(hparams.HparamError, message):
      published.parse_flags(
          ['--client_optimizer=own_rules.rules:build_typed', *arguments]
      )

  def test_types_follow_from_defaults_if_there_are_no_annotations(self):
    choices, _ = published.parse_flags(
        [
            '--server_optimizer=own_rules:build_untyped',
            '--server_learning_rate=2',
            '--untyped_is_fast',
        ]
    )
    choice = choices[registry.SERVER_OPTIMIZER]
    self.assertEqual(
        choice.hparams(),
        {
            'server_learning_rate': 2.0,
            'untyped_is_fast': True,
            'untyped_bound': float('inf'),
            'untyped_file': choice.row.digest,
        },
    )

  def test_types_that_a_flag_can_express(self):
    row = registry.load_own(
        registry.CLIENT_OPTIMIZER, 'own_rules.rules:build_kinds'
    )
    self.assertEqual(
        [(a.name, a.type, a.choices, a.default) for a in row.arguments],
        [
            ('one', str, ('sign',), 'sign'),
            ('maybe', str, ('a', 'b'), None),
            ('dotted', str, ('1', '2'), '1'),
            ('quoted', int, (), 3),
            ('piped', float, (), None),
        ],
    )
    dotted, quoted = row.arguments[2:4]
    self.assertEqual(dotted.to_builder_value('2'), 2)
    self.assertEqual(quoted.range, ranges.Range(0))

  def test_ranges_follow_from_the_annotations(self):
    row = registry.load_own(
        registry.CLIENT_OPTIMIZER, 'own_rules.rules:build_ranges'
    )
    self.assertEqual(
        [(a.name, str(a.range)) for a in row.arguments],
        [
            ('scale', 'above 0'),
            ('size', 'above 0, or infinite'),
            ('power', 'a finite number'),
        ],
    )

  def test_the_help_has_its_rate_too(self):
    values = flags.FlagValues()
    hparams.define(values)
    for _ in range(2):  # Once is enough.
      hparams.define_own(
          ['--client_optimizer=own_rules.rules:build_typed'], values
      )
    self.assertEndsWith(
        values['client_learning_rate'].help,
        'typed: The step size; at least 0. Required.',
    )
    for flag in ('client_learning_rate', 'typed_kind'):
      self.assertEqual(values[flag].help.count('typed: '), 1)

  def test_a_changed_file_is_another_rule(self):
    place = 'own_rules.rules:build_pull'
    arguments = [f'--loss_term={place}']
    before = agreement.of_arguments(arguments)
    path = self._folder / 'own_rules' / 'rules.py'
    path.write_text(f'{_SOURCE}\n', encoding='utf-8')
    del registry.ROWS[registry.LOSS_TERM][place]
    (difference,) = agreement.of_arguments(arguments).find_differences(
        before.values
    )
    self.assertEqual(difference.name, 'pull_file')

  def test_a_rule_may_be_a_loss_term(self):
    choices, _ = published.parse_flags(
        ['--loss_term=own_rules.rules:build_pull', '--pull_mu=2']
    )
    self.assertEqual(choices[registry.LOSS_TERM].given, {'mu': 2.0})

  def test_a_recorded_rule_is_found_again(self):
    recorded = {'client_optimizer': _PLACE, 'client_learning_rate': 0.5}
    choice = hparams.recorded_choice(registry.CLIENT_OPTIMIZER, recorded)
    self.assertEqual(choice.given, {'learning_rate': 0.5})

  @parameterized.parameters(
      (':build_x', 'found no module, expected package.module:build_NAME'),
      ('no_such:build_x', 'the module no_such is not found from'),
      ('own_rules.none:build_x', 'the module own_rules.none is not found from'),
      ('math:build_x', 'the module math is not found from'),
      ('own_rules:SGD', 'expected a function build_NAME, found SGD'),
      ('own_rules:', 'expected a function build_NAME, found none'),
      ('own_rules.rules:build_x', 'own_rules.rules has no function build_x'),
      ('own_rules.rules:build_Upper', "and _, found 'Upper'"),
      ('own_rules.rules:build_sgd', '--client_optimizer=sgd have the same'),
      ('own_rules.rules:build_client', 'would define --client_batch_size'),
      ('own_rules.rules:build_needy', 'build_needy needs values, which has no'),
      ('own_rules.rules:build_computed', 'default of rate must .* found 1 / 3'),
      ('own_rules.rules:build_mixed', 'the `Literal` of mode must have texts'),
      ('own_rules.wrong:build_x', r'wrong.py, line 2: .*expected'),
      ('own_rules.rules.build_typed', 'a name or package.module:build_NAME$'),
      ('own_rules/rules.py:build_x', 'mean own_rules.rules:build_x[?]$'),
  )
  def test_what_cannot_be_had_is_one_sentence(self, place, message):
    with self.assertRaisesRegex(hparams.HparamError, message):
      published.parse_flags([f'--client_optimizer={place}'])

  @parameterized.parameters(
      ('build_half', 'client_optimizer', ['client_learning_rate']),
      ('build_untyped', 'client_optimizer', ['client_learning_rate']),
      (
          'build_measured',
          'server_optimizer',
          ['client_learning_rate', 'server_learning_rate'],
      ),
      ('build_penalty', 'loss_term', ['client_learning_rate', 'penalty_mu']),
  )
  def test_the_return_type_tells_the_kind(self, name, kind, searched):
    place = f'own_rules.rules:{name}'
    (method,) = board.load().restrict(methods=[place]).methods.values()
    self.assertIn(f'--{kind}={place}', method.flags)
    self.assertEqual([item.flag for item in method.search], searched)
    arguments = [f'--compare=fedavg,{place}', '--total_rounds=1']
    values = flags.FlagValues()
    train.define(values)
    hparams.define_own(arguments, values)
    values(['train', *arguments])
    _, own = compare.build_trials(values)
    self.assertEqual(own.hparams[kind], place)
    self.assertEqual(own.folder.parent.name, name.partition('_')[2])

  def test_a_leaderboard_tunes_its_rate(self):
    shown = binary_testing.call(
        leaderboard,
        '--tasks=digits',
        f'--methods=FedAvg,{_PLACE}',
        '--trials=2',
        '--dry_run',
    )
    self.assertLen(shown.splitlines(), 4)
    shown = binary_testing.call(
        leaderboard,
        '--list',
        '--tasks=digits',
        f'--methods=FedAvg,{_PLACE}',
        f'--output_dir={self._folder}',
    )
    self.assertEqual(shown.count(f'--methods={_PLACE} '), 1)
    self.assertIn(f'--methods=FedAvg,{_PLACE} ', shown)
    method = board.load().restrict(methods=[_PLACE]).methods['sign_descent']
    self.assertEqual(
        [item.text for item in method.search],
        ['client_learning_rate=log_uniform(0.001,0.1)'],
    )

  def test_the_guide_shows_the_file(self):
    source = page_testing.read('docs/examples/sign_descent.py')
    shown = source[source.index('import collections') :]
    guide = page_testing.read('docs/write_your_own.md')
    self.assertIn(f'```python\n{shown}```', guide)

  @pytest.mark.slow
  def test_rules_of_all_kinds_train_and_continue(self):
    def call(client_optimizer, *arguments):
      return program_testing.run(
          'experiments.train',
          f'--output_dir={self._folder}',
          f'--client_optimizer={client_optimizer}',
          *arguments,
          cwd=page_testing.ROOT,
      )

    for rounds in (1, 2):
      result = call(
          _PLACE,
          '--server_optimizer=own_rules:build_untyped',
          '--loss_term=own_rules.rules:build_pull',
          '--experiment_name=run',
          f'--total_rounds={rounds}',
      )
      self.assertEqual(result.returncode, 0, result.stderr)
    run = self._folder / 'run'
    recorded = json.loads((run / 'hparams.json').read_text())
    self.assertEqual(recorded['client_optimizer'], _PLACE)
    self.assertEqual(recorded['client_learning_rate'], 0.01)
    self.assertLen((run / 'metrics.csv').read_text().splitlines(), 3)
    rules = self._folder / 'own_rules' / 'rules.py'
    rules.write_text(f'{_SOURCE}\n', encoding='utf-8')
    result = call(
        _PLACE,
        '--server_optimizer=own_rules:build_untyped',
        '--loss_term=own_rules.rules:build_pull',
        '--experiment_name=run',
        '--total_rounds=3',
    )
    self.assertEqual(result.returncode, 2)
    self.assertRegex(
        result.stderr,
        '^error: the file of --server_optimizer=own_rules.* has changed',
    )
    result = call('own_rules.rules:build_number')
    self.assertEqual(result.returncode, 2)
    self.assertRegex(result.stderr, '^error: The client optimizer .* found int')
