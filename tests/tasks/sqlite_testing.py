# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes small SQLite files in the format of TFF's data sets."""

import collections
from collections.abc import Iterable, Mapping
import contextlib
import pathlib
import sqlite3

import tensorflow as tf

_TABLES = """
    CREATE TABLE examples (split_name TEXT NOT NULL, client_id TEXT NOT NULL,
        serialized_example_proto BLOB NOT NULL);
    CREATE TABLE client_metadata (client_id TEXT NOT NULL,
        split_name TEXT NOT NULL, num_examples INTEGER NOT NULL);
    CREATE INDEX clients ON examples (client_id, split_name);
"""


def to_proto(example: Mapping[str, bytes]) -> bytes:
  """Returns an example of strings as TFF's files have it."""
  features = {
      name: tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))
      for name, value in example.items()
  }
  return tf.train.Example(
      features=tf.train.Features(feature=features)
  ).SerializeToString()


def write_rows(path: pathlib.Path, rows: Iterable[tuple[str, str, bytes]]):
  """Writes rows of split, client and serialized example, in a new folder."""
  path.parent.mkdir(parents=True, exist_ok=True)
  sizes: collections.Counter[tuple[str, str]] = collections.Counter()

  def counted():
    for row in rows:
      sizes[row[:2]] += 1
      yield row

  with contextlib.closing(sqlite3.connect(path)) as connection, connection:
    connection.executescript(_TABLES)
    connection.executemany('INSERT INTO examples VALUES (?, ?, ?)', counted())
    connection.executemany(
        'INSERT INTO client_metadata VALUES (?, ?, ?)',
        ((client, split, size) for (split, client), size in sizes.items()),
    )


def write(
    path: pathlib.Path,
    splits: Mapping[str, Mapping[str, Mapping[str, Iterable[bytes]]]],
):
  """Writes the features of the clients of splits."""
  write_rows(
      path,
      (
          (split, client, to_proto(dict(zip(features, example))))
          for split, clients in splits.items()
          for client, features in clients.items()
          for example in zip(*features.values())
      ),
  )
