# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads the elements of datasets in several threads."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf


def iterate(dataset: tf.data.Dataset) -> Iterator[Any]:
  """Yields the elements of a dataset as NumPy arrays, which are read-only.

  Unlike `dataset.as_numpy_iterator()` it does not meet the end by an exception
  of TensorFlow, which makes it in Python while it holds a lock: if Python turns
  to another thread in that moment, and a dataset ends there, too, that thread
  waits for the lock and the first one for the interpreter, forever.

  Args:
    dataset: The dataset, whose elements consist of dense tensors.

  Yields:
    The elements.
  """
  iterator = iter(dataset)
  # One op an element where their number is known, in place of three.
  for _ in range(max(0, int(dataset.cardinality()))):
    yield tf.nest.map_structure(np.asarray, iterator.get_next())
  while True:
    element = iterator.get_next_as_optional()
    if not element.has_value():
      return
    yield tf.nest.map_structure(np.asarray, element.get_value())
