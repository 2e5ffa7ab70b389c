# Copyright 2026 The tff_adaptive Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""Tests that the README is true: each command in it is run by a test."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from absl.testing import absltest
import numpy as np
import pytest

_ROOT = pathlib.Path(__file__).parents[1]
_README = (_ROOT / 'README.md').read_text(encoding='utf-8')

# The commands that are run elsewhere, and where: the test must exist.
_RUN_ELSEWHERE = {
    # The suite does not run itself; whoever reads this result has run it.
    'make test': 'Makefile',
    'make test-all': 'Makefile',
    '.venv/bin/python -m experiments.conformance --goldens=goldens.json': (
        'tests/experiments/conformance_test.py'
    ),
    '.venv/bin/python -m experiments.benchmark --workload=tiny_many,'
    'variable_model,emnist_cnn,so_logreg --json=times.jsonl': (
        'tests/experiments/benchmark_test.py'
    ),
    '.venv/bin/python -m tff_adaptive.doctor': (
        'tests/tff_adaptive/doctor_test.py'
    ),
    'python3.11 -m venv my-environment': 'tests/packaging/make_venv_test.py',
    'my-environment/bin/pip install --no-deps -r requirements.txt': (
        'tests/packaging/make_venv_test.py'
    ),
    'my-environment/bin/pip install --no-deps .': (
        'tests/packaging/wheel_test.py'
    ),
}
_RUN_HERE = {
    'make demo': 'test_demo',
    'make check': 'test_check',
    '.venv/bin/python -m experiments.train': 'test_experiments',
    '.venv/bin/python -m experiments.export': 'test_experiments',
}


def _blocks(language):
  blocks = re.findall(r'^```(\w*)\n(.*?)^```$', _README, re.M | re.S)
  return [text for name, text in blocks if name == language]


def _commands():
  return [line for block in _blocks('bash') for line in block.splitlines()]


def _run(command, cwd):
  # As from a user's shell: a make within a make says where it is, for one.
  environment = {
      name: value
      for name, value in os.environ.items()
      if not name.startswith(('MAKE', 'MFLAGS'))
  }
  return subprocess.run(
      command,
      cwd=cwd,
      env=environment,
      check=False,
      shell=isinstance(command, str),
      capture_output=True,
      text=True,
      timeout=600,
  )


class ReadmeTest(absltest.TestCase):

  def _copy_project(self):
    """A copy of the project that shares this one's environments."""
    folder = pathlib.Path(tempfile.mkdtemp())
    self.addCleanup(shutil.rmtree, folder)
    copy = folder / 'project'
    shutil.copytree(
        _ROOT,
        copy,
        ignore=shutil.ignore_patterns(
            '.git', '.venv*', 'runs', '__pycache__', '.*_cache'
        ),
    )
    for environment in _ROOT.glob('.venv*'):
      (copy / environment.name).symlink_to(environment)
    return copy

  def test_every_command_is_run_by_a_test(self):
    self.assertNotEmpty(_commands())
    for command in _commands():
      if command in _RUN_ELSEWHERE:
        self.assertTrue((_ROOT / _RUN_ELSEWHERE[command]).is_file(), command)
        continue
      matches = [
          t for start, t in _RUN_HERE.items() if command.startswith(start)
      ]
      self.assertLen(matches, 1, f'No test runs {command!r}.')
      self.assertTrue(hasattr(self, matches[0]))

  def test_output_of_the_tests_is_a_summary(self):
    shown = [block for block in _blocks('') if ' passed' in block]
    self.assertLen(shown, 1)
    self.assertRegex(
        shown[0], r'^=+ \d{4} passed, 1 skipped in [\d.:() s]+ =+\n$'
    )

  def test_linked_files_exist(self):
    links = re.findall(r'\]\((?!http)([^)]+)\)', _README)
    self.assertNotEmpty(links)
    for link in links:
      self.assertTrue((_ROOT / link).is_file(), link)

  def test_python_blocks_run(self):
    """Runs the blocks with a small model and counts the rounds."""
    program = '\n'.join(
        [
            'from tests.tff_adaptive import testing',
            'model = testing.functional_model()',
            'client_datasets = [testing.client(8, seed=s) for s in range(2)]',
            *_blocks('python'),
        ]
    )
    result = _run([sys.executable, '-c', program], _ROOT)
    self.assertEqual(result.returncode, 0, result.stderr)
    steps = [float(line) for line in result.stdout.split()]
    self.assertLen(steps, 10)

  @pytest.mark.slow
  def test_demo(self):
    copy = self._copy_project()
    for _ in range(2):  # The second call finds the run finished.
      result = _run('make demo', copy)
      self.assertEqual(result.returncode, 0, result.stderr)
      last = result.stdout.splitlines()[-1]
      self.assertRegex(last, r'^test accuracy: 0\.9\d$')
    for name in ('metrics.csv', 'hparams.json', 'plots/training.png'):
      self.assertTrue((copy / 'runs/demo' / name).is_file(), name)
    # The README shows this very output.
    shown = [b for b in _blocks('') if 'test accuracy' in b][0].splitlines()
    self.assertEqual(shown[-1], last)
    self.assertEqual(shown[0], result.stdout.splitlines()[0])

  @pytest.mark.slow
  def test_check(self):
    result = _run('make check', _ROOT)
    self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

  @pytest.mark.slow
  def test_experiments(self):
    """Runs the training commands; that on MNIST briefly, on made-up images."""
    digits, warm, mnist = [c for c in _commands() if 'experiments.train' in c]
    exports = [c for c in _commands() if 'experiments.export' in c]
    copy = self._copy_project()
    (copy / 'data').mkdir()
    generator = np.random.default_rng(0)
    np.savez(
        copy / 'data/mnist.npz',
        **{
            f'{part}_{split}': generator.integers(0, high, shape, np.uint8)
            for split, size in (('train', 1000), ('test', 100))
            for part, high, shape in (
                ('x', 256, (size, 28, 28)),
                ('y', 10, (size,)),
            )
        },
    )
    for command, num_rounds, folder in (
        (digits, 20, 'sgd'),
        # The other commands are about that run.
        (' && '.join([*exports, warm]), 20, 'warm'),
        (f'{mnist} --total_rounds=2', 2, 'mnist.fed_opt.delta_sgd.fedavg'),
    ):
      result = _run(command, copy)
      self.assertEqual(result.returncode, 0, result.stderr)
      rows = (copy / 'runs' / folder / 'metrics.csv').read_text().splitlines()
      self.assertLen(rows, 1 + num_rounds)
    for name in ('digits.keras', 'digits.npz'):
      self.assertTrue((copy / name).is_file(), name)


if __name__ == '__main__':
  absltest.main()
