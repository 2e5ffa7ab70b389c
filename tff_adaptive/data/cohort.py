# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The clients of one round, as an argument of TFF computations."""

from __future__ import annotations

import collections
from collections.abc import Iterator, Mapping, Sequence
import itertools
import sys
from typing import Any, Optional, TYPE_CHECKING, Union

import attrs
import numpy as np

from tff_adaptive import _tff_internals
from tff_adaptive.data import batching
from tff_adaptive.data import client_data
from tff_adaptive.data import feature_arrays
from tff_adaptive.data import random_streams
from tff_adaptive.data import specs

if TYPE_CHECKING:
  import tensorflow as tf

Batch = feature_arrays.Examples

# The components of a `StatefulCohort`'s items.
DATA_KEY = 'data'
ID_KEY = 'client_id'
STATE_KEY = 'client_state'


@attrs.frozen(eq=False)
class Cohort(Sequence):
  """The clients of a round: a sequence whose items are datasets of batches.

  TFF's native runtime takes `list(cohort)` where it expects clients' sequences;
  it rejects other sequences, and rejects lists of batches if a batch before the
  last is short, as with several epochs. The compiled runtime takes `pack`
  instead, which batches by index. Both give the same batches in the same order:
  shuffling depends on the seed, the round and the client id, and not on the
  other clients or the position in the cohort. A client that occurs twice
  contributes the same batches twice, and counts twice.

  Attributes:
    source: The data of all clients.
    client_ids: The clients of this round, in order.
    round_num: The round number, a non-negative integer.
    seed: The seed of the experiment, a non-negative integer.
    plan: The rule for batches.
    augmentation: Changes examples before training, anew in every epoch; None
      (the default) for none. Keyword-only.
    packed: The prefetched batches of all clients, see `fetch`. Keyword-only.
    step_limits: The number of batches that a client trains on, by id, the first
      ones; other clients (by default all) train on all batches. Keyword-only.
    dropped_out: Clients that were sampled but do not participate; by default
      none. They are only counted. Keyword-only.

  Raises:
    KeyError: If a client is not in the source.
    TypeError: If `seed` or `round_num` is not an integer.
    ValueError: If `seed`, `round_num` or a limit is negative.

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
      validator=specs.instance_of(client_data.ClientArrays)
  )
  client_ids: tuple[str, ...] = attrs.field(converter=tuple[str, ...])
  round_num: int
  seed: int = attrs.field(converter=random_streams.check_seed)
  plan: batching.BatchPlan = attrs.field(
      validator=specs.instance_of(batching.BatchPlan)
  )
  augmentation: Optional[batching.Augmentation] = attrs.field(
      default=None,
      kw_only=True,
      validator=attrs.validators.optional(
          specs.instance_of(batching.Augmentation)
      ),
  )
  packed: Optional[batching.PackedClients] = attrs.field(
      default=None, kw_only=True, repr=False
  )
  step_limits: Mapping[str, int] = attrs.field(factory=dict, kw_only=True)
  dropped_out: tuple[str, ...] = attrs.field(
      default=(), converter=tuple[str, ...], kw_only=True
  )

  def __attrs_post_init__(self):
    specs.check_not_negative('round_num', self.round_num)
    for client_id in self.client_ids:
      self.source.position(client_id)
    for client_id, limit in self.step_limits.items():
      specs.check_not_negative(f'step_limits[{client_id!r}]', limit)
    # If TFF is imported: its own runtime then asks for `cardinality`.
    module = sys.modules.get(_tff_internals.CARDINALITIES)
    if module is not None:
      module.CardinalityCarrying.register(Cohort)

  @property
  def cardinality(self) -> Any:
    """Raises a `TypeError`: it is what TFF's own runtime asks a cohort for."""
    raise TypeError(
        "TFF's own runtime takes no `Cohort`: call "
        '`tff_adaptive.runtime.CompiledContext().install()` before the '
        'computation, or pass `list(cohort)`.'
    )

  def __len__(self) -> int:
    return len(self.client_ids)

  def __iter__(self) -> Iterator[Any]:
    # `Sequence` would take an IndexError of reading a client for the end.
    return map(self.__getitem__, range(len(self)))

  @property
  def element_spec(self) -> feature_arrays.ElementSpec:
    """Names and `tf.TensorSpec`s of the features of one example in a batch."""
    return (self.augmentation or self.source).element_spec

  def fetch(self) -> 'Cohort':
    """Reads all data that the round needs.

    Returns:
      The same cohort, with its data in memory. Prefetching calls this while
      another round runs.
    """
    return attrs.evolve(self, packed=self.pack())

  def __getitem__(
      self, index: Union[int, slice]
  ) -> Union[tf.data.Dataset, 'Cohort']:
    """Returns a client's batches; for a slice, a cohort of its clients."""
    if isinstance(index, slice):
      ids = self.client_ids[index]
      return attrs.evolve(self, client_ids=ids, packed=None)
    rows = self._training_rows(index)
    num_rows = feature_arrays.num_rows(rows)
    all_sizes = batching.batch_sizes(self.plan, self.num_examples(index))
    num_rows_of_epoch = max(sum(all_sizes) // self.plan.num_epochs, 1)
    starts = range(num_rows_of_epoch, num_rows, num_rows_of_epoch)
    # Batching by tf.data traces no function, so it does not leak memory.
    import tensorflow as tf  # pylint: disable=import-outside-toplevel

    dataset = None
    for places in np.split(np.arange(num_rows), starts):
      epoch = tf.data.Dataset.from_tensor_slices(
          feature_arrays.take(rows, places)
      )
      epoch = epoch.batch(self.plan.batch_size)
      dataset = epoch if dataset is None else dataset.concatenate(epoch)
    return dataset

  def _training_rows(self, index: int) -> Batch:
    """Returns the examples of all batches of a client, concatenated."""
    if self.packed is not None:
      return batching.examples_of(self.packed, range(len(self))[index])
    client_id = self.client_ids[index]
    order = self._example_order(
        client_id, self.num_examples(index), self._shuffling()
    )
    num_rows = sum(self.batch_sizes(index))
    if self.augmentation is None:
      return self.source.take(client_id, order[:num_rows])
    generator = random_streams.stream(
        self.seed, random_streams.AUGMENTATION, self.round_num, client_id
    )
    # Also augments the examples beyond the limit, so that the others do not
    # depend on it.
    examples = self.source.take(client_id, order)
    examples = self.augmentation(examples, generator, client_id)
    return feature_arrays.take(examples, slice(num_rows))

  def num_examples(self, index: int) -> int:
    """Returns the number of a client's examples, used or not.

    Args:
      index: The index of the client in the cohort.
    """
    return self.source.num_examples(self.client_ids[index])

  def num_steps(self, index: int) -> int:
    """Returns the number of a client's batches in this round.

    Args:
      index: The index of the client in the cohort.
    """
    return len(self.batch_sizes(index))

  def _shuffling(self) -> random_streams.StreamFamily:
    return random_streams.StreamFamily(
        self.seed, random_streams.SHUFFLING, self.round_num
    )

  def _example_order(
      self,
      client_id: str,
      num_examples: int,
      shuffling: random_streams.StreamFamily,
  ) -> np.ndarray:
    """Returns the order of a client's examples, before the step limit."""
    generator = shuffling.start(client_id) if self.plan.shuffle else None
    return batching.example_order(self.plan, num_examples, generator)

  def batch_sizes(self, index: int) -> list[int]:
    """Returns the sizes of a client's batches.

    Args:
      index: The index of the client in the cohort.
    """
    sizes = batching.batch_sizes(self.plan, self.num_examples(index))
    return sizes[: self.step_limits.get(self.client_ids[index])]

  def batches(self, index: int) -> list[Batch]:
    """Returns a client's batches as arrays.

    Args:
      index: The index of the client in the cohort.

    Returns:
      For each batch, its feature names and arrays of shape
      [at most batch_size, ...]; an empty list for an empty client.
    """
    rows = self._training_rows(index)
    ends = batching.offsets(self.batch_sizes(index))
    return [
        feature_arrays.take(rows, slice(*bounds))
        for bounds in zip(ends[:-1], ends[1:])
    ]

  def pack(self) -> batching.PackedClients:
    """Returns the batches of all clients in one structure.

    Returns:
      The batches. If the source is a `PackedClientArrays` and there is no
      augmentation, the rows are those of the whole source and nothing is
      copied; else they are the rows of the cohort.

    Example:
      >>> source = client_data.PackedClientArrays.from_clients(
      ...     {'a': {'x': np.array([1.0, 2.0, 3.0])}})
      >>> plan = batching.BatchPlan(batch_size=2, shuffle=False)
      >>> cohort = Cohort(source, ['a'], round_num=0, seed=1, plan=plan)
      >>> packed = cohort.pack()
      >>> packed.order.tolist(), packed.sizes.ravel().tolist()
      ([0, 1, 2], [2, 1])
    """
    if self.packed is not None:
      return self.packed
    counts = list(map(self.source.num_examples, self.client_ids))
    # By number of examples, of which many clients have the same.
    sizes_of = {n: batching.batch_sizes(self.plan, n) for n in set(counts)}
    sizes = [
        sizes_of[count][: self.step_limits.get(client_id)]
        for client_id, count in zip(self.client_ids, counts)
    ]
    rows, order = self._rows_and_order(counts, list(map(sum, sizes)))
    return batching.of_batches(
        rows,
        order,
        list(itertools.chain.from_iterable(sizes)),
        list(map(len, sizes)),
    )

  def _rows_and_order(
      self, counts: list[int], lengths: list[int]
  ) -> tuple[Mapping[str, np.ndarray], np.ndarray]:
    """Returns rows, and the indices of the rows of all batches.

    Args:
      counts: The number of examples of each client.
      lengths: The number of rows in the batches of each client.
    """
    if self.augmentation is not None:
      rows = self._join(list(map(self._training_rows, range(len(self)))))
      return rows, np.arange(feature_arrays.num_rows(rows))
    shuffling = self._shuffling()
    orders = [
        self._example_order(client_id, count, shuffling)[:length]
        for client_id, count, length in zip(self.client_ids, counts, lengths)
    ]
    order = np.concatenate([np.zeros(0, np.int64), *orders])
    source = self.source
    indices = None
    if isinstance(source, client_data.PackedClientArrays):
      rows, indices = source.values, source.indices
      firsts = source.offsets[list(map(source.position, self.client_ids))]
    else:
      rows = self._join(list(map(source.examples, self.client_ids)))
      firsts = batching.offsets(counts)[:-1]
    order += np.repeat(firsts, np.asarray(lengths, np.int64))
    return rows, order if indices is None else indices[order]

  def _join(self, parts: Sequence[Batch]) -> Batch:
    """Concatenates the examples of clients."""
    empty = feature_arrays.empty(self.element_spec)
    for name in empty:
      shapes = {part[name].shape[1:] for part in parts if len(part[name])}
      if len(shapes) > 1:
        raise ValueError(
            f'The clients of round {self.round_num} have examples of different '
            f'shapes in feature {name!r}, {sorted(shapes)}: pad them to one '
            'shape, such as by `data.transforms.map_clients`.'
        )
    return feature_arrays.concatenate([empty, *parts], empty)


@attrs.frozen(eq=False)
class StatefulCohort(Cohort):
  """A cohort whose clients also provide their ids and states.

  Its items are ordered dictionaries of three datasets, as TFF takes structures
  of sequences: `data`, the batches; `client_id`, one string; `client_state`,
  one element, or none for a client without a state. Raises the errors of
  `Cohort`.

  Attributes:
    states: The states of clients by id, structures of arrays. Clients that are
      missing have no state yet.
    state_spec: The structure of `tf.TensorSpec`s of a state.
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
    """Returns a client's datasets; for a slice, a cohort of its clients."""
    data = super().__getitem__(index)
    if isinstance(index, slice):
      return data
    import tensorflow as tf  # pylint: disable=import-outside-toplevel

    client_id = self.client_ids[index]
    return collections.OrderedDict(
        data=data,
        client_id=tf.data.Dataset.from_tensors(client_id),
        client_state=self._state_dataset(self._state(client_id)),
    )

  def ids_and_states(self) -> dict[str, list[Any]]:
    """Returns the sequences that clients provide besides their data.

    Returns:
      `client_id` and `client_state`, each with a list for every client, of its
      id and of its state, if any.
    """
    ids = self.client_ids
    return {
        ID_KEY: [[client_id] for client_id in ids],
        STATE_KEY: [self._state(client_id) for client_id in ids],
    }

  def _state(self, client_id: str) -> list[Any]:
    return [self.states[client_id]] if client_id in self.states else []

  def _state_dataset(self, states: list[Any]) -> tf.data.Dataset:
    import tensorflow as tf  # pylint: disable=import-outside-toplevel

    if states:
      return tf.data.Dataset.from_tensors(states[0])
    return tf.data.Dataset.from_tensor_slices(
        tf.nest.map_structure(
            lambda spec: np.zeros([0, *spec.shape], spec.dtype.as_numpy_dtype),
            self.state_spec,
        )
    )
