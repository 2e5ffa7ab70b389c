# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `tff-adaptive`, and of a Python without the packages."""

import os
import pathlib
import re
import sys
import tempfile

from absl import flags
from absl.testing import parameterized

from experiments import __main__
from experiments import hparams
from experiments.benchmark import workloads
from tests import program_testing
from tests.experiments import binary_testing

# Words that the help of a program must have, besides a flag of its own.
_HELP = {
    'train': ['--client_learning_rate', '--delta_sgd_gamma', '--flagfile'],
    'sweep': ['--grid', '--table', '--rows', '--client_learning_rate'],
    'report': ['--runs_dir'],
    'leaderboard': ['--max_hours'],
    'export': ['--checkpoint: The weights to export: latest'],
    'trace': ['--round'],
    'benchmark': [
        *workloads.WORKLOADS,
        *workloads.RUNTIMES,
        *workloads.ALGORITHMS,
        '--peers',
        '--mode: <times|soak|scaling>',
    ],
    'fetch': ['--list'],
}
# The modes of the benchmark, and flags of their own.
_MODES = {'soak': '--rounds_per_sample', 'scaling': '--gigabits_per_second'}
_LIST = ('experiments.report', '--list', '--table=delta_sgd/table_1')
_SEARCH = (
    '--sweep_name=rates',
    '--client_optimizer=sgd',
    '--grid=client_learning_rate=0.01,0.1',
)
# Programs, arguments, and what the sentence on stderr names.
_TYPOS = (
    ('train', ['--task=digit'], 'did you mean digits'),
    ('train', ['--task=mnist', '--data_dir=docs'], 'mnist.npz'),
    (
        'train',
        ['--task=mnist', '--data_dir=docs', '--compare=sgd'],
        'mnist.npz',
    ),
    ('train', ['--compare=fedavg:/nowhere/best.flags'], '/nowhere/best.flags'),
    ('train', ['--task=docs.examples.wine:BEER', '--beer_alpha=1'], 'no BEER'),
    ('trace', ['--run=/nowhere', '--round=1'], '--run=/nowhere'),
    ('trace', ['--run=/nowhere', '--round=0'], 'round=0'),
    ('export', ['--run=/nowhere'], '--output is missing'),
    ('report', ['--table=x/y'], "'x/y'"),
    (
        'report',
        ['--table=fedli/table_1', '--output_dir=README.md'],
        'README.md',
    ),
    ('leaderboard', ['--methods=FedAvgg'], 'did you mean FedAvg'),
    ('sweep', ['--sedds=1'], "'sedds'"),
    ('sweep', ['--sweep_name=one'], '--seeds'),
    ('sweep', [*_SEARCH, '--num_trials=3'], '--num_trials needs --random'),
    ('sweep', [*_SEARCH, '--data_dir=no'], 'data_dir=no'),
    ('sweep', [*_SEARCH, '--task=mnist', '--data_dir=docs'], 'mnist.npz'),
    ('sweep', [*_SEARCH, '--client_optimizer=delta'], 'mean delta_sgd'),
    ('benchmark', ['--workload=tiny_many,tiny'], "tiny_many, .*found 'tiny'"),
    ('benchmark', ['--workload='], 'tiny_many, .*, found nothing'),
    ('benchmark', ['--runtimes=nativ'], "native, compiled, .*found 'nativ'"),
    ('benchmark', ['--algorithms=sgd'], "fedavg, .*, found 'sgd'"),
    ('benchmark', ['--algorithms=fedavg'], 'used by --workload=algorithms; '),
    ('benchmark', ['--data_dir=data'], '--data_dir is used by --workload=ta'),
    (
        'benchmark',
        ['--workload=algorithms', '--runtimes=native'],
        '--runtimes is used by --workload=tiny_many or ',
    ),
    (
        'benchmark',
        ['--workload=algorithms', '--export=/nowhere/bundle'],
        '--export writes tiny_many, .*, found algorithms',
    ),
    (
        'benchmark',
        ['--export=/nowhere/bundle', '--json=times.jsonl'],
        '--json has no effect with --export',
    ),
    ('benchmark', ['--rounds=0'], 'rounds=0'),
    ('benchmark', ['--mode=soke'], 'soke'),
    ('benchmark', ['--mode'], 'mode'),
    ('benchmark', ['--json=/nowhere/times'], '/nowhere/times'),
    ('benchmark', ['--peers=/nowhere/peers'], '/nowhere/peers'),
    ('benchmark', ['--peers=docs/results/claims.json'], 'json:1'),
    ('benchmark', ['--mode=soak', '--rounds=30'], '--rounds=80'),
    ('benchmark', ['--mode=soak', '--output_dir=README.md'], 'README.md'),
    ('benchmark', ['--mode=scaling', '--output_dir=README.md'], 'README.md'),
    ('benchmark', ['--mode=scaling', '--workers=3'], '--workers'),
    *(
        ('benchmark', ['--mode=scaling', f'--predict={value}'], f"'{value}'")
        for value in ('0', 'two', '')
    ),
)


class WithoutTensorFlowTest(parameterized.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    modules = {k: v for k, v in __main__.PROGRAMS.items() if k != 'doctor'}
    commands = [
        *((module, '--help') for module in modules.values()),
        *((f'experiments.{row[0]}', *row[1]) for row in _TYPOS),
        *(('experiments.benchmark', f'--mode={m}', '--help') for m in _MODES),
        _LIST,
    ]
    # It has imported what most of them need.
    ended = binary_testing.run_quickly(
        *commands, preloaded='experiments.leaderboard.board'
    )
    cls._ended = dict(zip(commands, ended))

  def test_help_of_all_programs_is_tried(self):
    self.assertCountEqual([*_HELP, 'doctor'], __main__.PROGRAMS)

  @parameterized.parameters(*_HELP.items())
  def test_help_needs_no_tensorflow(self, name, words):
    ended = self._ended[__main__.PROGRAMS[name], '--help']
    self.assertEqual(ended.code, 0, ended.stderr)
    self.assertNotIn('tensorflow', ended.slow_imports)
    text = ''.join(ended.stdout.split())
    for word in words:
      self.assertIn(''.join(word.split()), text)

  @parameterized.parameters(*_MODES.items())
  def test_help_of_a_mode_has_its_flags(self, mode, flag):
    ended = self._ended['experiments.benchmark', f'--mode={mode}', '--help']
    self.assertEqual(ended.code, 0, ended.stderr)
    self.assertIn(flag, ended.stdout)
    self.assertNotIn('--peers', ended.stdout)

  def test_help_of_training_has_all_its_flags(self):
    values = flags.FlagValues()
    hparams.define(values)
    text = self._ended['experiments.train', '--help'].stdout
    shown = re.findall(r'^  --(?:\[no\])?(\w+)', text, re.M)
    self.assertContainsSubset(set(values), shown)

  @parameterized.parameters(*_TYPOS)
  def test_typos_need_no_tensorflow(self, name, arguments, sentence):
    ended = self._ended[(f'experiments.{name}', *arguments)]
    self.assertRegex(ended.stderr, f'^error: .*{sentence}.*[.?]\n$')
    self.assertEqual(ended.stderr.count('\n'), 1)
    self.assertEqual(ended.code, 2)
    self.assertNotIn('tensorflow', ended.slow_imports)

  def test_a_folder_that_is_no_run_is_named_without_numpy(self):
    (ended,) = binary_testing.run_quickly(
        ('experiments.export', '--run=/nowhere', '--output=x'),
        preloaded='experiments.command_line',
    )
    self.assertStartsWith(ended.stderr, 'error: --run=/nowhere is not')
    self.assertEqual(ended.code, 2)
    self.assertEmpty(ended.slow_imports)

  def test_list_of_a_report_needs_no_tensorflow(self):
    ended = self._ended[_LIST]
    self.assertEqual(ended.code, 0, ended.stderr)
    self.assertNoCommonElements(
        ended.slow_imports, ['tensorflow', 'matplotlib']
    )
    lines = ended.stdout.splitlines()
    self.assertLen(lines, 1 + 3 * 8 * 5)
    self.assertStartsWith(
        lines[1], 'delta_sgd\ttable_1\talpha = 1 / SGD\tMNIST\t98.3\t.venv/bin'
    )


class ProgramsTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    self.folder = self.enter_context(tempfile.TemporaryDirectory())

  def _start(self, *arguments):
    path = pathlib.Path(sys.prefix) / 'bin' / 'tff-adaptive'
    return program_testing.run_command(str(path), *arguments, cwd=self.folder)

  def test_runs_in_any_folder(self):
    ended = self._start('train', '--task=digit')
    self.assertEqual(ended.returncode, 2)
    self.assertEqual(
        ended.stderr,
        'error: --task=digit names no task; did you mean digits?\n',
    )
    self.assertIn('emnist', self._start('fetch', '--list').stdout)
    self.assertIn(
        'the programs are train, sweep, ', self._start('--help').stdout
    )

  def test_a_task_is_found_from_the_folder(self):
    path = pathlib.Path(self.folder, 'my_tasks.py')
    path.write_text('SEVEN = 7\n', encoding='utf-8')
    ended = self._start('train', '--task=my_tasks:SEVEN')
    self.assertEqual(
        ended.stderr,
        'error: --task=my_tasks:SEVEN: SEVEN must be a '
        'tasks.definitions.TaskDefinition, found int.\n',
    )

  def test_commands_are_those_of_the_place(self):
    flags = ('train', '--task=mnist', '--data_dir=missing')
    path = pathlib.Path(sys.prefix) / 'bin' / 'tff-adaptive'
    self.assertIn(f' {path} fetch fills', self._start(*flags).stderr)
    ended = program_testing.run_command(
        *('tff-adaptive', *flags),
        cwd=self.folder,
        PATH=f'{path.parent}{os.pathsep}{os.environ["PATH"]}',
    )
    self.assertIn(', which tff-adaptive fetch fills', ended.stderr)
    # A folder that is no checkout.
    ended = program_testing.run_command(
        *(sys.executable, '-m', 'experiments.train', *flags[1:]),
        cwd=self.folder,
    )
    self.assertIn(f' {sys.executable} -m tasks.fetch fills', ended.stderr)

  @parameterized.parameters('train', 'fetch')
  def test_commands_of_the_help_are_those_of_the_place(self, name):
    path = pathlib.Path(sys.prefix) / 'bin' / 'tff-adaptive'
    shown = self._start(name, '--help').stdout
    self.assertIn(f'\n  {path} {name} ', shown)
    self.assertNotIn('python -m', shown)

  @parameterized.parameters(
      ((), 'error: no program was named; the programs are train, '),
      (('trian',), "error: unknown program 'trian'; the programs are train, "),
  )
  def test_names_the_programs(self, arguments, begin):
    ended = self._start(*arguments)
    self.assertEqual(ended.returncode, 1)
    self.assertStartsWith(ended.stderr, begin)

  @parameterized.parameters('experiments.train', 'tasks.fetch')
  def test_a_python_without_packages_says_so(self, module):
    # Without site-packages: as a Python that has nothing installed.
    ended = program_testing.run_command(sys.executable, '-S', '-m', module)
    self.assertEqual(ended.returncode, 1)
    self.assertStartsWith(
        ended.stderr, f'error: {sys.executable} does not have this '
    )
    self.assertLen(ended.stderr.splitlines(), 1)
