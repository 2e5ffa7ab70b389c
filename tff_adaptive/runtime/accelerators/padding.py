# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Arrays with room for more rows than they have.

XLA compiles a program for each shape, and the last batches of clients have all
sizes. So one program holds batches of the largest size; how many rows a batch
truly has is a number of the round. Shapes that a graph computes hold a `Size`
where that number stands, and arrays are `Padded`. Each op that meets one has a
rule in `padded_rules`; what has none runs with a branch for each size.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import attrs
import jax
import jax.numpy as jnp
import numpy as np

from tff_adaptive.runtime.accelerators import lowerings


class PaddingError(lowerings.NoLoweringError):
  """An op has no form for arrays with more room than rows."""


@attrs.frozen(eq=False)
class Batch:
  """A batch.

  Attributes:
    room: The number of rows for which there is room.
    count: The number of rows that it has, a scalar int32.
  """

  room: int
  count: Any


@attrs.frozen
class Size:
  """The size of an axis: a multiple of the number of rows of a batch."""

  batch: Batch
  factor: int = 1

  @property
  def room(self) -> int:
    """The size for which there is room."""
    return self.batch.room * self.factor

  @property
  def number(self) -> Any:
    """The size, a scalar int32."""
    return self.batch.count * np.int32(self.factor)

  def __mul__(self, factor):
    if isinstance(factor, Size):
      return NotImplemented
    return Size(self.batch, self.factor * int(factor))

  __rmul__ = __mul__

  def __floordiv__(self, divisor):
    if isinstance(divisor, Size):
      if divisor.batch is self.batch and self.factor % divisor.factor == 0:
        return self.factor // divisor.factor
    elif divisor and self.factor % int(divisor) == 0:
      return Size(self.batch, self.factor // int(divisor))
    return NotImplemented


@attrs.frozen(eq=False)
class Padded:
  """An array of which one axis has room for more entries than it has.

  What stands in the room is of no meaning, and may be no number: nothing that
  adds entries up reads it.

  Attributes:
    values: The array; or a list of such arrays.
    axis: The axis, of each array of a list.
    size: How many entries it has.
  """

  values: Any
  axis: int
  size: Size

  @property
  def ndim(self) -> int:
    """The number of axes."""
    return self.values.ndim

  @property
  def shape(self) -> tuple[Any, ...]:
    """The shape, with the size."""
    shape = list(self.values.shape)
    shape[self.axis] = self.size
    return tuple(shape)

  def with_values(self, values: Any) -> 'Padded':
    """Returns other values of the same size along the same axis."""
    return attrs.evolve(self, values=values)

  def masked(self, neutral: Any) -> Any:
    """Returns the array with a number where it has no entries."""
    shape = [1] * self.ndim
    shape[self.axis] = -1
    is_entry = (np.arange(self.size.room) < self.size.number).reshape(shape)
    filling = jnp.asarray(neutral, self.values.dtype)
    return jnp.where(is_entry, self.values, filling)


jax.tree_util.register_pytree_node(
    Padded,
    lambda one: ((one.values,), (one.axis, one.size)),
    lambda known, values: Padded(*values, *known),
)


def rows(values: Any, batch: Batch) -> Padded:
  """Returns the rows of a batch: an array along its first axis."""
  return Padded(values, 0, Size(batch))


def bare(value: Any) -> Any:
  """Returns an array without its size; other values as they are."""
  return value.values if isinstance(value, Padded) else value


def has_sizes(value: Any) -> bool:
  """Returns whether a value is a shape, or a part of one, with a `Size`."""
  return isinstance(value, np.ndarray) and value.dtype == object


def as_sizes(value: Any, dtype: Any) -> np.ndarray:
  """Returns a shape or a part of one; of a dtype if it has no `Size`."""
  array = np.asarray(value, object)
  if any(isinstance(entry, Size) for entry in array.flat):
    return array
  return array.astype(dtype)


def rooms(shape: Any) -> Any:
  """Returns a shape with the room in place of a `Size`."""
  if not has_sizes(shape):
    return shape
  flat = [getattr(entry, 'room', entry) for entry in shape.flat]
  return np.asarray(flat, np.int32).reshape(shape.shape)


def as_numbers(value: Any, dtype: Any) -> Any:
  """Returns a shape as an array of numbers."""
  flat = [getattr(entry, 'number', entry) for entry in value.flat]
  numbers = [jnp.asarray(entry).astype(dtype) for entry in flat]
  return jnp.stack(numbers).reshape(value.shape)


def axis_of(shape: Sequence[Any]) -> int:
  """Returns the place of the one `Size` in a shape.

  Raises:
    PaddingError: If there are several, or none.
  """
  places = [n for n, entry in enumerate(shape) if isinstance(entry, Size)]
  if len(places) != 1:
    raise PaddingError('a shape has not one size that differs by batch')
  return places[0]


def check_has_none(values: Sequence[Any], what: str) -> None:
  """Raises a `PaddingError` if a value is padded."""
  if any(isinstance(value, Padded) or has_sizes(value) for value in values):
    raise PaddingError(f'{what} has a size that differs by batch')


def axis_without(axis: int, gone: Iterable[int]) -> int:
  """Returns the number of an axis after others are gone."""
  return axis - sum(one < axis for one in gone)
