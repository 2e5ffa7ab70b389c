# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The arguments of a task, which are flags of the binaries as well."""

from typing import Any, Optional

import attrs


@attrs.frozen
class Argument:
  """An argument of a task.

  Attributes:
    name: Its name.
    default: Its default.
    help: A sentence for `--help`, without the default.
    type: One of float, int, bool and str. Default: the type of `default`.
    choices: The values that a str may take; all, if empty.
    minimum: The smallest value of a number, if there is one.
    may_be_infinite: Whether infinity is a value of a number.
    is_hparam: Whether a run with another value is another run; not so where it
      says how to come by something.
    models: The models that take other values than the default; all, if empty.
  """

  name: str
  default: Any
  help: str
  type: type = attrs.field(
      default=attrs.Factory(lambda self: type(self.default), takes_self=True),
      kw_only=True,
  )
  choices: tuple[str, ...] = attrs.field(default=(), kw_only=True)
  minimum: Optional[float] = attrs.field(default=None, kw_only=True)
  may_be_infinite: bool = attrs.field(default=False, kw_only=True)
  is_hparam: bool = attrs.field(default=True, kw_only=True)
  models: tuple[str, ...] = attrs.field(default=(), kw_only=True)

  def check(self, value: Any, model_id: Optional[str]) -> None:
    """Raises a ValueError unless the argument takes a value.

    Args:
      value: The value.
      model_id: The model that was chosen, if there is a choice.
    """
    if self.choices and value not in self.choices:
      raise ValueError(
          f'`{self.name}` must be one of {list(self.choices)}, found {value!r}.'
      )
    if self.models and model_id not in self.models and value != self.default:
      raise ValueError(
          f'`{self.name}` must be {self.default!r} for the model '
          f'{model_id!r}, found {value!r}.'
      )
    if self.minimum is not None and value is not None and value < self.minimum:
      raise ValueError(
          f'`{self.name}` must be at least {self.minimum}, found {value}.'
      )
