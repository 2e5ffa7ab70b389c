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
"""Finds the errors that functions raise, statically.

What counts are the `raise` statements of a function, those of the constructors
that it calls, and those of the validation, the functions named `check...`, that
it reaches through any functions of ours. What a `try` catches does not.
"""

import ast
import builtins
from collections.abc import Iterable, Iterator
import dataclasses
import re
from typing import Optional

from tests.tff_adaptive import docstring_testing

_CONSTRUCTORS = ('__init__', '__attrs_post_init__', '__post_init__')
_VALIDATION = re.compile(r'_?check($|_)')


@dataclasses.dataclass(frozen=True)
class Raised:
  """An error that a function raises.

  Attributes:
    names: The name of its class, followed by those of its base classes.
    place: Where it is raised, as 'module:line'.
    in_validation: Whether a validation function raises it, or a constructor.
  """

  names: tuple[str, ...]
  place: str
  in_validation: bool

  def is_one_of(self, names: Iterable[str]) -> bool:
    """Returns whether a class is among `names`, or one of its bases is."""
    return not set(self.names).isdisjoint(names)


class RaisedErrors:
  """Looks up what definitions raise."""

  def __init__(self, sources: docstring_testing.Sources):
    """Initializes the look-up.

    Args:
      sources: The modules.
    """
    self._sources = sources
    self._found: dict[int, list[Raised]] = {}

  def find(self, public: docstring_testing.Public) -> list[Raised]:
    """Returns what a function, or the constructor of a class, raises."""
    key = id(public.node)
    if key not in self._found:
      self._found[key] = []  # Of a function that calls itself.
      found = {error.names: error for error in self._of(public)}
      self._found[key] = list(found.values())
    return self._found[key]

  def _of(self, public: docstring_testing.Public) -> Iterator[Raised]:
    if isinstance(public.node, ast.FunctionDef):
      for statement in public.node.body:
        yield from self._visit(statement, public)
    elif isinstance(public.node, ast.ClassDef):
      for owner in [public, *self._sources.bases(public)]:
        methods = docstring_testing.methods(owner, _CONSTRUCTORS)
        for method in methods:
          yield from self.find(method)
        if methods:
          return

  def _visit(
      self, node: ast.AST, public: docstring_testing.Public
  ) -> Iterator[Raised]:
    """What is raised within a statement or an expression."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Lambda)):
      return  # Defined here, and called elsewhere if at all.
    children: Iterable[ast.AST] = ast.iter_child_nodes(node)
    if isinstance(node, ast.Try):
      caught = [name for h in node.handlers for name in _caught_by(h)]
      for statement in node.body:
        for error in self._visit(statement, public):
          if not error.is_one_of(caught):
            yield error
      children = [*node.handlers, *node.orelse, *node.finalbody]
    if isinstance(node, ast.Raise) and node.exc is not None:
      yield self._raised_by(node, public)
    if isinstance(node, ast.Call):
      yield from self._called_by(node, public)
    for child in children:
      yield from self._visit(child, public)

  def _raised_by(
      self, node: ast.Raise, public: docstring_testing.Public
  ) -> Raised:
    """The error of a `raise`, perhaps one that a function makes."""
    error = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
    assert error is not None
    module, name = public.module, ast.unparse(error)
    maker = self._sources.resolve(module, name)
    if maker is not None and isinstance(maker.node, ast.FunctionDef):
      module = maker.module
      name = ast.unparse(maker.node.returns or error)
    return Raised(
        tuple(self._class_names(module, name)),
        f'{public.module.name}:{node.lineno}',
        False,
    )

  def _class_names(
      self, module: docstring_testing.Module, name: str
  ) -> Iterator[str]:
    """The name of a class and those of its bases, without modules."""
    built_in = getattr(builtins, name, None)
    if isinstance(built_in, type):
      yield from (base.__name__ for base in built_in.__mro__)
      return
    yield name.rpartition('.')[2]
    definition = self._sources.resolve(module, name)
    if definition is not None and isinstance(definition.node, ast.ClassDef):
      for base in definition.node.bases:
        yield from self._class_names(definition.module, ast.unparse(base))

  def _called_by(
      self, call: ast.Call, public: docstring_testing.Public
  ) -> Iterator[Raised]:
    """What a called definition of ours lets through."""
    name = _dotted(call.func)
    called = self._resolve(name, public) if name else None
    if called is None:
      return
    is_validation = isinstance(called.node, ast.ClassDef) or bool(
        _VALIDATION.match(getattr(called.node, 'name', ''))
    )
    for error in self.find(called):
      if is_validation or error.in_validation:
        yield dataclasses.replace(error, in_validation=True)

  def _resolve(
      self, name: str, public: docstring_testing.Public
  ) -> Optional[docstring_testing.Public]:
    """What is called, a method of the same class if that validates."""
    if name.startswith('self.') and public.owner is not None:
      name = name.removeprefix('self.')
      if not _VALIDATION.match(name):
        return None
      owner = dataclasses.replace(public, node=public.owner, owner=None)
      return next(iter(docstring_testing.methods(owner, (name,))), None)
    return self._sources.resolve(public.module, name)


def _dotted(node: ast.expr) -> Optional[str]:
  """The text of a name, perhaps with dots; None for anything else."""
  if isinstance(node, ast.Name):
    return node.id
  if isinstance(node, ast.Attribute):
    start = _dotted(node.value)
    return None if start is None else f'{start}.{node.attr}'
  return None


def _caught_by(handler: ast.ExceptHandler) -> Iterator[str]:
  """The names of the classes that a handler catches."""
  if handler.type is None:
    yield 'BaseException'
  elif isinstance(handler.type, ast.Tuple):
    for one in handler.type.elts:
      yield ast.unparse(one).rpartition('.')[2]
  else:
    yield ast.unparse(handler.type).rpartition('.')[2]
