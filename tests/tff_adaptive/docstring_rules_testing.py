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
"""The rules for docstrings of public names, each with what it asks for."""

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping
import re
from typing import Optional

from tests.tff_adaptive import docstring_testing
from tests.tff_adaptive import raised_errors_testing

_MAX_COLUMNS = 80

_KERAS_LAYER = (
    'build',
    'build_from_config',
    'call',
    'compute_output_shape',
    'get_config',
)
# Methods of base classes that are not ours, which document them.
_DOCUMENTED_ELSEWHERE = {
    'tf.keras.layers.Layer': _KERAS_LAYER,
    'tf.keras.layers.LSTM': _KERAS_LAYER,
    'tf.keras.losses.Loss': ('call', 'get_config'),
    'tff.framework.SyncContext': ('invoke',),
}

_BUILDER = re.compile(r'build_|create_\w*(context|task)')
_DATA_CLASS = re.compile(r'attrs\.|dataclass')
# An argument says what its default is, or where that is said.
_DEFAULT = re.compile(
    r'[Dd]efault|None|^(See|As) |\b(see|as for|as in|as of) `'
)
_YEAR = re.compile(r'\b(19|20)\d\d\b')
_PLACE = re.compile(
    r'https?://|\b([Aa]lgorithm|[Aa]ppendix|[Ee]quation|[Ff]igure|Proposition'
    r'|[Ss]ection|[Tt]able|Theorem)s? \(?[A-Z\d]'
)


class Rules:
  """Finds what is missing from docstrings."""

  def __init__(
      self,
      sources: docstring_testing.Sources,
      published: Iterable[docstring_testing.Public],
      impossible_errors: Mapping[str, Collection[str]],
  ):
    """Initializes the rules.

    Args:
      sources: The modules.
      published: What implements something that was published elsewhere.
      impossible_errors: The classes of errors that a public name only seems to
        raise, by the name.
    """
    self._impossible_errors = impossible_errors
    self._sources = sources
    self._errors = raised_errors_testing.RaisedErrors(sources)
    self._published = {id(public.node) for public in published}

  def find_offences(self, public: docstring_testing.Public) -> Iterator[str]:
    """Yields what a public name, and the members of a class, lack.

    Args:
      public: A definition, or a module.

    Yields:
      'file:line: name: what is wrong, and what to do.'
    """
    for member in _with_members(public):
      for message in self._of(member):
        yield f'{member.module.path}:{member.line}: {member.name}: {message}'

  def _of(self, public: docstring_testing.Public) -> Iterator[str]:
    """What is wrong with a docstring, or with there being none."""
    if isinstance(public.node, (ast.Assign, ast.AnnAssign)):
      if not _has_comment(public.module.lines[: public.line - 1]):
        yield 'no comment; say above it, or above its block, what it is.'
      return
    docstring = public.docstring
    overrides = self._overrides(public)
    if docstring is None:
      if not overrides and not _is_plain_constructor(public):
        yield 'no docstring; say what it is or does.'
      return
    yield from _check_summary(public, docstring)
    if isinstance(public.node, ast.FunctionDef):
      if not overrides or 'Args' in docstring.sections:
        yield from _check_arguments(public, docstring)
      if not overrides:
        yield from _check_result(public, docstring)
    if isinstance(public.node, ast.ClassDef):
      yield from _check_attributes(public, docstring)
    yield from self._check_errors(public, docstring)
    yield from self._check_references(public, docstring)
    if public.owner is None and _BUILDER.match(_last(public.name)):
      if 'Example' not in docstring.sections:
        yield 'no `Example:`; show a call of the builder, in `>>>` if it runs.'

  def _overrides(self, public: docstring_testing.Public) -> bool:
    """Whether a base class documents the method."""
    if public.owner is None:
      return False
    owner = docstring_testing.Public('', public.module, public.owner)
    name = _last(public.name)
    bases = self._sources.bases(owner)
    for base in bases:
      if isinstance(base.node, ast.ClassDef):
        for method in docstring_testing.methods(base, (name,)):
          if method.docstring is not None:
            return name != '__init__'
    return any(
        name in _DOCUMENTED_ELSEWHERE.get(ast.unparse(base), ())
        for one in [owner, *bases]
        for base in getattr(one.node, 'bases', ())
    )

  def _check_errors(
      self,
      public: docstring_testing.Public,
      docstring: docstring_testing.Docstring,
  ) -> Iterator[str]:
    if isinstance(public.node, ast.ClassDef) and not _fields(public):
      return  # The constructor has a docstring of its own.
    known = [
        'NotImplementedError',
        *docstring.entries('Raises'),
        *self._impossible_errors.get(public.name, ()),
    ]
    for error in self._errors.find(public):
      if not error.is_one_of(known):
        yield (
            f'`Raises:` lacks {error.names[0]}, raised in {error.place}; say '
            'when that happens.'
        )

  def _check_references(
      self,
      public: docstring_testing.Public,
      docstring: docstring_testing.Docstring,
  ) -> Iterator[str]:
    if id(public.node) not in self._published:
      return
    references = ' '.join(docstring.sections.get('References', '').split())
    if not references:
      yield (
          'no `References:`; name authors, title, venue and year, URL, the '
          'number of algorithm or equation, and every deviation.'
      )
    elif not _YEAR.search(references) or not _PLACE.search(references):
      yield (
          '`References:` needs a year, and a URL or the number of an '
          'algorithm, an equation or a section.'
      )


def _has_comment(lines_above: list[str]) -> bool:
  """Whether a comment is above an assignment, or the block that it is in."""
  for line in reversed(lines_above):
    if not line or line.startswith('#'):
      return bool(line)
  return False


def _with_members(
    public: docstring_testing.Public,
) -> Iterator[docstring_testing.Public]:
  """A definition and, of a class, the methods and properties for users."""
  yield public
  if isinstance(public.node, ast.ClassDef):
    for method in docstring_testing.methods(public):
      name = _last(method.name)
      if name == '__init__' or not name.startswith('_'):
        yield method


def _last(name: str) -> str:
  return name.rpartition('.')[2]


def _decorators(public: docstring_testing.Public) -> list[str]:
  return [ast.unparse(d) for d in getattr(public.node, 'decorator_list', ())]


def _is_plain_constructor(public: docstring_testing.Public) -> bool:
  """Whether this is an `__init__` that its class documents, or needs not."""
  if public.owner is None or _last(public.name) != '__init__':
    return False
  text = ast.get_docstring(public.owner)
  parameters = list(_parameters(public))
  documented = docstring_testing.read(text).entries('Args') if text else {}
  return parameters == list(documented)


def _parameters(public: docstring_testing.Public) -> dict[str, Optional[str]]:
  """The parameters in order, each with its default as it is written."""
  assert isinstance(public.node, ast.FunctionDef)
  arguments = public.node.args
  positional = [a.arg for a in arguments.posonlyargs + arguments.args]
  found: dict[str, Optional[str]] = dict.fromkeys(positional)
  for name, default in zip(positional[::-1], arguments.defaults[::-1]):
    found[name] = ast.unparse(default)
  if public.owner is not None and 'staticmethod' not in _decorators(public):
    del found[positional[0]]
  if arguments.vararg:
    found[f'*{arguments.vararg.arg}'] = None
  for argument, value in zip(arguments.kwonlyargs, arguments.kw_defaults):
    found[argument.arg] = None if value is None else ast.unparse(value)
  if arguments.kwarg:
    found[f'**{arguments.kwarg.arg}'] = None
  return {name: v for name, v in found.items() if 'unused_' not in name}


def _fields(public: docstring_testing.Public) -> dict[str, bool]:
  """The fields of a data class, a NamedTuple or an enumeration.

  Args:
    public: The class.

  Returns:
    Whether each has a default, by its name; nothing for other classes.
  """
  assert isinstance(public.node, ast.ClassDef)
  bases = ' '.join(ast.unparse(base) for base in public.node.bases)
  found = {}
  if 'Enum' in bases:
    for node in public.node.body:
      if isinstance(node, ast.Assign):
        found[ast.unparse(node.targets[0])] = False
  elif 'NamedTuple' in bases or any(
      _DATA_CLASS.search(decorator) for decorator in _decorators(public)
  ):
    for node in public.node.body:
      if isinstance(node, ast.AnnAssign):
        value = '' if node.value is None else ast.unparse(node.value)
        is_field = value.startswith('attrs.field')
        has_default = 'default=' in value if is_field else bool(value)
        found[ast.unparse(node.target)] = has_default
  return {k: v for k, v in found.items() if not k.startswith('_')}


def _check_summary(
    public: docstring_testing.Public, docstring: docstring_testing.Docstring
) -> Iterator[str]:
  lines = docstring.text.splitlines()
  body = public.node.body  # type: ignore[attr-defined]
  source = public.module.lines[body[0].lineno - 1]
  if not docstring.summary.endswith('.') or any(lines[1:2]):
    yield (
        f'the summary {docstring.summary!r} is no sentence on a line of its '
        'own; end the first line with a full stop, and leave the second empty.'
    )
  if len(source) > _MAX_COLUMNS:
    yield f'the summary goes beyond column {_MAX_COLUMNS}; shorten it.'


def _check_arguments(
    public: docstring_testing.Public, docstring: docstring_testing.Docstring
) -> Iterator[str]:
  parameters = _parameters(public)
  entries = docstring.entries('Args')
  if list(parameters) != list(entries):
    missing = [name for name in parameters if name not in entries]
    unknown = [name for name in entries if name not in parameters]
    found = f'lacks {missing}, has unknown {unknown}'
    yield (
        f'`Args:` {found if missing or unknown else "has another order"}; '
        f'describe {list(parameters)} in this order.'
    )
  for name, default in parameters.items():
    text = entries.get(name)
    if default is None or text is None:
      continue
    if not _DEFAULT.search(text):
      yield f'`{name}` does not say its default, {default}; say it.'
  yield from _check_entries('Args', entries)


def _check_entries(title: str, entries: dict[str, str]) -> Iterator[str]:
  for name, text in entries.items():
    if not text.strip():
      yield f'`{title}` says nothing of `{name}`; describe it.'


def _check_result(
    public: docstring_testing.Public, docstring: docstring_testing.Docstring
) -> Iterator[str]:
  assert isinstance(public.node, ast.FunctionDef)
  returns = public.node.returns
  decorators = _decorators(public)
  if (
      returns is None
      or ast.unparse(returns) in ('None', 'NoReturn')
      or any(d.endswith(('property', '.setter')) for d in decorators)
  ):
    return
  title = 'Yields' if _yields(public.node) else 'Returns'
  if title not in docstring.sections and not docstring.summary.startswith(
      f'{title} '
  ):
    yield (
        f'no `{title}:`; say what comes back, or begin the summary with '
        f'"{title}" where that says it all.'
    )


def _yields(function: ast.FunctionDef) -> bool:
  """Whether this is a generator, without looking at functions inside."""
  nodes: list[ast.AST] = list(function.body)
  while nodes:
    node = nodes.pop()
    if isinstance(node, (ast.Yield, ast.YieldFrom)):
      return True
    if not isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Lambda)):
      nodes.extend(ast.iter_child_nodes(node))
  return False


def _check_attributes(
    public: docstring_testing.Public, docstring: docstring_testing.Docstring
) -> Iterator[str]:
  fields = _fields(public)
  entries = docstring.entries('Attributes')
  if fields and list(fields) != list(entries):
    yield (
        f'`Attributes:` has {list(entries)}; describe {list(fields)} in this '
        'order.'
    )
  for name, has_default in fields.items():
    if has_default and name in entries and not _DEFAULT.search(entries[name]):
      yield f'`{name}` does not say its default; say it.'
  yield from _check_entries('Attributes', entries)
