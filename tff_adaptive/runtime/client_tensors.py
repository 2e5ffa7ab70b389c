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
"""The data of a cohort as tensors that a compiled round takes its clients from.

The argument that a computation takes at the clients is a structure of sequences
and tensors. Each of its leaves becomes a `LeafTensors`: tensors for the whole
cohort, out of which the graph picks a client by its number.
"""

from collections.abc import Sequence
import itertools
from typing import Any, NamedTuple, Optional, Union

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.data import cohort as cohort_lib
from tff_adaptive.runtime import computations
from tff_adaptive.runtime import elements
from tff_adaptive.runtime import materialization
from tff_adaptive.runtime import sequences
from tff_adaptive.runtime import values

# How a leaf is kept.
RAGGED = 'ragged'  # A sequence, see `sequences.RaggedSequence`.
ELEMENTS = 'elements'  # A sequence, see `sequences.ElementSequence`.
DATASETS = 'datasets'  # A sequence; the variants of all clients' datasets.
STACKED = 'stacked'  # A tensor; those of all clients, stacked.


class LeafTensors(NamedTuple):
  """One leaf of the clients' argument, of the whole cohort.

  Attributes:
    kind: How the leaf is kept.
    tensors: For `RAGGED` one tensor of rows a component, then `order`, `begins`
      and `sizes` as in `sequences`, and the numbers of each client's first
      element and of the one after its last, both [num_clients]; for `ELEMENTS`
      the rows, then first and last numbers as for `RAGGED`; for `DATASETS` and
      `STACKED` one tensor, [num_clients, ...].
  """

  kind: str
  tensors: tuple[tf.Tensor, ...]

  def layout(self) -> tuple[Any, ...]:
    """What a graph has to be built for: kind, dtypes and shapes of rows."""
    specs = [
        tf.TensorSpec([None, *tensor.shape[1:]], tensor.dtype)
        for tensor in self.tensors
    ]
    return (self.kind, *specs)


def pick(
    leaf: LeafTensors, number: tf.Tensor
) -> Union[tf.Tensor, sequences.Sequence]:
  """The leaf of the client with a number, as a `GraphFunction` takes it."""
  if leaf.kind == RAGGED:
    *rows, order, begins, sizes, starts, ends = leaf.tensors
    return sequences.RaggedSequence(
        tuple(rows),
        order,
        begins,
        sizes,
        tf.gather(starts, number),
        tf.gather(ends, number),
    )
  if leaf.kind == ELEMENTS:
    *rows, starts, ends = leaf.tensors
    return sequences.ElementSequence(
        tuple(rows), tf.gather(starts, number), tf.gather(ends, number)
    )
  return tf.gather(leaf.tensors[0], number)


def _pack_rows(packed: materialization.PackedElements) -> LeafTensors:
  """The leaf of sequences that are kept as rows."""
  rows = tuple(map(tf.convert_to_tensor, packed.rows))
  offsets, starts = packed.offsets, packed.starts
  bounds = [
      tf.convert_to_tensor(numbers, tf.int32)
      for numbers in (starts[:-1], starts[1:])
  ]
  if not packed.are_batches:
    return LeafTensors(ELEMENTS, (*rows, *bounds))
  begins, sizes = offsets[:-1, np.newaxis], np.diff(offsets)[:, np.newaxis]
  order = [
      tf.convert_to_tensor(index, tf.int64)
      for index in (packed.order, begins, sizes)
  ]
  return LeafTensors(RAGGED, (*rows, *order, *bounds))


def _stack(leaf_values: list[Any], leaf_type: tff.TensorType) -> LeafTensors:
  spec = values.tensor_spec(leaf_type)
  tensors = [tf.convert_to_tensor(value, spec.dtype) for value in leaf_values]
  if not tensors:
    shape = [0, *(size or 0 for size in spec.shape)]
    return LeafTensors(STACKED, (tf.zeros(shape, spec.dtype),))
  shapes = sorted({tuple(tensor.shape) for tensor in tensors})
  if len(shapes) > 1:
    raise computations.UnsupportedComputationError(
        f"the clients' values of type {leaf_type} differ in shape, {shapes[0]} "
        f'and {shapes[1]}; pad them'
    )
  return LeafTensors(STACKED, (tf.stack(tensors),))


def _stack_datasets(
    datasets: list[Any], leaf_type: tff.SequenceType
) -> LeafTensors:
  variants = [
      tf.data.experimental.to_variant(elements.as_dataset(dataset, leaf_type))
      # TensorFlow makes no empty variants, but takes one away.
      for dataset in datasets or [[]]
  ]
  return LeafTensors(DATASETS, (tf.stack(variants)[: len(datasets)],))


def _pack_all(
    leaves: Sequence[Union[materialization.PackedElements, LeafTensors]],
) -> list[LeafTensors]:
  """The leaves of a cohort whose sequences are all kept as rows."""
  return [
      leaf if isinstance(leaf, LeafTensors) else _pack_rows(leaf)
      for leaf in leaves
  ]


def _pack_cohort(
    cohort: cohort_lib.Cohort,
    member_type: tff.Type,
    cache: materialization.DatasetCache,
) -> Optional[list[materialization.PackedElements]]:
  """What a cohort brings, its batches taken from where they are.

  Args:
    cohort: The clients of a round.
    member_type: The type of one client's argument.
    cache: See `collect`.

  Returns:
    The leaves, or None if there is anything that cannot be kept as rows.
  """

  fields, beside = [(cohort_lib.DATA_KEY, member_type)], {}
  if isinstance(cohort, cohort_lib.StatefulCohort):
    fields = list(tff.structure.iter_elements(member_type))
    beside = cohort.ids_and_states()

  def pack(name, field_type):
    if name in beside:
      return cache.pack(beside[name], field_type)
    if not isinstance(field_type, tff.SequenceType):
      return None
    return cache.pack_cohort(cohort, field_type)

  packed = list(itertools.starmap(pack, fields))
  return None if None in packed else packed


def collect(
    clients: Sequence[Any],
    member_type: tff.Type,
    cache: materialization.DatasetCache,
    reads_tensors: bool,
) -> list[LeafTensors]:
  """Collects the tensors of a cohort.

  Args:
    clients: A value of `member_type` for every client, or a `Cohort`.
    member_type: The type of one client's argument.
    cache: Datasets that were materialised before.
    reads_tensors: Whether the computation reads sequences from tensors.

  Returns:
    The leaves, in the order of `values.leaf_types(member_type)`. Sequences are
    either all tensors or, where the computation does not read tensors or some
    elements are not batches of rows, all datasets.

  Raises:
    TypeError: If a value does not fit the type.
    UnsupportedComputationError: If tensors of clients differ in shape.
  """
  leaf_types = values.leaf_types(member_type)
  if isinstance(clients, cohort_lib.Cohort):
    if reads_tensors:
      fields = _pack_cohort(clients, member_type, cache)
      if fields is not None:
        return _pack_all(fields)
    clients = list(clients)
  by_client = list(map(values.build_flatten(member_type), clients))
  by_leaf = [
      [leaves[place] for leaves in by_client]
      for place in range(len(leaf_types))
  ]

  def collect_all(collect_sequences):
    return [
        collect_sequences(leaf_values, leaf_type)
        if isinstance(leaf_type, tff.SequenceType)
        else _stack(leaf_values, leaf_type)
        for leaf_values, leaf_type in zip(by_leaf, leaf_types)
    ]

  if reads_tensors:
    packed = collect_all(cache.pack)
    if None not in packed:
      return _pack_all(packed)
  return collect_all(_stack_datasets)
