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
"""Finds the definitions of public names and reads their docstrings.

Nothing is imported: names are followed through the syntax trees.
"""

import ast
from collections.abc import Collection
import dataclasses
import functools
import pathlib
import re
from typing import Optional

from tools.docs import public_api

_SECTIONS = (
    'Args',
    'Attributes',
    'Returns',
    'Yields',
    'Raises',
    'Example',
    'References',
)
_HEADER = re.compile(rf'({"|".join(_SECTIONS)}):(?: (.*))?')
_ENTRY = re.compile(r'(\*{0,2}\w+): ?(.*)')


@dataclasses.dataclass(frozen=True)
class Docstring:
  """A docstring, taken apart.

  Attributes:
    summary: The first line.
    text: The whole.
    sections: The text of each section, by its title.
  """

  summary: str
  text: str
  sections: dict[str, str]

  def entries(self, title: str) -> dict[str, str]:
    """Returns the entries of a section, `name: description`, in order."""
    found: dict[str, str] = {}
    for line in self.sections.get(title, '').splitlines():
      match = _ENTRY.match(line)
      if match:
        found[match[1]] = match[2]
      elif found:
        found[next(reversed(found))] += f' {line.strip()}'
    return found


def read(text: str) -> Docstring:
  """Takes a docstring, with its indentation removed, apart."""
  sections: dict[str, list[str]] = {}
  lines = text.splitlines()
  current: Optional[list[str]] = None
  for line in lines:
    match = _HEADER.fullmatch(line)
    if match:
      current = sections.setdefault(match[1], [])
      current.append(match[2] or '')
    elif line and not line.startswith(' '):
      current = None
    elif current is not None:
      current.append(line[2:])
  return Docstring(
      lines[0] if lines else '',
      text,
      {title: '\n'.join(body).strip('\n') for title, body in sections.items()},
  )


@dataclasses.dataclass(frozen=True)
class Module:
  """A module of a package.

  Attributes:
    name: Its name, with those of its packages.
    path: Its file, from the folder that the packages are in.
    tree: Its syntax tree.
    lines: Its lines.
  """

  name: str
  path: pathlib.Path
  tree: ast.Module
  lines: list[str]

  @functools.cached_property
  def definitions(self) -> dict[str, ast.stmt]:
    """What the module defines, by name: functions, classes and assignments."""
    found: dict[str, ast.stmt] = {}
    for node in self.tree.body:
      if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        found[node.name] = node
      elif isinstance(node, (ast.Assign, ast.AnnAssign)):
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target]
        )
        found.update((t.id, node) for t in targets if isinstance(t, ast.Name))
    return found

  @functools.cached_property
  def imports(self) -> dict[str, tuple[str, str]]:
    """The module and the name in it that an imported name stands for."""
    return {
        alias.asname or alias.name: (node.module or '', alias.name)
        for node in ast.walk(self.tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


@dataclasses.dataclass(frozen=True)
class Public:
  """A definition that users reach by name.

  Attributes:
    name: The name by which they do, such as `tff_adaptive.privacy.Round.next`.
    module: The module that it is defined in.
    node: The definition.
    owner: The class of a method or property, else None.
  """

  name: str
  module: Module
  node: ast.AST
  owner: Optional[ast.ClassDef] = None

  @functools.cached_property
  def docstring(self) -> Optional[Docstring]:
    """The docstring, None where there is none."""
    if not isinstance(self.node, (ast.FunctionDef, ast.ClassDef, ast.Module)):
      return None
    text = ast.get_docstring(self.node)
    return None if text is None else read(text)

  @property
  def line(self) -> int:
    """The line that the definition is in, of a decorated one the `def`."""
    return getattr(self.node, 'lineno', 1)


def methods(
    public: Public, names: Optional[Collection[str]] = None
) -> list[Public]:
  """Returns methods and properties that a class itself defines.

  Args:
    public: The class.
    names: Which ones; None (the default) for all.
  """
  assert isinstance(public.node, ast.ClassDef)
  return [
      Public(f'{public.name}.{node.name}', public.module, node, public.node)
      for node in public.node.body
      if isinstance(node, ast.FunctionDef)
      and (names is None or node.name in names)
  ]


class Sources:
  """The modules of some packages, with what their names stand for."""

  def __init__(self, root: pathlib.Path):
    """Parses the modules.

    Args:
      root: The folder that the packages are in.
    """
    self._root = root
    self.modules: dict[str, Module] = {}
    for package in public_api.PACKAGES:
      for path in sorted((root / package).rglob('*.py')):
        parts = path.relative_to(root).with_suffix('').parts
        name = '.'.join(part for part in parts if part != '__init__')
        text = path.read_text(encoding='utf-8')
        self.modules[name] = Module(
            name, path.relative_to(root), ast.parse(text), text.splitlines()
        )

  def resolve(self, module: Module, name: str) -> Optional[Public]:
    """Returns what a name, perhaps with dots, stands for in a module.

    Args:
      module: The module.
      name: The name, such as `build_sgd`, `optimizer.check_rate`.

    Returns:
      The definition, or a whole module as one; None for what is not ours.
    """
    first, _, rest = name.partition('.')
    if name in module.definitions:
      return Public(name, module, module.definitions[name])
    if first in module.imports:
      return self._resolve_import(*module.imports[first], rest)
    return None

  def _resolve_import(
      self, module_name: str, name: str, rest: str
  ) -> Optional[Public]:
    """What `name` of a module stands for, or `rest` in it."""
    whole = f'{module_name}.{name}'
    if whole in self.modules:
      module = self.modules[whole]
      if rest:
        return self.resolve(module, rest)
      return Public(whole, module, module.tree)
    if module_name in self.modules and not rest:
      return self.resolve(self.modules[module_name], name)
    return None

  def publics(self) -> list[Public]:
    """Returns what users import, each definition once."""
    found: dict[str, Public] = {}
    for module in public_api.find_modules(self._root):
      for name, definition in module.names.items():
        public = self.find(definition.path)
        named = dataclasses.replace(public, name=f'{module.name}.{name}')
        found.setdefault(definition.path, named)
    return list(found.values())

  def find(self, name: str) -> Public:
    """Returns the definition of a name with the packages that it is in.

    Args:
      name: The name, such as 'tff_adaptive.optimizers.build_sgd'.

    Raises:
      LookupError: If there is no such name.
    """
    module_name, _, last = name.rpartition('.')
    public = self.resolve(self.modules[module_name], last)
    if public is None:
      raise LookupError(f'{name} is not found.')
    return dataclasses.replace(public, name=name)

  def as_publics(self) -> list[Public]:
    """Returns the modules themselves."""
    return [Public(m.name, m, m.tree) for m in self.modules.values()]

  def bases(self, public: Public) -> list[Public]:
    """Returns the classes of ours that a class inherits from, nearest first."""
    assert isinstance(public.node, ast.ClassDef)
    found = []
    for base in public.node.bases:
      name = ast.unparse(base).partition('[')[0]
      definition = self.resolve(public.module, name)
      if definition is not None:
        found += [definition, *self.bases(definition)]
    return found
