# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Weights that layers assign in training, as batch normalization does."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Optional

import tensorflow as tf

# The name of the payload, and of the part that a client keeps.
BATCH_STATISTICS = 'batch_statistics'

_VARIANCE = 'variance'


class MovedWeights(NamedTuple):
  """The places of moved weights among the weights that are not trained.

  Attributes:
    places: The places, in their order.
    minima: The smallest value of each: 0 of a variance, which noise could make
      negative.
    is_local: Whether each client keeps its own, instead of sending them.
  """

  places: tuple[int, ...] = ()
  minima: tuple[Optional[float], ...] = ()
  is_local: bool = False

  @property
  def is_sent(self) -> bool:
    """Whether clients send their changes."""
    return bool(self.places) and not self.is_local

  def take(self, non_trainable: Any) -> tuple[Any, ...]:
    """Returns the moved weights of all that are not trained."""
    leaves = tf.nest.flatten(non_trainable)
    return tuple(leaves[place] for place in self.places)

  def put(self, non_trainable: Any, moved: Sequence[Any]) -> Any:
    """Returns the weights that are not trained, with other moved ones."""
    leaves = tf.nest.flatten(non_trainable)
    for place, value in zip(self.places, moved):
      leaves[place] = value
    return tf.nest.pack_sequence_as(non_trainable, leaves)

  def add_change(self, non_trainable: Any, change: Sequence[tf.Tensor]) -> Any:
    """Returns the weights that are not trained after a round.

    Args:
      non_trainable: The weights before the round.
      change: The mean of the clients' changes, received minus trained.
    """
    new = []
    pairs = zip(self.take(non_trainable), change, self.minima)
    for old, difference, minimum in pairs:
      value = old - difference
      new.append(value if minimum is None else tf.maximum(value, minimum))
    return self.put(non_trainable, new)


NONE = MovedWeights()


def find(
    non_trainable: Sequence[Any], moved: Sequence[Any], is_local: bool
) -> MovedWeights:
  """Returns the places of moved weights.

  Args:
    non_trainable: The variables that are not trained.
    moved: Those that are moved.
    is_local: Whether each client keeps its own.
  """
  wanted = {id(variable) for variable in moved}
  places = [i for i, v in enumerate(non_trainable) if id(v) in wanted]
  minima = (
      0.0 if _VARIANCE in non_trainable[place].name else None
      for place in places
  )
  return MovedWeights(tuple(places), tuple(minima), is_local)
