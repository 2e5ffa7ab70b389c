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
"""Validators of attrs whose errors name types, and never print a value."""

from collections.abc import Callable
from typing import Any

# What attrs calls with the object, the attribute and the value.
Validator = Callable[[Any, Any, Any], None]


def instance_of(expected: type[Any]) -> Validator:
  """Returns an attrs validator: an instance of a type.

  Args:
    expected: The type.

  Returns:
    A validator that raises a TypeError about a value of another type.
  """

  def validate(instance, attribute, value):
    del instance  # Unused.
    if not isinstance(value, expected):
      raise _type_error(attribute, f'of type {expected.__name__}', value)

  return validate


def is_callable(instance: Any, attribute: Any, value: Any) -> None:
  """An attrs validator: a function, or what can be called like one.

  Args:
    instance: The object under construction; unused.
    attribute: The attribute, whose name an error gives.
    value: The value to check.

  Raises:
    TypeError: If the value cannot be called.
  """
  del instance  # Unused.
  if not callable(value):
    raise _type_error(attribute, 'callable', value)


def _type_error(attribute: Any, wanted: str, value: Any) -> TypeError:
  return TypeError(
      f'`{attribute.name}` must be {wanted}, found {type(value).__name__}.'
  )
