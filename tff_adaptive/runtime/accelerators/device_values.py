# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Values of TFF's types on a device of JAX, and back as NumPy arrays.

TFF's values are NumPy arrays for its users. Those that a round returned are on
the device already, so that the next round does not move them there again. It
may take the device's copy for its own result: the NumPy array stays.
"""

from collections.abc import Callable
from typing import Any
import weakref

import jax
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.runtime import values
from tff_adaptive.runtime.datasets import elements

# The arrays of devices, by the id of the NumPy array with the same values.
_on_devices: dict[int, tuple[weakref.ref[np.ndarray], jax.Array]] = {}


def to_numpy(array: jax.Array) -> Any:
  """Returns an array of a device as a scalar or a read-only NumPy array."""
  if not array.ndim:
    return np.asarray(array)[()]
  # Its own object, on whose life the entry depends.
  found = np.asarray(array).view()
  key = id(found)
  reference = weakref.ref(found, lambda _: _on_devices.pop(key, None))
  _on_devices[key] = reference, array
  return found


def _find(
    value: Any, spec: tf.TensorSpec, placement: jax.sharding.Sharding
) -> Any:
  """Returns the placed array that has a value; None if there is none."""
  if id(value) not in _on_devices:
    return None
  reference, array = _on_devices[id(value)]
  if reference() is not value or array.sharding != placement:
    return None
  if array.is_deleted():
    return None  # A round took its memory, but the NumPy array has the values.
  if spec.dtype != value.dtype or not spec.shape.is_compatible_with(
      value.shape
  ):
    return None  # It is converted, or refused.
  return array


def build_conversion(
    type_spec: tff.Type, placement: jax.sharding.Sharding
) -> Callable[[Any], list[Any]]:
  """Builds a function that puts values of a type on devices.

  It maps a value, without clients and sequences, to its leaves. It raises a
  `TypeError` or TensorFlow's `ValueError` if the value does not match.

  Args:
    type_spec: The type.
    placement: Where the values are put.
  """
  flatten = values.build_flatten(type_spec)
  convert_leaves = list(map(elements.build_leaf, values.leaf_types(type_spec)))
  specs = values.tensor_specs(type_spec)

  def convert(value):
    leaves = []
    taken = set()
    for convert_leaf, spec, leaf in zip(convert_leaves, specs, flatten(value)):
      found = _find(leaf, spec, placement)
      # A program can take the memory of an array for one leaf only.
      if found is None or id(found) in taken:
        found = convert_leaf(leaf).numpy()
        if found.ndim:
          # As a program is compiled for where its inputs are, the first state
          # has to be where later ones are; scalars never are on a device.
          found = jax.device_put(found, placement)
      taken.add(id(found))
      leaves.append(found)
    return leaves

  return convert
