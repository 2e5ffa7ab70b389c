# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks and converts the elements of clients' sequences."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
import functools
import itertools
from typing import Any, Optional
import weakref

import attrs
import numpy as np
import tensorflow as tf

# TensorFlow does not tell the op of a dataset otherwise.
from tensorflow.python.data.ops import shuffle_op
import tensorflow_federated as tff

from tff_adaptive.data import specs as specs_lib
from tff_adaptive.runtime import values
from tff_adaptive.runtime.datasets import dataset_graphs

# Elements that are read at once, if they are small.
_READ_SIZE = 256
_READ_BYTES = 2**22
# The feature that comes last in batches without names.
_LAST = 'sample_weight'


def element_spec(leaf_type: tff.SequenceType) -> Any:
  """Returns the spec of an element, in the containers of its values.

  `tff.types.type_to_tf_tensor_specs` fails for a type without containers.
  """
  leaves = map(values.tensor_spec, values.leaf_types(leaf_type.element))
  return values.build_pack(leaf_type.element)(leaves)


@functools.lru_cache
def component_specs(leaf_type: tff.SequenceType) -> list[tf.TensorSpec]:
  """Returns the specs of an element's components, in the order of `tf.nest`."""
  return tf.nest.flatten(element_spec(leaf_type))


def iterate(value: Any, leaf_type: tff.SequenceType) -> Iterator[list[Any]]:
  """Yields the components of each element, in the order of `tf.nest`."""
  # An iterator would be at its end in the next round.
  if not isinstance(value, Iterable) or isinstance(
      value, (Iterator, str, bytes)
  ):
    raise _no_sequence_error(value, leaf_type)
  flatten = values.build_flatten(leaf_type.element)
  pack = values.build_pack(leaf_type.element)
  for element in value:
    try:
      leaves = flatten(element)
    except TypeError:
      if isinstance(value, Mapping):
        cure = '; if it is a single element, put it into a list'
        raise _no_sequence_error(value, leaf_type, cure) from None
      raise
    # By their places, since a leaf may itself be nested lists of numbers.
    order = tf.nest.flatten(pack(iter(range(len(leaves)))))
    yield [leaves[place] for place in order]


def _no_sequence_error(
    value: Any, leaf_type: tff.SequenceType, cure: str = ''
) -> TypeError:
  return TypeError(
      'Expected a `tf.data.Dataset` or a list of elements of type '
      f'{leaf_type.element} for each client, found {type(value).__name__}'
      f'{cure}.'
  )


def _check_spec(found: Any, leaf_type: tff.SequenceType, what: str) -> None:
  """Raises if a spec does not match a sequence's elements."""
  difference = specs_lib.find_difference(
      found, element_spec(leaf_type), in_pipeline=True
  )
  if difference is not None:
    raise TypeError(
        f'Expected {what} of type {leaf_type.element}, found {difference}.'
    )


def check_dataset(
    dataset: tf.data.Dataset, leaf_type: tff.SequenceType
) -> None:
  """Raises if a dataset's elements do not match a sequence's type."""
  found = dataset.element_spec
  _check_spec(found, leaf_type, 'a dataset with elements')
  if isinstance(found, Mapping) and sorted(found) != _in_order(
      found, leaf_type
  ):
    raise TypeError(
        f'Expected a dataset with elements of type {leaf_type.element}, found '
        f'the names {list(found)}; make them tuples, or let the type have '
        'these names.'
    )


def to_arrays(
    components: list[Any],
    specs: list[tf.TensorSpec],
    leaf_type: tff.SequenceType,
) -> list[np.ndarray]:
  """Converts the components of an element to arrays of their specs' dtypes.

  Raises:
    TypeError: If a component's kind of numbers does not fit its dtype, or its
      shape does not match; names the field.
    ValueError: If a number is out of its dtype's range; names the field.
  """
  arrays = []
  for i, (component, spec) in enumerate(zip(components, specs)):
    try:
      arrays.append(_to_array(component, spec.dtype))
    except (TypeError, ValueError) as error:
      name = specs_lib.field_names(element_spec(leaf_type))[i]
      place = f'Field {name}: ' if name else ''
      raise type(error)(f'{place}{error}') from error
  if not all(
      spec.shape.is_compatible_with(array.shape)
      for spec, array in zip(specs, arrays)
  ):
    found = [tf.TensorSpec(a.shape, s.dtype) for a, s in zip(arrays, specs)]
    structure = element_spec(leaf_type)
    found = tf.nest.pack_sequence_as(structure, found)
    _check_spec(found, leaf_type, 'elements')
  return arrays


def _to_array(component: Any, dtype: tf.DType) -> np.ndarray:
  if isinstance(component, (tf.RaggedTensor, tf.SparseTensor)):
    raise TypeError(
        f'Expected elements of type {dtype.name}, found a '
        f'{type(component).__name__}: make it dense.'
    )
  try:
    array = np.asarray(component)
  except ValueError as error:
    if not isinstance(component, (list, tuple)):
      raise
    raise ValueError(
        f'Expected elements of type {dtype.name}, found nested lists of '
        'different lengths: pad them, or pass an array.'
    ) from error
  if dtype == tf.uint64 and isinstance(component, (list, tuple)):
    # NumPy makes floats of integers if some are above the largest int64.
    exact = np.asarray(component, object)
    if exact.size and all(isinstance(number, int) for number in exact.flat):
      array = exact
  kind = specs_lib.kind(array.dtype)
  # `np.array([])` is an array of floats.
  if array.size and kind in _lost_kinds(dtype):
    raise TypeError(
        f'Expected elements of type {dtype.name}, found an array of type '
        f'{array.dtype.name}.'
    )
  if kind not in 'biuf' or dtype == tf.string:
    try:
      return np.asarray(component, dtype.as_numpy_dtype)
    except OverflowError as error:
      raise ValueError(
          f'Expected elements of type {dtype.name}, found integers that are '
          'out of range.'
      ) from error
  cast, lost = specs_lib.cast(array, dtype.as_numpy_dtype)
  if np.any(lost):
    raise ValueError(
        f'Expected elements of type {dtype.name}, found the number '
        f'{array[lost].flat[0]} of type {array.dtype.name}, which is out of '
        'range.'
    )
  return cast


def _lost_kinds(dtype: tf.DType) -> str:
  """Returns the kinds of NumPy dtypes whose values a cast would change."""
  if dtype.is_integer or dtype.is_bool:
    return 'fcSU'
  if dtype == tf.string:
    return 'biufc'
  return 'cSU' if dtype.is_floating else ''


def empty_array(spec: tf.TensorSpec) -> np.ndarray:
  """Returns an empty component; each axis of unknown size has size 0."""
  shape = [size or 0 for size in spec.shape]
  # NumPy's zero of dtype object is a number, not a string.
  zero = b'' if spec.dtype == tf.string else 0
  return np.full(shape, zero, spec.dtype.as_numpy_dtype)


def are_alike(specs: list[tf.TensorSpec]) -> bool:
  """Returns whether all elements have the same shape."""
  return all(spec.shape.is_fully_defined() for spec in specs)


def num_at_once(specs: Iterable[tf.TensorSpec]) -> int:
  """Returns how many elements of some specs a read takes as one batch.

  TensorFlow allocates a whole batch for its first element, so large elements
  are read alone.
  """
  # Of an unknown shape this is a guess.
  size = sum((s.shape.num_elements() or 1) * s.dtype.size for s in specs)
  return max(1, min(_READ_SIZE, _READ_BYTES // max(1, size)))


def are_batches(specs: list[tf.TensorSpec]) -> bool:
  """Returns whether elements are batches of any size."""
  return all(spec.shape.rank and spec.shape[0] is None for spec in specs)


def _in_order(names: Iterable[str], leaf_type: tff.SequenceType) -> list[str]:
  """Returns the names of features in the order of `component_specs`.

  If the type has no names, these are x, y and the sample weights.
  """
  is_named = isinstance(element_spec(leaf_type), Mapping)
  return sorted(names, key=lambda n: (not is_named and n == _LAST, n))


def components_of(
    rows: Mapping[str, Any], leaf_type: tff.SequenceType
) -> list[Any]:
  """Returns rows by feature in the order of `component_specs`."""
  return [rows[name] for name in _in_order(rows, leaf_type)]


def to_element(rows: Mapping[str, Any], leaf_type: tff.SequenceType) -> Any:
  """Returns rows by feature as an element, a tuple if the type has no names."""
  if isinstance(element_spec(leaf_type), Mapping):
    return rows
  return tuple(components_of(rows, leaf_type))


def check_rows(rows: Mapping[str, Any], leaf_type: tff.SequenceType) -> None:
  """Raises if rows by feature do not match a sequence's type."""
  found: Any = {
      name: tf.TensorSpec([None, *feature.shape[1:]], feature.dtype)
      for name, feature in rows.items()
  }
  if not isinstance(element_spec(leaf_type), Mapping):
    found = components_of(found, leaf_type)
  _check_spec(found, leaf_type, 'clients with elements')


def as_dataset(value: Any, leaf_type: tff.SequenceType) -> tf.data.Dataset:
  """Converts a client's sequence, or iterable of elements, to a dataset.

  Raises:
    TypeError: If the elements do not match the type.
  """
  if isinstance(value, tf.data.Dataset):
    check_dataset(value, leaf_type)
    return value
  structure = element_spec(leaf_type)
  specs = component_specs(leaf_type)

  def build(elements):
    columns = [np.stack(column) for column in zip(*elements)]
    return tf.data.Dataset.from_tensor_slices(
        tf.nest.pack_sequence_as(structure, columns)
    )

  elements = [
      to_arrays(components, specs, leaf_type)
      for components in iterate(value, leaf_type)
  ]
  if not elements:
    return build([list(map(empty_array, specs))]).take(0)
  runs = itertools.groupby(elements, lambda arrays: [a.shape for a in arrays])
  datasets = [build(list(run)) for _, run in runs]
  return functools.reduce(lambda left, right: left.concatenate(right), datasets)


def fresh(
    dataset: tf.data.Dataset, generator: Optional[np.random.Generator] = None
) -> tf.data.Dataset:
  """Returns a dataset that begins anew, as one that TFF serializes.

  Args:
    dataset: The dataset; what cannot be serialized is returned as it is.
    generator: The seeds of draws without one; None for random ones.
  """
  graph = dataset_graphs.DatasetGraph.of(dataset)
  if graph is None:
    return dataset
  if generator is not None:
    graph = graph.seeded(generator)
  return graph.build(dataset.element_spec)


def takes_options(value: Any) -> bool:
  """Returns whether options may follow a sequence that work may repeat.

  TensorFlow joins a shuffle with a `repeat` right after it, which then begins
  no epoch more at its end.
  """
  return not isinstance(value, shuffle_op._ShuffleDataset)  # pylint: disable=protected-access


def beside_others(dataset: tf.data.Dataset) -> tf.data.Dataset:
  """Returns a client's dataset, to be read while those of others are."""
  options = tf.data.Options()
  # Threads that share the work of a client cost more than they save.
  options.threading.private_threadpool_size = 1
  options.threading.max_intra_op_parallelism = 1
  return dataset.with_options(options)


def as_fresh_dataset(
    value: Any,
    leaf_type: tff.SequenceType,
    generator: Optional[np.random.Generator] = None,
) -> tf.data.Dataset:
  """Returns `as_dataset`, made `fresh` if the value is a dataset itself."""
  dataset = as_dataset(value, leaf_type)
  return fresh(dataset, generator) if dataset is value else dataset


def _is_parallel(dataset: tf.data.Dataset) -> bool:
  """Returns whether a dataset may share its work among threads."""
  graph = dataset_graphs.DatasetGraph.of(dataset)
  return graph is None or graph.is_parallel


# By dataset, `_is_parallel`.
_are_parallel: weakref.WeakKeyDictionary[tf.data.Dataset, bool] = (
    weakref.WeakKeyDictionary()
)


def as_dataset_to_run(
    value: Any, leaf_type: tff.SequenceType, generator: np.random.Generator
) -> tf.data.Dataset:
  """Returns `as_fresh_dataset` of a sequence that is read by itself."""
  dataset = as_fresh_dataset(value, leaf_type, generator)
  if isinstance(value, tf.data.Dataset):
    if value not in _are_parallel:
      _are_parallel[value] = _is_parallel(value)
    has_pool = value.options().threading.private_threadpool_size is not None
    if _are_parallel[value] or has_pool or not takes_options(value):
      return dataset
  options = tf.data.Options()
  # Ops that run one after another cost less in one thread.
  options.threading.private_threadpool_size = 1
  return dataset.with_options(options)


@functools.lru_cache
def build_leaf(leaf_type: tff.Type) -> Callable[[Any], tf.Tensor]:
  """Builds `build_conversion` of a tensor or a sequence."""
  if isinstance(leaf_type, tff.SequenceType):
    return lambda value: tf.data.experimental.to_variant(
        as_fresh_dataset(value, leaf_type)
    )
  spec = values.tensor_spec(leaf_type)

  def convert(value):
    # TensorFlow would cut off the fractions of NumPy's numbers, or wrap them,
    # and wrap Python's integers or make them infinite.
    if isinstance(value, (np.ndarray, np.generic)):
      is_changed = (
          value.dtype != spec.dtype.as_numpy_dtype
          and specs_lib.kind(value.dtype) in 'biufc'
      )
    else:
      is_number = spec.dtype.is_integer or spec.dtype.is_floating
      is_changed = is_number and isinstance(value, (int, float, list, tuple))
    if is_changed:
      value = _to_array(value, spec.dtype)
    tensor = values.to_tensor(value, spec.dtype)
    if not spec.shape.is_compatible_with(tensor.shape):
      raise TypeError(
          f'Expected a value of type {leaf_type}, found one of shape '
          f'{tensor.shape}.'
      )
    return tensor

  return convert


def stack_arrays(
    leaves: Sequence[Any], leaf_type: tff.TensorType
) -> Optional[tf.Tensor]:
  """Returns arrays of one shape and a type's dtype as a tensor, else None."""
  spec = values.tensor_spec(leaf_type)
  if not leaves or not all(
      isinstance(leaf, (np.ndarray, np.generic))
      and leaf.dtype == spec.dtype.as_numpy_dtype
      and leaf.shape == leaves[0].shape
      for leaf in leaves
  ):
    return None
  if spec.dtype == tf.string or not spec.shape.is_compatible_with(
      leaves[0].shape
  ):
    return None
  return tf.convert_to_tensor(np.stack(leaves))


def build_conversion(
    type_spec: Optional[tff.Type],
) -> Callable[[Any], list[tf.Tensor]]:
  """Builds a function that converts values of a type to tensors.

  It maps a value of the type, without clients, to its leaves in the order of
  `values.leaf_types`; a sequence becomes the variant of a dataset. It raises a
  `TypeError` or TensorFlow's `ValueError` if the value does not match.
  """
  flatten = values.build_flatten(type_spec)
  convert_leaves = list(map(build_leaf, values.leaf_types(type_spec)))

  def convert(value):
    return [
        convert_leaf(leaf)
        for convert_leaf, leaf in zip(convert_leaves, flatten(value))
    ]

  return convert


@attrs.frozen(eq=False)
class Given:
  """A sequence as it was given, for example a list of batches."""

  value: Any


def to_leaf_tensor(leaf: Any, leaf_type: tff.Type) -> tf.Tensor:
  """Returns the tensor of a leaf; of a sequence, the variant of a dataset."""
  if isinstance(leaf, Given):
    return build_leaf(leaf_type)(leaf.value)
  return leaf


def to_leaf(value: Any, leaf_type: tff.Type) -> Any:
  """Returns the leaf of a value; sequences are read where they are needed.

  Raises:
    TypeError: If a tensor does not match its type.
  """
  if isinstance(leaf_type, tff.SequenceType):
    return Given(value)
  return build_leaf(leaf_type)(value)


def from_tensor(tensor: tf.Tensor, leaf_type: tff.Type) -> Any:
  """Returns a leaf of a function's result: a tensor, or a dataset."""
  if not isinstance(leaf_type, tff.SequenceType):
    return tensor
  return tf.data.experimental.from_variant(tensor, element_spec(leaf_type))
