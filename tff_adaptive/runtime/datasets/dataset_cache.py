# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads clients' datasets into arrays, once.

Users of TFF provide a `tf.data.Dataset` for each client. Iterating it again in
each round costs more than training a small client, so it is read into arrays,
which are kept while there is room, also for datasets that are made anew of the
same values.

A context has a cache with a limit of its own, and so has the context of each
evaluation. The caches of a process find what others hold, so that they hold the
same arrays of the same data; nothing is kept for that.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
import concurrent.futures
import functools
import threading
from typing import Any, Optional
import weakref

from absl import logging
import attrs
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.data import client_data
from tff_adaptive.data import feature_arrays
from tff_adaptive.runtime import plans
from tff_adaptive.runtime import round_keys
from tff_adaptive.runtime.datasets import dataset_graphs
from tff_adaptive.runtime.datasets import dataset_reads
from tff_adaptive.runtime.datasets import dataset_rows
from tff_adaptive.runtime.datasets import elements as elements_lib

DEFAULT_MAX_BYTES = 4 * 1024**3
# The values of an array of which a change is noticed.
_SAMPLE_SIZE = 256
_GOLDEN_RATIO = (1 + 5**0.5) / 2
_SLOW_READING = (
    'A dataset of a client calls Python, reads variables, or draws random '
    'numbers elsewhere than in a `map` whose elements have one shape, so it is '
    'read again in every round, which can take longer than training.'
)


@attrs.frozen(eq=False)
class _Held:
  """The data read for an owner, or the reason why they cannot be kept.

  Attributes:
    value: The data, or the reason.
    num_bytes: The size of the data.
    sample: The `sample` of the arrays of which the data are a copy; None if
      their owner cannot change.
    stamps: Those of the files that were read, by path.
  """

  value: Any
  num_bytes: int
  sample: Optional[tuple[Any, ...]] = None
  stamps: Mapping[str, Any] = attrs.field(factory=dict)

  def is_current(self) -> bool:
    """Returns whether the files are those that were read."""
    try:
      return all(
          dataset_graphs.stamp(path) == stamp
          for path, stamp in self.stamps.items()
      )
    except OSError:
      return False


# Compared at once, so that the comparison needs little memory.
_COMPARED_BYTES = 2**24
# The data that were read of datasets, by owner, while a cache holds them.
_held_datasets: weakref.WeakKeyDictionary[
    Any, weakref.WeakValueDictionary[tff.Type, _Held]
] = weakref.WeakKeyDictionary()
# The tensors that have the values of arrays, by the place of these in memory.
_held_tensors: dict[Any, tuple[weakref.ref, weakref.ref]] = {}
_held_lock = threading.Lock()


def find_held(owner: Any, leaf_type: tff.SequenceType) -> Optional[_Held]:
  """Returns what a cache of this process holds of a dataset's owner."""
  with _held_lock:
    return _held_datasets.get(owner, {}).get(leaf_type)


def _share(owner: Any, leaf_type: tff.SequenceType, held: _Held) -> None:
  """Lets other caches find what a cache holds of a dataset's owner."""
  with _held_lock:
    by_type = _held_datasets.setdefault(owner, weakref.WeakValueDictionary())
    by_type[leaf_type] = held


def _to_tensor(array: np.ndarray) -> tf.Tensor:
  """Returns an array as a tensor; the one of another cache if it is equal.

  Comparing takes as long as copying. Without it, a change of the array in place
  would go unnoticed.
  """
  # Each source has a view of its own.
  key = (array.ctypes.data, array.shape, array.strides, array.dtype.str)
  with _held_lock:
    found = _held_tensors.get(key)
    tensor = None if found is None else found[1]()
  if tensor is not None and _has_values(tensor, array):
    return tensor
  tensor = tf.convert_to_tensor(array)
  owner = array
  while isinstance(owner.base, np.ndarray):
    owner = owner.base
  with _held_lock:
    # The first reference forgets the tensor with the array.
    _held_tensors[key] = (
        weakref.ref(owner, lambda _: _held_tensors.pop(key, None)),
        weakref.ref(tensor),
    )
  return tensor


def _has_values(tensor: tf.Tensor, array: np.ndarray) -> bool:
  """Returns whether a tensor has the values of an array."""
  if array.dtype.kind not in 'biufc':  # Texts are objects there, and small.
    return False
  # Unlike `tensor.numpy()`, no copy.
  values, may_be_nan = np.asarray(memoryview(tensor)), array.dtype.kind in 'fc'
  if (values.dtype, values.shape) != (array.dtype, array.shape):
    return False
  step = max(1, _COMPARED_BYTES // max(1, array[:1].nbytes))
  return all(
      np.array_equal(
          values[start : start + step],
          array[start : start + step],
          equal_nan=may_be_nan,
      )
      for start in range(0, len(array), step)
  )


class _Content:
  """What datasets with the same elements have in common."""


_by_dataset: weakref.WeakKeyDictionary[tf.data.Dataset, _Content] = (
    weakref.WeakKeyDictionary()
)
# By the digest of a graph, which has no names of features, and the spec.
_by_digest: weakref.WeakValueDictionary[tuple[bytes, str], _Content] = (
    weakref.WeakValueDictionary()
)


def content_of(dataset: tf.data.Dataset) -> Any:
  """Returns the content of a dataset; itself if its graph does not tell it."""
  found = _by_dataset.get(dataset)
  if found is None:
    graph = dataset_graphs.DatasetGraph.of(dataset)
    if graph is None or graph.reads_outside:
      return dataset
    key = (graph.digest(), repr(dataset.element_spec))
    found = _by_digest.setdefault(key, _Content())
    _by_dataset[dataset] = found
  return found


def sample(arrays: Iterable[np.ndarray]) -> tuple[Any, ...]:
  """Returns some values of arrays, which tell that they were changed."""
  chosen = [array.flat[_sampled_positions(array.size)] for array in arrays]
  # The bytes of objects are addresses, which others may have later.
  return tuple(
      tuple(values) if values.dtype == object else values.tobytes()
      for values in chosen
  )


@functools.lru_cache(maxsize=64)
def _sampled_positions(size: int) -> np.ndarray:
  """Returns positions in [0, size) that no regular pattern avoids."""
  if size <= _SAMPLE_SIZE:
    return np.arange(size)
  shares = np.arange(_SAMPLE_SIZE) * _GOLDEN_RATIO % 1
  return (shares * size).astype(np.int64)


def _forget_joined(cache: weakref.ref, array: weakref.ref) -> None:
  """Drops the joined rows of which one array is no longer used."""
  found = cache()
  if found is not None:
    found._last_joined = {  # pylint: disable=protected-access
        place: joined
        for place, joined in found._last_joined.items()  # pylint: disable=protected-access
        if array not in joined[0]
    }


class DatasetCache:
  """A cache of client data that were read.

  Data of a cohort's source are kept while it is alive, those of datasets also
  afterwards. If there is no room for new data, the least recently used data are
  dropped. What another cache of this process holds is not read or copied again.
  """

  def __init__(self, max_bytes: int = DEFAULT_MAX_BYTES):
    """Initializes an empty cache.

    Args:
      max_bytes: The maximum size. Defaults to 4 GiB.
    """
    self._max_bytes = max_bytes
    # By owner, in the order of last use: a cohort's source, or the content of a
    # dataset.
    self._held: weakref.WeakKeyDictionary[Any, dict[tff.Type, _Held]] = (
        weakref.WeakKeyDictionary()
    )
    self._contents: set[_Content] = set()
    # An upper bound of the size: dead owners are not subtracted.
    self._bound = 0
    # By place, the arrays that were joined last, and the result.
    self._last_joined: dict[Any, tuple[list[Any], tuple[Any, ...]]] = {}
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

  def read(
      self,
      sequences: Sequence[Any],
      leaf_type: tff.SequenceType,
      draw_of: Callable[[int], round_keys.Draw],
      num_reads: int = 1,
      may_be_fresh: bool = True,
  ) -> list[list[dataset_rows.ClientRows]]:
    """Returns the rows of clients' datasets or iterables of elements.

    Args:
      sequences: A dataset, or an iterable of elements, for each client.
      leaf_type: The type of the sequences.
      draw_of: Returns the random streams of a client in this round.
      num_reads: How often the round reads them, by default once.
      may_be_fresh: Whether datasets may be read for this round alone. Defaults
        to True.

    Returns:
      The rows in each read of each client.

    Raises:
      NotRowsError: If they have no common shape, are too large to keep or would
        be read for this round alone.
      TypeError: If the elements do not match the type.
    """

    are_datasets = [isinstance(one, tf.data.Dataset) for one in sequences]
    owners = [
        content_of(one) if is_dataset else None
        for one, is_dataset in zip(sequences, are_datasets)
    ]
    with self._lock:
      kept = [
          None if owner is None else self._find_dataset(owner, leaf_type)
          for owner in owners
      ]

    def read(place):
      if not are_datasets[place]:
        elements = elements_lib.iterate(sequences[place], leaf_type)
        return [dataset_reads.of_elements(elements, leaf_type)] * num_reads
      found = kept[place] or self._read_dataset(
          sequences[place], owners[place], leaf_type
      )
      if isinstance(found.value, str):
        raise dataset_rows.NotRowsError(found.value)
      if isinstance(found.value, dataset_reads.FreshRows) and not may_be_fresh:
        raise dataset_rows.NotRowsError('a dataset differs in each read')
      return found.value.draw(draw_of(place), num_reads)

    # TensorFlow runs outside of Python, for several clients at once.
    num_running = sum(
        is_dataset
        and (held is None or getattr(held.value, 'calls_tensorflow', False))
        for is_dataset, held in zip(are_datasets, kept)
    )
    if num_running < 2:
      return list(map(read, range(len(sequences))))
    with concurrent.futures.ThreadPoolExecutor(plans.num_cores()) as pool:
      return list(pool.map(read, range(len(sequences))))

  def _find_dataset(
      self, owner: Any, leaf_type: tff.SequenceType
  ) -> Optional[_Held]:
    """Returns what a cache of this process holds, unless files changed."""
    found = self._find(owner, leaf_type)
    if found is None:
      found = find_held(owner, leaf_type)
      if found is not None:
        self._hold(owner, leaf_type, found)
    return found if found is not None and found.is_current() else None

  def _read_dataset(
      self, dataset: tf.data.Dataset, owner: Any, leaf_type: tff.SequenceType
  ) -> _Held:
    """Reads a dataset, and keeps what is the same in all rounds."""
    try:
      source, stamps = dataset_reads.of_dataset(dataset, leaf_type)
    except dataset_rows.NotRowsError as error:
      found = _Held(str(error), 0)
    else:
      found = _Held(source, source.num_bytes, stamps=stamps)
      if isinstance(source, dataset_reads.FreshRows):
        logging.log_first_n(logging.WARNING, _SLOW_READING, 1)
        # What is kept must not hold its owner.
        if source.dataset is not None:
          return found
    with self._lock:
      self._hold(owner, leaf_type, found)
      _share(owner, leaf_type, found)
    return found

  def join(
      self,
      specs: list[tf.TensorSpec],
      clients: Sequence[dataset_rows.ClientRows],
      place: Any = None,
  ) -> tuple[Any, ...]:
    """Joins the rows of clients; those joined last are kept, if they fit.

    Args:
      specs: The specs of an element's components.
      clients: The rows of each client.
      place: What the rows are for: those of other places are kept besides.

    Raises:
      NotRowsError: If they differ in shape.
    """
    arrays = [array for client in clients for array in client.rows]
    with self._lock:
      last, joined = self._last_joined.get(place, ([], ()))
      if arrays and len(last) == len(arrays):
        if all(one() is array for one, array in zip(last, arrays)):
          return joined
    rows = dataset_rows.join_rows(
        [empty, *(client.rows[index] for client in clients)]
        for index, empty in enumerate(dataset_rows.no_rows(specs))
    )
    joined = tuple(map(tf.convert_to_tensor, rows))
    if sum(array.nbytes for array in rows) <= self._max_bytes:
      forget = functools.partial(_forget_joined, weakref.ref(self))
      with self._lock:
        self._last_joined[place] = (
            [weakref.ref(a, forget) for a in arrays],
            joined,
        )
    return joined

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
    arrays = elements_lib.components_of(source.values, leaf_type)
    with self._lock:
      found = self._find(source, leaf_type)
      if found is not None and found.sample is not None:
        found = found if found.sample == sample(arrays) else None
      if found is None:
        elements_lib.check_rows(source.values, leaf_type)
        num_bytes = feature_arrays.num_bytes(source.values)
        found = _Held(None, 0)
        if num_bytes <= self._max_bytes:
          tensors = tuple(map(_to_tensor, arrays))
          found = _Held(tensors, num_bytes, sample(arrays))
        self._hold(source, leaf_type, found)
      return found.value

  def _find(self, owner: Any, leaf_type: tff.SequenceType) -> Optional[_Held]:
    """Returns the data that were read for an owner."""
    by_type = self._held.get(owner, {})
    if leaf_type not in by_type:
      return None
    self._held[owner] = self._held.pop(owner)
    return by_type[leaf_type]

  def _hold(self, owner: Any, leaf_type: tff.SequenceType, held: _Held) -> None:
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
        self._contents.discard(oldest)
        self._bound -= sum(old.num_bytes for old in by_type.values())
    self._held.setdefault(owner, {})[leaf_type] = held
    if isinstance(owner, _Content):
      self._contents.add(owner)
