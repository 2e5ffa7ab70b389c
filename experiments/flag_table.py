# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Flags defined by the fields of a class, and checks of their values.

TensorFlow is not imported here.
"""

from collections.abc import Iterable
import dataclasses
import difflib
import math
import typing
from typing import Any, Optional, Union

from absl import flags
import docstring_parser

# For --help, the flags belong to the caller of `define`.
flags.disclaim_key_flags()

_DEFINE: dict[Any, Any] = {
    bool: flags.DEFINE_boolean,
    int: flags.DEFINE_integer,
    float: flags.DEFINE_float,
    str: flags.DEFINE_string,
}


def field(
    default: Any = None,
    *,
    is_hparam: bool = True,
    is_addition: bool = False,
    **options: Any,
) -> Any:
  """Returns the dataclass field of a flag with options.

  Args:
    default: The default value. Default None.
    is_hparam: Whether another value makes a different run. Default True.
    is_addition: Whether it only adds files or columns to a run, whose numbers
      stay the same. Default False.
    **options: Options of absl, such as `lower_bound` and `required`;
      `enum_values` for choices that are not listed by a `Literal`; and
      `repeated` for a list with one flag per value.
  """
  metadata = {
      'is_hparam': is_hparam,
      'is_addition': is_addition,
      'options': options,
  }
  return dataclasses.field(default=default, metadata=metadata)


def descriptions(docstring: Any) -> dict[str, str]:
  """Returns the description of each argument or attribute, in one line.

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


def define(table: Any, flag_values: flags.FlagValues, **words: Any):
  """Defines a flag for each field of a class.

  A field annotated with `Literal` becomes an enum; a field that is neither a
  number, a boolean nor a string becomes a comma-separated list.

  Args:
    table: A dataclass whose docstring has the help under `Attributes`.
    flag_values: Where to define the flags.
    **words: The replacements for `{name}` in the help.
  """
  help_texts = descriptions(table.__doc__)
  types = typing.get_type_hints(table)
  for entry in dataclasses.fields(table):
    text = help_texts[entry.name].format(**words)
    options = dict(entry.metadata.get('options', {}))
    default = entry.default
    if isinstance(default, tuple):
      default = list(default)
    kind = _kind(types[entry.name])
    values = options.pop('enum_values', ())
    if typing.get_origin(kind) is typing.Literal:
      values = typing.get_args(kind)
    define_flag(
        entry.name,
        kind,
        text,
        flag_values,
        choices=values,
        default=default,
        **options,
    )
    if kind is float:
      flags.register_validator(
          entry.name, _is_number, 'must be a number', flag_values
      )


def _is_number(value: Optional[float]) -> bool:
  # Bounds do not catch NaN.
  return value is None or not math.isnan(value)


def define_flag(
    name: str,
    kind: Any,
    text: str,
    flag_values: flags.FlagValues,
    *,
    choices: Iterable[str] = (),
    default: Any = None,
    repeated: bool = False,
    **options: Any,
):
  """Defines a flag.

  Args:
    name: The name of the flag.
    kind: The type of its value; any type other than float, int, bool and str
      stands for a list of strings.
    text: The help.
    flag_values: Where to define it.
    choices: The allowed values of a string; any if empty.
    default: The default value. Default None.
    repeated: Whether a list has one flag per value, in place of commas.
    **options: Options of absl.
  """
  options['flag_values'] = flag_values
  if choices:
    flags.DEFINE_enum(name, default, list(choices), text, **options)
    return
  define_list = flags.DEFINE_multi_string if repeated else flags.DEFINE_list
  _DEFINE.get(kind, define_list)(name, default, text, **options)


def _kind(annotation: Any) -> Any:
  """Returns the first type of an annotation other than None."""
  is_union = typing.get_origin(annotation) is typing.Union
  allowed = typing.get_args(annotation) if is_union else (annotation,)
  return next(kind for kind in allowed if kind is not type(None))


class HparamError(flags.Error):
  """A flag has an invalid value; the text is one sentence."""


# Rounds compute in float32, including squares, and in int32.
_LARGEST = {float: 1e18, int: 2**31 - 1}


def check_size(flag: str, value: Union[int, float]):
  """Raises if a number is too large to compute with.

  Args:
    flag: The flag whose value it is, or is a part of.
    value: The number; NaN and infinity are not checked.

  Raises:
    HparamError: If the number is too large.
  """
  largest = _LARGEST[type(value)]
  if largest < abs(value) < math.inf:
    bound = f'at most {largest}' if value > 0 else f'at least {-largest}'
    raise HparamError(f'--{flag} must be {bound}, found {value}')


def check_name(
    flag: str, name: str, names: Iterable[str], elsewhere: Iterable[str] = ()
):
  """Raises unless a name is known.

  Args:
    flag: The flag whose value it is, or is one of.
    name: The name.
    names: The known names.
    elsewhere: Other flags that accept this name.

  Raises:
    HparamError: If the name is unknown; suggests the other flags, or the most
      similar names.
  """
  names = list(names)
  if name in names:
    return
  near = [f'--{other}={name}' for other in elsewhere]
  near = near or difflib.get_close_matches(name, names, n=2, cutoff=0.5)
  advice = (
      f'did you mean {" or ".join(near)}?'
      if near
      else f'choose one of {", ".join(names)}'
  )
  kind = flag.removesuffix('s').replace('_', ' ')
  raise HparamError(f'--{flag}={name} names no {kind}; {advice}')
