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
