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
import pathlib
import re
import shutil
import sys
import tempfile
import zipfile

from absl.testing import absltest
from absl.testing import parameterized
from packaging import requirements
from packaging import specifiers
import pytest

from tests.packaging import wheel_testing
import tff_adaptive
from tff_adaptive import _stack

_ROOT = wheel_testing.ROOT
_EXAMPLES = _ROOT / 'docs/examples'

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

# Runs an example as `python FILE` does, and prints whose library it used.
_IMPORT_TFF_FIRST = """
import sys
imported_at_start = 'tff_adaptive' in sys.modules
import tensorflow_federated as tff
print(tff.__version__, imported_at_start)
"""

_RUN_EXAMPLE = """
import runpy, sys
runpy.run_path(sys.argv[1], run_name='__main__')
import tff_adaptive
print(tff_adaptive.__file__)
"""


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
    cls.wheel = wheel_testing.build_wheel(cls.folder)
    with zipfile.ZipFile(cls.wheel) as archive:
      cls.names = archive.namelist()
      (metadata,) = [name for name in cls.names if name.endswith('/METADATA')]
      cls.metadata = archive.read(metadata).decode('utf-8')

  def test_holds_tff_adaptive_only(self):
    version = tff_adaptive.__version__
    tops = {name.split('/')[0] for name in self.names}
    self.assertEqual(
        tops,
        {
            'tff_adaptive',
            'tff_adaptive.pth',
            f'tff_adaptive-{version}.dist-info',
        },
    )

  def test_holds_every_module(self):
    modules = [
        path.relative_to(_ROOT).as_posix()
        for path in (_ROOT / 'tff_adaptive').rglob('*.py')
    ]
    self.assertContainsSubset(modules, self.names)

  def test_holds_the_licence(self):
    self.assertTrue(any(name.endswith('/LICENSE') for name in self.names))

  def test_declares_the_pythons_of_both_stacks(self):
    (declared,) = re.findall('^Requires-Python: (.*)$', self.metadata, re.M)
    pythons = specifiers.SpecifierSet(declared)
    oldest, newest = _stack.TF214.pythons[0], _stack.CURRENT.pythons[1]
    for minor in range(oldest[1] - 1, newest[1] + 2):
      self.assertEqual(
          pythons.contains(f'3.{minor}.0'), oldest[1] <= minor <= newest[1]
      )


class InstalledWheelTest(parameterized.TestCase):
  """The wheel in an environment that has TFF, used from somewhere else."""

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    folder = cls.enterClassContext(tempfile.TemporaryDirectory())
    folder = pathlib.Path(folder).resolve()
    cls.environment = folder / 'venv'
    cls.python = wheel_testing.make_environment(cls.environment)
    wheel = wheel_testing.build_wheel(folder)
    wheel_testing.install(cls.python, wheel)
    cls.elsewhere = folder / 'elsewhere'
    cls.elsewhere.mkdir()
    for path in _EXAMPLES.glob('*.py'):
      shutil.copy(path, cls.elsewhere)

  def _run(self, *arguments):
    return wheel_testing.run(self.python, *arguments, cwd=self.elsewhere)

  def _installed_library(self):
    (site,) = self.environment.glob('lib/python*/site-packages')
    return str(site / 'tff_adaptive/__init__.py')

  @pytest.mark.slow
  def test_all_modules_can_be_imported(self):
    result = self._run('-I', '-c', _IMPORT_ALL)
    self.assertEqual(result.returncode, 0, result.stderr)
    file, *modules = result.stdout.splitlines()
    self.assertEqual(file, self._installed_library())
    self.assertIn('tff_adaptive.doctor', modules)

  @pytest.mark.slow
  def test_tff_can_be_imported_first(self):
    result = self._run('-c', _IMPORT_TFF_FIRST)
    self.assertEqual(result.returncode, 0, result.stderr)
    self.assertEqual(result.stdout.split(), ['0.87.0', 'False'])

  @parameterized.parameters('one_line_optimizer.py', 'one_line_runtime.py')
  @pytest.mark.slow
  def test_examples_run_without_the_checkout(self, name):
    result = self._run('-c', _RUN_EXAMPLE, name)
    self.assertEqual(result.returncode, 0, result.stderr)
    first, second, file = result.stdout.splitlines()
    self.assertRegex(first, r': (test accuracy )?\d+\.\d+')
    self.assertRegex(second, r': (test accuracy )?\d')
    self.assertEqual(file, self._installed_library())


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
    # No resolver can install it; setup.cfg says how it is installed.
    declared.add('tensorflow-federated')
    for package, path in _imported_packages().items():
      distribution = _DISTRIBUTIONS.get(package, package)
      self.assertIn(distribution, declared, f'imported by {path}')

  def test_what_is_required_is_imported(self):
    imported = {_DISTRIBUTIONS.get(name, name) for name in _imported_packages()}
    required = self._declared('options', 'install_requires')
    self.assertContainsSubset(required, imported)


if __name__ == '__main__':
  absltest.main()
