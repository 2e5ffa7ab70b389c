# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The arguments of a task, which are also flags of the binaries."""

from typing import Any, Optional

import attrs


@attrs.frozen
class Argument:
  """An argument of a task.

  Attributes:
    name: The name.
    default: The default value.
    help: A sentence for `--help`, without the default.
    type: One of float, int, bool and str. Defaults to the type of `default`.
    choices: The possible values of a str; all if empty.
    minimum: The smallest value of a number, if any.
    may_be_infinite: Whether a number may be infinite.
    is_hparam: Whether another value makes a different run; False for arguments
      on obtaining data or on execution.
    models: The models for which other values than the default are allowed; all
      if empty.
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
    """Raises a ValueError unless a value is valid for the chosen model."""
    if self.choices and value not in (*self.choices, self.default):
      raise ValueError(
          f'`{self.name}` must be one of {list(self.choices)}, found {value!r}.'
      )
    # `--flag=` without a value unsets a flag that a flagfile sets.
    is_set = value not in (self.default, '')
    if self.models and model_id not in self.models and is_set:
      raise ValueError(
          f'`{self.name}` must be {self.default!r} for the model '
          f'{model_id!r}, found {value!r}.'
      )
    if self.minimum is not None and value is not None and value < self.minimum:
      raise ValueError(
          f'`{self.name}` must be at least {self.minimum}, found {value}.'
      )
