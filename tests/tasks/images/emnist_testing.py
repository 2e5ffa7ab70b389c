# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Small federated EMNIST for tests."""

import pathlib

import numpy as np

from tff_adaptive.data import client_data
from tff_adaptive.data import sqlite

TRAIN_SIZES = {'f0001_41': 5, 'f0000_14': 3}


def examples(num_examples, seed, num_classes=62):
  """Returns made-up examples as they are published."""
  generator = np.random.default_rng(seed)
  return {
      'label': generator.integers(0, num_classes, [num_examples], np.int32),
      'pixels': generator.random([num_examples, 28, 28], np.float32),
  }


def clients(sizes, seed=0, num_classes=62):
  """Returns made-up examples of writers."""
  return {
      client_id: examples(size, seed + size, num_classes)
      for client_id, size in sizes.items()
  }


def splits():
  """Returns the examples of all splits of a file."""
  test_sizes = {client_id: 2 for client_id in TRAIN_SIZES}
  return {
      'all_train': clients(TRAIN_SIZES),
      'all_test': clients(test_sizes, seed=10),
      'digits_only_train': clients(TRAIN_SIZES, seed=20, num_classes=10),
      'digits_only_test': clients(test_sizes, seed=30, num_classes=10),
  }


def write(data_dir):
  """Writes `splits` where they are looked for, and returns the file."""
  path = pathlib.Path(data_dir) / 'tff' / 'emnist_all.sqlite'
  path.parent.mkdir(parents=True)
  sqlite.write_sqlite_clients(
      path,
      {
          split: client_data.PackedClientArrays.from_clients(members)
          for split, members in splits().items()
      },
  )
  return path
