# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what is imported, which is what the time of an import depends on.

No times are measured: they are another machine's. What is asserted is that
nothing is imported before it is needed.
"""

import ast
import pathlib
import subprocess
import sys

from absl.testing import parameterized

from experiments import __main__

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_PATHS = {
    '.'.join(path.relative_to(_ROOT).with_suffix('').parts).removesuffix(
        '.__init__'
    ): path
    for folder in ('tff_adaptive', 'tasks', 'experiments')
    for path in sorted((_ROOT / folder).rglob('*.py'))
}
_MODULES = {
    name: ast.parse(path.read_text(encoding='utf-8'))
    for name, path in _PATHS.items()
}

# Packages that take long to import, and that not everybody has.
_OPTIONAL = (
    'matplotlib',
    'pandas',
    'ray',
    'sklearn',
    'tensorflow_datasets',
    'transformers',
)
_SLOW = ('tensorflow', 'tensorflow_federated', *_OPTIONAL)

# The packages of ours that cannot do without one of them.
_NEEDED = {'tff_adaptive.analysis': ('matplotlib',)}

# An adapter that another program talks to, and the doctor, which imports
# TensorFlow only through importlib.
_NOT_IN_PROGRAMS = (
    'experiments.conformance.numpy_adapter',
    'tff_adaptive.doctor',
)


def _imported_at_once(name: str) -> set[str]:
  """Returns our modules, and other packages, that the import of one imports."""
  found: set[str] = set()
  waiting = [name]
  while waiting:
    current = waiting.pop()
    parts = current.split('.')
    # Importing a module imports the packages that it is in.
    for end in range(1, len(parts) + 1):
      module = '.'.join(parts[:end])
      if module not in found:
        found.add(module)
        if module in _MODULES:
          waiting += _module_level_imports(_MODULES[module])
  return {m if m in _MODULES else m.partition('.')[0] for m in found}


def _packages_of_ours(imported: set[str]) -> set[str]:
  """Returns the packages of the library, and modules at its top, imported."""
  parts = [name.split('.') for name in imported]
  return {p[1] if p[1:] else '' for p in parts if p[0] == 'tff_adaptive'}


def _module_level_imports(tree: ast.Module) -> list[str]:
  """Returns the modules imported when a module is, not by its functions."""
  names = []
  for node in tree.body:
    if isinstance(node, ast.Import):
      names += [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
      assert node.module is not None
      names.append(node.module)
      wholes = [f'{node.module}.{alias.name}' for alias in node.names]
      names += [whole for whole in wholes if whole in _MODULES]
  return names


def _programs() -> list[str]:
  """Returns the modules that can be run."""
  return [
      name
      for name, path in _PATHS.items()
      if "\nif __name__ == '__main__':\n" in path.read_text(encoding='utf-8')
  ]


class ImportsTest(parameterized.TestCase):

  def test_the_library_itself_imports_the_standard_library_alone(self):
    code = (
        'import sys; before = set(sys.modules)\n'
        'import tff_adaptive\n'
        'new = {name.split(".")[0] for name in set(sys.modules) - before}\n'
        'print(*new - sys.stdlib_module_names)\n'
    )
    done = subprocess.run(
        [sys.executable, '-c', code],
        cwd=_ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    self.assertEqual(done.stdout, 'tff_adaptive\n')

  @parameterized.parameters(
      *(name for name, p in _PATHS.items() if p.name == '__init__.py')
  )
  def test_packages_import_what_they_need_alone(self, name):
    self.assertNoCommonElements(
        _imported_at_once(name) - set(_NEEDED.get(name, ())), _OPTIONAL
    )

  def test_data_need_numpy_alone(self):
    imported = _imported_at_once('tff_adaptive.data')
    self.assertNoCommonElements(imported, _SLOW)
    self.assertEqual(
        _packages_of_ours(imported),
        {'', '_error_texts', '_files', '_stack', '_tff_internals', 'data'},
    )

  def test_runtime_can_be_taken_alone(self):
    imported = _imported_at_once('tff_adaptive.runtime')
    self.assertEqual(
        _packages_of_ours(imported),
        {
            *('', '_compile_cache', '_dataset_elements', '_error_texts'),
            *(
                '_files',
                '_graph_defs',
                '_random_ops',
                '_stack',
                '_tff_internals',
                'data',
                'runtime',
            ),
        },
    )
    ours = [m for m in imported if m.partition('.')[0] == 'tff_adaptive']
    self.assertLessEqual(len(ours), 73)

  @parameterized.parameters(
      'tff_adaptive.doctor', 'tasks.catalogue', 'tasks.fetch'
  )
  def test_quick_answers_import_nothing_slow(self, name):
    self.assertNoCommonElements(_imported_at_once(name), _SLOW)

  def test_the_search_finds_imports(self):
    found = _imported_at_once('tff_adaptive.analysis')
    self.assertContainsSubset(
        ('tff_adaptive.analysis.curves', 'matplotlib', 'numpy'), found
    )
    self.assertIn('tensorflow', _imported_at_once('tff_adaptive.optimizers'))

  def test_programs_are_those_that_can_be_called_by_name(self):
    named = {module.removesuffix('.__main__') for module in _programs()}
    self.assertCountEqual(
        # The replay of goldens is called as a module, the runner of a bundle as
        # a file.
        named
        - {'experiments', 'experiments.conformance', *_NOT_IN_PROGRAMS}
        - {'experiments.benchmark.run_bundle'},
        set(__main__.PROGRAMS.values()) - {*_NOT_IN_PROGRAMS},
    )
