# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads clients' datasets into arrays, once.

Users of TFF provide a `tf.data.Dataset` for each client. Iterating it again in
each round costs more than training a small client, so it is read into arrays,
which are kept while the dataset object is alive and there is room. Caches of a
process hold the same arrays of the same data.
"""

from collections.abc import Iterable, Sequence
import functools
import re
import threading
from typing import Any, Optional
import weakref

from absl import logging
import attrs
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import _function_library
from tff_adaptive.data import client_data
from tff_adaptive.data import feature_arrays
from tff_adaptive.runtime import elements as elements_lib
from tff_adaptive.runtime import held_rows

DEFAULT_MAX_BYTES = 4 * 1024**3
# The largest client; a dataset with more elements may be infinite.
_MAX_CLIENT_BYTES = 4 * 1024**3
# The overhead of an array object.
_ARRAY_BYTES = 128
# The values of an array of which a change is noticed.
_SAMPLE_SIZE = 256
_GOLDEN_RATIO = (1 + 5**0.5) / 2
# Datasets without inputs that hold their elements themselves. Files are not
# among them: they may change between two reads.
_SOURCES = ('List', 'Range', 'SparseTensorSlice', 'Tensor', 'TensorSlice')
# Parts of class names of datasets whose elements differ between reads.
_CHANGING_KINDS = ('Random', 'Shuffle')
# Ops that read files, although TensorFlow declares them stateless.
_READING_OPS = ('MatchingFiles', 'ReadFile')

_SLOW_READING = (
    'A dataset of a client shuffles, draws random numbers, reads files or '
    'calls Python, so it is read again in every round, which can take longer '
    'than training. A `data.Cohort` shuffles its clients without that cost.'
)


class NotRowsError(Exception):
  """A sequence cannot be kept as rows; the text says why."""


@attrs.frozen(eq=False)
class ClientRows:
  """One client's sequence.

  Attributes:
    rows: An array of rows for each component of an element, in the order of
      `tf.nest`.
    lengths: The number of rows of each element, int64 of shape [num_elements].
  """

  rows: tuple[np.ndarray, ...]
  lengths: np.ndarray


def _reads_alike(dataset: tf.data.Dataset) -> bool:
  """Returns whether a dataset yields the same elements at every read.

  False for datasets that shuffle, call functions that draw random numbers or
  read mutable state, read files, or cannot be inspected.
  """
  name = type(dataset).__name__
  if any(kind in name for kind in _CHANGING_KINDS):
    return False
  # TensorFlow 1 adapters return the inputs of the wrapped dataset, not itself.
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
  """Returns whether a function is deterministic in its arguments."""
  # A captured dataset cannot be inspected.
  if any(tensor.dtype == tf.variant for tensor in function.captured_inputs):
    return False
  # Datasets in the function, as those of windows, call functions themselves.
  graph_def = function.graph.as_graph_def()
  functions = {f.signature.name for f in graph_def.library.function}
  for node in _function_library.all_nodes(graph_def):
    called = {f.name for f in _function_library.functions_in(node)}
    if not called <= functions or node.op in _READING_OPS:
      return False
    if node.op not in functions and _function_library.is_stateful(node.op):
      return False
  return True


def _read_rows(
    elements: Iterable[list[Any]], leaf_type: tff.SequenceType
) -> ClientRows:
  """Joins the rows of all elements, given by their components.

  Raises:
    NotRowsError: If they have no common shape or are too large to keep.
  """
  specs = elements_lib.component_specs(leaf_type)
  are_batches = not elements_lib.are_alike(specs)
  columns: list[list[np.ndarray]] = [[] for _ in specs]
  lengths, num_bytes = [], 0
  for components in elements:
    arrays = elements_lib.to_arrays(components, specs, leaf_type)
    if not are_batches:
      arrays = [array[np.newaxis] for array in arrays]
    sizes = {len(array) if array.ndim else None for array in arrays}
    if len(sizes) != 1 or None in sizes:
      raise NotRowsError('the components of an element differ in length')
    num_bytes += sum(array.nbytes + _ARRAY_BYTES for array in arrays)
    if num_bytes > _MAX_CLIENT_BYTES:
      raise NotRowsError(f'a client holds more than {_MAX_CLIENT_BYTES} bytes')
    lengths.append(sizes.pop())
    for column, array in zip(columns, arrays):
      column.append(array)
  if not lengths:
    columns = [[rows] for rows in no_rows(specs)]
  return ClientRows(join_rows(columns), np.asarray(lengths, np.int64))


def no_rows(specs: list[tf.TensorSpec]) -> list[np.ndarray]:
  """Returns zero rows of each component."""
  are_batches = not elements_lib.are_alike(specs)
  empty = map(elements_lib.empty_array, specs)
  return [rows if are_batches else rows[np.newaxis][:0] for rows in empty]


def join_rows(columns: Iterable[list[np.ndarray]]) -> tuple[np.ndarray, ...]:
  """Concatenates lists of arrays of rows, component by component.

  Raises:
    NotRowsError: If the rows of a component differ in shape.
  """
  joined = []
  for column in columns:
    # Empty arrays do not determine the shape of rows.
    column = [array for array in column if len(array)] or column[:1]
    shapes = sorted({array.shape[1:] for array in column})
    if len(shapes) != 1:
      raise NotRowsError(f'rows differ in shape: {shapes[0]} and {shapes[1]}')
    joined.append(column[0] if len(column) == 1 else np.concatenate(column))
  return tuple(joined)


def _sample(arrays: Sequence[np.ndarray]) -> tuple[bytes, ...]:
  """Returns some bytes of arrays, which tell that they were changed."""
  return tuple(
      array.flat[_sampled_positions(array.size)].tobytes() for array in arrays
  )


@functools.lru_cache(maxsize=64)
def _sampled_positions(size: int) -> np.ndarray:
  """Returns positions in [0, size) that no regular pattern avoids."""
  if size <= _SAMPLE_SIZE:
    return np.arange(size)
  shares = np.arange(_SAMPLE_SIZE) * _GOLDEN_RATIO % 1
  return (shares * size).astype(np.int64)


class DatasetCache:
  """A cache of client data that were read.

  Data are kept while the dataset or the cohort's source is alive. If there is
  no room for new data, the least recently used data are dropped. What another
  cache of this process holds is not read or copied again.
  """

  def __init__(self, max_bytes: int = DEFAULT_MAX_BYTES):
    """Initializes an empty cache.

    Args:
      max_bytes: The maximum size. Defaults to 4 GiB.
    """
    self._max_bytes = max_bytes
    # By owner, in the order of last use.
    self._held: weakref.WeakKeyDictionary[
        Any, dict[tff.Type, held_rows.Held]
    ] = weakref.WeakKeyDictionary()
    # An upper bound of the size: dead owners are not subtracted.
    self._bound = 0
    self._lock = threading.RLock()

  @property
  def num_bytes(self) -> int:
    """The current size of the cached data."""
    with self._lock:
      return sum(
          held.num_bytes
          for by_type in self._held.values()
          for held in by_type.values()
      )

  def read(self, sequence: Any, leaf_type: tff.SequenceType) -> ClientRows:
    """Returns the rows of one client's dataset or iterable of elements.

    Raises:
      NotRowsError: If they have no common shape or are too large to keep.
      TypeError: If the elements do not match the type.
    """
    if not isinstance(sequence, tf.data.Dataset):
      elements = elements_lib.iterate(sequence, leaf_type)
      return _read_rows(elements, leaf_type)
    with self._lock:
      found = self._find(sequence, leaf_type)
      if found is None:
        found = held_rows.of_dataset(sequence, leaf_type)
        is_new = found is None
        if found is None:
          found = self._read_dataset(sequence, leaf_type)
        if not is_new or _reads_alike(sequence):
          self._hold(sequence, leaf_type, found)
          held_rows.share(sequence, leaf_type, found)
        else:
          logging.log_first_n(logging.WARNING, _SLOW_READING, 1)
    if isinstance(found.value, str):
      raise NotRowsError(found.value)
    return found.value

  def _read_dataset(
      self, dataset: tf.data.Dataset, leaf_type: tff.SequenceType
  ) -> held_rows.Held:
    elements_lib.check_dataset(dataset, leaf_type)
    if dataset.cardinality() == tf.data.INFINITE_CARDINALITY:
      return held_rows.Held('a dataset is infinite', 0)
    elements = map(tf.nest.flatten, dataset.as_numpy_iterator())
    try:
      rows = _read_rows(elements, leaf_type)
    except NotRowsError as error:
      return held_rows.Held(str(error), 0)
    sizes = (feature_arrays.num_bytes({'': array}) for array in rows.rows)
    return held_rows.Held(rows, sum(sizes))

  def resident_rows(
      self, source: client_data.PackedClientArrays, leaf_type: tff.SequenceType
  ) -> Optional[tuple[tf.Tensor, ...]]:
    """Returns the rows of all clients of a source as tensors, if they fit.

    They are copied anew if the source's arrays were changed in place, as far as
    a sample of them tells. Returns None if only the cohort's rows should be
    copied.

    Raises:
      TypeError: If the elements do not match the type.
    """
    arrays = tf.nest.flatten(dict(source.values))
    with self._lock:
      found = self._find(source, leaf_type)
      if found is not None and found.sample is not None:
        found = found if found.sample == _sample(arrays) else None
      if found is None:
        elements_lib.check_rows(source.values, leaf_type)
        num_bytes = feature_arrays.num_bytes(source.values)
        found = held_rows.Held(None, 0)
        if num_bytes <= self._max_bytes:
          tensors = tuple(map(held_rows.to_tensor, arrays))
          found = held_rows.Held(tensors, num_bytes, _sample(arrays))
        self._hold(source, leaf_type, found)
      return found.value

  def _find(
      self, owner: Any, leaf_type: tff.SequenceType
  ) -> Optional[held_rows.Held]:
    """Returns the data that were read for an owner."""
    by_type = self._held.get(owner, {})
    if leaf_type not in by_type:
      return None
    self._held[owner] = self._held.pop(owner)
    return by_type[leaf_type]

  def _hold(
      self, owner: Any, leaf_type: tff.SequenceType, held: held_rows.Held
  ) -> None:
    """Keeps the data of an owner; drops others if there is no room."""
    if held.num_bytes > self._max_bytes:
      return
    self._bound += held.num_bytes
    if self._bound > self._max_bytes:
      self._bound = self.num_bytes + held.num_bytes
      for oldest in list(self._held):
        if self._bound <= self._max_bytes:
          break
        by_type = self._held.pop(oldest)
        self._bound -= sum(old.num_bytes for old in by_type.values())
    self._held.setdefault(owner, {})[leaf_type] = held
