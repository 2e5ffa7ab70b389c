# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Weights that layers assign in training, as batch normalization does."""

from collections.abc import Sequence
import re
from typing import Any, NamedTuple, Optional

import tensorflow as tf
import tensorflow_federated as tff

# The name of the payload, and of the part that a client keeps.
BATCH_STATISTICS = 'batch_statistics'

# The names of variances, without those of layers and covariances.
_VARIANCE = re.compile(r'(^|[/_])variance[^/]*$')


class MovedWeights(NamedTuple):
  """The places of moved weights among the weights that are not trained.

  Attributes:
    places: The places, in their order.
    minima: The smallest value of each: 0 of a variance, which noise could make
      negative.
    is_local: Whether each client keeps its own, instead of sending them.
    kept_places: The places among the trained weights of those that a client
      then keeps, too.
  """

  places: tuple[int, ...] = ()
  minima: tuple[Optional[float], ...] = ()
  is_local: bool = False
  kept_places: tuple[int, ...] = ()

  @property
  def is_sent(self) -> bool:
    """Whether clients send their changes."""
    return bool(self.places) and not self.is_local

  def take(self, non_trainable: Any) -> tuple[Any, ...]:
    """Returns the moved weights of all that are not trained."""
    return _take(non_trainable, self.places)

  def put(self, non_trainable: Any, moved: Sequence[Any]) -> Any:
    """Returns the weights that are not trained, with other moved ones."""
    return _put(non_trainable, self.places, moved)

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

  def take_kept(self, weights: Any) -> tuple[Any, ...]:
    """Returns those of all weights that a client keeps."""
    if not self.is_local:
      return ()
    return self.to_kept(self.take(weights.non_trainable), weights.trainable)

  def to_kept(self, moved: Sequence[Any], trainable: Any) -> tuple[Any, ...]:
    """Returns moved weights, and the trained ones that stay with them."""
    return (*moved, *_take(trainable, self.kept_places))

  def put_kept(self, weights: Any, kept: Sequence[Any]) -> Any:
    """Returns all weights, with other ones that a client keeps."""
    num_moved = len(self.places)
    return tff.learning.models.ModelWeights(
        _put(weights.trainable, self.kept_places, kept[num_moved:]),
        self.put(weights.non_trainable, kept[:num_moved]),
    )

  def drop_kept(self, update: Any) -> Any:
    """Returns the update of the trained weights, 0 where a client keeps it."""
    zeros = map(tf.zeros_like, _take(update, self.kept_places))
    return _put(update, self.kept_places, tuple(zeros))


NONE = MovedWeights()


def _take(structure: Any, places: Sequence[int]) -> tuple[Any, ...]:
  leaves = tf.nest.flatten(structure)
  return tuple(leaves[place] for place in places)


def _put(structure: Any, places: Sequence[int], values: Sequence[Any]) -> Any:
  leaves = tf.nest.flatten(structure)
  for place, value in zip(places, values):
    leaves[place] = value
  return tf.nest.pack_sequence_as(structure, leaves)


def find(
    trainable: Sequence[Any],
    non_trainable: Sequence[Any],
    moved: Sequence[Any],
    is_local: bool,
    kept: Sequence[Any] = (),
) -> MovedWeights:
  """Returns the places of moved weights.

  Args:
    trainable: The variables that are trained.
    non_trainable: The others.
    moved: Those that are moved.
    is_local: Whether each client keeps its own.
    kept: The trained variables that a client keeps, too. Default: none.
  """
  places = _places(non_trainable, moved)
  minima = (
      0.0 if _VARIANCE.search(non_trainable[place].name) else None
      for place in places
  )
  return MovedWeights(places, tuple(minima), is_local, _places(trainable, kept))


def _places(variables: Sequence[Any], wanted: Sequence[Any]) -> tuple[int, ...]:
  ids = set(map(id, wanted))
  return tuple(i for i, v in enumerate(variables) if id(v) in ids)
