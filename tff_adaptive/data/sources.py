# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads client data and central data from files, mappings and `ClientData`."""

from __future__ import annotations

import collections
from collections.abc import Mapping
import os
import pathlib
from typing import Any, Optional, TYPE_CHECKING, Union

from tff_adaptive import _files
from tff_adaptive.data import client_data
from tff_adaptive.data import conversion
from tff_adaptive.data import feature_arrays
from tff_adaptive.data import specs as specs_lib
from tff_adaptive.data import tables
from tff_adaptive.data import transforms

if TYPE_CHECKING:
  import tensorflow as tf
  import tensorflow_federated as tff

_SQLITE_SUFFIX = '.sqlite'
_SUFFIXES = (*tables.SUFFIXES, _SQLITE_SUFFIX)

_Features = Mapping[str, 'tf.TensorSpec']
# Feature names and arrays or array-like values.
_Arrays = Mapping[str, Any]
ClientSource = Union[
    _files.PathLike,
    Mapping[str, _Arrays],
    client_data.ClientArrays,
    'tff.simulation.datasets.ClientData',
]
ExampleSource = Union[ClientSource, _Arrays]


def read_clients(
    data: ClientSource,
    features: _Features,
    *,
    split_name: Optional[str] = None,
    needs_split: bool = True,
    client_key: str = 'client_id',
    name: str = 'The training data',
) -> client_data.ClientArrays:
  """Returns clients from arrays, a file or a `ClientData`.

  A file has a row for each example, with the features and, under `client_key`,
  the id of the example's client:

  * .npz: an array for each feature, with a row for each example;
  * .csv: a column for each feature, named in the first line; a feature with a
    shape has a column for each value, `x_0`, `x_1` and so on, the last
    dimension varying fastest; booleans are `true` or `false`, or 1 or 0;
  * .jsonl and .jsonl.gz: an object in each line, with arrays as nested lists;
  * .sqlite: TFF's format, see `data.load_sqlite_clients`; `client_key` does not
    apply.

  A CSV file has double quotes as in RFC 4180: around cells with commas or line
  ends, with quotes written twice inside. A stray quote is an error; but two of
  them, where a cell begins and where another one ends, are correct CSV. That is
  refused if one of the lines between them reads as a row, with numbers in the
  columns of the features that are numbers. The header, and a byte order mark,
  are only in the first line. A JSON object must not have a key twice. Empty
  lines are skipped.

  Other columns are ignored. Values of other types are converted if that loses
  at most the last digits of floats: integers to other integers or to floats,
  floats to floats, or to signed integers if all are whole numbers, strings to
  UTF-8 bytes. Arrays in an npz file must not be pickled: save strings with
  NumPy's type `str`.

  Args:
    data: The path of a file, a mapping from client ids to features, a
      `tff.simulation.datasets.ClientData`, whose clients are read when they are
      needed, or a `ClientArrays`.
    features: The names of the features, and the `tf.TensorSpec` of one example
      with the type wanted.
    split_name: Selects the rows of a file by their 'split', which every row
      must have. Defaults to None: all rows. Required for a SQLite file.
    needs_split: Whether a file of which no row has a 'split' is an error if
      `split_name` is given (the default), or all its rows are read.
    client_key: The name of the file's column with the client ids. Defaults to
      'client_id'.
    name: The name of the data, the subject of error messages. Defaults to 'The
      training data'.

  Returns:
    The clients, in the order of their first occurrence in a file (sorted by id
    in a SQLite file) or of a mapping; `data` itself if it is a `ClientArrays`.
    Their features are in the order of `features`.

  Raises:
    FileNotFoundError: If there is no such file.
    TypeError: If `data` has another type, or client ids are not strings.
    ValueError: If a file is damaged or of another kind; if a split, a column or
      a feature is missing, or a value does not have the wanted type and shape.
      Names the file and line, or the client, the value found and the value
      expected. A `ClientData`'s values are checked when a client is read.

  Example:

    >>> clients = read_clients(
    ...     {'ann': {'x': [[1, 2]], 'y': [0]}},
    ...     {'x': tf.TensorSpec([2], tf.float32),
    ...      'y': tf.TensorSpec([], tf.int32)})
    >>> clients.examples('ann')['x']
    array([[1., 2.]], dtype=float32)
    >>> np.savez('mine.npz', client_id=['ann', 'bob'], x=np.ones([2, 3]))
    >>> clients = read_clients(
    ...     'mine.npz', {'x': tf.TensorSpec([3], tf.float32)})
    >>> clients.client_ids
    ('ann', 'bob')
  """
  features = collections.OrderedDict(features)
  if isinstance(data, client_data.ClientArrays):
    return _checked_spec(data, features, name)
  if isinstance(data, Mapping):
    return _from_mapping(data, features, name)
  if not _is_path(data):
    return _from_client_data(data, features, name)
  path = _checked_path(data, features, name)
  if path.name.endswith(_SQLITE_SUFFIX):
    from tff_adaptive.data import sqlite  # pylint: disable=import-outside-toplevel

    return sqlite.load_sqlite_clients(path, split_name or '', features)
  table = tables.read_table(
      path,
      features,
      split_name=split_name,
      client_key=client_key,
      needs_split=needs_split,
  )
  rows = collections.defaultdict(list)
  for row, client_id in enumerate(table.client_ids or ()):
    rows[client_id].append(row)
  return client_data.PackedClientArrays.from_partition(table.examples, rows)


def read_examples(
    data: ExampleSource,
    features: _Features,
    *,
    split_name: Optional[str] = None,
    needs_split: bool = True,
    name: str = 'The test data',
) -> feature_arrays.Examples:
  """Returns the examples of a central data set, for example for testing.

  Args:
    data: See `read_clients`; all clients are concatenated. Or a mapping from
      feature names to arrays. Rows of a file do not need client ids.
    features: See `read_clients`.
    split_name: See `read_clients`.
    needs_split: See `read_clients`.
    name: The name of the data, the subject of error messages. Defaults to 'The
      test data'.

  Returns:
    Feature names and arrays of shape [num_examples, ...], in the order of
    `features`.

  Raises:
    FileNotFoundError: See `read_clients`.
    TypeError: See `read_clients`.
    ValueError: See `read_clients`; also if features differ in the number of
      examples.

  Example:

    >>> read_examples({'y': [3, 4]}, {'y': tf.TensorSpec([], tf.int32)})['y']
    array([3, 4], dtype=int32)
  """
  features = collections.OrderedDict(features)
  if _is_path(data) and not str(data).endswith(_SQLITE_SUFFIX):
    return tables.read_table(
        _checked_path(data, features, name),
        features,
        split_name=split_name,
        client_key=None,
        needs_split=needs_split,
    ).examples
  if isinstance(data, Mapping) and not any(
      isinstance(value, Mapping) for value in data.values()
  ):
    return conversion.convert_examples(data, features, _places_in(name))
  return transforms.concatenate(
      read_clients(data, features, split_name=split_name, name=name)
  )


def _is_path(data: Any) -> bool:
  return isinstance(data, (str, os.PathLike))


def _places_in(owner: str) -> feature_arrays.Where:
  """Returns a function that names an example of an owner."""
  return lambda example: (
      owner if example is None else f'{owner}, example {example}'
  )


def _checked_path(
    data: Any, features: feature_arrays.ElementSpec, name: str
) -> pathlib.Path:
  """Returns a path if a file of a known kind exists there, or raises."""
  path = pathlib.Path(data)
  if not path.name.endswith(_SUFFIXES):
    raise ValueError(
        f'{name} must be in a file that ends in one of {", ".join(_SUFFIXES)}, '
        f'found {path}; convert it, or rename it.'
    )
  if not path.exists():
    raise FileNotFoundError(
        f'{name} must be in a file, but {path} does not exist; correct the '
        'path, which is relative to the current folder unless it begins with '
        '/.'
    )
  for feature, spec in features.items():
    if not spec.shape.is_fully_defined():
      raise ValueError(
          f'Feature {feature!r} must have a fixed shape to be read from a '
          f'file, found {spec.shape}.'
      )
  return path


def _checked_spec(
    source: client_data.ClientArrays,
    features: feature_arrays.ElementSpec,
    name: str,
) -> client_data.ClientArrays:
  """Returns clients if they have exactly the wanted features, or raises."""
  difference = specs_lib.find_difference(
      specs_lib.batched(source.element_spec),
      specs_lib.batched(features),
      in_order=True,
  )
  if difference is not None:
    raise ValueError(
        f'{name} must have the features that the task expects, found '
        f'{difference}, with data.transforms.map_clients.'
    )
  return source


def _from_client_data(
    data: Any, features: feature_arrays.ElementSpec, name: str
) -> client_data.ClientArrays:
  """Returns TFF's clients, with features converted when they are read."""
  import tensorflow_federated as tff  # pylint: disable=import-outside-toplevel

  from tff_adaptive.data import tff_client_data  # pylint: disable=import-outside-toplevel

  if not isinstance(data, tff.simulation.datasets.ClientData):
    raise TypeError(
        f'{name} must be a path, a mapping, a ClientArrays or a '
        f'tff.simulation.datasets.ClientData, found {type(data).__name__}.'
    )
  source = tff_client_data.from_client_data(data, cache_bytes=0)
  feature_arrays.check_names(source.element_spec, features, name)
  return client_data.LazyClientArrays(
      source.client_ids,
      lambda client_id: conversion.convert_examples(
          source.examples(client_id),
          features,
          _places_in(f'{name}, client {client_id!r}'),
      ),
      features,
  )


def _from_mapping(
    data: Mapping[str, Any], features: feature_arrays.ElementSpec, name: str
) -> client_data.ClientArrays:
  """Returns the clients of a mapping."""
  if not data:
    raise ValueError(f'{name} must hold at least one client, found none.')
  return client_data.PackedClientArrays.from_clients(
      {
          client_id: conversion.convert_examples(
              examples, features, _places_in(f'{name}, client {client_id!r}')
          )
          for client_id, examples in data.items()
      }
  )
