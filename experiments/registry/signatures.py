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
"""The arguments of builders, read from their signatures and docstrings.

The files are parsed, not imported, so that `--help` needs no TensorFlow.
"""

import ast
from collections.abc import Iterator, Mapping
import functools
import importlib.util
import math
import pathlib
import re
from typing import Any, Optional

import docstring_parser

from experiments.registry import rows

_TYPES = {'float': float, 'int': int, 'bool': bool, 'str': str}
_SEE = re.compile(r'See `(\w+)`')
_SENTENCE_END = re.compile(r'(?<=\.)\s+(?=[A-Z`])')
# What a docstring says of a number that cannot be smaller than 0, or than 1.
_NOT_NEGATIVE = re.compile(r'not negative|above zero|\[0, 1|between 0 and')
_POSITIVE = re.compile(r'above zero|at least 1|positive')


def to_arguments(
    builder: str,
    *,
    flags: Optional[Mapping[str, str]] = None,
    parsers: Optional[Mapping[str, str]] = None,
    supplied: tuple[str, ...] = (),
) -> tuple[rows.Argument, ...]:
  """Returns the arguments of a builder that get flags.

  Args:
    builder: The function, as 'package:function', which is named in the
      package's `__init__`.
    flags: Names of flags by argument, where they are not the row's.
    parsers: Where functions are found that make values of the text of a flag,
      by argument.
    supplied: The arguments that get no flag.

  Returns:
    The arguments, in their order. An argument annotated by `Literal` has these
    choices; the help of a flag is the first sentence of the docstring, which
    also tells whether a number may be negative.
  """
  module, function = _find(*builder.split(':'))
  told = _docs_of(module, function)
  return tuple(
      _to_argument(
          module,
          node,
          default,
          told[node.arg],
          (flags or {}).get(node.arg),
          (parsers or {}).get(node.arg),
      )
      for node, default in _parameters(function)
      if node.arg not in supplied
  )


def _to_argument(
    module: str,
    node: ast.arg,
    default: Optional[ast.expr],
    told: str,
    flag: Optional[str],
    parser: Optional[str],
) -> rows.Argument:
  """Returns one argument."""
  assert node.annotation is not None, f'{module}: {node.arg} has no type'
  value = None if default is None else _evaluate(module, default)
  names = [n.id for n in ast.walk(node.annotation) if isinstance(n, ast.Name)]
  options: dict[str, Any] = {}
  if 'Literal' in names:
    choices = _evaluate(module, node.annotation.slice)  # type: ignore[attr-defined]
    if isinstance(choices[0], int):
      parser = 'builtins:int'
    value, choices = str(value), tuple(map(str, choices))
    kind: type = str
    options['choices'] = choices
  else:
    kind = str if parser else next(_TYPES[n] for n in names if n in _TYPES)
  if kind is float and _NOT_NEGATIVE.search(told):
    options['minimum'] = 0.0
  if kind is int and _POSITIVE.search(told):
    options['minimum'] = 1
  return rows.Argument(
      node.arg,
      kind,
      value,
      _SENTENCE_END.split(told)[0],
      flag=flag,
      may_be_infinite='infinite' in told,
      parser=parser,
      is_required=default is None,
      **options,
  )


@functools.cache
def _parse(module: str) -> ast.Module:
  """Returns the syntax tree of a module."""
  root = importlib.util.find_spec(module.partition('.')[0])
  assert root is not None and root.origin is not None
  path = pathlib.Path(root.origin).parent.joinpath(*module.split('.')[1:])
  file = path / '__init__.py' if path.is_dir() else path.with_suffix('.py')
  return ast.parse(file.read_text(encoding='utf-8'))


def _imports(module: str) -> dict[str, tuple[str, str]]:
  """Returns where the names come from that a module imports from others."""
  return {
      alias.asname or alias.name: (node.module or '', alias.name)
      for node in _parse(module).body
      if isinstance(node, ast.ImportFrom)
      for alias in node.names
  }


def _find(module: str, name: str) -> tuple[str, ast.FunctionDef]:
  """Returns the module where a function is defined, and the function."""
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
  """Returns what a docstring says of each argument, in one line."""
  parsed = docstring_parser.parse(
      ast.get_docstring(function) or '',
      style=docstring_parser.DocstringStyle.GOOGLE,
  )
  told = {p.arg_name: (p.description or '').split() for p in parsed.params}
  docs = {name: ' '.join(words) for name, words in told.items()}
  for name, text in docs.items():
    elsewhere = _SEE.match(text)
    if elsewhere:
      docs[name] = _docs_of(*_find(module, elsewhere[1]))[name]
  return docs


def _evaluate(module: str, node: ast.expr) -> Any:
  """Returns the value of a default: a literal, or the name of one."""
  if isinstance(node, ast.Tuple):
    return tuple(_evaluate(module, element) for element in node.elts)
  if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
    if node.value.id == 'math':
      return getattr(math, node.attr)
    package, name = _imports(module)[node.value.id]
    return _constant(f'{package}.{name}', node.attr)
  if isinstance(node, ast.Name):
    return _constant(module, node.id)
  return ast.literal_eval(node)


def _constant(module: str, name: str) -> Any:
  """Returns the value of a constant of a module."""
  for node in _parse(module).body:
    if isinstance(node, ast.Assign) and any(
        isinstance(target, ast.Name) and target.id == name
        for target in node.targets
    ):
      return _evaluate(module, node.value)
  raise KeyError(f'{module} has no constant {name}')
