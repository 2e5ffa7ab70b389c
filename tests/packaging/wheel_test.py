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
"""Tests of what the wheel holds and declares, and that it can be imported."""

import ast
import configparser
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile

from absl.testing import absltest
from packaging import requirements
from packaging import specifiers
import pytest

import tff_adaptive
from tff_adaptive import _versions

_ROOT = pathlib.Path(__file__).resolve().parents[2]

# The tests run on the lock's Python, the type check is for the oldest.
_STDLIB = sys.stdlib_module_names  # type: ignore[attr-defined]

# The packages whose import has another name than their distribution.
_DISTRIBUTIONS = {
    'absl': 'absl-py',
    'attr': 'attrs',
    'dp_accounting': 'dp-accounting',
    'google': 'protobuf',
    'grpc': 'grpcio',
    'sklearn': 'scikit-learn',
    'tensorflow_datasets': 'tensorflow-datasets',
    'tensorflow_federated': 'tensorflow-federated',
}

# Run where the wheel is installed. Prints what it imports.
_IMPORT_ALL = """
import importlib, pkgutil
import tff_adaptive
print(tff_adaptive.__file__)
for module in pkgutil.walk_packages(tff_adaptive.__path__, 'tff_adaptive.'):
  importlib.import_module(module.name)
  print(module.name)
"""


def _copy_sources(target: pathlib.Path) -> None:
  """Copies what a wheel is made from, so that the tree stays clean."""
  for path in _ROOT.iterdir():
    if path.name in ('tff_adaptive', 'tasks', 'experiments', 'tests', 'tools'):
      ignore = shutil.ignore_patterns('__pycache__')
      shutil.copytree(path, target / path.name, ignore=ignore)
    elif path.is_file():
      shutil.copy(path, target)


def _build_wheel(folder: pathlib.Path) -> pathlib.Path:
  """Returns the path of a wheel that is made in `folder`."""
  source = folder / 'source'
  source.mkdir()
  _copy_sources(source)
  command = [sys.executable, '-m', 'pip', 'wheel', '--quiet', '--no-deps']
  command += ['--no-build-isolation', '--no-index', '--wheel-dir', str(folder)]
  subprocess.run([*command, str(source)], cwd=folder, check=True)
  (wheel,) = folder.glob('*.whl')
  return wheel


def _imported_packages() -> dict[str, str]:
  """Returns the packages that tff_adaptive imports, each with a module."""
  packages = {}
  for path in (_ROOT / 'tff_adaptive').rglob('*.py'):
    for node in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
      if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
      elif isinstance(node, ast.ImportFrom) and not node.level:
        names = [node.module or '']
      else:
        continue
      for name in names:
        packages[name.split('.')[0]] = str(path.relative_to(_ROOT))
  ours = set(_STDLIB) | {'tff_adaptive'}
  return {name: path for name, path in packages.items() if name not in ours}


class WheelTest(absltest.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    folder = cls.enterClassContext(tempfile.TemporaryDirectory())
    cls.folder = pathlib.Path(folder).resolve()
    cls.wheel = _build_wheel(cls.folder)
    with zipfile.ZipFile(cls.wheel) as archive:
      cls.names = archive.namelist()
      (metadata,) = [name for name in cls.names if name.endswith('/METADATA')]
      cls.metadata = archive.read(metadata).decode('utf-8')

  def test_holds_tff_adaptive_only(self):
    version = tff_adaptive.__version__
    tops = {name.split('/')[0] for name in self.names}
    self.assertEqual(
        tops, {'tff_adaptive', f'tff_adaptive-{version}.dist-info'}
    )

  def test_holds_every_module(self):
    modules = [
        path.relative_to(_ROOT).as_posix()
        for path in (_ROOT / 'tff_adaptive').rglob('*.py')
    ]
    self.assertContainsSubset(modules, self.names)

  def test_holds_the_licence(self):
    self.assertTrue(any(name.endswith('/LICENSE') for name in self.names))

  def test_declares_the_pythons_of_tff(self):
    (declared,) = re.findall('^Requires-Python: (.*)$', self.metadata, re.M)
    pythons = specifiers.SpecifierSet(declared)
    oldest, newest = _versions.OLDEST_PYTHON, _versions.NEWEST_PYTHON
    for minor in range(oldest[1] - 1, newest[1] + 2):
      self.assertEqual(
          pythons.contains(f'3.{minor}.0'), oldest[1] <= minor <= newest[1]
      )

  @pytest.mark.slow
  def test_imports_in_a_clean_environment(self):
    subprocess.run(
        [sys.executable, '-m', 'venv', '--without-pip', 'venv'],
        cwd=self.folder,
        check=True,
    )
    (site,) = (self.folder / 'venv').glob('lib/python*/site-packages')
    # The packages of the lock, which are where the tests run.
    (site / 'lock.pth').write_text(sysconfig.get_path('purelib') + '\n')
    with zipfile.ZipFile(self.wheel) as archive:
      archive.extractall(site)
    result = subprocess.run(
        [str(self.folder / 'venv/bin/python'), '-I', '-c', _IMPORT_ALL],
        cwd=self.folder,
        env={**os.environ, 'TF_CPP_MIN_LOG_LEVEL': '3'},
        capture_output=True,
        text=True,
        check=False,
    )
    self.assertEqual(result.returncode, 0, result.stderr)
    file, *modules = result.stdout.splitlines()
    self.assertEqual(file, str(site / 'tff_adaptive/__init__.py'))
    self.assertIn('tff_adaptive.doctor', modules)


class DeclarationTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    self.config = configparser.ConfigParser()
    self.config.read(_ROOT / 'setup.cfg', encoding='utf-8')

  def _declared(self, section, option):
    lines = self.config[section][option].strip().splitlines()
    return {requirements.Requirement(line).name for line in lines}

  def test_what_is_imported_is_declared(self):
    declared = self._declared('options', 'install_requires')
    for extra in self.config['options.extras_require']:
      if extra != 'test':
        declared |= self._declared('options.extras_require', extra)
    for package, path in _imported_packages().items():
      distribution = _DISTRIBUTIONS.get(package, package)
      self.assertIn(distribution, declared, f'imported by {path}')

  def test_what_is_required_is_imported(self):
    imported = {_DISTRIBUTIONS.get(name, name) for name in _imported_packages()}
    required = self._declared('options', 'install_requires')
    self.assertContainsSubset(required, imported)


if __name__ == '__main__':
  absltest.main()
