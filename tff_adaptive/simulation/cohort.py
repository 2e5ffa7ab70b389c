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
"""The clients of one round, as the argument that TFF's computations take."""

import collections
from collections.abc import Iterable, Mapping, Sequence
import itertools
from typing import Any, NamedTuple, Optional, Union

import attrs
import numpy as np
import tensorflow as tf

from tff_adaptive.simulation import augmentation as augmentation_lib
from tff_adaptive.simulation import batching
from tff_adaptive.simulation import client_data
from tff_adaptive.simulation import feature_arrays
from tff_adaptive.simulation import random_streams

Batch = feature_arrays.Examples

# What a client of a `StatefulCohort` brings.
DATA_KEY = 'data'
ID_KEY = 'client_id'
STATE_KEY = 'client_state'


class PackedBatches(NamedTuple):
  """The batches of all clients of a round, as rows and numbers of rows.

  Attributes:
    rows: Feature names and arrays of shape [num_rows, ...].
    order: The row numbers of all batches one after the other, int64 of shape
      [num_examples].
    offsets: Where in `order` each batch starts, int64 of shape
      [num_batches + 1].
    starts: The number of each client's first batch, int64 of shape
      [num_clients + 1].
  """

  rows: Mapping[str, np.ndarray]
  order: np.ndarray
  offsets: np.ndarray
  starts: np.ndarray


def _as_ids(client_ids: Iterable[str]) -> tuple[str, ...]:
  return tuple(client_ids)


@attrs.frozen(eq=False)
class Cohort(Sequence):
  """The clients of a round: a sequence whose items are datasets of batches.

  TFF's native runtime takes `list(cohort)` where clients' sequences are
  expected; it refuses any other sequence, and lists of batches too if one
  before the last is short, as in every epoch but the last one. A runtime that
  batches by index takes `index_plan` and the arrays of `source` instead. All
  are the same batches in the same order: shuffling depends on the seed, the
  round and the client's id, and neither on the other clients nor on the place
  in the cohort. A client that occurs twice brings the same batches twice.

  Attributes:
    source: The data of all clients.
    client_ids: The clients of this round, in order.
    round_num: The number of the round, a non-negative integer.
    seed: The seed of the experiment, a non-negative integer.
    plan: How examples become batches.
    augmentation: Changes examples on their way into training, in every epoch
      anew; None (the default) for none. Keyword-only.
    packed: The batches of all clients, where they have been read ahead, see
      `fetch`. Keyword-only.

  Raises:
    KeyError: If the source does not know a client.
    TypeError: If `seed` or `round_num` is not an integer.
    ValueError: If `seed` or `round_num` is negative.

  Example:

    >>> source = client_data.PackedClientArrays.from_clients(
    ...     {'a': {'x': np.array([1.0, 2.0, 3.0])}})
    >>> plan = batching.BatchPlan(batch_size=2, shuffle=False)
    >>> cohort = Cohort(source, ['a'], round_num=0, seed=1, plan=plan)
    >>> [batch['x'].numpy().tolist() for batch in cohort[0]]
    [[1.0, 2.0], [3.0]]
    >>> [batch['x'].tolist() for batch in cohort.batches(0)]
    [[1.0, 2.0], [3.0]]
  """

  source: client_data.ClientArrays = attrs.field(
      validator=attrs.validators.instance_of(client_data.ClientArrays)
  )
  client_ids: tuple[str, ...] = attrs.field(converter=_as_ids)
  round_num: int
  seed: int = attrs.field(converter=random_streams.check_seed)
  plan: batching.BatchPlan = attrs.field(
      validator=attrs.validators.instance_of(batching.BatchPlan)
  )
  augmentation: Optional[augmentation_lib.Augmentation] = attrs.field(
      default=None,
      kw_only=True,
      validator=attrs.validators.optional(
          attrs.validators.instance_of(augmentation_lib.Augmentation)
      ),
  )
  packed: Optional[PackedBatches] = attrs.field(
      default=None, kw_only=True, repr=False
  )

  def __attrs_post_init__(self):
    if isinstance(self.round_num, bool) or not isinstance(
        self.round_num, (int, np.integer)
    ):
      raise TypeError(
          f'`round_num` must be an integer, found {self.round_num!r}.'
      )
    if self.round_num < 0:
      raise ValueError(
          f'`round_num` must not be negative, found {self.round_num}.'
      )
    for client_id in self.client_ids:
      self.source.position(client_id)

  def __len__(self) -> int:
    return len(self.client_ids)

  @property
  def element_spec(self) -> feature_arrays.ElementSpec:
    """Feature names and `tf.TensorSpec`s of an example in a batch."""
    return (self.augmentation or self.source).element_spec

  def fetch(self) -> 'Cohort':
    """Reads all that the round needs of its clients.

    Returns:
      The same cohort, which reads and augments nothing any more. What reads
      cohorts ahead, while a round goes on, calls this.
    """
    return attrs.evolve(self, packed=self.pack())

  def __getitem__(
      self, index: Union[int, slice]
  ) -> Union[tf.data.Dataset, 'Cohort']:
    """Returns a client's batches, or for a slice a cohort of its clients."""
    if isinstance(index, slice):
      ids = self.client_ids[index]
      return attrs.evolve(self, client_ids=ids, packed=None)
    rows = self._training_rows(index)
    num_rows = len(next(iter(rows.values())))
    num_epochs = self.plan.num_epochs if num_rows else 1
    # Batching by tf.data needs no traced function, so no memory is left behind.
    dataset = None
    for ends in np.split(np.arange(num_rows), num_epochs):
      epoch = tf.data.Dataset.from_tensor_slices(_take(rows, ends))
      epoch = epoch.batch(self.plan.batch_size)
      dataset = epoch if dataset is None else dataset.concatenate(epoch)
    return dataset

  def _training_rows(self, index: int) -> Batch:
    """Returns the examples of all batches of a client, one after the other."""
    if self.packed is not None:
      return _packed_rows(self.packed, range(len(self))[index])
    order = self._example_order(index, self._shuffling())
    client_id = self.client_ids[index]
    examples = self.source.take(client_id, order)
    if self.augmentation is None:
      return examples
    generator = random_streams.stream(
        self.seed, random_streams.AUGMENTATION, self.round_num, client_id
    )
    return self.augmentation(examples, generator, client_id)

  def num_examples(self, index: int) -> int:
    """Returns how many examples the client at a place holds, used or not."""
    return self.source.num_examples(self.client_ids[index])

  def num_steps(self, index: int) -> int:
    """Returns how many batches the client at a place has in this round."""
    return batching.num_steps(self.plan, self.num_examples(index))

  def arrays(self, index: int) -> feature_arrays.Examples:
    """Returns all examples of the client at a place, as they are stored."""
    return self.source.examples(self.client_ids[index])

  def index_plan(self, index: int) -> list[np.ndarray]:
    """Returns which of `arrays(index)` are in which batch.

    Args:
      index: The place of the client in the cohort.

    Returns:
      An int64 array of positions for every batch, in the order of training.
    """
    order = self._example_order(index, self._shuffling())
    ends = np.cumsum(self._batch_sizes(index), dtype=np.int64)
    return np.split(order, ends)[:-1]

  def _shuffling(self) -> random_streams.StreamFamily:
    return random_streams.StreamFamily(
        self.seed, random_streams.SHUFFLING, self.round_num
    )

  def _example_order(
      self, index: int, shuffling: random_streams.StreamFamily
  ) -> np.ndarray:
    """Returns the positions of the examples of all batches, one by one."""
    client_id = self.client_ids[index]
    return batching.example_order(
        self.plan,
        self.source.num_examples(client_id),
        shuffling.start(client_id) if self.plan.shuffle else None,
    )

  def _batch_sizes(self, index: int) -> list[int]:
    return batching.batch_sizes(self.plan, self.num_examples(index))

  def batches(self, index: int) -> list[Batch]:
    """Returns the batches of the client at a place, as arrays.

    Args:
      index: The place of the client in the cohort.

    Returns:
      For every batch its feature names and arrays of shape
      [batch_size or less, ...]; an empty list for an empty client.
    """
    rows = self._training_rows(index)
    ends = _offsets(self._batch_sizes(index))
    return [_take(rows, slice(*bounds)) for bounds in zip(ends[:-1], ends[1:])]

  def pack(self) -> PackedBatches:
    """Returns the batches of all clients together.

    Returns:
      The batches. The rows are those of all clients of the source where it is a
      `PackedClientArrays` and there is no augmentation, and nothing is copied;
      else those of the cohort.

    Example:

      >>> source = client_data.PackedClientArrays.from_clients(
      ...     {'a': {'x': np.array([1.0, 2.0, 3.0])}})
      >>> plan = batching.BatchPlan(batch_size=2, shuffle=False)
      >>> cohort = Cohort(source, ['a'], round_num=0, seed=1, plan=plan)
      >>> packed = cohort.pack()
      >>> packed.order.tolist(), packed.offsets.tolist()
      ([0, 1, 2], [0, 2, 3])
    """
    if self.packed is not None:
      return self.packed
    clients = range(len(self))
    sizes = [self._batch_sizes(index) for index in clients]
    rows, order = self._rows_and_order()
    return PackedBatches(
        rows,
        order,
        _offsets(list(itertools.chain.from_iterable(sizes))),
        _offsets(list(map(len, sizes))),
    )

  def _rows_and_order(self) -> tuple[Mapping[str, np.ndarray], np.ndarray]:
    """Returns rows, and which of them are in the batches one by one."""
    clients = range(len(self))
    if self.augmentation is not None:
      rows = self._join([self._training_rows(index) for index in clients])
      return rows, np.arange(len(next(iter(rows.values()))))
    shuffling = self._shuffling()
    orders = [self._example_order(index, shuffling) for index in clients]
    if isinstance(self.source, client_data.PackedClientArrays):
      rows = self.source.values
      orders = list(map(self.source.rows, self.client_ids, orders))
    else:
      rows = self._join([self.arrays(index) for index in clients])
      firsts = _offsets([self.num_examples(index) for index in clients])
      orders = list(map(np.add, orders, firsts))
    return rows, np.concatenate([np.zeros(0, np.int64), *orders])

  def _join(self, parts: Sequence[Batch]) -> Batch:
    """Joins the examples of clients, one after the other."""
    return collections.OrderedDict(
        (
            name,
            np.concatenate(
                [
                    np.zeros([0, *feature.shape], feature.dtype.as_numpy_dtype),
                    *(part[name] for part in parts),
                ]
            ),
        )
        for name, feature in self.element_spec.items()
    )


@attrs.frozen(eq=False)
class StatefulCohort(Cohort):
  """A cohort whose clients bring their ids and states beside their data.

  Its items are ordered dictionaries of three datasets, as TFF takes structures
  of sequences: `data`, the batches; `client_id`, one string; `client_state`,
  one element, or none for a client that has no state yet.

  Attributes:
    states: The states of clients by id, structures of arrays. The clients of
      the cohort that are not among them have none.
    state_spec: The structure of `tf.TensorSpec` of a state.
  """

  states: Mapping[str, Any]
  state_spec: Any

  @classmethod
  def of(
      cls, cohort: Cohort, states: Mapping[str, Any], state_spec: Any
  ) -> 'StatefulCohort':
    """Returns a cohort with states.

    Args:
      cohort: The clients and their data.
      states: See the class.
      state_spec: See the class.

    Returns:
      A `StatefulCohort`.
    """
    fields = attrs.asdict(cohort, recurse=False)
    return cls(**fields, states=states, state_spec=state_spec)

  def __getitem__(self, index: Union[int, slice]) -> Any:
    """Returns what a client brings, or for a slice a cohort of its clients."""
    data = super().__getitem__(index)
    if isinstance(index, slice):
      return data
    client_id = self.client_ids[index]
    return collections.OrderedDict(
        [
            (DATA_KEY, data),
            (ID_KEY, tf.data.Dataset.from_tensors(client_id)),
            (STATE_KEY, self._state_dataset(self._state(client_id))),
        ]
    )

  def ids_and_states(self) -> dict[str, list[Any]]:
    """Returns the sequences that clients bring beside their data.

    Returns:
      `client_id` and `client_state`, each with a list for every client: of its
      id, and of its state or of nothing.
    """
    ids = self.client_ids
    return {
        ID_KEY: [[client_id] for client_id in ids],
        STATE_KEY: [self._state(client_id) for client_id in ids],
    }

  def _state(self, client_id: str) -> list[Any]:
    return [self.states[client_id]] if client_id in self.states else []

  def _state_dataset(self, states: list[Any]) -> tf.data.Dataset:
    if states:
      return tf.data.Dataset.from_tensors(states[0])
    return tf.data.Dataset.from_tensor_slices(
        tf.nest.map_structure(
            lambda spec: np.zeros([0, *spec.shape], spec.dtype.as_numpy_dtype),
            self.state_spec,
        )
    )


def _packed_rows(packed: PackedBatches, client: int) -> Batch:
  """Returns the examples of all batches of one of the packed clients."""
  first, last = packed.offsets[packed.starts[client : client + 2]]
  return _take(packed.rows, packed.order[first:last])


def _take(rows: Mapping[str, np.ndarray], places: Any) -> Batch:
  return collections.OrderedDict(
      (name, array[places]) for name, array in rows.items()
  )


def _offsets(lengths: list[int]) -> np.ndarray:
  """Where parts of these lengths begin, and where the last one ends."""
  return np.cumsum([0, *lengths], dtype=np.int64)
