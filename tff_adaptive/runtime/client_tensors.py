# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The cohort's data as tensors, from which a compiled round takes its clients.

The clients' argument of a computation is a structure of sequences and tensors.
Each leaf becomes tensors for the whole cohort, which the graph indexes by the
client's number.
"""

from collections.abc import Callable, Collection, Sequence
import itertools
from typing import Any, NamedTuple, Optional, Union

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.data import batching
from tff_adaptive.data import client_data
from tff_adaptive.data import cohort as cohort_lib
from tff_adaptive.data import element_orders
from tff_adaptive.runtime import computations
from tff_adaptive.runtime import dataset_cache
from tff_adaptive.runtime import dataset_rows
from tff_adaptive.runtime import elements
from tff_adaptive.runtime import plans
from tff_adaptive.runtime import round_keys
from tff_adaptive.runtime import values

# A leaf of the clients' argument for the whole cohort: the rows of a sequence;
# the stacked values of a tensor; or, for a sequence that is not kept as rows,
# the stacked variants of the clients' datasets.
Leaf = Union[batching.PackedClients, tf.Tensor]
# The specs of the leaves for which a graph is built.
Layouts = tuple[Any, ...]


class Clients(NamedTuple):
  """The data of a cohort.

  Attributes:
    leaves: In the order of `values.leaf_types`.
    pipelines: The reason why each client's `tf.data` pipeline has to run; None
      if all sequences are rows.
    path: How the data were read, see `CompiledContext.path_of`.
  """

  leaves: tuple[Leaf, ...]
  pipelines: Optional[str]
  path: str

  def layouts(self) -> Layouts:
    """Returns the dtypes and row shapes of the leaves."""
    return tf.nest.map_structure(
        lambda tensor: tf.TensorSpec([None, *tensor.shape[1:]], tensor.dtype),
        self.leaves,
    )


def hold_datasets(leaves: Sequence[Any]) -> bool:
  """Returns whether sequences, as leaves or layouts, are datasets."""
  return any(
      not isinstance(leaf, batching.PackedClients) and leaf.dtype == tf.variant
      for leaf in leaves
  )


def pick(leaf: Leaf, number: tf.Tensor) -> Leaf:
  """Returns the leaf of one client, as `GraphFunction` takes it."""
  if isinstance(leaf, batching.PackedClients):
    return leaf._replace(
        starts=tf.gather(leaf.starts, number), ends=tf.gather(leaf.ends, number)
    )
  return tf.gather(leaf, number)


def why_no_rows(member_type: tff.Type) -> Optional[str]:
  """Explains why a type's sequences cannot be kept as rows.

  Returns a clause that follows 'because'; None if they can be rows.
  """
  for leaf_type in values.leaf_types(member_type):
    if isinstance(leaf_type, tff.SequenceType):
      specs = elements.component_specs(leaf_type)
      if not specs or not (
          elements.are_alike(specs) or elements.are_batches(specs)
      ):
        return (
            f'elements of type {leaf_type.element} are neither batches of rows '
            'nor all of one shape'
        )
  return None


def _pack_sequences(
    sequences: list[Any],
    leaf_type: tff.SequenceType,
    draw_of: Callable[[int], element_orders.Draw],
    cache: dataset_cache.DatasetCache,
    is_reread: bool = False,
    place: Optional[int] = None,
) -> tuple[batching.PackedClients, str]:
  """Packs the elements of several clients; returns also their path.

  Args:
    sequences: The sequence of each client.
    leaf_type: The type of the sequences.
    draw_of: Returns the random streams of a client.
    cache: The cache of datasets that were read before.
    is_reread: Whether a sequence is read more than once. Defaults to False.
    place: The place of a leaf that is not at clients; None for clients.

  Raises:
    NotRowsError: If they cannot be kept as rows.
    TypeError: If they do not match the type.
  """
  specs = elements.component_specs(leaf_type)
  clients = cache.read(sequences, leaf_type, draw_of, place is None)
  if is_reread and any(client.reshuffles for client in clients):
    raise dataset_rows.NotRowsError(
        "the clients' work reads a dataset more than once, which is shuffled "
        'anew each time'
    )
  path = plans.COMPILED
  if any(isinstance(sequence, tf.data.Dataset) for sequence in sequences):
    are_fresh = any(client.are_fresh for client in clients)
    path = plans.THREADS if are_fresh else plans.CACHED
  counts = [len(client.lengths) for client in clients]
  are_batched = not elements.are_alike(specs)
  if clients and all(client.are_batched for client in clients):
    are_batched = True
  if not are_batched:
    clients = [client.as_single_rows() for client in clients]
  rows = cache.join(specs, clients, place)
  if not are_batched:
    return batching.of_rows(rows, counts), path
  sizes = np.concatenate(
      [np.zeros(0, np.int64), *(client.lengths for client in clients)]
  )
  firsts = batching.offsets([client.num_rows for client in clients])
  orders = [
      np.arange(first, end) if client.order is None else client.order + first
      for client, first, end in zip(clients, firsts, firsts[1:])
  ]
  order = np.concatenate([np.zeros(0, np.int64), *orders])
  return batching.of_batches(rows, order, sizes, counts), path


def pack_one(
    sequence: Any,
    leaf_type: tff.SequenceType,
    draw: element_orders.Draw,
    cache: dataset_cache.DatasetCache,
    is_reread: bool,
    place: int,
) -> tuple[batching.PackedClients, str]:
  """Packs a sequence that is not at clients, as that of a single client.

  Args:
    sequence: The sequence.
    leaf_type: Its type.
    draw: Its random streams.
    cache: The cache of datasets that were read before.
    is_reread: Whether it is read more than once.
    place: Its place in the argument.

  Returns:
    Its elements, and how they were read, see `CompiledContext.path_of`.

  Raises:
    NotRowsError: If it cannot be kept as rows.
    TypeError: If it does not match the type.
  """
  packed, path = _pack_sequences(
      [sequence], leaf_type, lambda _: draw, cache, is_reread, place
  )
  (leaf,) = _to_tensors([packed])
  return leaf, path


def _pack_cohort_data(
    cohort: cohort_lib.Cohort,
    leaf_type: tff.SequenceType,
    cache: dataset_cache.DatasetCache,
) -> batching.PackedClients:
  """Packs the batches of a cohort without copying the rows."""
  packed, source = cohort.pack(), cohort.source
  rows = None
  if (
      isinstance(source, client_data.PackedClientArrays)
      and packed.rows is source.values
  ):
    rows = cache.resident_rows(source, leaf_type)
  if rows is None:
    elements.check_rows(packed.rows, leaf_type)
    rows = tuple(tf.nest.flatten(dict(packed.rows)))
  return packed._replace(rows=rows)


def _pack_cohort(
    cohort: cohort_lib.Cohort,
    member_type: tff.Type,
    cache: dataset_cache.DatasetCache,
    key: round_keys.RoundKey,
) -> Optional[list[batching.PackedClients]]:
  """Packs a cohort without copying its batches.

  Returns the leaves, or None if there are leaves other than batches of any
  size.
  """
  fields, beside = [(cohort_lib.DATA_KEY, member_type)], {}
  if isinstance(cohort, cohort_lib.StatefulCohort):
    fields = list(tff.structure.iter_elements(member_type))
    beside = cohort.ids_and_states()

  def pack(name, field_type):
    if name in beside:
      draw_of = key.draw_of(len(cohort), 0)
      return _pack_sequences(beside[name], field_type, draw_of, cache)[0]
    if not isinstance(field_type, tff.SequenceType):
      return None
    if not elements.are_batches(elements.component_specs(field_type)):
      return None
    return _pack_cohort_data(cohort, field_type, cache)

  packed = list(itertools.starmap(pack, fields))
  return None if None in packed else packed


def _stack(leaf_values: list[Any], leaf_type: tff.TensorType) -> tf.Tensor:
  tensors = list(map(elements.build_leaf(leaf_type), leaf_values))
  if not tensors:
    spec = values.tensor_spec(leaf_type)
    return tf.zeros([0, *(size or 0 for size in spec.shape)], spec.dtype)
  shapes = sorted({tuple(tensor.shape) for tensor in tensors})
  if len(shapes) > 1:
    raise computations.UnsupportedComputationError(
        f"the clients' values of type {leaf_type} differ in shape: {shapes[0]} "
        f'and {shapes[1]}; pad them to one shape'
    )
  return tf.stack(tensors)


def _stack_datasets(
    datasets: list[Any],
    leaf_type: tff.SequenceType,
    draw_of: Callable[[int], element_orders.Draw],
) -> tuple[tf.Tensor, str]:
  """Stacks the datasets of several clients; returns also their path."""
  fresh = [
      elements.as_fresh_dataset(dataset, leaf_type, draw_of(client)(0, 0))
      for client, dataset in enumerate(datasets)
  ]
  # TensorFlow cannot stack zero variants: stack one and drop it.
  fresh = fresh or [elements.as_dataset([], leaf_type)]
  alone = map(elements.beside_others, fresh)
  variants = list(map(tf.data.experimental.to_variant, alone))
  return tf.stack(variants)[: len(datasets)], plans.THREADS


def collect(
    clients: Sequence[Any],
    member_type: tff.Type,
    cache: dataset_cache.DatasetCache,
    pipelines: Optional[str],
    key: round_keys.RoundKey,
    reread: Collection[int] = (),
) -> Clients:
  """Collects the tensors of a cohort.

  Args:
    clients: A value of `member_type` for each client, or a `Cohort`.
    member_type: The type of one client's argument.
    cache: The cache of datasets that were read before.
    pipelines: The reason why sequences have to be datasets; None if they may be
      rows.
    key: The key of the round, on which unseeded shuffles depend.
    reread: The places of the leaves that the work reads more than once; a
      shuffled one has another order each time, so it has to be a dataset.

  Returns:
    The data. Sequences are either all rows or all datasets.

  Raises:
    TypeError: If a value does not match the type.
    UnsupportedComputationError: If the clients' tensors differ in shape.
  """
  leaf_types = values.leaf_types(member_type)
  if isinstance(clients, cohort_lib.Cohort):
    packed = None
    if pipelines is None:
      packed = _pack_cohort(clients, member_type, cache, key)
    if packed is not None:
      return Clients(_to_tensors(packed), None, plans.COMPILED)
    clients = list(clients)
  by_client = list(map(values.build_flatten(member_type), clients))
  by_leaf = [
      [leaves[place] for leaves in by_client]
      for place in range(len(leaf_types))
  ]

  def collect_all(collect_sequences, arguments):
    collected = [
        collect_sequences(
            leaf_values,
            leaf_type,
            key.draw_of(len(leaf_values), place),
            *arguments(place),
        )
        if isinstance(leaf_type, tff.SequenceType)
        else (_stack(leaf_values, leaf_type), plans.COMPILED)
        for place, (leaf_values, leaf_type) in enumerate(
            zip(by_leaf, leaf_types)
        )
    ]
    paths = [plans.COMPILED, *(path for _, path in collected)]
    slowest = max(paths, key=plans.PATHS.index)
    return tuple(leaf for leaf, _ in collected), slowest

  if pipelines is None:
    try:
      packed, path = collect_all(
          _pack_sequences, lambda place: (cache, place in reread)
      )
      return Clients(_to_tensors(packed), None, path)
    except dataset_rows.NotRowsError as error:
      pipelines = str(error)
  leaves, path = collect_all(_stack_datasets, lambda place: ())
  return Clients(leaves, pipelines, path)


def _to_tensors(leaves: Sequence[Any]) -> tuple[Leaf, ...]:
  return tf.nest.map_structure(tf.convert_to_tensor, tuple(leaves))
