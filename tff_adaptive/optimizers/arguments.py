# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks of the arguments of builders."""

from collections.abc import Callable
import functools
import inspect
import numbers
import typing
from typing import Annotated, Any, Literal, TypeVar, Union

import tensorflow as tf

_Builder = TypeVar('_Builder', bound=Callable[..., Any])


def checked(builder: _Builder) -> _Builder:
  """Returns a builder that checks its arguments by their annotations.

  Those of `tff_adaptive.ranges` and `Literal` are checked, also as `Optional`.

  Args:
    builder: The builder.
  """
  signature = inspect.signature(builder)
  kinds = {
      parameter.name: (_kind_of(parameter.annotation), parameter.default)
      for parameter in signature.parameters.values()
  }

  @functools.wraps(builder)
  def build(*args, **kwargs):
    for name, value in signature.bind(*args, **kwargs).arguments.items():
      kind, default = kinds[name]
      if kind is not None and value is not default:
        check(name, value, f'`{builder.__name__}`:', kind)
    return builder(*args, **kwargs)

  return typing.cast(_Builder, build)


def _kind_of(annotation: Any) -> Any:
  """Returns the range or the choices of an annotation; None without one."""
  is_union = typing.get_origin(annotation) is Union
  parts = typing.get_args(annotation) if is_union else (annotation,)
  parts = tuple(part for part in parts if part is not type(None))
  is_checked = typing.get_origin(parts[0]) in (Annotated, Literal)
  return parts[0] if is_checked and len(parts) == 1 else None


def check(name: str, value: Any, owner: str, kind: Any) -> None:
  """Raises unless a value is one of a type.

  Args:
    name: The argument's name, for the message.
    value: A value, also an array or a tensor with one. A symbolic tensor, whose
      value is unknown, is not checked.
    owner: The rule's name, for the message.
    kind: A type of `tff_adaptive.ranges`, or a `Literal`.

  Raises:
    TypeError: If `value` is not a number.
    ValueError: If it is out of its range, or none of the choices.
  """
  if typing.get_origin(kind) is Literal:
    choices = typing.get_args(kind)
    if value not in choices:
      raise ValueError(
          f'{owner} `{name}` must be one of {list(choices)}, found {value!r}.'
      )
    return
  _, allowed = typing.get_args(kind)
  if tf.is_symbolic_tensor(value):
    return
  is_integer = isinstance(value, numbers.Integral)
  if allowed.is_whole and (isinstance(value, bool) or not is_integer):
    raise TypeError(f'{owner} `{name}` must be an integer, found {value!r}.')
  try:
    if isinstance(value, (str, bytes)):  # `float` would parse these.
      raise TypeError
    number = float(value)
  except (TypeError, ValueError):
    raise TypeError(
        f'{owner} `{name}` must be a number, found {type(value).__name__}.'
    ) from None
  if number not in allowed:
    raise ValueError(
        f'{owner} `{name}` must be {allowed.describe(number)}, found {value}.'
    )
