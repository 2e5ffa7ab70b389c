# Copyright 2026 The tff_adaptive Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""Writing clients to SQLite files in TFF's format."""

from collections.abc import Iterator, Mapping
import contextlib
import os
import pathlib
import sqlite3
from typing import Any, Union

import numpy as np
import tensorflow as tf

from tff_adaptive.simulation import client_data

_TABLES = {
    'examples': (
        'split_name TEXT NOT NULL',
        'client_id TEXT NOT NULL',
        'serialized_example_proto BLOB NOT NULL',
    ),
    'client_metadata': (
        'client_id TEXT NOT NULL',
        'split_name TEXT NOT NULL',
        'num_examples INTEGER NOT NULL',
    ),
}
_INDEX = 'CREATE INDEX clients ON examples (client_id, split_name)'


def write_sqlite_clients(
    path: Union[str, os.PathLike],
    splits: Mapping[str, client_data.ClientArrays],
) -> None:
  """Writes clients to a SQLite file that TFF reads, too.

  Clients are read and written one after the other, so that memory stays flat.

  Args:
    path: The file; it appears when it is complete.
    splits: The clients of every split, for instance of 'train' and 'test'.
      Floats are stored as float32, integers and booleans as int64, strings as
      bytes.

  Raises:
    FileExistsError: If there is such a file.
    TypeError: If a feature has another type.

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
    raise FileExistsError(f'There is a file {path} already; delete it first.')
  part = path.with_name(f'{path.name}.part')
  part.unlink(missing_ok=True)
  try:
    with contextlib.closing(sqlite3.connect(part)) as connection, connection:
      for table, columns in _TABLES.items():
        connection.execute(f'CREATE TABLE {table} ({", ".join(columns)})')
      for split_name, source in splits.items():
        _write_split(connection, split_name, source)
      connection.execute(_INDEX)
    part.rename(path)
  finally:
    part.unlink(missing_ok=True)


def _write_split(
    connection: sqlite3.Connection,
    split_name: str,
    source: client_data.ClientArrays,
) -> None:
  for client_id in source.client_ids:
    connection.executemany(
        'INSERT INTO examples VALUES (?, ?, ?)',
        (
            (split_name, client_id, example)
            for example in _serialize(source.examples(client_id))
        ),
    )
    connection.execute(
        'INSERT INTO client_metadata VALUES (?, ?, ?)',
        (client_id, split_name, source.num_examples(client_id)),
    )


def _serialize(examples: Mapping[str, np.ndarray]) -> Iterator[bytes]:
  """Yields examples as serialized `tf.train.Example`s."""
  for row in zip(*examples.values()):
    features = {
        name: _to_feature(name, value) for name, value in zip(examples, row)
    }
    yield tf.train.Example(
        features=tf.train.Features(feature=features)
    ).SerializeToString()


def _to_feature(name: str, value: Any) -> tf.train.Feature:
  values = np.ravel(value)
  if values.dtype.kind == 'f':
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))
  if values.dtype.kind in 'iub':
    integers = values.astype(np.int64)
    return tf.train.Feature(int64_list=tf.train.Int64List(value=integers))
  if values.dtype.kind in 'OSU':
    as_bytes = [v.encode() if isinstance(v, str) else bytes(v) for v in values]
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=as_bytes))
  raise TypeError(
      f'Feature {name!r} must be of a float, integer or string type to be '
      f'written, found {values.dtype}.'
  )
