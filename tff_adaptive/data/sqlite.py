# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads clients from TFF's SQLite files on demand, and writes such files."""

import collections
from collections.abc import Callable, Container, Iterator, Mapping
import contextlib
import os
import pathlib
import secrets
import sqlite3
from typing import Any
import urllib.parse

from absl import logging
import numpy as np
import tensorflow as tf

from tff_adaptive import _error_texts
from tff_adaptive import _files
from tff_adaptive.data import client_data
from tff_adaptive.data import feature_arrays
from tff_adaptive.data import specs

# The columns of each table, with their types.
_TABLES = {
    'examples': {
        'split_name': 'TEXT',
        'client_id': 'TEXT',
        'serialized_example_proto': 'BLOB',
    },
    'client_metadata': {
        'client_id': 'TEXT',
        'split_name': 'TEXT',
        'num_examples': 'INTEGER',
    },
}


def load_sqlite_clients(
    path: _files.PathLike,
    split_name: str,
    features: Mapping[str, tf.TensorSpec],
    *,
    cache_bytes: int = client_data.DEFAULT_CACHE_BYTES,
) -> client_data.LazyClientArrays:
  """Opens the clients of a split of a SQLite file in TFF's format.

  Only the table of clients is read here, which takes about a second for
  342,477 clients; a client's examples are read on demand, from any thread.

  Args:
    path: The file. Its table `examples` has the columns `client_id`,
      `split_name` and `serialized_example_proto` (a `tf.train.Example`), its
      table `client_metadata` the columns `client_id`, `split_name` and
      `num_examples`, as `tff.simulation.datasets.SqlClientData` reads them. The
      clients are those of `client_metadata`. Ids are text, and `examples` has
      row numbers, which are the order of a client's examples.
    split_name: The split, for example 'train'.
    features: The features to read: names and the `tf.TensorSpec` of one
      example, of fixed shape. The file stores floats as float32 and integers as
      int64; they are converted to the spec's type. `tf.string` gives arrays of
      bytes.
    cache_bytes: The size of the cache of clients. Defaults to 256 MiB.

  Returns:
    The clients, sorted by id as in TFF, with their numbers of examples. Reading
    a client raises a `ValueError` if its examples cannot be parsed, if a value
    does not fit its type, or if their number differs from the table of clients.

  Raises:
    FileNotFoundError: If there is no such file.
    TypeError: If the format does not support a feature's type.
    ValueError: If the file is empty, damaged or lacks a table, a column, row
      numbers or the split, in the last case the message lists the splits; if an
      id is no text, or is there twice.

  Example:

    >>> write_sqlite_clients('mine.sqlite', {'train': digits.train_data})
    >>> clients = load_sqlite_clients(
    ...     'mine.sqlite', 'train', digits.train_data.element_spec)
    >>> len(clients.client_ids)
    50

  References:
    TensorFlow Federated, `tff.simulation.datasets.SqlClientData`.
  """
  path = pathlib.Path(path)
  _check_file(path)
  sizes = _read_sizes(path, split_name)
  # Clients are read later, when the current folder may be another one.
  query = _build_query(path.absolute(), split_name, sizes)
  stored = {
      name: tf.io.FixedLenFeature(spec.shape, _stored_type(name, spec.dtype))
      for name, spec in features.items()
  }

  def load(client_id: str) -> feature_arrays.Examples:
    rows = query(client_id)
    if len(rows) != sizes[client_id]:
      raise ValueError(
          f'{path} has {len(rows)} examples of client {client_id!r} in split '
          f'{split_name!r}, but its table client_metadata says '
          f'{sizes[client_id]}; replace it by an intact copy.'
      )
    try:
      return _parse(rows, features, stored)
    except ValueError as error:
      raise ValueError(f'{path}, client {client_id!r}: {error}') from error
    except tf.errors.OpError as error:
      wanted = ', '.join(
          f'{name} ({spec.dtype.name} of shape {spec.shape})'
          for name, spec in features.items()
      )
      raise ValueError(
          f'{path}: the examples of client {client_id!r} in split '
          f'{split_name!r} do not have the features {wanted} '
          f'({_error_texts.first_line(error)}).'
      ) from error

  return client_data.LazyClientArrays(
      sorted(sizes),
      load,
      collections.OrderedDict(features),
      cache_bytes=cache_bytes,
      client_sizes=sizes,
  )


def _check_file(path: pathlib.Path) -> None:
  """Raises unless a file has the tables of TFF's format."""
  if not path.exists():
    raise FileNotFoundError(f'There is no file {path}.')
  if not path.stat().st_size:
    raise ValueError(f'{path} is empty; replace it by an intact copy.')
  _files.check_readable(path)
  for table, columns in _TABLES.items():
    found = [row[1] for row in _fetch(path, f'PRAGMA table_info({table})')]
    missing = [column for column in columns if column not in found]
    if missing:
      raise ValueError(
          f'{path} must have a table {table} with the columns '
          f'{", ".join(columns)}, as in TFF\'s files, but '
          f'{", ".join(missing) if found else "the table"} is missing.'
      )
  try:
    rows = _fetch(path, 'SELECT rowid FROM examples LIMIT 1')
  except ValueError as error:
    if 'no such column' not in str(error):
      raise
    rows = [(None,)]
  if rows == [(None,)]:  # Older versions of SQLite have it in views.
    raise ValueError(
        f'{path} has a view, or a table WITHOUT ROWID, as examples, which have '
        'no order then; copy it with `CREATE TABLE copy AS SELECT * FROM '
        'examples` in sqlite3, and name the copy examples.'
    )


def _fetch(
    path: pathlib.Path, query: str, *values: Any
) -> list[tuple[Any, ...]]:
  """Opens the file and returns the rows of a query."""
  quoted = urllib.parse.quote(str(path.absolute()))
  try:
    with contextlib.closing(
        sqlite3.connect(f'file:{quoted}?mode=ro', uri=True)
    ) as connection:
      return connection.execute(query, values).fetchall()
  except sqlite3.OperationalError as error:
    raise ValueError(f'{path} could not be read: {error}.') from error
  except sqlite3.DatabaseError as error:
    raise ValueError(
        f'{path} is damaged, or not a SQLite file ({error}); replace it by an '
        'intact copy.'
    ) from error


def _read_sizes(path: pathlib.Path, split_name: str) -> dict[str, int]:
  """Returns the number of examples of each client of a split."""
  rows = _fetch(
      path,
      'SELECT client_id, num_examples FROM client_metadata '
      'WHERE split_name = ?',
      split_name,
  )
  if rows:
    return _checked_sizes(path, split_name, rows)
  names = _fetch(path, 'SELECT DISTINCT split_name FROM client_metadata')
  known = ', '.join(sorted(repr(name) for (name,) in names))
  if not known:
    raise ValueError(
        f'{path} has no clients in its table client_metadata; replace it by an '
        'intact copy.'
    )
  raise ValueError(f'{path} has no split {split_name!r}; it has {known}.')


def _checked_sizes(
    path: pathlib.Path, split_name: str, rows: list[tuple[Any, ...]]
) -> dict[str, int]:
  """Returns the number of examples of each client, if they are a mapping."""
  sizes: dict[str, int] = {}
  for client_id, size in rows:
    if not isinstance(client_id, str):
      raise ValueError(
          f'{path} must have text as client ids, found {client_id!r} in its '
          'table client_metadata; `UPDATE client_metadata SET client_id = '
          'CAST(client_id AS TEXT)` in sqlite3, and the same for examples, '
          'mends that.'
      )
    if not isinstance(size, int):
      raise ValueError(
          f'{path} must have numbers of examples in its table client_metadata, '
          f'found {size!r} for client {client_id!r}.'
      )
    if client_id in sizes:
      raise ValueError(
          f'{path} has client {client_id!r} more than once in split '
          f'{split_name!r} of its table client_metadata; leave one row, with '
          'the number of all of its examples.'
      )
    sizes[client_id] = size
  return sizes


def _build_query(
    path: pathlib.Path, split_name: str, known: Container[str]
) -> Callable[[str], list[bytes]]:
  """Returns a function that reads the serialized examples of a client."""
  select = 'SELECT serialized_example_proto FROM examples'
  # In the order of writing, with any index.
  query = f'{select} WHERE client_id = ? AND split_name = ? ORDER BY rowid'
  plan = _fetch(path, f'EXPLAIN QUERY PLAN {query}', 'client', split_name)
  if any('client_id=?' in str(row[-1]) for row in plan):
    return lambda client_id: [
        example for (example,) in _fetch(path, query, client_id, split_name)
    ]
  logging.warning(
      '%s has no index on its clients, so the whole file is scanned once now; '
      '`CREATE INDEX clients ON examples (client_id, split_name)` in sqlite3 '
      'avoids that.',
      path,
  )
  places = collections.defaultdict(list)
  for client_id, place in _fetch(
      path,
      'SELECT client_id, rowid FROM examples WHERE split_name = ?',
      split_name,
  ):
    places[client_id].append(str(place))
  for client_id in places:
    if client_id not in known:
      raise ValueError(
          f'{path} has examples of client {client_id!r} in split '
          f'{split_name!r}, but no such client in its table client_metadata; '
          'add it, with the number of its examples.'
      )

  def read(client_id: str) -> list[bytes]:
    rows = ','.join(places.get(client_id, ()))
    ordered = f'{select} WHERE rowid IN ({rows}) ORDER BY rowid'
    return [example for (example,) in _fetch(path, ordered)]

  return read


def _parse(
    rows: list[bytes],
    features: Mapping[str, tf.TensorSpec],
    stored: Mapping[str, tf.io.FixedLenFeature],
) -> feature_arrays.Examples:
  """Parses serialized examples into arrays of the wanted types."""
  for row in rows:
    if not isinstance(row, bytes):
      raise ValueError(
          f'an example must be a BLOB, found the {type(row).__name__} '
          f'{str(row)[:40]!r}; replace it by the bytes of a tf.train.Example.'
      )
  parsed = tf.io.parse_example(np.asarray(rows, np.object_), stored)
  return collections.OrderedDict(
      (name, _convert(parsed[name].numpy(), name, spec.dtype))
      for name, spec in features.items()
  )


def _convert(array: np.ndarray, name: str, dtype: tf.DType) -> np.ndarray:
  """Converts a feature to its type, which must hold all values."""
  if dtype == tf.uint64:  # The file stores its bits as int64.
    return array.astype(np.uint64)
  converted, changed = specs.cast(array, dtype.as_numpy_dtype)
  if changed.any():
    raise ValueError(
        f'feature {name!r} has the value {array[changed][0]}, which '
        f'{dtype.name} cannot hold; read it as another type.'
    )
  return converted


def _stored_type(name: str, dtype: tf.DType) -> tf.DType:
  """Returns the type in which the file stores a feature of a type."""
  if dtype == tf.string:
    return tf.string
  if dtype.is_floating:
    return tf.float32
  if dtype.is_integer or dtype.is_bool:
    return tf.int64
  raise TypeError(
      f'Feature {name!r} must be of a float, integer or string type to be read '
      f'from a file, found {dtype.name}.'
  )


def write_sqlite_clients(
    path: _files.PathLike,
    splits: Mapping[str, client_data.ClientArrays],
) -> None:
  """Writes clients to a SQLite file that TFF can read, too.

  Clients are read and written one after the other, so that memory is bounded.

  Args:
    path: The file, which appears when it is complete; its folder is created.
    splits: The clients of each split, for example of 'train' and 'test'. Floats
      are stored as float32, rounded, integers and booleans as int64 (uint64 as
      its bits), strings as bytes.

  Raises:
    FileExistsError: If the file exists, or another process or thread was
      faster; that file stays.
    TypeError: If a feature has another type.
    ValueError: If float32 cannot hold a number; names the client.

  Example:

    >>> clients = client_data.PackedClientArrays.from_clients(
    ...     {'ann': {'x': np.array([1.0, 2.0], np.float32)}})
    >>> write_sqlite_clients('mine.sqlite', {'train': clients})
    >>> mine = load_sqlite_clients('mine.sqlite', 'train', clients.element_spec)
    >>> mine.examples('ann')['x']
    array([1., 2.], dtype=float32)

  References:
    TensorFlow Federated, `tff.simulation.datasets.SqlClientData`.
  """
  path = pathlib.Path(path)
  if path.exists():
    raise _exists(path)
  path.parent.mkdir(parents=True, exist_ok=True)
  # Of its own, because others may be writing to the same path.
  part = path.with_name(f'{path.name}.{secrets.token_hex(8)}.part')
  # A new file, and no link to another.
  os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
  try:
    with contextlib.closing(sqlite3.connect(part)) as connection, connection:
      for table, columns in _TABLES.items():
        described = [
            f'{name} {kind} NOT NULL' for name, kind in columns.items()
        ]
        connection.execute(f'CREATE TABLE {table} ({", ".join(described)})')
      for split_name, source in splits.items():
        _write_split(connection, split_name, source)
      connection.execute(
          'CREATE INDEX clients ON examples (client_id, split_name)'
      )
    try:
      os.link(part, path)  # Fails if there is a file; renaming replaces it.
    except OSError:
      try:
        path.touch(exist_ok=False)
      except FileExistsError as error:
        raise _exists(path) from error
      os.replace(part, path)  # On a file system without links.
  finally:
    part.unlink(missing_ok=True)


def _exists(path: pathlib.Path) -> FileExistsError:
  return FileExistsError(f'{path} exists already; delete it first.')


def _write_split(
    connection: sqlite3.Connection,
    split_name: str,
    source: client_data.ClientArrays,
) -> None:
  for client_id in source.client_ids:
    columns = {
        name: _to_stored(array, name, client_id)
        for name, array in source.examples(client_id).items()
    }
    connection.executemany(
        'INSERT INTO examples VALUES (?, ?, ?)',
        ((split_name, client_id, example) for example in _serialize(columns)),
    )
    connection.execute(
        'INSERT INTO client_metadata VALUES (?, ?, ?)',
        (client_id, split_name, source.num_examples(client_id)),
    )


def _to_stored(array: np.ndarray, name: str, client_id: str) -> np.ndarray:
  """Returns a feature in the type in which files store it."""
  kind = specs.kind(array.dtype)
  if kind == 'f':
    stored, changed = specs.cast(array, np.float32)
    if changed.any():
      raise ValueError(
          f'Client {client_id!r}: feature {name!r} has the value '
          f'{array[changed][0]}, but the file stores float32, which cannot '
          'hold it; scale it.'
      )
    return stored
  if kind in 'iub':
    return array.astype(np.int64)
  if kind in 'OSU':
    return array
  raise TypeError(
      f'Feature {name!r} must be of a float, integer or string type to be '
      f'written, found {array.dtype}.'
  )


def _serialize(examples: Mapping[str, np.ndarray]) -> Iterator[bytes]:
  """Yields examples as serialized `tf.train.Example`s."""
  for row in zip(*examples.values()):
    features = {name: _to_feature(value) for name, value in zip(examples, row)}
    yield tf.train.Example(
        features=tf.train.Features(feature=features)
    ).SerializeToString()


def _to_feature(value: Any) -> tf.train.Feature:
  if isinstance(value, (bytes, str)):
    value = np.array([value], np.object_)  # Of kind S, it would lose zeros.
  values = np.ravel(value)
  if values.dtype.kind == 'f':
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))
  if values.dtype.kind == 'i':
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))
  as_bytes = [v.encode() if isinstance(v, str) else bytes(v) for v in values]
  return tf.train.Feature(bytes_list=tf.train.BytesList(value=as_bytes))
