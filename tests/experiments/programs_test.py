# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `tff-adaptive`, and of a Python without the packages."""

import json
import pathlib
import re
import sys
import tempfile

from absl import flags
from absl.testing import parameterized

from experiments import __main__
from experiments import audit
from experiments import hparams
from experiments.benchmark import algorithms
from experiments.benchmark import workloads
from tests import program_testing

# Shows the help of all programs, each in a fork of one process.
_SHOW_HELP = """
import contextlib, io, json, os, runpy, sys
from experiments.__main__ import PROGRAMS
for name, module in PROGRAMS.items():
  if name == 'doctor':
    continue
  if os.fork():
    os.wait()
    continue
  sys.argv = [name, '--help']
  out, code = io.StringIO(), None
  try:
    with contextlib.redirect_stdout(out):
      runpy.run_module(module, run_name='__main__')
  except SystemExit as end:
    code = end.code
  slow = 'tensorflow' in sys.modules
  print(json.dumps([name, code, out.getvalue(), slow]), flush=True)
  os._exit(0)
"""
# Words that the help of a program must have, beside a flag of its own.
_HELP = {
    'train': ['--client_learning_rate', '--delta_sgd_gamma', '--flagfile'],
    'sweep': ['--grid', '--table', '--rows', '--client_learning_rate'],
    'report': ['--runs_dir'],
    'leaderboard': ['--max_hours'],
    'audit': list(audit.CLAIMS),
    'export': ['--checkpoint: The weights to export: latest'],
    'trace': ['--round'],
    'benchmark': [
        *workloads.WORKLOADS,
        *workloads.RUNTIMES,
        *algorithms.ALGORITHMS,
        '--peers',
    ],
    'scaling': ['--gigabits_per_second'],
    'soak': ['--rounds_per_sample'],
    'gpu_report': ['--data_dir'],
    'conformance': ['command:'],
    'fetch': ['--list'],
}


class HelpTest(parameterized.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    ended = program_testing.run_command(sys.executable, '-c', _SHOW_HELP)
    cls._shown = {}
    for line in ended.stdout.splitlines():
      name, *rest = json.loads(line)
      cls._shown[name] = rest
    assert not ended.returncode, ended.stderr

  def test_all_programs_have_help(self):
    self.assertCountEqual([*self._shown, 'doctor'], __main__.PROGRAMS)

  @parameterized.parameters(*_HELP.items())
  def test_help_needs_no_tensorflow(self, name, words):
    code, shown, slow = self._shown[name]
    self.assertFalse(code)
    self.assertFalse(slow)
    text = ''.join(shown.split())
    for word in words:
      self.assertIn(''.join(word.split()), text)

  def test_help_of_training_has_all_its_flags(self):
    values = flags.FlagValues()
    hparams.define(values)
    shown = re.findall(r'^  --(?:\[no\])?(\w+)', self._shown['train'][1], re.M)
    self.assertContainsSubset(set(values), shown)


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

  def test_a_task_is_found_from_the_folder(self):
    path = pathlib.Path(self.folder, 'my_tasks.py')
    path.write_text('SEVEN = 7\n', encoding='utf-8')
    ended = self._start('train', '--task=my_tasks:SEVEN')
    self.assertEqual(
        ended.stderr,
        'error: --task=my_tasks:SEVEN must be a '
        'tasks.definitions.TaskDefinition, found int.\n',
    )

  @parameterized.parameters(
      ((), 'error: no program was named; the programs are train, '),
      (('trian',), "error: unknown program 'trian'; the programs are train, "),
  )
  def test_names_the_programs(self, arguments, begin):
    ended = self._start(*arguments)
    self.assertEqual(ended.returncode, 1)
    self.assertStartsWith(ended.stderr, begin)
    self.assertIn(
        'the programs are train, sweep, ', self._start('--help').stdout
    )

  @parameterized.parameters('experiments.train', 'tasks.fetch')
  def test_a_python_without_packages_says_so(self, module):
    # Without site-packages: as a Python that has nothing installed.
    ended = program_testing.run_command(sys.executable, '-S', '-m', module)
    self.assertEqual(ended.returncode, 1)
    self.assertStartsWith(
        ended.stderr, f'error: {sys.executable} does not have this '
    )
    self.assertLen(ended.stderr.splitlines(), 1)
