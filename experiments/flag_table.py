# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Flags as the fields of a class, and what is wrong with their values.

No TensorFlow is imported here.
"""

from collections.abc import Iterable
import dataclasses
import difflib
import math
import typing
from typing import Any, Union

from absl import flags
import docstring_parser

# Who calls `define` gets the flags as its own, for --help.
flags.disclaim_key_flags()

_DEFINE: dict[Any, Any] = {
    bool: flags.DEFINE_boolean,
    int: flags.DEFINE_integer,
    float: flags.DEFINE_float,
    str: flags.DEFINE_string,
}


def field(
    default: Any = None, *, is_hparam: bool = True, **options: Any
) -> Any:
  """Returns the field of a flag that needs more than a type and a default.

  Args:
    default: The default. Default None.
    is_hparam: Whether it makes another run of a run. Default True.
    **options: What absl takes of a flag: `lower_bound`, `upper_bound`,
      `required`; and `enum_values` of a choice that no `Literal` lists.

  Returns:
    The field of a dataclass.
  """
  metadata = {'is_hparam': is_hparam, 'options': options}
  return dataclasses.field(default=default, metadata=metadata)


def descriptions(docstring: Any) -> dict[str, str]:
  """Returns the text about each argument or attribute, in one line.

  Args:
    docstring: A docstring with `Args` or `Attributes`, or None.
  """
  parsed = docstring_parser.parse(
      docstring or '', style=docstring_parser.DocstringStyle.GOOGLE
  )
  return {
      param.arg_name: ' '.join((param.description or '').split())
      for param in parsed.params
  }


def define(table: Any, flag_values: flags.FlagValues, **words: str):
  """Defines a flag for each field of a class.

  A field annotated by `Literal` takes these values; one that is neither a
  number, a boolean nor a string takes a list with commas.

  Args:
    table: A dataclass, whose docstring has the help under `Attributes`.
    flag_values: Where to define them.
    **words: What stands in the help for `{name}`.
  """
  help_texts = descriptions(table.__doc__)
  types = typing.get_type_hints(table)
  for entry in dataclasses.fields(table):
    text = help_texts[entry.name].format(**words)
    options = dict(entry.metadata.get('options', {}), flag_values=flag_values)
    default = entry.default
    if isinstance(default, tuple):
      default = list(default)
    kind = _kind(types[entry.name])
    values = options.pop('enum_values', ())
    if typing.get_origin(kind) is typing.Literal:
      values = typing.get_args(kind)
    if values:
      flags.DEFINE_enum(entry.name, default, list(values), text, **options)
    else:
      define_flag = _DEFINE.get(kind, flags.DEFINE_list)
      define_flag(entry.name, default, text, **options)


def _kind(annotation: Any) -> Any:
  """Returns the first type that an annotation allows, but for None."""
  is_union = typing.get_origin(annotation) is typing.Union
  allowed = typing.get_args(annotation) if is_union else (annotation,)
  return next(kind for kind in allowed if kind is not type(None))


class HparamError(flags.Error):
  """A flag has a value that cannot be; the text is one sentence."""


# Rounds compute in float32, also with squares of numbers, and in int32.
_LARGEST = {float: 1e18, int: 2**31 - 1}


def check_size(flag: str, value: Union[int, float]):
  """Raises if a number is too large to compute with.

  Args:
    flag: The flag that has it as its value, or as a part of that.
    value: The number; NaN and infinity are others' matter.

  Raises:
    HparamError: If it is too large.
  """
  largest = _LARGEST[type(value)]
  if largest < abs(value) < math.inf:
    raise HparamError(f'--{flag} must be at most {largest}, found {value}')


def check_name(
    flag: str,
    name: str,
    names: Iterable[str],
    elsewhere: Iterable[str] = (),
):
  """Raises unless there is a name.

  Args:
    flag: The flag that has it as its value, or as one of its values.
    name: The name.
    names: Those that there are.
    elsewhere: Other flags that have this name among their values.

  Raises:
    HparamError: If it is not among them; names the other flags, or those that
      are most like it.
  """
  names = list(names)
  if name in names:
    return
  near = [f'--{other}={name}' for other in elsewhere]
  near = near or difflib.get_close_matches(name, names, n=2, cutoff=0.5)
  advice = (
      f'did you mean {" or ".join(near)}?'
      if near
      else f'there are {", ".join(names)}'
  )
  kind = flag.removesuffix('s').replace('_', ' ')
  raise HparamError(f'--{flag}={name} names no {kind}; {advice}')
