# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Values at the server and the clients, while a computation runs in steps."""

from collections.abc import Callable, Iterable, Sequence
import functools
from typing import Any, Optional

import attrs
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.runtime import computations
from tff_adaptive.runtime import round_keys
from tff_adaptive.runtime import values
from tff_adaptive.runtime.datasets import elements
from tff_adaptive.runtime.steps import expressions


class Clients:
  """The clients' values as given."""

  def __init__(self, value: Sequence[Any], member_type: tff.Type):
    self.value = value
    self.member_type = member_type
    self.leaf_types = expressions.leaf_types(member_type)

  @functools.cached_property
  def _by_leaf(self) -> list[list[Any]]:
    """The leaves of all clients as given, by their place in the type."""
    by_client = list(map(values.build_flatten(self.member_type), self.value))
    return [
        [leaves[place] for leaves in by_client]
        for place in range(len(self.leaf_types))
    ]

  @functools.cached_property
  def by_leaf(self) -> list[list[Any]]:
    """The leaves of all clients, by their place in the type."""
    return [
        [elements.to_leaf(leaf, leaf_type) for leaf in leaves]
        for leaves, leaf_type in zip(self._by_leaf, self.leaf_types)
    ]

  def stack(self, place: int) -> Optional[tf.Tensor]:
    """Returns the leaves at a place at once; None if it is not as simple."""
    leaf_type, leaves = self.leaf_types[place], self._by_leaf[place]
    if isinstance(leaf_type, tff.SequenceType):
      return None
    return elements.stack_arrays(leaves, leaf_type)


class Column:
  """A leaf that differs between clients.

  Attributes:
    clients: The values of which it is a leaf; None if it was computed.
    place: Its place in them.
  """

  def __init__(
      self,
      *,
      clients: Optional[Clients] = None,
      place: int = 0,
      leaves: Sequence[Any] = (),
      stacked: Any = None,
  ):
    """Initializes the column.

    Args:
      clients: See above.
      place: See above.
      leaves: The leaf of each client, if it was computed for each.
      stacked: All leaves, if they were computed at once: a tensor, or, in a
        graph, a sequence for each client.
    """
    self.clients = clients
    self.place = place
    self._leaves = leaves
    self._stacked = stacked

  @functools.cached_property
  def leaves(self) -> Sequence[Any]:
    """The leaf of each client."""
    if self.clients is not None:
      return self.clients.by_leaf[self.place]
    return self._leaves if self._stacked is None else tf.unstack(self._stacked)

  def stack(self, leaf_type: Optional[tff.Type] = None) -> Any:
    """Returns all leaves as a tensor; None if there are none or they differ.

    Args:
      leaf_type: Their type, which is needed if they are not yet stacked.
    """
    if self._stacked is None and self.clients is not None:
      self._stacked = self.clients.stack(self.place)
    if self._stacked is None and self.leaves:
      tensors = [
          elements.to_leaf_tensor(leaf, leaf_type) for leaf in self.leaves
      ]
      if len({tuple(tensor.shape) for tensor in tensors}) == 1:
        self._stacked = tf.stack(tensors)
    return self._stacked

  def seeded(
      self,
      leaf_type: tff.Type,
      draw_of: Callable[[int], round_keys.Draw],
  ) -> 'Column':
    """Returns the column with given datasets that draw from streams.

    Args:
      leaf_type: The type of the leaves.
      draw_of: Returns the random streams of a client.
    """
    if self.clients is None or not isinstance(leaf_type, tff.SequenceType):
      return self
    datasets = [
        elements.as_fresh_dataset(leaf.value, leaf_type, draw_of(client)(0, 0))
        for client, leaf in enumerate(self.leaves)
    ]
    return Column(leaves=list(map(tf.data.experimental.to_variant, datasets)))

  @property
  def values(self) -> Sequence[Any]:
    """The leaf of each client, sequences as they were given."""
    return [
        leaf.value if isinstance(leaf, elements.Given) else leaf
        for leaf in self.leaves
    ]


@attrs.frozen(eq=False)
class Placed:
  """A value at the server or the clients.

  Attributes:
    leaves: Its leaves. At the clients, those that differ are a `Column`.
  """

  leaves: list[Any]

  @classmethod
  def of_stacked(cls, leaves: Iterable[Any]) -> 'Placed':
    """Returns a value whose leaves differ between clients, given stacked."""
    return cls([Column(stacked=leaf) for leaf in leaves])

  def stack(self, leaf_types: Sequence[tff.Type]) -> Optional[list[Any]]:
    """Returns the leaves with stacked columns; None if they cannot be."""
    leaves = [
        leaf.stack(leaf_type) if isinstance(leaf, Column) else leaf
        for leaf, leaf_type in zip(self.leaves, leaf_types)
    ]
    return None if any(leaf is None for leaf in leaves) else leaves

  def of_client(self, number: int) -> list[Any]:
    """Returns the leaves of a client."""
    return [
        leaf.leaves[number] if isinstance(leaf, Column) else leaf
        for leaf in self.leaves
    ]


def read(value: Any, place: tff.Type) -> Any:
  """Returns a value of an argument as a `steps.Steps` has it."""
  if not isinstance(place, tff.FederatedType):
    return elements.to_leaf(value, place)
  if computations.differs_by_client(place):
    clients = Clients(value, place.member)
    return Placed(
        [
            Column(clients=clients, place=place)
            for place in range(len(clients.leaf_types))
        ]
    )
  leaves = values.build_flatten(place.member)(value)
  types = expressions.leaf_types(place.member)
  return Placed(list(map(elements.to_leaf, leaves, types)))


def flatten(found: Iterable[Any]) -> list[Any]:
  """Returns the leaves of values as those of `read`."""
  return [
      leaf
      for value in found
      for leaf in (value.leaves if isinstance(value, Placed) else [value])
  ]


def pack(
    leaves: Iterable[Any],
    places_of_leaves: Sequence[tff.Type],
    are_stacked: bool = False,
) -> list[Any]:
  """Returns values at places, given all of their leaves.

  Args:
    leaves: The leaves, in order.
    places_of_leaves: The types at the places.
    are_stacked: Whether leaves that differ between clients are stacked tensors.
      Defaults to False.

  Returns:
    A value as that of `read` for each place.
  """
  rest, found = iter(leaves), []
  for place in places_of_leaves:
    own = [next(rest) for _ in expressions.leaf_types(place)]
    if are_stacked and computations.differs_by_client(place):
      found.append(Placed.of_stacked(own))
    else:
      is_placed = isinstance(place, tff.FederatedType)
      found.append(Placed(own) if is_placed else own[0])
  return found


def _to_leaf_value(leaf: Any, leaf_type: tff.Type) -> Any:
  """Returns a leaf of the result: an array, or a dataset."""
  tensor = elements.to_leaf_tensor(leaf, leaf_type)
  if isinstance(leaf_type, tff.SequenceType):
    return elements.from_tensor(tensor, leaf_type)
  return values.to_array(tensor)


def to_value(value: Any, place: tff.Type, num_clients: int) -> Any:
  """Returns a value of the result."""
  if not isinstance(value, Placed):
    return _to_leaf_value(value, place)
  types, pack = expressions.leaf_types(place), values.build_pack(place)
  if not computations.differs_by_client(place):
    return pack(map(_to_leaf_value, value.leaves, types))
  return [
      pack(map(_to_leaf_value, value.of_client(number), types))
      for number in range(num_clients)
  ]


def columns_of(leaves: Sequence[Any]) -> list[int]:
  """Returns the places of the leaves that differ between clients."""
  return [i for i, leaf in enumerate(leaves) if isinstance(leaf, Column)]


def join(columns: Sequence[Column], types: Sequence[tff.Type]) -> Clients:
  """Returns columns as values of clients; those given stay as they are."""
  clients = columns[0].clients
  if clients is not None:
    found = [(column.clients, column.place) for column in columns]
    if found == [(clients, place) for place in range(len(clients.leaf_types))]:
      return clients
  rows = zip(*(column.values for column in columns))
  return Clients(list(rows), tff.StructType(types))
