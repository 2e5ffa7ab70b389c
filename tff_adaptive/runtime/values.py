# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Converts values of TFF types to flat lists of leaves and back."""

import collections
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Optional
import weakref

import attrs
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.data import cohort

_KEEPING_HINT = (
    ' Clients of this process keep state: train it by '
    '`tff_adaptive.simulation.run_training` with `client_store`, and cohorts.'
)


def leaf_types(type_spec: Optional[tff.Type]) -> list[tff.Type]:
  """Returns the tensor and sequence types in a type, in order.

  None, for no value, has no leaves.

  Raises:
    TypeError: If the type contains anything else.
  """
  leaves = []
  for place in places(type_spec):
    if isinstance(place, tff.FederatedType):
      leaves += leaf_types(place.member)
    elif isinstance(place, (tff.TensorType, tff.SequenceType)):
      leaves.append(place)
    else:
      raise TypeError(
          f'Expected tensors, sequences and structs, found {place}.'
      )
  return leaves


def places(type_spec: Optional[tff.Type]) -> list[tff.Type]:
  """Returns the types in nested structs, in order; federated ones as a whole.

  None, for no value, has none.
  """
  if type_spec is None:
    return []
  if not isinstance(type_spec, tff.StructType):
    return [type_spec]
  fields = tff.structure.iter_elements(type_spec)
  return [place for _, field in fields for place in places(field)]


def leaf_names(type_spec: tff.Type) -> list[str]:
  """Returns the paths of the `leaf_types`, such as 'weights/0'."""

  def paths(spec):
    if isinstance(spec, tff.FederatedType):
      return paths(spec.member)
    if not isinstance(spec, tff.StructType):
      return [[]]
    return [
        [name or str(place), *path]
        for place, (name, field) in enumerate(tff.structure.iter_elements(spec))
        for path in paths(field)
    ]

  return ['/'.join(path) for path in paths(type_spec)]


def tensor_spec(type_spec: tff.TensorType) -> tf.TensorSpec:
  """Returns the `tf.TensorSpec` of a `tff.TensorType`."""
  return tff.types.type_to_tf_tensor_specs(type_spec)


def tensor_specs(*type_specs: Optional[tff.Type]) -> list[tf.TensorSpec]:
  """Returns the specs of the leaves of types without sequences, in order."""
  return [tensor_spec(leaf) for t in type_specs for leaf in leaf_types(t)]


def build_flatten(
    type_spec: Optional[tff.Type], *, into_members: bool = True
) -> Callable[[Any], list[Any]]:
  """Builds a function that flattens values of a type.

  Args:
    type_spec: A type without functions, or `None` for no value.
    into_members: Whether to flatten the members of federated types, too.
      Defaults to True.

  Returns:
    A function from a value of the type, without clients and in any containers
    that TFF accepts, to a list of the values of its tensors and sequences, in
    the order of `leaf_types`. It raises a `TypeError` if a container does not
    match. Named fields are matched by name in any order; TFF matches them by
    position alone.
  """
  if type_spec is None:
    return lambda value: []
  if isinstance(type_spec, tff.FederatedType) and into_members:
    return build_flatten(type_spec.member)
  if not isinstance(type_spec, tff.StructType):
    return lambda value: [value]
  names = tff.structure.name_list_with_nones(type_spec)
  flatten_fields = [
      build_flatten(field, into_members=into_members)
      for _, field in tff.structure.iter_elements(type_spec)
  ]

  hint = _KEEPING_HINT if cohort.STATE_KEY in names else ''

  def flatten(value):
    try:
      fields = _fields(value, names)
    except TypeError:
      raise TypeError(
          f'Expected a value of type {type_spec}, found '
          f'{type(value).__name__}.{hint}'
      ) from None
    if len(fields) != len(names):
      found = list(value) if isinstance(value, Mapping) else len(fields)
      raise TypeError(
          f'Expected a value of type {type_spec}, found {type(value).__name__} '
          f'with different fields: {found}.{hint}'
      )
    leaves = []
    for flatten_field, field in zip(flatten_fields, fields):
      leaves += flatten_field(field)
    return leaves

  return flatten


def _fields(value: Any, names: list[Optional[str]]) -> list[Any]:
  """Returns the fields of a struct that exist, in the order of its type."""
  if isinstance(value, dict):
    if len(value) != len(names):
      return list(value.values())
    return [value[name] for name in names if name in value]
  if type(value) in (list, tuple):
    return list(value)
  if attrs.has(type(value)):
    return [
        getattr(value, str(name)) for name in names if hasattr(value, str(name))
    ]
  fields = tff.structure.from_container(value)
  found = tff.structure.name_list_with_nones(fields)
  if found != names and set(found) == set(names):
    return [getattr(fields, str(name)) for name in names]
  return list(fields)


def build_pack(
    type_spec: tff.Type, *, into_members: bool = True
) -> Callable[[Iterator[Any]], Any]:
  """Builds a function that packs leaves into values of a type.

  It maps an iterator over leaves, in the order of `build_flatten` with the same
  arguments, to the value, in the type's containers.
  """
  if isinstance(type_spec, tff.FederatedType) and into_members:
    return build_pack(type_spec.member)
  if not isinstance(type_spec, tff.StructType):
    return next
  names = tff.structure.name_list_with_nones(type_spec)
  pack_fields = [
      build_pack(field, into_members=into_members)
      for _, field in tff.structure.iter_elements(type_spec)
  ]
  container = getattr(type_spec, 'python_container', None)
  if container is None:
    container = collections.OrderedDict if any(names) else tuple
  if issubclass(container, Mapping):
    return lambda leaves: container(
        [(name, pack(leaves)) for name, pack in zip(names, pack_fields)]
    )
  if attrs.has(container) or hasattr(container, '_fields'):  # A named tuple.
    return lambda leaves: container(
        **{str(name): pack(leaves) for name, pack in zip(names, pack_fields)}
    )
  return lambda leaves: container([pack(leaves) for pack in pack_fields])


_SHARED_DTYPES = frozenset(
    {tf.float32, tf.float64, tf.int32, tf.int64, tf.bool}
)
# The tensors that share memory with live arrays, by the id of the array.
_tensors: dict[int, tuple[weakref.ref[np.ndarray], tf.Tensor]] = {}


def to_array(tensor: tf.Tensor) -> Any:
  """Converts an eager tensor to a scalar or an array.

  The array is read-only and shares the tensor's memory; its `copy` is writable.
  """
  if tensor.shape.rank == 0 or tensor.dtype not in _SHARED_DTYPES:
    return tensor.numpy()
  array = np.asarray(memoryview(tensor))
  key = id(array)
  reference = weakref.ref(array, lambda _: _tensors.pop(key, None))
  _tensors[key] = (reference, tensor)
  return array


def to_tensor(value: Any, dtype: tf.DType) -> tf.Tensor:
  """Converts a value to a tensor of a dtype.

  An array of `to_array` gets its tensor back. Raises a `TypeError` or a
  `ValueError` if the value does not fit the dtype.
  """
  if id(value) in _tensors:
    reference, tensor = _tensors[id(value)]
    if reference() is value and tensor.dtype == dtype:
      return tensor
  return tf.convert_to_tensor(value, dtype)
