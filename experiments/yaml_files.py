# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads YAML files into attrs classes, with errors that name the place.

Values are not converted: a number is no text, and a text is no list. A field of
the type `Union[str, X]` holds a text or an X. In a mapping, the key of a value
of a class with the field `name` is its name.
"""

from collections.abc import Collection, Mapping
import datetime
import types
import typing
from typing import Any, Union

import attrs
import cattrs
from cattrs import gen
import yaml

_PLAIN = {
    str: 'a text',
    bool: 'true or false',
    int: 'an integer',
    float: 'a number',
    datetime.datetime: 'a time',
}


class DataFileError(ValueError):
  """A data file does not exist or is invalid; the text is a sentence."""


class _Loader(yaml.SafeLoader):
  """Refuses keys that are given twice, of which YAML keeps the last."""

  def construct_mapping(self, node: Any, deep: bool = False) -> Any:
    found = super().construct_mapping(node, deep)
    if len(found) < len(node.value):
      keys = [self.construct_object(key) for key, _ in node.value]
      twice = next(key for key in keys if keys.count(key) > 1)
      raise yaml.MarkedYAMLError(
          problem=f'found the key {twice!r} twice', problem_mark=node.start_mark
      )
    return found


def parse(text: str, place: str) -> Any:
  """Returns the content of a YAML file.

  Args:
    text: The text of the file.
    place: Its name in errors.

  Raises:
    DataFileError: If the text is not YAML, or has a key twice.
  """
  try:
    return yaml.load(text, _Loader)
  except yaml.YAMLError as error:
    raise DataFileError(f'{place}: {" ".join(str(error).split())}') from error


def structure(raw: Any, kind: Any, place: str) -> Any:
  """Returns the content of a file, or of a part of it, as a value of a type.

  Args:
    raw: The content, of mappings, lists, texts and numbers.
    kind: An attrs class, or a type of several of them.
    place: The name of the file or of the part in errors.

  Raises:
    DataFileError: If a key is unknown or missing, or a value is of another
      type or refused by a validator; names all such places.
  """
  try:
    return _CONVERTER.structure(raw, kind)
  except Exception as error:
    problems = cattrs.transform_error(error, place, _describe)
    sentences = (problem.rpartition(' @ ') for problem in problems)
    raise DataFileError(
        '; '.join(f'{where}: {what}' for what, _, where in sentences)
    ) from error


def check_choice(found: Any, known: Collection[str], place: str):
  """Raises a `DataFileError` if a value is not one of the allowed ones."""
  if found not in known:
    raise DataFileError(
        f'{place} must be one of {", ".join(known)}, found {found!r}'
    )


def _describe(error: BaseException, kind: Any) -> str:
  """Returns what is wrong at one place."""
  if isinstance(error, KeyError):
    return 'is missing'
  if isinstance(error, cattrs.ForbiddenExtraKeysError):
    known = ', '.join(field.name for field in attrs.fields(error.cl))
    found = ', '.join(map(repr, sorted(error.extra_fields)))
    return f'takes {known}, found {found}'
  if isinstance(error, ValueError):
    # Validators of attrs add the field and its value to their words.
    return str(error.args[0])
  return cattrs.v.format_exception(error, kind)


def _structure_plain(value: Any, kind: Any) -> Any:
  wanted = (int, float) if kind is float else kind
  is_other_bool = isinstance(value, bool) and kind is not bool
  if not isinstance(value, wanted) or is_other_bool:
    raise ValueError(f'must be {_PLAIN[kind]}, found {value!r}')
  return float(value) if kind is float else value


def _structure_class(kind: Any, converter: cattrs.Converter) -> Any:
  structure_fields = gen.make_dict_structure_fn(
      kind, converter, _cattrs_forbid_extra_keys=True
  )
  return lambda value, _: structure_fields(_checked(value, Mapping), kind)


def _structure_tuple(kind: Any, converter: cattrs.Converter) -> Any:
  elements: Any = list.__class_getitem__(typing.get_args(kind)[0])
  return lambda value, _: tuple(
      converter.structure(_checked(value, list), elements)
  )


def _checked(value: Any, kind: type) -> Any:
  if not isinstance(value, kind):
    raise ValueError(f'must be a {kind.__name__.lower()}, found {value!r}')
  return value


def _is_of_named(kind: Any) -> bool:
  if typing.get_origin(kind) is not Mapping:
    return False
  _, item = typing.get_args(kind)
  return attrs.has(item) and 'name' in attrs.fields_dict(item)


def _structure_named(kind: Any, converter: cattrs.Converter) -> Any:
  plain: Any = dict.__class_getitem__(typing.get_args(kind))

  def structure_named(value: Any, _) -> Any:
    named = {
        name: {'name': name, **_checked(item, Mapping)}
        for name, item in _checked(value, Mapping).items()
    }
    return converter.structure(named, plain)

  return structure_named


def _is_text_or_other(kind: Any) -> bool:
  alternatives = typing.get_args(kind)
  is_union = typing.get_origin(kind) in (Union, types.UnionType)
  return (
      is_union and alternatives[0] is str and types.NoneType not in alternatives
  )


def _structure_text_or_other(kind: Any, converter: cattrs.Converter) -> Any:
  _, other = typing.get_args(kind)
  return lambda value, _: (
      value if isinstance(value, str) else converter.structure(value, other)
  )


_CONVERTER = cattrs.Converter()
for _plain in _PLAIN:
  _CONVERTER.register_structure_hook(_plain, _structure_plain)
for _predicate, _factory in (
    (attrs.has, _structure_class),
    (lambda kind: typing.get_origin(kind) is tuple, _structure_tuple),
    (_is_of_named, _structure_named),
    (_is_text_or_other, _structure_text_or_other),
):
  _CONVERTER.register_structure_hook_factory(_predicate, _factory)
