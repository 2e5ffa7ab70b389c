# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The packages that the project imports, for the tests of what it declares."""

import ast
import functools
import pathlib
import sys

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_OURS = (
    'benchmarks',
    'docs',
    'experiments',
    'tasks',
    'tests',
    'tff_adaptive',
    'tools',
)
# The packages whose import has another name than their distribution.
_DISTRIBUTIONS = {
    'absl': 'absl-py',
    'google': 'protobuf',
    'grpc': 'grpcio',
    'PIL': 'pillow',
    'sklearn': 'scikit-learn',
    'yaml': 'pyyaml',
}


@functools.cache
def _find_packages(folder: str) -> dict[str, str]:
  """Returns the packages that a folder imports, each with a module."""
  packages = {}
  for path in (_ROOT / folder).rglob('*.py'):
    for node in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
      if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
      elif isinstance(node, ast.ImportFrom):
        names = [node.module or '']
      else:
        continue
      for name in names:
        packages[name.split('.')[0]] = str(path.relative_to(_ROOT))
  return packages


def imported_distributions(*folders: str) -> dict[str, str]:
  """Returns the distributions that folders import, each with a module."""
  known = {'', *_OURS, *sys.stdlib_module_names}
  return {
      _DISTRIBUTIONS.get(name, name).replace('_', '-'): path
      for folder in folders
      for name, path in _find_packages(folder).items()
      if name not in known
  }
