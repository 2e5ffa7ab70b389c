# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Finds the public names of the packages without importing them.

The public names are those that a package imports in its `__init__.py`, modules
among them, the top-level modules of `tff_adaptive` that are not programs, and
those that the docstring of `tasks` names in backticks. Names that begin with an
underscore are private.
"""

import ast
from collections.abc import Iterator
import functools
import pathlib
import re
from typing import NamedTuple, Optional

LIBRARY = 'tff_adaptive'
PACKAGES = (LIBRARY, 'tasks')

_ROOT = pathlib.Path(__file__).resolve().parents[2]


class Definition(NamedTuple):
  """The definition of a public name.

  Attributes:
    path: The defining path, such as `tff_adaptive.simulation.task.Task`.
    summary: The first line of its docstring, or the comment above it.
  """

  path: str
  summary: str


class PublicModule(NamedTuple):
  """A package or module that users import.

  Attributes:
    name: Its name, such as `tff_adaptive.simulation`.
    is_package: Whether it is a package.
    summary: The first line of its docstring.
    names: The definitions of its names, in alphabetical order.
  """

  name: str
  is_package: bool
  summary: str
  names: dict[str, Definition]


class _Source(NamedTuple):
  """A parsed file."""

  tree: ast.Module
  lines: list[str]

  @property
  def docstring(self) -> str:
    return ast.get_docstring(self.tree) or ''

  def statements(self) -> Iterator[ast.stmt]:
    """Yields the top-level statements that a type checker sees."""
    for node in self.tree.body:
      if isinstance(node, ast.If) and ast.unparse(node.test) == 'TYPE_CHECKING':
        yield from node.body
      else:
        yield node


@functools.lru_cache(maxsize=None)
def find_modules() -> tuple[PublicModule, ...]:
  """Returns the packages and modules with public names, sorted by name."""
  modules = []
  for package in PACKAGES:
    for path in (_ROOT / package).rglob('__init__.py'):
      name = '.'.join(path.parent.relative_to(_ROOT).parts)
      if not _is_private(name):
        modules.append(_read_module(name))
        modules.extend(_find_submodules(name))
  return tuple(sorted(module for module in modules if module.names))


def forget() -> None:
  """Clears the caches, for files that have changed."""
  find_modules.cache_clear()
  _read.cache_clear()


def find_described(modules: tuple[PublicModule, ...]) -> dict[str, str]:
  """Returns the name under which each definition is described.

  Args:
    modules: The public modules.

  Returns:
    The name, such as `tff_adaptive.simulation.Task`, by the path of the
    definition. Among several, the one in the innermost enclosing package.
  """
  described: dict[str, str] = {}
  # Packages come first, outer ones before inner ones.
  for module in sorted(modules, key=lambda m: (not m.is_package, m.name)):
    for name, definition in module.names.items():
      is_inside = definition.path.startswith(f'{module.name}.')
      if definition.path not in described or is_inside and module.is_package:
        described[definition.path] = f'{module.name}.{name}'
  return described


def _is_private(name: str) -> bool:
  return any(part.startswith('_') for part in name.split('.'))


def _find_submodules(package: str) -> Iterator[PublicModule]:
  """Yields the public modules of a package."""
  folder = _ROOT.joinpath(*package.split('.'))
  source = _read(folder / '__init__.py')
  named = [
      alias.name
      for node in source.statements()
      if isinstance(node, ast.ImportFrom) and node.module == package
      for alias in node.names
  ]
  if package in PACKAGES:
    named += re.findall(r'`(\w+)`', source.docstring)
  for path in sorted(folder.glob('*.py')):
    if _is_private(path.stem):
      continue
    if path.stem in named or package == LIBRARY and not _is_program(path):
      yield _read_module(f'{package}.{path.stem}')


def _is_program(path: pathlib.Path) -> bool:
  return "if __name__ == '__main__':" in _read(path).lines


@functools.lru_cache(maxsize=None)
def _read(path: pathlib.Path) -> _Source:
  text = path.read_text(encoding='utf-8')
  return _Source(ast.parse(text), text.splitlines())


def _find_file(name: str) -> Optional[pathlib.Path]:
  """Returns the file of a module; None if it is not in the project."""
  path = _ROOT.joinpath(*name.split('.'))
  for candidate in (path / '__init__.py', path.with_suffix('.py')):
    if candidate.is_file():
      return candidate
  return None


def _read_module(name: str) -> PublicModule:
  path = _find_file(name)
  assert path is not None
  source = _read(path)
  is_package = path.name == '__init__.py'
  names = {}
  for node in source.statements():
    for public in _bound_names(node, is_package):
      if not _is_private(public):
        definition = _resolve(name, public)
        if definition is not None:
          names[public] = definition
  in_order = dict(sorted(names.items(), key=lambda item: item[0].lower()))
  summary = _first_line(source.docstring)
  return PublicModule(name, is_package, summary, in_order)


def _bound_names(node: ast.stmt, with_imports: bool) -> list[str]:
  """Returns the names that a statement of a module binds."""
  if isinstance(node, ast.ImportFrom) and with_imports:
    return [alias.asname or alias.name for alias in node.names]
  if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
    return [node.name]
  if isinstance(node, ast.Assign):
    return [t.id for t in node.targets if isinstance(t, ast.Name)]
  if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
    return [node.target.id]
  return []


def _resolve(module: str, name: str) -> Optional[Definition]:
  """Resolves a name in a module; None if it is not in the project."""
  path = _find_file(module)
  if path is None:
    return None
  source = _read(path)
  for node in source.statements():
    if name not in _bound_names(node, with_imports=True):
      continue
    if isinstance(node, ast.ImportFrom):
      imported = {a.asname or a.name: a.name for a in node.names}[name]
      if _find_file(f'{node.module}.{imported}') is not None:
        return None  # A module, which has its own page.
      return _resolve(node.module or '', imported)
    return Definition(f'{module}.{name}', _summarize(node, source))
  return None


def _summarize(node: ast.stmt, source: _Source) -> str:
  if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
    return _first_line(ast.get_docstring(node) or '')
  return comment_above(source.lines, node.lineno)


def _first_line(docstring: str) -> str:
  return docstring.partition('\n')[0]


def comment_above(lines: list[str], lineno: int) -> str:
  """Returns the text of the comment above a line.

  Args:
    lines: The lines of the file.
    lineno: The number of the line, from 1.

  Returns:
    The comment in one line, without '#'; empty if there is none.
  """
  comment: list[str] = []
  for line in reversed(lines[: lineno - 1]):
    if not line.startswith('#'):
      break
    comment.insert(0, line.lstrip('# '))
  return ' '.join(comment)
