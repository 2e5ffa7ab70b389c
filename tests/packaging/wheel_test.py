# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that the wheel is whole and works away from the checkout."""

import configparser
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import zipfile

from absl.testing import absltest
from absl.testing import parameterized
from packaging import requirements
import pytest

from tests import folder_testing
from tests import page_testing
from tests.packaging import imports_testing
import tff_adaptive
from tools import check_release

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_VERSION = tff_adaptive.__version__

# Where the wheel is installed: TFF first, as a program on stock TFF does it, a
# round, every module.
_TRY_OUT = """
import importlib, pkgutil, runpy, sys
assert 'tff_adaptive' not in sys.modules
import tensorflow_federated as tff
import tff_adaptive
for module in pkgutil.walk_packages(tff_adaptive.__path__, 'tff_adaptive.'):
  importlib.import_module(module.name)
print(tff_adaptive.__file__)
sys.path.insert(0, '')
runpy.run_path('one_line_runtime.py', run_name='__main__')
"""


def _make_environment(folder: pathlib.Path) -> pathlib.Path:
  """Makes an environment with what the lock names; returns its Python."""
  command = [sys.executable, '-m', 'venv', '--without-pip', str(folder)]
  subprocess.run(command, check=True)
  (site,) = folder.glob('lib/python*/site-packages')
  (site / 'lock.pth').write_text(sysconfig.get_path('purelib') + '\n')
  return folder / 'bin/python'


class WheelTest(parameterized.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    folder = folder_testing.new(cls)
    cls.folder = folder.resolve()
    # Builds a copy, so that the tree stays clean.
    copy = cls.enterClassContext(page_testing.copied_project())
    # Not that of a measurement of coverage, which has an older setuptools.
    venv = _ROOT / '.venv'
    venv = venv if venv.exists() else sys.prefix
    result = page_testing.run(f'make wheel --assume-old=venv VENV={venv}', copy)
    assert not result.returncode, result.stderr
    cls.printed = result.stdout
    (wheel,) = copy.glob('dist/*.whl')
    cls.wheel = pathlib.Path(shutil.copy(wheel, cls.folder))

  def test_holds_the_modules_and_the_hook_alone(self):
    with zipfile.ZipFile(self.wheel) as archive:
      names = {n for n in archive.namelist() if '.dist-info/' not in n}
    modules = {
        path.relative_to(_ROOT).as_posix()
        for path in (_ROOT / 'tff_adaptive').rglob('*.py')
    }
    hooks = {'tff_adaptive.pth', 'tff_adaptive/_import_hook.pth'}
    self.assertEqual(names, modules | hooks)

  def test_build_names_the_file(self):
    self.assertStartsWith(self.printed, f'dist/{self.wheel.name}, ')

  def test_metadata_can_be_released(self):
    self.assertEqual(check_release.find_problems(self.wheel, _ROOT), [])

  @pytest.mark.slow
  def test_works_where_it_is_installed(self):
    environment = self.folder / 'venv'
    python = _make_environment(environment)
    command = [str(python), '-m', 'pip', 'install', '--quiet', '--no-deps']
    command += ['--no-index', '--root-user-action', 'ignore', str(self.wheel)]
    subprocess.run(command, cwd=self.folder, check=True)
    for path in (_ROOT / 'docs/examples').glob('*.py'):
      shutil.copy(path, self.folder)
    result = subprocess.run(
        [str(python), '-c', _TRY_OUT],
        cwd=self.folder,
        env={k: v for k, v in os.environ.items() if k != 'PYTHONPATH'},
        capture_output=True,
        text=True,
        check=False,
    )
    self.assertEqual(result.returncode, 0, result.stderr)
    file, speed, difference = result.stdout.splitlines()
    (site,) = environment.glob('lib/python*/site-packages')
    self.assertEqual(file, str(site / 'tff_adaptive/__init__.py'))
    self.assertRegex(speed, r'^speed-up of a round: \d+\.\d times$')
    self.assertRegex(difference, r'^largest difference of the weights: \d')
    # Without the hook, as the page says, the library has to be imported first.
    (command,) = [
        c.text
        for c in page_testing.commands_of(page_testing.read('docs/install.md'))
        if c.text.startswith('sed ')
    ]
    command = command.replace('my-environment', str(environment))
    subprocess.run(['bash', '-c', command], check=True)
    for code, is_found in (
        ('import tensorflow_federated', False),
        ('import tff_adaptive, tensorflow_federated', True),
    ):
      result = subprocess.run(
          [str(python), '-c', code], cwd=self.folder, check=False
      )
      self.assertEqual(result.returncode == 0, is_found, code)


class DeclarationTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    self.config = configparser.ConfigParser()
    self.config.read(_ROOT / 'setup.cfg', encoding='utf-8')

  def _declared(self, section, option):
    lines = self.config[section][option].strip().splitlines()
    return {requirements.Requirement(line).name for line in lines}

  def test_imported_packages_are_declared(self):
    declared = self._declared('options', 'install_requires')
    for extra in self.config['options.extras_require']:
      declared |= self._declared('options.extras_require', extra)
    # No resolver can install it; setup.cfg says how it is installed.
    declared.add('tensorflow-federated')
    imported = imports_testing.imported_distributions('tff_adaptive')
    self.assertNotEmpty(imported)
    for distribution, path in imported.items():
      self.assertIn(distribution, declared, f'imported by {path}')

  def test_required_packages_are_imported_or_needed_by_tff(self):
    imported = imports_testing.imported_distributions('tff_adaptive')
    lines = (_ROOT / 'requirements.in').read_text(encoding='utf-8').splitlines()
    needed = {
        requirements.Requirement(line).name
        for line in lines[: lines.index('# Imported by the project.')]
        if not line.startswith('#')
    }
    required = self._declared('options', 'install_requires')
    # TFF imports the last two as well.
    known = {*imported, *needed, 'scipy', 'setuptools'}
    self.assertContainsSubset(required, known)
    # Those that no resolver can install.
    self.assertEqual(
        needed - required, {'tensorflow-federated', 'tensorflow-privacy'}
    )


class ChangelogTest(parameterized.TestCase):

  @parameterized.parameters(
      ('## Unreleased\n\n* New.\n', ''),
      ('## Unreleased\n\n## 0.2.0 - 2026-12-01\n\n* New.\n', ''),
      (
          '## 0.2.0 - 2026-12-01\n\n### Added\n\n* New.\n\n## 0.1.0\n\n* Old.',
          '',
      ),
      ('## 0.2.0\n\n* New.\n', "found '0.2.0'"),
      ('## 0.1.0 - 2026-12-01\n\n* New.\n', "found '0.1.0 - 2026-12-01'"),
      ('# Changelog\n\nNothing.\n', "found ''"),
  )
  def test_heading_of_the_newest_entry(self, changelog, problem):
    found = check_release.find_changelog_problem(changelog, '0.2.0')
    self.assertIn(problem, found)
    self.assertEqual(bool(problem), bool(found))


class ReleaseTest(absltest.TestCase):
  """Runs the script in a copy of the project."""

  def setUp(self):
    super().setUp()
    self.project = self.enter_context(page_testing.copied_project())
    # Has what the lock names, so that nothing is installed but the wheel.
    environment = self.project / 'prepared'
    _make_environment(environment)
    shutil.copy(
        self.project / 'requirements.txt', environment / 'installed.lock'
    )

  def _run(self):
    return page_testing.run(
        'RELEASE_VENV=prepared tools/release.sh', self.project
    )

  @pytest.mark.slow
  def test_files_are_made_and_tried_out(self):
    result = self._run()
    self.assertEqual(result.returncode, 0, result.stderr)
    self.assertIn('\ntrained: ', result.stdout)
    for line, suffix in zip(
        result.stdout.splitlines()[-2:], ('.tar.gz', '-py3-none-any.whl')
    ):
      digest, name = line.split()
      self.assertEqual(name, f'dist/tff_adaptive-{_VERSION}{suffix}')
      content = (self.project / name).read_bytes()
      self.assertEqual(hashlib.sha256(content).hexdigest(), digest)

  @pytest.mark.slow
  def test_wrong_changelog_ends_it_before_anything_is_there(self):
    (self.project / 'CHANGELOG.md').write_text('## 9.9.9\n\n* New.\n')
    result = self._run()
    self.assertEqual(result.returncode, 1)
    self.assertIn(", found '9.9.9'", result.stderr)
    self.assertFalse((self.project / 'dist').exists())
