# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Teaches griffe the conventions of the project's sources."""

import dataclasses
from typing import Any

import griffe

from tools.docs import docstrings
from tools.docs import public_api

_NAMED_TUPLE = 'typing.NamedTuple'


class ProjectExtension(griffe.Extension):
  """Prepares docstrings, constants, types and constructors for the pages."""

  def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
    """Completes all objects of a loaded package."""
    del kwargs  # Unused.
    _complete(pkg)


def _complete(obj: griffe.Object) -> None:
  """Completes an object and its members."""
  if obj.docstring is None and obj.is_attribute and obj.parent.is_module:
    _take_comment(obj)
  if obj.docstring is not None:
    obj.docstring.value = docstrings.normalize(obj.docstring.value)
  if obj.is_class and '__init__' not in obj.members and _has_fields(obj):
    obj.set_member('__init__', _build_constructor(obj))
  if obj.is_function:
    for parameter in obj.parameters:
      parameter.annotation = _shorten(parameter.annotation)
    obj.returns = _shorten(obj.returns)
  elif obj.is_attribute:
    obj.annotation = _shorten(obj.annotation)
  for member in list(obj.members.values()):
    if not member.is_alias:
      _complete(member)


def _shorten(expression: Any) -> Any:
  """Returns a type in which the project's classes lack their modules."""
  if isinstance(expression, griffe.ExprAttribute):
    package = expression.canonical_path.partition('.')[0]
    return expression.last if package in public_api.PACKAGES else expression
  if isinstance(expression, (list, tuple)):
    return type(expression)(map(_shorten, expression))
  if isinstance(expression, griffe.Expr):
    for field in dataclasses.fields(expression):
      if field.name != 'parent':
        value = getattr(expression, field.name)
        setattr(expression, field.name, _shorten(value))
  return expression


def _take_comment(attribute: griffe.Attribute) -> None:
  """Turns the comment above a constant into its docstring."""
  lines = attribute.lines_collection[attribute.filepath]
  comment = public_api.comment_above(lines, attribute.lineno)
  if comment:
    attribute.docstring = griffe.Docstring(comment, parent=attribute)


def _has_fields(cls: griffe.Class) -> bool:
  """Returns whether a class is a named tuple or defined by attrs."""
  if any(_path(base) == _NAMED_TUPLE for base in cls.bases):
    return True
  return any(_path(d.value).startswith('attrs.') for d in cls.decorators)


def _path(expression: Any) -> str:
  return getattr(expression, 'canonical_path', str(expression))


def _build_constructor(cls: griffe.Class) -> griffe.Function:
  """Returns the constructor that attrs or `NamedTuple` generates."""
  in_order: dict[str, griffe.Parameter] = {}
  for parent in [*reversed(cls.mro()), cls]:
    if _has_fields(parent):
      is_keyword = any(
          'kw_only=True' in str(d.value).replace(' ', '')
          for d in parent.decorators
      )
      for parameter in _fields(parent, is_keyword):
        in_order[parameter.name] = parameter
  parameters = sorted(
      in_order.values(),
      key=lambda p: p.kind is griffe.ParameterKind.keyword_only,
  )
  return griffe.Function(
      '__init__',
      lineno=0,
      endlineno=0,
      parent=cls,
      parameters=griffe.Parameters(
          griffe.Parameter(
              'self', kind=griffe.ParameterKind.positional_or_keyword
          ),
          *parameters,
      ),
      returns='None',
  )


def _fields(cls: griffe.Class, is_keyword: bool) -> list[griffe.Parameter]:
  """Returns the parameters for the fields that a class itself defines."""
  parameters = []
  for attribute in cls.members.values():
    if not attribute.is_attribute or attribute.annotation is None:
      continue
    if 'property' in attribute.labels:
      continue
    options = _field_options(attribute.value)
    if options.get('init') == 'False':
      continue
    default = attribute.value
    if options or _path(getattr(default, 'function', '')) == 'attrs.field':
      default = options.get('default')
      if 'factory' in options:
        default = f'{options["factory"]}()'
    keyword = is_keyword or options.get('kw_only') == 'True'
    parameters.append(
        griffe.Parameter(
            attribute.name.lstrip('_'),
            annotation=attribute.annotation,
            kind=(
                griffe.ParameterKind.keyword_only
                if keyword
                else griffe.ParameterKind.positional_or_keyword
            ),
            default=default,
        )
    )
  return parameters


def _field_options(value: Any) -> dict[str, str]:
  """Returns the source of the arguments of `attrs.field` by name."""
  if not isinstance(value, griffe.ExprCall):
    return {}
  return {
      argument.name: str(argument.value)
      for argument in value.arguments
      if isinstance(argument, griffe.ExprKeyword)
  }
