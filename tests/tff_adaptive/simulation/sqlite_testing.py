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
"""Writes SQLite files in TFF's format for tests."""

from collections.abc import Mapping, Sequence
import contextlib
import os
import sqlite3
from typing import Any, Union

import tensorflow as tf


def serialize(**features: Sequence[Any]) -> bytes:
  """Returns a `tf.train.Example` of floats, integers or bytes, serialized."""

  def feature(values):
    if isinstance(values[0], bytes):
      return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
    if isinstance(values[0], float):
      return tf.train.Feature(float_list=tf.train.FloatList(value=values))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))

  return tf.train.Example(
      features=tf.train.Features(
          feature={name: feature(values) for name, values in features.items()}
      )
  ).SerializeToString()


def write(
    path: Union[str, os.PathLike],
    splits: Mapping[str, Mapping[str, Sequence[bytes]]],
    *,
    with_index: bool = True,
) -> None:
  """Writes a file.

  Args:
    path: Where it is to be.
    splits: For every split and client its serialized examples.
    with_index: Whether there is an index on the clients.
  """
  with contextlib.closing(sqlite3.connect(path)) as connection, connection:
    connection.execute(
        'CREATE TABLE examples (split_name TEXT NOT NULL, client_id TEXT NOT '
        'NULL, serialized_example_proto BLOB NOT NULL)'
    )
    connection.execute(
        'CREATE TABLE client_metadata (client_id TEXT NOT NULL, split_name '
        'TEXT NOT NULL, num_examples INTEGER NOT NULL)'
    )
    clients = [
        (split_name, client_id, rows)
        for split_name, members in splits.items()
        for client_id, rows in members.items()
    ]
    connection.executemany(
        'INSERT INTO examples VALUES (?, ?, ?)',
        ((split, name, row) for split, name, rows in clients for row in rows),
    )
    connection.executemany(
        'INSERT INTO client_metadata VALUES (?, ?, ?)',
        ((name, split, len(rows)) for split, name, rows in clients),
    )
    if with_index:
      connection.execute(
          'CREATE INDEX clients ON examples (client_id, split_name)'
      )
