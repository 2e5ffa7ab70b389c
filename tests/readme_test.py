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
"""Tests that README and docs are true: each command and block is run."""

import itertools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from absl.testing import absltest
from absl.testing import parameterized
import pytest

from experiments import registry
from tasks import synthetic_data

_ROOT = pathlib.Path(__file__).parents[1]
_README = (_ROOT / 'README.md').read_text(encoding='utf-8')
_WRITE_YOUR_OWN = (_ROOT / 'docs/write_your_own.md').read_text(encoding='utf-8')
_ALGORITHMS = (_ROOT / 'docs/algorithms.md').read_text(encoding='utf-8')

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
    '.venv/bin/python -m tasks.fetch shakespeare --data_dir=data': (
        'tests/tasks/fetch_test.py'
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
    '.venv/bin/python -m experiments.trace': 'test_experiments',
    '.venv/bin/python -m experiments.report': 'test_published_tables',
    '.venv/bin/python -m experiments.sweep': 'test_published_tables',
}


def _blocks(language, page=_README):
  blocks = re.findall(r'^```(\w*)\n(.*?)^```$', page, re.M | re.S)
  return [text for name, text in blocks if name == language]


def _table_rows(page, title):
  """The cells of the rows of the table whose first column has this title."""
  lines = page.splitlines()
  start = next(
      i for i, line in enumerate(lines) if line.startswith(f'| {title} |')
  )
  rows = itertools.takewhile(lambda x: x.startswith('|'), lines[start + 2 :])
  return [[cell.strip() for cell in row.split('|')[1:-1]] for row in rows]


def _names(cells):
  """What stands in backticks, in order."""
  return [name for cell in cells for name in re.findall('`([^`]+)`', cell)]


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
      self.assertTrue((_ROOT / link).exists(), link)

  def test_table_of_methods_has_every_method_with_flags_and_builder(self):
    missing = {
        (kind, row.name, row.builder)
        for kind in ('algorithm', 'client_optimizer', 'server_optimizer')
        for row in registry.ROWS[kind].values()
    }
    missing |= {
        ('loss_term', row.name, row.builder)
        for row in registry.ROWS['loss_term'].values()
        if row.builder is not None
    }
    # What comes with an algorithm is in the table by the algorithm's name.
    missing -= {
        (part.kind, part.name, registry.ROWS[part.kind][part.name].builder)
        for row in registry.ROWS['algorithm'].values()
        for part in row.parts
        if part.is_fixed
    }
    missing.remove(
        ('algorithm', 'fed_opt', 'tff_adaptive.algorithms:build_fed_opt')
    )
    for _, flag, builder, what, paper in _table_rows(_README, 'method'):
      if not builder:
        continue
      (flag,), (builder,) = _names([flag]), _names([builder])
      kind, _, name = flag[2:].partition('=')
      reference = f'tff_adaptive.{builder.replace(".", ":")}'
      missing.remove((kind, name, reference))
      self.assertTrue(what and paper, flag)
    self.assertEmpty(missing)

  @pytest.mark.slow
  def test_python_blocks_run(self):
    """Runs the blocks of each page with a small model, counting the rounds."""
    for page in (_README, _WRITE_YOUR_OWN):
      self.assertNotEmpty(_blocks('python', page))
    program = '\n'.join(
        [
            'import sys',
            'from tests.tff_adaptive import testing',
            'for page in sys.argv[1:]:',
            '  exec(page, {',
            '      "__name__": "page",',
            '      "model": testing.functional_model(),',
            '      "client_datasets": [',
            '          testing.client(8, seed=s) for s in range(2)],',
            '  })',
        ]
    )
    pages = [
        '\n'.join(_blocks('python', page))
        for page in (_README, _WRITE_YOUR_OWN)
    ]
    result = _run([sys.executable, '-c', program, *pages], _ROOT)
    self.assertEqual(result.returncode, 0, result.stderr)
    printed = [float(line) for line in result.stdout.split()]
    self.assertLen(printed, 10 + 3)
    for agreement in printed[10:]:
      self.assertBetween(agreement, 0.0, 1.001)

  def test_rules_of_ones_own_are_short(self):
    for block in _blocks('python', _WRITE_YOUR_OWN):
      self.assertLess(sum(bool(line) for line in block.splitlines()), 30)

  def test_files_that_a_new_rule_touches_exist(self):
    named = re.findall(r'^\d\. `([^`]+)`', _WRITE_YOUR_OWN, re.M)
    self.assertLen(named, 6)
    for name in named:
      if 'sign_descent' not in name:
        self.assertTrue((_ROOT / name).is_file(), name)

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
    """Runs the training commands; that on MNIST briefly, on made-up data."""
    trains = [c for c in _commands() if 'experiments.train' in c]
    digits, warm, shakespeare, mnist = trains
    exports = [c for c in _commands() if 'experiments.export' in c]
    (trace,) = [c for c in _commands() if 'experiments.trace' in c]
    copy = self._copy_project()
    synthetic_data.write_synthetic_data('mnist', copy / 'data')
    for command, num_rounds, folder in (
        (digits, 20, 'sgd'),
        # The other commands are about that run.
        (' && '.join([*exports, warm, trace]), 20, 'warm'),
        (shakespeare, 2, 'shakespeare.fed_opt.delta_sgd.fedavg'),
        (f'{mnist} --total_rounds=2', 2, 'mnist.fed_opt.delta_sgd.fedavg'),
    ):
      result = _run(command, copy)
      self.assertEqual(result.returncode, 0, result.stderr)
      rows = (copy / 'runs' / folder / 'metrics.csv').read_text().splitlines()
      self.assertLen(rows, 1 + num_rounds)
    traces = [
        f'runs/sgd/plots/trace_0020.{suffix}' for suffix in ('csv', 'png')
    ]
    for name in ('digits.keras', 'digits.npz', *traces):
      self.assertTrue((copy / name).is_file(), name)

  @pytest.mark.slow
  def test_published_tables(self):
    """Lists a table, runs two of its cells briefly on made-up data, reports."""
    listing, report = [c for c in _commands() if 'experiments.report' in c]
    (sweep,) = [c for c in _commands() if 'experiments.sweep' in c]
    copy = self._copy_project()
    synthetic_data.write_synthetic_data('mnist', copy / 'data')
    result = _run(listing, copy)
    self.assertEqual(result.returncode, 0, result.stderr)
    self.assertLen(result.stdout.splitlines(), 1 + 120)
    some = ' --rows=SGD --groups="alpha = 0.1,alpha = 1"'
    result = _run(f'{sweep}{some} --total_rounds=2 --max_examples=8', copy)
    self.assertEqual(result.returncode, 0, result.stderr)
    result = _run(report, copy)
    self.assertEqual(result.returncode, 0, result.stderr)
    page = (copy / 'results/delta_sgd/table_1.md').read_text(encoding='utf-8')
    # Runs of two rounds are not those of the table, and do not count.
    self.assertEqual(page.count('total_rounds'), 2)


class AlgorithmsPageTest(parameterized.TestCase):

  def _assert_columns(self, cells, *states):
    for cell, state in zip(cells, states, strict=True):
      self.assertEqual(_names([cell]), list(state))

  @parameterized.parameters(*_table_rows(_ALGORITHMS, 'server rule'))
  def test_state_of_the_server_rule(self, rule, *cells):
    import tensorflow as tf  # Here, so that the other tests stay quick.

    (name,) = _names([rule])
    row = registry.ROWS['server_optimizer'][name]
    state = registry.resolve(row.builder)().initialize(tf.TensorSpec([3]))
    tensors = [key for key, v in state.items() if tf.rank(v)]
    scalars = [key for key in state if key not in tensors]
    self._assert_columns(cells, scalars, tensors)

  @parameterized.parameters(*_table_rows(_ALGORITHMS, 'client rule'))
  def test_state_of_the_client_rule(self, rule, *cells):
    import tensorflow as tf  # Here, so that the other tests stay quick.

    (name,) = _names([rule])
    row = registry.ROWS['client_optimizer'][name]
    supplied = {argument: 10 for argument in row.supplied}
    optimizer = registry.resolve(row.builder)(**supplied)
    spec = tf.TensorSpec([3])
    self._assert_columns(
        cells,
        optimizer.initialize_shared(spec),
        optimizer.initialize_kept(spec),
    )

  def test_page_has_all_server_rules(self):
    found = _names(row[0] for row in _table_rows(_ALGORITHMS, 'server rule'))
    self.assertCountEqual(found, registry.ROWS['server_optimizer'])

  def test_page_has_all_client_rules_that_share_or_keep(self):
    algorithms = registry.ROWS['algorithm'].values()
    parts = [part for row in algorithms for part in row.parts]
    self.assertCountEqual(
        _names(row[0] for row in _table_rows(_ALGORITHMS, 'client rule')),
        [
            part.name
            for part in parts
            if part.kind == 'client_optimizer' and part.is_fixed
        ],
    )


if __name__ == '__main__':
  absltest.main()
