# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The client data that the caches of a process hold, each once.

A context has a cache with a limit of its own, and so has the context of each
evaluation. Here the caches find what others hold; nothing is kept for them.
"""

from collections.abc import Mapping
import threading
from typing import Any, Optional
import weakref

import attrs
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.runtime.datasets import dataset_graphs


@attrs.frozen(eq=False)
class Held:
  """The data read for an owner, or the reason why they cannot be kept.

  Attributes:
    value: The data, or the reason.
    num_bytes: The size of the data.
    sample: A sample of the arrays of which the data are a copy; None if their
      owner cannot change.
    stamps: Those of the files that were read, by path.
  """

  value: Any
  num_bytes: int
  sample: Optional[tuple[bytes, ...]] = None
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
_datasets: weakref.WeakKeyDictionary[
    Any, weakref.WeakValueDictionary[tff.Type, Held]
] = weakref.WeakKeyDictionary()
# The tensors that have the values of arrays, by the place of these in memory.
_tensors: dict[Any, tuple[weakref.ref, weakref.ref]] = {}
_lock = threading.Lock()


def find(owner: Any, leaf_type: tff.SequenceType) -> Optional[Held]:
  """Returns what a cache of this process holds of a dataset's owner."""
  with _lock:
    return _datasets.get(owner, {}).get(leaf_type)


def share(owner: Any, leaf_type: tff.SequenceType, held: Held) -> None:
  """Lets other caches find what a cache holds of a dataset's owner."""
  with _lock:
    by_type = _datasets.setdefault(owner, weakref.WeakValueDictionary())
    by_type[leaf_type] = held


def to_tensor(array: np.ndarray) -> tf.Tensor:
  """Returns an array as a tensor; the one of another cache if it is equal.

  Comparing takes as long as copying. Without it, a change of the array in place
  would go unnoticed.
  """
  # Each source has a view of its own.
  key = (array.ctypes.data, array.shape, array.strides, array.dtype.str)
  with _lock:
    found = _tensors.get(key)
    tensor = None if found is None else found[1]()
  if tensor is not None and _has_values(tensor, array):
    return tensor
  tensor = tf.convert_to_tensor(array)
  owner = array
  while isinstance(owner.base, np.ndarray):
    owner = owner.base
  with _lock:
    # The first reference forgets the tensor with the array.
    _tensors[key] = (
        weakref.ref(owner, lambda _: _tensors.pop(key, None)),
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


class Content:
  """What datasets with the same elements have in common."""


_by_dataset: weakref.WeakKeyDictionary[tf.data.Dataset, Content] = (
    weakref.WeakKeyDictionary()
)
# By the digest of a graph, which has no names of features, and the spec.
_by_digest: weakref.WeakValueDictionary[tuple[bytes, str], Content] = (
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
    found = _by_digest.setdefault(key, Content())
    _by_dataset[dataset] = found
  return found
