# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads the arguments of builders from their signatures and docstrings.

The files are parsed, not imported, so that `--help` needs no TensorFlow.
"""

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
import contextlib
import dataclasses
import functools
import importlib.util
import math
import pathlib
import re
import typing
from typing import Any, NamedTuple, Optional, Union

import attrs

from experiments import flag_table
from tasks import arguments as arguments_lib
from tasks import definitions
from tff_adaptive import ranges

# The functions that build rules begin with it.
PREFIX = 'build_'
_TYPES = {'float': float, 'int': int, 'bool': bool, 'str': str}
_SEE = re.compile(r'See `(\w+)`')
_SENTENCE_END = re.compile(r'(?<=\.)\s+(?=[A-Z`])')


class UnreadableError(ValueError):
  """Why an argument cannot be read; the text is a sentence."""


@attrs.frozen
class Argument(arguments_lib.Argument):
  """An argument of a builder that has a flag.

  Attributes:
    flag: The name of the flag; by default `{row}_{argument}`.
    references: The objects that the choices stand for, as 'module:attribute',
      in the order of `choices`; empty if they are plain strings.
    parser: The function that converts the flag's text to the builder's value,
      as 'module:function'.
    is_required: Whether the builder has no default.
    range: The range of a number; of a task it follows from `minimum`.
  """

  flag: Optional[str] = attrs.field(default=None, kw_only=True)
  references: tuple[str, ...] = attrs.field(default=(), kw_only=True)
  parser: Optional[str] = attrs.field(default=None, kw_only=True)
  is_required: bool = attrs.field(default=False, kw_only=True)
  range: ranges.Range = attrs.field(
      default=attrs.Factory(
          lambda self: ranges.Range(
              -math.inf if self.minimum is None else self.minimum,
              may_be_infinite=self.may_be_infinite,
          ),
          takes_self=True,
      ),
      kw_only=True,
  )

  def to_builder_value(self, value: Any) -> Any:
    """Converts a value of the flag to one of the builder's argument."""
    if self.parser is not None:
      return definitions.resolve(self.parser)(value)
    if value is None or not self.references:
      return value
    return definitions.resolve(self.references[self.choices.index(value)])


@dataclasses.dataclass(frozen=True)
class Builder:
  """A function `build_<name>`.

  Attributes:
    package: The package that exports it.
    module: The module that defines it.
    function: Its syntax tree.
  """

  package: str
  module: str
  function: ast.FunctionDef

  @property
  def name(self) -> str:
    """The part of its name after `build_`."""
    return self.function.name[len(PREFIX) :]

  @property
  def reference(self) -> str:
    """Its place, as 'package:function'."""
    return f'{self.package}:{self.function.name}'

  @property
  def returns(self) -> str:
    """The name of its return type, without the module."""
    returned = self.function.returns
    if returned is None:
      return ''
    return ast.unparse(returned).strip('\'"').split('.')[-1]

  @property
  def argument_names(self) -> tuple[str, ...]:
    """The names of its arguments, in order."""
    return tuple(node.arg for node, _ in _parameters(self.function))

  @property
  def required(self) -> frozenset[str]:
    """The names of its arguments without defaults."""
    return frozenset(
        node.arg
        for node, default in _parameters(self.function)
        if default is None
    )


def find(package: str, name: str) -> Builder:
  """Returns the builder of a name that a package exports.

  Raises:
    ModuleNotFoundError: If there is no such package, or none that it imports
      the builder from.
    KeyError: If it exports no such builder.
  """
  return Builder(package, *_find(package, f'{PREFIX}{name}'))


def builders(package: str) -> tuple[Builder, ...]:
  """Returns the builders that a package exports, in its order."""
  defined = [n for n in _parse(package).body if isinstance(n, ast.FunctionDef)]
  names = [*_imports(package), *(node.name for node in defined)]
  return tuple(
      find(package, name[len(PREFIX) :])
      for name in names
      if name.startswith(PREFIX)
  )


def to_arguments(
    builder: Builder, *, supplied: Collection[str], flags: Mapping[str, str]
) -> tuple[tuple[Argument, ...], tuple[str, ...]]:
  """Returns the arguments of a builder with flags, and the names of the others.

  Arguments with flags are numbers, booleans, strings, and those for which the
  builder's module has a function `parse_<argument>` that converts a string. A
  `Literal` annotation defines the choices, a type of `tff_adaptive.ranges` the
  range. The help of a flag is the first sentence of the argument's description.

  Args:
    builder: The builder.
    supplied: Names of arguments to exclude from the flags.
    flags: Names of flags by argument; those of other arguments are derived from
      the row.

  Returns:
    The arguments with flags, in order, and the names of the others.

  Raises:
    UnreadableError: If a default or a `Literal` cannot be read.
  """
  told = _docs_of(builder.module, builder.function)
  found = [
      _to_argument(builder.module, node, default, told.get(node.arg, ''))
      for node, default in _parameters(builder.function)
      if node.arg not in supplied
  ]
  arguments = tuple(
      attrs.evolve(argument, flag=flags.get(argument.name))
      for argument in found
      if argument is not None
  )
  with_flags = {argument.name for argument in arguments}
  rest = (name for name in builder.argument_names if name not in with_flags)
  return arguments, tuple(rest)


def _to_argument(
    module: str, node: ast.arg, default: Optional[ast.expr], told: str
) -> Optional[Argument]:
  """Returns one argument; None if no flag can express it."""
  parser = _parser_of(module, node.arg)
  found = _Type(str) if parser else _read_type(module, node, default)
  if found is None:
    return None
  value = None if default is None else _read_default(module, node, default)
  choices = tuple(map(str, found.choices))
  if choices:
    parser = 'builtins:int' if found.kind is int else None
    value = value if value is None else str(value)
  return Argument(
      node.arg,
      value,
      _SENTENCE_END.split(told)[0],
      type=str if choices else found.kind,
      choices=choices,
      range=found.range,
      parser=parser,
      is_required=default is None,
  )


class _Type(NamedTuple):
  """The values of an argument: their type, and the choices or the range."""

  kind: type
  choices: Sequence[Any] = ()
  range: ranges.Range = ranges.Range()


def _read_type(
    module: str, node: ast.arg, default: Optional[ast.expr]
) -> Optional[_Type]:
  """Returns the type of an argument; None if no flag can express it.

  Without an annotation it is that of the default.
  """
  if node.annotation is None:
    kind = type(
        None if default is None else _read_default(module, node, default)
    )
    return _Type(kind) if kind in _TYPES.values() else None
  for part in _alternatives(node.annotation):
    named = _find_range(module, part)
    if named is not None:
      kind, allowed = typing.get_args(named)
      return _Type(kind, range=allowed)
    if _last_name(part) in _TYPES:
      return _Type(_TYPES[_last_name(part)])
    if isinstance(part, ast.Subscript) and _last_name(part.value) == 'Literal':
      choices = _evaluate(module, part.slice)
      choices = choices if isinstance(choices, tuple) else (choices,)
      kinds = set(map(type, choices))
      if kinds not in ({str}, {int}):
        raise UnreadableError(
            f'the `Literal` of {node.arg} must have texts or integers'
        )
      return _Type(kinds.pop(), choices)
  return None


def _find_range(module: str, node: ast.expr) -> Any:
  """Returns the type of `tff_adaptive.ranges` that a node names, or None."""
  path = ast.unparse(node) if _last_name(node) else ''
  first, *rest = path.split('.')
  place = '.'.join((*_imports(module).get(first, ()), *rest))
  package, _, name = place.rpartition('.')
  return getattr(ranges, name) if package == ranges.__name__ else None


def _alternatives(node: ast.expr) -> list[ast.expr]:
  """Returns the types of an annotation, such as those of a `Union`."""
  if isinstance(node, ast.Constant) and isinstance(node.value, str):
    return _alternatives(ast.parse(node.value, mode='eval').body)
  if isinstance(node, ast.BinOp):
    return [*_alternatives(node.left), *_alternatives(node.right)]
  if isinstance(node, ast.Subscript):
    if _last_name(node.value) == 'Optional':
      return _alternatives(node.slice)
    if _last_name(node.value) == 'Union':
      assert isinstance(node.slice, ast.Tuple)
      return [a for part in node.slice.elts for a in _alternatives(part)]
  return [node]


def _last_name(node: ast.expr) -> str:
  """Returns 'Literal' of `typing.Literal`; '' if it is no name."""
  if isinstance(node, ast.Attribute):
    return node.attr
  return node.id if isinstance(node, ast.Name) else ''


def _read_default(module: str, node: ast.arg, default: ast.expr) -> Any:
  """Returns the default of an argument."""
  try:
    return _evaluate(module, default)
  except (KeyError, ModuleNotFoundError, ValueError) as error:
    raise UnreadableError(
        f'the default of {node.arg} must be a number, a boolean, a text or a '
        f'constant of the module, found {ast.unparse(default)}'
    ) from error


def parse_factors(text: str) -> dict[int, float]:
  """Parses the argument of `build_table` from a flag's text.

  Args:
    text: Pairs of a round and a factor, such as '0:1,100:0.5'.

  Returns:
    A dictionary from rounds to factors.

  Raises:
    ValueError: If the text has another form.

  Example:

    >>> parse_factors('0:1,100:0.5')
    {0: 1.0, 100: 0.5}
  """
  try:
    pairs = [pair.split(':') for pair in text.split(',')]
    table = {int(round_num): float(factor) for round_num, factor in pairs}
  except ValueError as error:
    raise ValueError(
        'A table of factors must look like 0:1,100:0.5 (round:factor), found '
        f'{text!r}.'
    ) from error
  if len(table) < len(pairs):
    raise ValueError(f'A table must name each round once, found {text!r}.')
  return table


def parse_scale(text: str) -> Union[str, float]:
  """Parses the argument of `build_line_search_step` from a flag's text.

  Args:
    text: 'max', 'unit' or a number, such as '0.5'.

  Returns:
    The number, or the text itself if it is not a number.

  Example:

    >>> parse_scale('unit'), parse_scale('0.5')
    ('unit', 0.5)
  """
  try:
    return float(text)
  except ValueError:
    return text


# The parsers of arguments, by the module of the builder and the argument.
_PARSERS = {
    ('tff_adaptive.optimizers.schedules', 'factors'): parse_factors,
    ('tff_adaptive.optimizers.server.fedli', 'scale'): parse_scale,
}


def _parser_of(module: str, argument: str) -> Optional[str]:
  """Returns the place of an argument's parser, if there is one."""
  if known := _PARSERS.get((module, argument)):
    return f'{known.__module__}:{known.__name__}'
  name = f'parse_{argument}'
  nodes = _parse(module).body
  if any(isinstance(n, ast.FunctionDef) and n.name == name for n in nodes):
    return f'{module}:{name}'
  return None


def find_source(module: str) -> pathlib.Path:
  """Returns the file of a module, without importing its packages."""
  root, *names = module.split('.')
  spec = importlib.util.find_spec(root)
  files = []
  if spec is not None and not names:
    files.append(pathlib.Path(spec.origin or ''))
  elif spec is not None:
    for folder in spec.submodule_search_locations or ():
      path = pathlib.Path(folder, *names)
      files += [path / '__init__.py', path.with_suffix('.py')]
  for file in files:
    if file.suffix == '.py' and file.is_file():
      return file
  raise ModuleNotFoundError(f'No module named {module!r}', name=module)


@functools.cache
def _parse(module: str) -> ast.Module:
  """Returns the syntax tree of a module."""
  source = find_source(module)
  return ast.parse(source.read_text(encoding='utf-8'), str(source))


@functools.cache
def _imports(module: str) -> dict[str, tuple[str, str]]:
  """Returns the module and name that each imported name refers to."""
  is_package = find_source(module).name == '__init__.py'
  package = module if is_package else module.rpartition('.')[0]
  return {
      alias.asname
      or alias.name: (
          importlib.util.resolve_name(
              '.' * node.level + (node.module or ''), package
          ),
          alias.name,
      )
      for node in _parse(module).body
      if isinstance(node, ast.ImportFrom)
      for alias in node.names
  }


def _find(module: str, name: str) -> tuple[str, ast.FunctionDef]:
  """Returns a function and the module that defines it."""
  for node in _parse(module).body:
    if isinstance(node, ast.FunctionDef) and node.name == name:
      return module, node
  return _find(*_imports(module)[name])


def _parameters(
    function: ast.FunctionDef,
) -> Iterator[tuple[ast.arg, Optional[ast.expr]]]:
  """Yields the parameters of a function with their defaults."""
  arguments = function.args
  num_required = len(arguments.args) - len(arguments.defaults)
  yield from zip(arguments.args, [*[None] * num_required, *arguments.defaults])
  yield from zip(arguments.kwonlyargs, arguments.kw_defaults)


def _docs_of(module: str, function: ast.FunctionDef) -> dict[str, str]:
  """Returns the description of each argument, in one line."""
  docs = flag_table.descriptions(ast.get_docstring(function))
  for name, text in docs.items():
    elsewhere = _SEE.match(text)
    if elsewhere:
      # Otherwise the help is the reference.
      with contextlib.suppress(KeyError):
        docs[name] = _docs_of(*_find(module, elsewhere[1]))[name]
  return docs


def _evaluate(module: str, node: ast.expr) -> Any:
  """Returns the value of a default: a literal, or a named constant."""
  if isinstance(node, ast.Tuple):
    return tuple(_evaluate(module, element) for element in node.elts)
  if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
    if node.value.id == 'math':
      return getattr(math, node.attr)
    package, name = _imports(module)[node.value.id]
    return constant(f'{package}.{name}', node.attr)
  if isinstance(node, ast.Name):
    return constant(module, node.id)
  return ast.literal_eval(node)


def constant(module: str, name: str) -> Any:
  """Returns the value of a constant of a module, which is not imported.

  It may have an annotation, or be imported from another module.

  Raises:
    KeyError: If the module has no such constant.
    ModuleNotFoundError: If the module that it is imported from is not found.
    ValueError: If its value is not written out.
  """
  for node in _parse(module).body:
    if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None:
      continue
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    if any(isinstance(t, ast.Name) and t.id == name for t in targets):
      return _evaluate(module, node.value)
  if name in _imports(module):
    return constant(*_imports(module)[name])
  raise KeyError(f'{module} has no constant {name}')
