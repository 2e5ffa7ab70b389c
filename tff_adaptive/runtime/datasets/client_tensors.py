# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The cohort's data as tensors, from which a compiled round takes its clients.

The clients' argument of a computation is a structure of sequences and tensors.
Each leaf becomes tensors for the whole cohort, which the graph indexes by the
client's number.
"""

from collections.abc import Callable, Mapping, Sequence
import itertools
import types
from typing import Any, NamedTuple, Optional, Union

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.data import batching
from tff_adaptive.data import client_data
from tff_adaptive.data import cohort as cohort_lib
from tff_adaptive.runtime import computations
from tff_adaptive.runtime import plans
from tff_adaptive.runtime import round_keys
from tff_adaptive.runtime import values
from tff_adaptive.runtime.datasets import dataset_cache
from tff_adaptive.runtime.datasets import dataset_rows
from tff_adaptive.runtime.datasets import elements
from tff_adaptive.runtime.graphs import graph_functions
from tff_adaptive.runtime.sequences import sequence_reads

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
    """Returns the layouts of the leaves."""
    return layout_of(self.leaves)


def layout_of(leaf: Any) -> Any:
  """Returns the dtypes and row shapes of a leaf, or of several."""
  return tf.nest.map_structure(
      lambda tensor: tf.TensorSpec([None, *tensor.shape[1:]], tensor.dtype),
      leaf,
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


def why_pipelines(
    work: graph_functions.GraphFunction, clients_type: tff.Type
) -> Optional[str]:
  """Explains why each client has to run its `tf.data` pipeline for any data.

  Returns a clause that follows 'because'; None if the work reads tensors.
  """
  if work.needs_datasets is not None:
    return f"the clients' work {work.needs_datasets}"
  return why_no_rows(clients_type)


def _pack_sequences(
    sequences: list[Any],
    leaf_type: tff.SequenceType,
    draw_of: Callable[[int], round_keys.Draw],
    cache: dataset_cache.DatasetCache,
    reread: Optional[sequence_reads.Reread] = None,
    place: Optional[int] = None,
) -> tuple[batching.PackedClients, str]:
  """Packs the elements of several clients; returns also their path.

  If the sequences are read several times and are shuffled anew each time, the
  bounds of a client are those of each read.

  Args:
    sequences: The sequence of each client.
    leaf_type: The type of the sequences.
    draw_of: Returns the random streams of a client.
    cache: The cache of datasets that were read before.
    reread: How a sequence is read that is read more than once.
    place: The place of a leaf that is not at clients; None for clients.

  Raises:
    NotRowsError: If they cannot be kept as rows.
    TypeError: If they do not match the type.
  """
  num_reads = reread.number if reread and reread.number else 1
  by_client = cache.read(
      sequences, leaf_type, draw_of, num_reads, place is None
  )
  _check_reads(by_client, reread)
  if not any(reads[0].reshuffles for reads in by_client):
    num_reads = 1
  clients = [read for reads in by_client for read in reads[:num_reads]]
  path = plans.COMPILED
  if any(isinstance(sequence, tf.data.Dataset) for sequence in sequences):
    are_fresh = any(client.are_fresh for client in clients)
    path = plans.THREADS if are_fresh else plans.CACHED
  specs = elements.component_specs(leaf_type)
  packed = _pack_rows(clients, specs, cache, place)
  if num_reads > 1:
    starts, ends = (
        bounds.reshape([-1, num_reads])
        for bounds in (packed.starts, packed.ends)
    )
    packed = packed._replace(starts=starts, ends=ends)
  return packed, path


def _check_reads(
    by_client: Sequence[Sequence[dataset_rows.ClientRows]],
    reread: Optional[sequence_reads.Reread],
) -> None:
  """Raises an error if it is not known which elements a read yields."""
  if reread is None or not any(reads[0].reshuffles for reads in by_client):
    return
  is_seeded = any(reads[0].is_seeded for reads in by_client)
  num_known = min(map(len, by_client))
  if num_known != reread.number or (is_seeded and not reread.is_ordered):
    raise dataset_rows.NotRowsError(
        "the clients' work reads a dataset more than once, which is shuffled "
        'anew each time'
    )


def _pack_rows(
    clients: Sequence[dataset_rows.ClientRows],
    specs: list[tf.TensorSpec],
    cache: dataset_cache.DatasetCache,
    place: Optional[int],
) -> batching.PackedClients:
  """Packs the rows of clients, or of each of their reads."""
  counts = [len(client.lengths) for client in clients]
  are_batched = not elements.are_alike(specs)
  if clients and all(client.are_batched for client in clients):
    are_batched = True
  if not are_batched:
    clients = [client.as_single_rows() for client in clients]
    return batching.of_rows(cache.join(specs, clients, place), counts)
  # The reads of a client have the same rows.
  owners = {id(client.rows): client for client in clients}
  rows = cache.join(specs, list(owners.values()), place)
  bounds = batching.offsets([client.num_rows for client in owners.values()])
  firsts = dict(zip(owners, bounds.tolist()))
  orders = [
      firsts[id(client.rows)]
      + (np.arange(client.num_rows) if client.order is None else client.order)
      for client in clients
  ]
  sizes = [client.lengths for client in clients]
  none = np.zeros(0, np.int64)
  return batching.of_batches(
      rows,
      np.concatenate([none, *orders]),
      np.concatenate([none, *sizes]),
      counts,
  )


def pack_one(
    sequence: Any,
    leaf_type: tff.SequenceType,
    draw: round_keys.Draw,
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
  reread = sequence_reads.Reread(None, False) if is_reread else None
  packed, path = _pack_sequences(
      [sequence], leaf_type, lambda _: draw, cache, reread, place
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
    rows = tuple(elements.components_of(packed.rows, leaf_type))
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
    draw_of: Callable[[int], round_keys.Draw],
) -> tuple[tf.Tensor, str]:
  """Stacks the datasets of several clients; returns also their path."""
  fresh = [
      elements.as_fresh_dataset(dataset, leaf_type, draw_of(client)(0, 0))
      for client, dataset in enumerate(datasets)
  ]
  # TensorFlow cannot stack zero variants: stack one and drop it.
  fresh = fresh or [elements.as_dataset([], leaf_type)]
  alone = [
      elements.beside_others(dataset)
      if elements.takes_options(given)
      else dataset
      for given, dataset in zip(datasets or fresh, fresh)
  ]
  variants = list(map(tf.data.experimental.to_variant, alone))
  return tf.stack(variants)[: len(datasets)], plans.THREADS


def collect(
    clients: Sequence[Any],
    member_type: tff.Type,
    cache: dataset_cache.DatasetCache,
    pipelines: Optional[str],
    key: round_keys.RoundKey,
    reread: Mapping[int, sequence_reads.Reread] = types.MappingProxyType({}),
) -> Clients:
  """Collects the tensors of a cohort.

  Args:
    clients: A value of `member_type` for each client, or a `Cohort`.
    member_type: The type of one client's argument.
    cache: The cache of datasets that were read before.
    pipelines: The reason why sequences have to be datasets; None if they may be
      rows.
    key: The key of the round, on which unseeded shuffles depend.
    reread: How the work reads leaves that it reads more than once, by place; a
      shuffled one has another order each time.

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
          _pack_sequences, lambda place: (cache, reread.get(place))
      )
      return Clients(_to_tensors(packed), None, path)
    except dataset_rows.NotRowsError as error:
      pipelines = str(error)
  leaves, path = collect_all(_stack_datasets, lambda place: ())
  return Clients(leaves, pipelines, path)


def _to_tensors(leaves: Sequence[Any]) -> tuple[Leaf, ...]:
  return tf.nest.map_structure(tf.convert_to_tensor, tuple(leaves))
