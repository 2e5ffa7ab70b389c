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
"""Clients' datasets as arrays, read once.

Users of TFF bring a `tf.data.Dataset` for every client. Iterating it anew in
each round costs more than the training of a small client, so it is read into
arrays, which are kept as long as the dataset object lives.
"""

from collections.abc import Iterable
import re
import threading
from typing import Any, NamedTuple, Optional
import weakref

import attrs
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.data import client_data
from tff_adaptive.data import cohort as cohort_lib
from tff_adaptive.runtime import elements as elements_lib

# Sources up to this size are kept as tensors, whole; of larger ones the rows of
# a cohort are, for its round.
_MAX_RESIDENT_BYTES = 4 * 1024**3
# What an array takes in memory besides its numbers, about.
_ARRAY_BYTES = 128
# Datasets that other datasets begin with, and that hold what they give. Files
# may have changed when they are read again.
_SOURCES = ('Range', 'SparseTensorSlice', 'Tensor', 'TensorSlice')
# In the names of those that give other elements when read again.
_CHANGING_KINDS = ('Random', 'Shuffle')
# Ops that read files, though TensorFlow says that they have no state.
_READING_OPS = ('MatchingFiles', 'ReadFile')


class PackedElements(NamedTuple):
  """The sequences of several clients, see `sequences`.

  Attributes:
    are_batches: Whether elements are batches of rows; if not, they have one
      shape and each is a row by itself.
    rows: An array or tensor of rows for each component of an element, in the
      order of `tf.nest`.
    order: The row numbers of all elements, int64, [num_picks].
    offsets: Where in `order` each element starts, int64, [num_elements + 1].
    starts: The number of each client's first element, int64, [num_clients + 1].
  """

  are_batches: bool
  rows: tuple[Any, ...]
  order: Any
  offsets: np.ndarray
  starts: np.ndarray


@attrs.frozen(eq=False)
class _Materialized:
  """One client's sequence: rows by component, and each element's number."""

  rows: tuple[np.ndarray, ...]
  lengths: np.ndarray


def _reads_alike(dataset: tf.data.Dataset) -> bool:
  """Whether a dataset gives the same elements whenever it is read.

  One that shuffles, or that calls a function which draws random numbers or
  reads what may change, does not, nor does one of files, or one that cannot be
  looked into.
  """
  name = type(dataset).__name__
  if any(kind in name for kind in _CHANGING_KINDS):
    return False
  # Adapters of TensorFlow 1 tell the inputs of what they wrap, not it.
  wrapped = getattr(dataset, '_dataset', None)
  if wrapped is not None:
    return _reads_alike(wrapped)
  try:
    functions = dataset._functions()  # pylint: disable=protected-access
    inputs = dataset._inputs()  # pylint: disable=protected-access
  except (AttributeError, NotImplementedError):
    return False
  if not inputs:
    return re.sub('^_|Dataset(V[12])?$', '', name) in _SOURCES
  return all(_computes_alike(f.function) for f in functions) and all(
      map(_reads_alike, inputs)
  )


def _computes_alike(function: Any) -> bool:
  """Whether a function gives the same whenever it is called with the same."""
  # A dataset from elsewhere, which cannot be looked into.
  if any(tensor.dtype == tf.variant for tensor in function.captured_inputs):
    return False
  return not any(
      operation.op_def is not None
      and (operation.op_def.is_stateful or operation.type in _READING_OPS)
      for operation in function.graph.get_operations()
      if operation.type != 'Placeholder'
  )


def _materialize(
    elements: Iterable[list[Any]], leaf_type: tff.SequenceType
) -> Optional[_Materialized]:
  """Joins the rows of all elements.

  Args:
    elements: The components of each element.
    leaf_type: The type of the sequence.

  Returns:
    The rows, or None if they have no shape in common or are too many to keep.
  """
  specs = elements_lib.component_specs(leaf_type)
  are_batches = not elements_lib.are_alike(specs)
  columns: list[list[np.ndarray]] = [[] for _ in specs]
  lengths, num_bytes = [], 0
  for components in elements:
    arrays = elements_lib.to_arrays(components, specs, leaf_type)
    elements_lib.check_shapes(arrays, specs, leaf_type)
    if not are_batches:
      arrays = [array[np.newaxis] for array in arrays]
    sizes = {len(array) if array.ndim else None for array in arrays}
    if len(sizes) != 1 or None in sizes:
      return None
    num_bytes += sum(array.nbytes + _ARRAY_BYTES for array in arrays)
    if num_bytes > _MAX_RESIDENT_BYTES:
      return None
    lengths.append(sizes.pop())
    for column, array in zip(columns, arrays):
      column.append(array)
  if not lengths:
    columns = [[_no_rows(spec, are_batches)] for spec in specs]
  rows = _concatenate_all(columns)
  return (
      None
      if rows is None
      else _Materialized(rows, np.asarray(lengths, np.int64))
  )


def _no_rows(spec: tf.TensorSpec, are_batches: bool) -> np.ndarray:
  empty = elements_lib.empty_array(spec)
  return empty if are_batches else empty[np.newaxis][:0]


def _concatenate_all(
    columns: Iterable[list[np.ndarray]],
) -> Optional[tuple[np.ndarray, ...]]:
  """Joins rows column by column; None if their shapes differ."""
  joined = []
  for column in columns:
    # What is empty says nothing about the shape of rows.
    column = [array for array in column if len(array)] or column[:1]
    if len({array.shape[1:] for array in column}) != 1:
      return None
    joined.append(column[0] if len(column) == 1 else np.concatenate(column))
  return tuple(joined)


def _forget(cache: Any, key: int) -> None:
  """Drops what was read of a dataset that is gone."""
  if cache() is not None:
    cache()._datasets.pop(key, None)  # pylint: disable=protected-access


class DatasetCache:
  """What was read of clients' data before.

  Everything is kept as long as the dataset, or the source of a cohort, lives.
  """

  def __init__(self) -> None:
    self._datasets: dict[
        int, dict[tff.SequenceType, Optional[_Materialized]]
    ] = {}
    self._sources: weakref.WeakKeyDictionary[
        client_data.ClientArrays,
        dict[tff.SequenceType, Optional[tuple[tf.Tensor, ...]]],
    ] = weakref.WeakKeyDictionary()
    self._lock = threading.RLock()

  def _read(
      self, value: Any, leaf_type: tff.SequenceType
  ) -> Optional[_Materialized]:
    if not isinstance(value, tf.data.Dataset):
      return _materialize(elements_lib.iterate(value, leaf_type), leaf_type)
    with self._lock:
      key = id(value)
      if leaf_type in self._datasets.get(key, {}):
        return self._datasets[key][leaf_type]
      elements_lib.check_dataset(value, leaf_type)
      if value.cardinality() == tf.data.INFINITE_CARDINALITY:
        return None
      read = _materialize(
          map(tf.nest.flatten, value.as_numpy_iterator()), leaf_type
      )
      if _reads_alike(value):
        if key not in self._datasets:
          self._datasets[key] = {}
          # The finalizer must not keep what a cache that is gone has read.
          weakref.finalize(value, _forget, weakref.ref(self), key)
        self._datasets[key][leaf_type] = read
      return read

  def pack(
      self, sequences: list[Any], leaf_type: tff.SequenceType
  ) -> Optional[PackedElements]:
    """The elements of several clients together.

    Args:
      sequences: A `tf.data.Dataset`, or an iterable of elements, a client.
      leaf_type: The type of one client's sequence.

    Returns:
      The elements, or None if they are neither batches of rows of one shape
      nor of one shape themselves, or too many to keep.

    Raises:
      TypeError: If the elements are not those of the type.
    """
    specs = elements_lib.component_specs(leaf_type)
    are_batches = not elements_lib.are_alike(specs)
    if not specs or (are_batches and not elements_lib.are_batches(specs)):
      return None
    read = []
    columns = [[_no_rows(spec, are_batches)] for spec in specs]
    for sequence in sequences:
      client = self._read(sequence, leaf_type)
      if client is None:
        return None
      read.append(client)
      for column, rows_of_client in zip(columns, client.rows):
        column.append(rows_of_client)
    rows = _concatenate_all(columns)
    if rows is None:
      return None
    lengths = [client.lengths for client in read]
    offsets = _offsets(np.concatenate([np.zeros(0, np.int64), *lengths]))
    return PackedElements(
        are_batches,
        rows,
        np.arange(offsets[-1]),
        offsets,
        _offsets(np.asarray([len(part) for part in lengths], np.int64)),
    )

  def pack_cohort(
      self, cohort: cohort_lib.Cohort, leaf_type: tff.SequenceType
  ) -> Optional[PackedElements]:
    """The elements of a cohort, whose rows stay where they are.

    Args:
      cohort: The clients of a round.
      leaf_type: The type of one client's sequence.

    Returns:
      The elements, or None if they are not batches of any size by their type.

    Raises:
      TypeError: If the elements are not those of the type.
    """
    if not elements_lib.are_batches(elements_lib.component_specs(leaf_type)):
      return None
    packed = cohort.pack()
    rows = None
    if packed.rows is getattr(cohort.source, 'values', None):
      rows = self._resident_rows(cohort.source, leaf_type)
    if rows is None:
      elements_lib.check_rows(packed.rows, leaf_type)
      rows = tuple(tf.nest.flatten(dict(packed.rows)))
    return PackedElements(
        True, rows, packed.order, packed.offsets, packed.starts
    )

  def _resident_rows(
      self, source: client_data.ClientArrays, leaf_type: tff.SequenceType
  ) -> Optional[tuple[tf.Tensor, ...]]:
    """The rows of all clients of a source as tensors, if they are few."""
    if not isinstance(source, client_data.PackedClientArrays):
      return None
    with self._lock:
      by_type = self._sources.setdefault(source, {})
      if leaf_type not in by_type:
        elements_lib.check_rows(source.values, leaf_type)
        arrays = tf.nest.flatten(dict(source.values))
        # Of larger ones, only what the cohort takes has to be copied.
        is_small = sum(array.nbytes for array in arrays) <= _MAX_RESIDENT_BYTES
        by_type[leaf_type] = (
            tuple(map(tf.convert_to_tensor, arrays)) if is_small else None
        )
      return by_type[leaf_type]


def _offsets(lengths: np.ndarray) -> np.ndarray:
  return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
