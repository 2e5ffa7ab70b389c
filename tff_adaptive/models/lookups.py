# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Lookup tables as tensors.

A table is a resource of this process, which clients do not have. While a
function is traced, its tables are replaced by searches in sorted constants.
"""

from collections.abc import Iterator
import contextlib
import threading
from typing import Any, Optional

import numpy as np
import tensorflow as tf

# The number of fingerprints of words.
_NUM_FINGERPRINTS = 2**63 - 1

_LOOKUP = tf.lookup.StaticHashTable.lookup
_lock = threading.RLock()


@contextlib.contextmanager
def as_tensors() -> Iterator[None]:
  """Traces lookups in tables as searches, with the same results."""
  with _lock:
    before = tf.lookup.StaticHashTable.lookup
    tf.lookup.StaticHashTable.lookup = _traced_lookup
    try:
      yield
    finally:
      tf.lookup.StaticHashTable.lookup = before


def _traced_lookup(
    table: tf.lookup.StaticHashTable, keys: Any, name: Optional[str] = None
) -> Any:
  if tf.executing_eagerly() or not isinstance(keys, tf.Tensor):
    return _LOOKUP(table, keys, name)
  return _search(table, keys)


def _search(table: tf.lookup.StaticHashTable, keys: tf.Tensor) -> tf.Tensor:
  """Returns the values of keys, in the current graph."""
  with tf.init_scope():
    known, values = (tensor.numpy() for tensor in table.export())
    default = table.default_value.numpy()
    codes = _codes(tf.constant(known, table.key_dtype)).numpy()
  if not known.size:
    return tf.fill(tf.shape(keys), default)
  order = np.argsort(codes)
  known, values, codes = known[order], values[order], codes[order]
  if not np.diff(codes).all():
    raise ValueError(
        'Two words of a table have the same fingerprint: leave one of them out.'
    )
  flat = tf.reshape(keys, [-1])
  places = tf.searchsorted(tf.constant(codes), _codes(flat))
  places = tf.minimum(places, len(codes) - 1)
  # Other words may have the fingerprint of a known one.
  is_known = tf.equal(tf.gather(tf.constant(known), places), flat)
  found = tf.where(is_known, tf.gather(tf.constant(values), places), default)
  result = tf.reshape(found, tf.shape(keys))
  result.set_shape(keys.shape)
  return result


def _codes(keys: Any) -> tf.Tensor:
  """Returns numbers to sort by."""
  if keys.dtype == tf.string:
    return tf.strings.to_hash_bucket_fast(keys, _NUM_FINGERPRINTS)
  return tf.cast(keys, tf.int64)
