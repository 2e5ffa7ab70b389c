# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the commands of README and docs: each is run here or elsewhere."""

import importlib
import json
import os
import pathlib
import re
import tempfile
from unittest import mock

from absl import flags
from absl.testing import absltest
from absl.testing import parameterized
import pytest

from experiments import hparams
from experiments import published
from experiments import registry
from tasks import mnist
from tests import page_testing
from tests import program_testing

_ROOT = page_testing.ROOT
_PYTHON = '.venv/bin/python -m '
# Beginnings of commands that other tests run, or that take hours.
_RUN_ELSEWHERE = {
    'make venv': 'tests/packaging/make_venv_test.py',
    'make check': 'tests/packaging/tree_test.py',
    'make docs': 'tests/packaging/tree_test.py',
    'make release': 'tests/packaging/wheel_test.py',
    'make conformance-peers': 'tests/benchmarks/conformance_test.py',
    'make peers': 'tests/benchmarks/peers_test.py',
    'make results': 'tests/packaging/results_tool_test.py',
    # The suite does not run itself; whoever reads this result has run it.
    'make test': 'Makefile',
    'make coverage': 'Makefile',
    'make format': 'Makefile',
    f'{_PYTHON}pytest': 'Makefile',
    'python3 -m venv': 'tests/packaging/make_venv_test.py',
    'make wheel': 'tests/packaging/wheel_test.py',
    'my-environment/bin/pip install': 'tests/packaging/wheel_test.py',
    'sed -i': 'tests/packaging/wheel_test.py',
    f'{_PYTHON}pip install': 'tests/packaging/lock_test.py',
    f'{_PYTHON}tff_adaptive.doctor': 'tests/tff_adaptive/doctor_test.py',
    f'{_PYTHON}tasks.fetch': 'tests/tasks/fetch_test.py',
    f'{_PYTHON}experiments.benchmark': 'tests/experiments/benchmark',
    f'{_PYTHON}experiments.conformance': 'tests/experiments/conformance',
    f'{_PYTHON}experiments.leaderboard': 'tests/experiments/leaderboard',
    f'{_PYTHON}experiments.sweep': 'tests/experiments/sweep',
    f'{_PYTHON}experiments.train --compare': 'tests/experiments/train',
    f'{_PYTHON}tools.results': 'tests/packaging/results_tool_test.py',
    f'{_PYTHON}tests.pipelines': 'tests/pipelines/table_test.py',
    # Of docs/results/hypergradient.md, which takes minutes.
    f'{_PYTHON}experiments.train --task=digits --client_optimizer=sgd '
    '--server_optimizer=fedadam --tune_rates': 'tests/experiments/trace',
    f'{_PYTHON}experiments.report --output_dir=comparison': (
        'tests/experiments/report/comparison_test.py'
    ),
    'PYTHONPATH=. .venv/bin/python docs/examples/': (
        'tests/docs/examples_test.py'
    ),
}
# Cells of published tables: tests/experiments/published builds all and trains
# some briefly, and here is one table.
_CELL = re.compile(
    r'--preset=\w+/protocol|experiments/presets/\w+/|--run=runs/\w+/|'
    'report --(table|list)'
)
# Programs write these pages, and name themselves as their docstrings do.
_GENERATED = re.compile(r'docs/results/(?!README)')


def _site() -> list[str]:
  """Returns the pages of the site, as a reader meets them."""
  pages = page_testing.read('mkdocs.yml')
  return re.findall(r'- (?:.*: )?([\w/]+\.md)$', pages, re.M)


def _commands(page: str) -> list[page_testing.Block]:
  return page_testing.commands_of(page_testing.read(page))


def _test_of(command: str) -> str:
  """Returns what else tests a command; empty if it is to be run here."""
  if _CELL.search(command):
    return 'tests/experiments/published'
  found = [
      f for start, f in _RUN_ELSEWHERE.items() if command.startswith(start)
  ]
  return found[0] if found else ''


def _define_flags(binary: str) -> flags.FlagValues:
  """Returns the flags of a package of `experiments`, unparsed."""
  values = flags.FlagValues()
  name = f'experiments.{binary}'
  if hasattr(importlib.import_module(name), '__path__'):  # A package.
    name = f'{name}.__main__'
  importlib.import_module(name).define(values)
  return values


def _defaults(values: flags.FlagValues, flag: str) -> dict[str, str]:
  """Returns the defaults of a flag by the rules that have one of their own."""
  if flag in hparams.DEFAULT_ROWS:
    return {flag: hparams.DEFAULT_ROWS[flag]}
  uses = hparams.flags_of_rows().get(flag)
  if uses is None:
    return {flag: _show(values[flag].default)}
  return {row.name: _show(argument.default) for _, row, argument in uses}


def _show(value) -> str:
  return value if isinstance(value, str) else json.dumps(value)


def _shortened(command: str) -> str:
  """Returns a brief command on made-up data for one on published data."""
  if '--data_dir=data' not in command:
    return command
  command = command.replace('--data_dir=data', '--use_synthetic_data')
  return f'{command} --max_examples=8 --total_rounds=2'


def _run(command: str, project: pathlib.Path):
  """Runs a command, in a fork if it is a program of the project alone."""
  module, arguments = page_testing.module_and_flags(command)
  if re.fullmatch(rf'{_PYTHON}[^|;&<>]*', command):
    return program_testing.run(module, *arguments, cwd=project, merged=True)
  return page_testing.run(f'({command}) 2>&1', project)


class FlagsTest(absltest.TestCase):

  def test_flags_are_accepted(self):
    # A page has a task of its own, another one a rule.
    for kind in registry.OWN_KINDS:
      self.enter_context(mock.patch.dict(registry.ROWS[kind]))
    # Flagfiles are given from the project's folder.
    self.addCleanup(os.chdir, os.getcwd())
    os.chdir(_ROOT)
    for page in page_testing.PAGES:
      for command in _commands(page):
        module, arguments = page_testing.module_and_flags(command.text)
        package, _, binary = module.rpartition('.')
        if package != 'experiments' or 'error:' in command.shown:
          continue
        with self.subTest(page=page, command=command.text):
          if '--help' in arguments:
            continue
          if binary == 'train' and '--compare' not in command.text:
            published.parse_flags(arguments)
          else:
            mode = ''.join(re.findall(r' --mode=(\w+)', command.text))
            # A sweep has written the file.
            written = (f'--mode={mode}', '--flagfile=runs/validated/best.flags')
            rest = [a for a in arguments if a not in written]
            binary = f'{binary}.{mode}' if mode else binary
            _define_flags(binary)([binary, *rest])

  def test_flags_of_the_guide_exist(self):
    # Flags of absl, TensorBoard, pip, XLA and docs/examples/wine.py.
    known = {'help', 'helpfull', 'flagfile', 'logdir', 'list'}
    known.add('xla_force_host_platform_device_count')
    known |= {'wine_model', 'wine_loss', 'wine_alpha', 'wine_partition'}
    known.add('wine_examples_per_client')
    for binary in (
        'benchmark',
        'conformance',
        'export',
        'leaderboard',
        'report',
        'sweep',
        'trace',
        'train',
    ):
      known.update(_define_flags(binary))
    guide = [p for p in page_testing.PAGES if p.startswith('docs/guide/')]
    self.assertNotEmpty(guide)
    for page in guide:
      named = re.findall(r'--(?:no)?(\w+)', page_testing.read(page))
      self.assertEmpty(set(named) - known, page)

  def test_flags_of_the_migration_have_the_defaults_that_are_shown(self):
    values = _define_flags('train')
    page = page_testing.read('docs/migration/google_research_federated.md')
    rows = re.findall(
        r'^\|[^|]*\|[^|]*\| `--(\w+)` \| ([^|]+) \|[^|]*\|$', page, re.M
    )
    self.assertGreater(len(rows), 30)
    for name, shown in rows:
      self.assertIn(name, values)
      found = set(_defaults(values, name).values())
      if shown == "the task's":
        self.assertEqual(found, {'null'}, name)
        self.assertIn("Default: the task's", values[name].help)
      elif shown == 'unset':
        self.assertEqual(found, {'null'}, name)
      else:
        self._assert_defaults(shown, _defaults(values, name))

  def _assert_defaults(self, shown, defaults):
    """Compares defaults, which may be followed by the rules that have them."""
    for value, rules in re.findall(r'`([^`]+)`(?: \(([^)]*)\))?', shown):
      for rule in page_testing.names_in([rules]) or defaults:
        self.assertEqual(defaults[rule], value, rule)


class CommandsTest(parameterized.TestCase):

  def test_python_is_that_of_the_environment(self):
    programs = r'\S*python -m (?:experiments|tasks|tff_adaptive|tools)\b'
    commands = [
        command
        for page in page_testing.PAGES
        if not _GENERATED.match(page)
        for command in re.findall(programs, page_testing.read(page))
    ]
    self.assertNotEmpty(commands)
    for command in commands:
      self.assertRegex(command, r'^\W*\.venv/bin/python ')

  def test_commands_that_are_not_run_here_are_run_elsewhere(self):
    site = _site()
    tests = [
        (_test_of(command.text), page, command.text)
        for page in page_testing.PAGES
        for command in _commands(page)
    ]
    self.assertNotEmpty(tests)
    for test, page, command in tests:
      self.assertTrue(
          (_ROOT / test).exists() if test else page in site, command
      )

  @pytest.mark.slow
  def test_commands_run_in_one_folder(self):
    """Runs them as a reader of the site meets them."""
    copy = self.enter_context(page_testing.copied_project())
    for page in (page for page in _site() if page in page_testing.PAGES):
      for command in _commands(page):
        if not _test_of(command.text):
          with self.subTest(page=page, command=command.text):
            self._check(command, copy)
    for name in self._named_files():
      self.assertNotEmpty(list(copy.glob(f'runs/*/{name}')), name)

  def _named_files(self):
    """Returns the files that the page says a run has."""
    page = page_testing.read('docs/guide/run_an_experiment.md')
    rows = page_testing.table_rows(page, 'file')
    names = page_testing.names_in(row[0] for row in rows)
    return set(names) - {'rejected_clients.csv', 'client_states/'}

  def _check(self, command: page_testing.Block, project: pathlib.Path):
    """Asserts that a command ends as its page shows."""
    if command.text == 'make demo':
      self._check_demo(project)
      return
    result = _run(_shortened(command.text), project)
    expected = 2 if 'error:' in command.shown else 0
    self.assertEqual(result.returncode, expected, result.stdout)
    self.assertTrue(
        not command.shown
        or page_testing.is_shown(command.shown, result.stdout),
        f'It prints\n{result.stdout}\nand the page shows\n{command.shown}',
    )

  def _check_demo(self, project: pathlib.Path):
    blocks = page_testing.find_blocks(page_testing.read('README.md'))
    (shown,) = [b.text for b in blocks if '\ntest accuracy' in b.text]
    # The second page that shows it finds the run finished.
    result = page_testing.run('make demo', project)
    self.assertEqual(result.returncode, 0, result.stderr)
    # Another TensorFlow, or another processor, rounds otherwise.
    accuracies = [float(t.split()[-1]) for t in (shown, result.stdout)]
    self.assertAlmostEqual(*accuracies, delta=0.015)

  @pytest.mark.slow
  def test_goldens_of_the_page_pass_as_it_shows(self):
    blocks = page_testing.find_blocks(page_testing.read('docs/conformance.md'))
    goldens = next(b.text for b in blocks if '"problems"' in b.text)
    shown = next(b.text for b in blocks if ' passed, ' in b.text)
    folder = self.enter_context(tempfile.TemporaryDirectory())
    path = pathlib.Path(folder, 'goldens.json')
    path.write_text(goldens, encoding='utf-8')
    result = program_testing.run('experiments.conformance', f'--goldens={path}')
    self.assertEqual((result.returncode, result.stdout), (0, shown))

  @pytest.mark.slow
  def test_published_tables(self):
    """Lists a table, runs two of its cells briefly on made-up data, reports."""
    commands = [c.text for c in _commands('docs/guide/run_an_experiment.md')]
    tables = [c for c in commands if '--table=delta_sgd/table_1' in c]
    listing, report = [c for c in tables if 'experiments.report' in c]
    (sweep,) = [c for c in tables if 'experiments.sweep' in c]
    copy = self.enter_context(page_testing.copied_project())
    mnist.MNIST.write_synthetic_data(copy / 'data')
    result = _run(listing, copy)
    self.assertEqual(result.returncode, 0, result.stdout)
    self.assertLen(result.stdout.splitlines(), 1 + 120)
    some = ' --rows=SGD --groups="alpha = 0.1,alpha = 1"'
    result = _run(f'{sweep}{some} --total_rounds=2 --max_examples=8', copy)
    self.assertEqual(result.returncode, 0, result.stdout)
    result = _run(report, copy)
    self.assertEqual(result.returncode, 0, result.stdout)
    page = (copy / 'results/delta_sgd/table_1.md').read_text(encoding='utf-8')
    # Runs of two rounds are not those of the table, and do not count.
    self.assertEqual(page.count('total_rounds'), 2)
