# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of a user's own task, `--task=package.module:VALUE`."""

import dataclasses
import json
import os
import pathlib
import shlex
import tempfile
from unittest import mock

from absl import flags
from absl.testing import parameterized
import pytest

from experiments import hparams
from experiments import published
from experiments import registry
from experiments.leaderboard import __main__ as leaderboard
from experiments.leaderboard import board
from experiments.sweep import __main__ as sweep
from experiments.train import __main__ as train
from experiments.train import compare
from tasks import definitions
from tests import folder_testing
from tests import page_testing
from tests import program_testing
from tests.experiments import binary_testing

_WINE = 'docs.examples.wine:WINE'
_WINE_FLAG = (registry.TASK, _WINE)


class OwnTaskTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    # Other tests look at all tasks that there are.
    rows = registry.ROWS[registry.TASK]
    self.enter_context(mock.patch.dict(rows))

  def _parse(self, *arguments):
    return published.parse_flags([*arguments, '--use_synthetic_data'])

  def test_flags_follow_from_the_value(self):
    choices, settings = self._parse(
        f'--task={_WINE}', '--wine_model=logistic', '--wine_alpha=2'
    )
    task = choices[registry.TASK]
    self.assertEqual(task.row.name, _WINE)
    self.assertEqual(task.given, {'model_id': 'logistic', 'alpha': 2.0})
    self.assertStartsWith(settings.experiment_name, 'wine.fed_opt.')
    self.assertEqual(task.build_keras_model(seed=1).count_params(), 42)

  def test_methods_are_compared_on_it(self):
    values = flags.FlagValues()
    arguments = [f'--task={_WINE}', '--wine_alpha=2', '--compare=sgd,scaffold']
    train.define(values)
    hparams.define_own(arguments, values)
    values(['train', *arguments, '--use_synthetic_data'])
    sgd, scaffold = compare.build_trials(values)
    self.assertEqual(sgd.home.as_posix(), 'runs/wine.compare')
    for trial in (sgd, scaffold):
      self.assertEqual(trial.hparams['task'], _WINE)
      self.assertEqual(trial.hparams['wine_alpha'], 2.0)

  def test_its_own_rounds_may_be_too_few_for_a_choice(self):
    with self.assertRaisesRegex(hparams.HparamError, 'at least 100, .* has 20'):
      binary_testing.call(
          sweep,
          f'--task={_WINE}',
          '--use_synthetic_data',
          '--sweep_name=accuracies',
          '--grid=client_learning_rate=0.1,1',
          '--select_by=train_accuracy_round100',
      )

  def test_it_is_swept_and_has_a_leaderboard(self):
    shown = [
        binary_testing.call(
            sweep,
            f'--task={_WINE}',
            '--use_synthetic_data',
            '--sweep_name=alphas',
            '--grid=client_learning_rate=0.1,1',
            '--dry_run',
        ),
        binary_testing.call(
            leaderboard,
            f'--tasks={_WINE}',
            '--methods=FedAvg',
            '--trials=2',
            '--data_dir=data',
            '--dry_run',
        ),
    ]
    for text in shown:
      commands = [shlex.split(line) for line in text.splitlines()]
      self.assertLen(commands, 2)
      for command in commands:
        choices, _ = published.parse_flags(command[3:])
        self.assertEqual(choices[registry.TASK].row.name, _WINE)

  def test_rules_of_a_leaderboard_can_be_given_for_it(self):
    rules = board.load().restrict(tasks=[_WINE], target=90.0, num_seeds=None)
    (task,) = rules.tasks.values()
    self.assertEqual((task.target, task.margin, task.num_seeds), (90.0, 0.5, 3))

  def test_a_leaderboard_needs_accuracies(self):
    wine = registry.load_own(registry.TASK, _WINE)
    other = definitions.TaskDefinition(
        name='wine',
        data=wine.task.data,
        models=wine.task.models,
        loss=lambda: None,
        metrics=lambda: [],
        protocol=wine.task.protocol,
    )
    registry.ROWS[registry.TASK][_WINE] = dataclasses.replace(wine, task=other)
    with self.assertRaisesRegex(
        hparams.HparamError, 'must be .*ClassificationTask, .*TaskDefinition$'
    ):
      board.load().restrict(tasks=[_WINE])

  def test_synthetic_data_are_refused_if_nothing_writes_them(self):
    wine = registry.load_own(registry.TASK, _WINE)
    kind = type(wine.task.data)
    self.enter_context(mock.patch.object(kind, 'synthetic_files', {}))
    with self.assertRaisesRegex(
        hparams.HparamError, '^--task=.*WINE has no synthetic data; give'
    ):
      self._parse(f'--task={_WINE}')
    with self.assertRaisesRegex(
        hparams.HparamError, 'needs --data_dir, the folder of the data sets$'
    ):
      published.parse_flags([f'--task={_WINE}'])

  def test_names_are_found_in_words_and_flagfiles(self):
    with tempfile.TemporaryDirectory() as folder:
      path = pathlib.Path(folder) / 'a.flags'
      path.write_text(f'  --task={_WINE}\n', encoding='utf-8')
      self.enter_context(mock.patch.dict(os.environ, HOME=folder))
      for arguments in (
          [f'--task={_WINE}'],
          ['-task', _WINE, '--seed=1'],
          [f'--flagfile={path}'],
          ['--flagfile=~/a.flags'],
      ):
        self.assertEqual(registry.find_own(arguments), [_WINE_FLAG])
    self.assertEmpty(registry.find_own(['--task=digits']))

  def test_flagfiles_that_name_themselves_or_cannot_be_read_are_skipped(self):
    folder = folder_testing.new(self)
    path = folder / 'a.flags'
    path.write_text(f'--flagfile={path}\n--task={_WINE}\n', encoding='utf-8')
    self.assertEqual(registry.find_own([f'--flagfile={path}']), [_WINE_FLAG])
    path.write_bytes(b'PK\x93')
    for name in (path, folder, 'a' * 256):
      self.assertEmpty(registry.find_own([f'--flagfile={name}']))

  @parameterized.parameters(
      ('no_such.module:WINE', 'the module no_such is not found from'),
      ('docs.examples.nothing:WINE', 'docs.examples.nothing is not found from'),
      (':X', 'found no module, expected package.module:VALUE'),
      ('.foo:X', 'found no module, expected package.module:VALUE'),
      ('docs/wine.py:X', 'package.module:VALUE; did you mean docs.wine:X?'),
      ('qqq', 'dbpedia, package.module:VALUE'),
      ('docs.examples.wine:BEER', 'docs.examples.wine has no BEER'),
      ('docs.examples.wine:', 'docs.examples.wine has no value'),
      ('docs.examples.wine:build_mlp', 'must be a .*, found function'),
      ('tasks.mnist:MNIST', '--task=mnist have the same name'),
  )
  def test_what_cannot_be_had_is_one_sentence(self, name, message):
    with self.assertRaisesRegex(hparams.HparamError, message):
      self._parse(f'--task={name}')

  def test_other_tasks_take_none_of_its_flags(self):
    self._parse(f'--task={_WINE}')
    with self.assertRaisesRegex(flags.Error, 'belongs to --task=docs'):
      self._parse('--task=mnist', '--wine_alpha=2')

  @pytest.mark.slow
  def test_a_run_is_recorded_and_continues(self):
    with tempfile.TemporaryDirectory() as folder:
      arguments = [
          f'--task={_WINE}',
          '--use_synthetic_data',
          '--wine_examples_per_client=8',
          f'--output_dir={folder}',
          '--experiment_name=run',
      ]

      def train(*more):
        return program_testing.run(
            'experiments.train', *arguments, *more, cwd=page_testing.ROOT
        )

      result = train('--total_rounds=1')
      self.assertEqual(result.returncode, 0, result.stderr)
      run = pathlib.Path(folder) / 'run'
      recorded = json.loads((run / 'hparams.json').read_text())
      self.assertEqual(recorded['task'], _WINE)
      self.assertEqual(recorded['wine_examples_per_client'], '8')
      result = train('--total_rounds=2')
      self.assertEqual(result.returncode, 0, result.stderr)
      rows = (run / 'metrics.csv').read_text().splitlines()
      self.assertLen(rows, 3)
      for program, *given in (
          (
              'export',
              f'--run={run}',
              f'--output={folder}/wine.keras',
              '--format=keras',
          ),
          (
              'trace',
              f'--run={run}',
              '--round=2',
              f'--data_dir={folder}/synthetic_data',
          ),
          ('report', f'--runs={run}', f'--output_dir={folder}/page'),
      ):
        result = program_testing.run(
            f'experiments.{program}', *given, cwd=page_testing.ROOT
        )
        self.assertEqual(result.returncode, 0, result.stderr)
      self.assertTrue((run / 'plots' / 'trace_0002.csv').exists())

  def test_the_guide_shows_the_file(self):
    source = page_testing.read('docs/examples/wine.py')
    shown = source[source.index('"""') :]
    guide = page_testing.read('docs/guide/your_own_task.md')
    self.assertIn(f'```python\n{shown}```', guide)
