# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Converts TFF's `ClientData` to clients as arrays, and back."""

import collections
from collections.abc import Callable, Mapping
import functools
import re
from typing import Any, Optional

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import _dataset_elements
from tff_adaptive.data import client_data
from tff_adaptive.data import feature_arrays

_READ_BATCH = 1024
_KEPT_BYTES = 1 << 28
# What TensorFlow says of examples in one batch, and NumPy of two batches.
_ARE_UNEQUAL = re.compile(
    'tensors? (to the batch|with different shapes)|array dimensions'
).search


def from_client_data(
    source: tff.simulation.datasets.ClientData,
    preprocess_fn: Optional[
        Callable[[tf.data.Dataset], tf.data.Dataset]
    ] = None,
    *,
    cache_bytes: int = client_data.DEFAULT_CACHE_BYTES,
) -> client_data.LazyClientArrays:
  """Reads the clients of a `ClientData` as arrays, on demand.

  A client is read once and cached, instead of one `tf.data` pipeline for each
  client and round. The reading function is traced only once, so that memory
  does not grow with the number of reads.

  Args:
    source: The clients. Elements are mappings from feature names to tensors, or
      pairs, which become the features 'x' and 'y'.
    preprocess_fn: Maps a client's dataset of single examples to another one,
      for example to rename features. It must not batch, shuffle or repeat,
      which is the role of `batching.BatchPlan`. Random numbers that it draws
      are drawn when a client is read, so they stay the same over rounds while
      the client is cached: augment in the model instead. None (the default)
      for none.
    cache_bytes: The size of the cache of clients. Defaults to 256 MiB.

  Returns:
    Clients in the order of `source.client_ids`.

  Raises:
    TypeError: If elements are neither flat mappings nor pairs of dense tensors.
    ValueError: If `preprocess_fn` batches or repeats forever, or there are no
      clients. Reading a client raises one if the shapes of its examples differ.

  Example:

    >>> data = tff.simulation.datasets.TestClientData({'a': {'x': [1.0, 2.0]}})
    >>> from_client_data(data).examples('a')['x'].tolist()
    [1.0, 2.0]
  """
  client_ids = source.client_ids
  if not client_ids:
    raise ValueError('`source` must have at least one client, found none.')
  dataset_fn = _dataset_fn(source, preprocess_fn)
  first = dataset_fn(client_ids[0])
  if first.cardinality() == tf.data.INFINITE_CARDINALITY:
    raise ValueError(
        f'Client {client_ids[0]!r} has examples without end: leave out '
        '`repeat`; a BatchPlan has `num_epochs`.'
    )
  structure = first.element_spec
  element_spec = collections.OrderedDict(
      (name, tf.TensorSpec(spec.shape[1:], spec.dtype))
      for name, spec in _as_features(structure).items()
  )
  if preprocess_fn is not None:
    _check_not_batched(source, element_spec)

  def load(client_id: str) -> feature_arrays.Examples:
    try:
      batches = [
          _as_features(batch)
          for batch in _dataset_elements.iterate(dataset_fn(client_id))
      ]
      parts = batches or [feature_arrays.empty(element_spec)]
      return feature_arrays.concatenate(parts, element_spec)
    except (tf.errors.InvalidArgumentError, ValueError) as error:
      if not _ARE_UNEQUAL(str(error)):
        raise
      raise ValueError(
          f'Client {client_id!r} has examples of different shapes, as '
          f'{element_spec} allows: pad them to one shape, or `unbatch` what is '
          'in batches, in `preprocess_fn`.'
      ) from error

  return client_data.LazyClientArrays(
      client_ids, load, element_spec, cache_bytes=cache_bytes
  )


def to_client_data(
    source: client_data.ClientArrays,
) -> tff.simulation.datasets.ClientData:
  """Presents arrays as a `ClientData`, for code written for TFF.

  Args:
    source: The clients. Those of a `PackedClientArrays` can be serialized into
      TFF computations (their arrays become constants, at most 2 GB); other
      sources are read through Python, so that `serializable_dataset_fn` works
      in this process only.

  Returns:
    A `tff.simulation.datasets.ClientData` with the same clients, whose elements
    are ordered dictionaries of single examples. It caches datasets (up to 256
    MiB of examples), also after `preprocess`, and returns the same object for
    the same client, so that the compiled runtime reads a client only once.

  Example:

    >>> source = client_data.PackedClientArrays.from_clients(
    ...     {'a': {'x': np.array([1.0, 2.0])}})
    >>> dataset = to_client_data(source).create_tf_dataset_for_client('a')
    >>> [float(example['x']) for example in dataset]
    [1.0, 2.0]
  """
  return _KeptClientData(
      _ArraysClientData(source),
      lambda client_id: feature_arrays.num_bytes(source.examples(client_id)),
  )


def _dataset_from_constants(
    source: client_data.PackedClientArrays, client_id: Any
) -> tf.data.Dataset:
  """Looks up a client inside a graph that holds all arrays."""
  is_client = tf.equal(tf.constant(source.client_ids), client_id)
  known = tf.debugging.Assert(
      tf.reduce_any(is_client), ['There is no client', client_id]
  )
  # In eager mode the assertion has already run, and returned None.
  with tf.control_dependencies([] if known is None else [known]):
    position = tf.argmax(is_client)
  offsets = tf.constant(source.offsets)
  rows = tf.range(offsets[position], offsets[position + 1])
  if source.indices is not None:
    rows = tf.gather(tf.constant(source.indices), rows)
  return tf.data.Dataset.from_tensor_slices(
      collections.OrderedDict(
          (name, tf.gather(tf.constant(array), rows))
          for name, array in source.values.items()
      )
  )


class _ArraysClientData(tff.simulation.datasets.ClientData):
  """A `ClientData` over arrays; see `to_client_data`."""

  def __init__(self, source: client_data.ClientArrays):
    self._source = source

  @property
  def client_ids(self) -> list[str]:
    return list(self._source.client_ids)

  @property
  def element_type_structure(self) -> feature_arrays.ElementSpec:
    return self._source.element_spec

  @property
  def serializable_dataset_fn(self) -> Callable[[Any], tf.data.Dataset]:
    if isinstance(self._source, client_data.PackedClientArrays):
      return functools.partial(_dataset_from_constants, self._source)
    return self._dataset_from_python

  def create_tf_dataset_for_client(self, client_id: str) -> tf.data.Dataset:
    try:
      self._source.position(client_id)
    except KeyError as e:  # TFF's interface promises a ValueError.
      raise ValueError(e.args[0]) from e
    return tf.data.Dataset.from_tensor_slices(self._source.examples(client_id))

  def _dataset_from_python(self, client_id: Any) -> tf.data.Dataset:
    """Calls Python to get the arrays of a client."""
    spec = self._source.element_spec

    def read(name: Any) -> list[np.ndarray]:
      # Bytes in a graph, an array with one string in eager mode.
      name = tf.compat.as_str(np.asarray(name).item())
      return list(self._source.examples(name).values())

    arrays = tf.numpy_function(
        read, [client_id], [feature.dtype for feature in spec.values()]
    )
    features = collections.OrderedDict()
    for (name, feature), array in zip(spec.items(), arrays):
      features[name] = tf.ensure_shape(
          array, tf.TensorShape([None]).concatenate(feature.shape)
      )
    return tf.data.Dataset.from_tensor_slices(features)


class _KeptClientData(tff.simulation.datasets.ClientData):
  """A `ClientData` that caches the datasets of recently used clients."""

  def __init__(
      self,
      inner: tff.simulation.datasets.ClientData,
      num_bytes: Callable[[str], int],
  ):
    self._inner = inner
    self._num_bytes = num_bytes
    self._cache = client_data.BoundedCache(_KEPT_BYTES)

  @property
  def client_ids(self) -> list[str]:
    return self._inner.client_ids

  @property
  def element_type_structure(self) -> Any:
    return self._inner.element_type_structure

  @property
  def serializable_dataset_fn(self) -> Callable[[Any], tf.data.Dataset]:
    return self._inner.serializable_dataset_fn

  def create_tf_dataset_for_client(self, client_id: str) -> tf.data.Dataset:
    kept = self._cache.get(client_id)
    if kept is not None:
      return kept
    dataset = self._inner.create_tf_dataset_for_client(client_id)
    return self._cache.put(client_id, dataset, self._num_bytes(client_id))

  def preprocess(
      self, preprocess_fn: Callable[[tf.data.Dataset], tf.data.Dataset]
  ) -> tff.simulation.datasets.ClientData:
    return _KeptClientData(super().preprocess(preprocess_fn), self._num_bytes)


def _dataset_fn(
    source: tff.simulation.datasets.ClientData,
    preprocess_fn: Optional[Callable[[tf.data.Dataset], tf.data.Dataset]],
) -> Callable[[str], tf.data.Dataset]:
  """Returns a traced function for a client's dataset of large batches.

  If a source cannot be traced (or is a `TestClientData`, which puts all its
  data into the graph), its own datasets go through a traced preprocessing.
  """

  def finish(dataset: tf.data.Dataset) -> tf.data.Dataset:
    if preprocess_fn is not None:
      dataset = preprocess_fn(dataset)
    return dataset.batch(_READ_BATCH)

  if not isinstance(source, tff.simulation.datasets.TestClientData):
    traced = tf.function(
        lambda name: finish(source.serializable_dataset_fn(name)),
        input_signature=[tf.TensorSpec([], tf.string)],
    )
    try:
      traced.get_concrete_function()
      return traced
    except Exception:  # pylint: disable=broad-exception-caught
      pass  # An error of `preprocess_fn` occurs again below.
  traced_finish = tf.function(
      finish,
      input_signature=[tf.data.DatasetSpec(source.element_type_structure)],
  )
  return lambda name: traced_finish(source.create_tf_dataset_for_client(name))


def _as_features(structure: Any) -> Mapping[str, Any]:
  """Names the components of a dataset's element."""
  if isinstance(structure, tuple) and len(structure) == 2:
    structure = collections.OrderedDict(x=structure[0], y=structure[1])
  if not isinstance(structure, Mapping) or any(
      not isinstance(part, (tf.TensorSpec, np.ndarray))
      for part in structure.values()
  ):
    raise TypeError(
        'The elements of a client must be a flat mapping from feature names to '
        f'dense tensors, or a pair, found {structure}.'
    )
  return structure


def _check_not_batched(
    source: tff.simulation.datasets.ClientData,
    element_spec: feature_arrays.ElementSpec,
) -> None:
  """Raises if preprocessing has added a leading dimension of unknown size."""
  raw = tf.nest.flatten(source.element_type_structure)
  if any(spec.shape.rank and spec.shape[0] is None for spec in raw):
    return  # Sequences of any length look the same.
  for name, spec in element_spec.items():
    if spec.shape.rank and spec.shape[0] is None:
      raise ValueError(
          '`preprocess_fn` must return single examples, found batches: '
          f'feature {name!r} has shape {spec.shape}; batch with a BatchPlan.'
      )
