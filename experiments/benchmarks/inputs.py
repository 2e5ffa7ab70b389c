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
"""Random clients of the shapes of well-known data sets.

Nothing is to be learned from them: only the time of learning counts.
"""

import numpy as np

from experiments.benchmarks import workloads
from tff_adaptive.data import client_data
from tff_adaptive.data import random_streams

NUM_PIXELS = 28 * 28
NUM_DIGITS = 10
NUM_CHARACTERS = 62
VOCABULARY_SIZE = 90
SEQUENCE_LENGTH = 80
NUM_WORDS = 10_000
NUM_TAGS = 500
WORDS_PER_EXAMPLE = 20
_TAGS_PER_EXAMPLE = 2

_Features = dict[str, np.ndarray]


def _make_vectors(rng: np.random.Generator, num_rows: int) -> _Features:
  """Makes flat images of digits."""
  return {
      'x': rng.random((num_rows, NUM_PIXELS), dtype=np.float32),
      'y': rng.integers(NUM_DIGITS, size=num_rows, dtype=np.int32),
  }


def _make_images(rng: np.random.Generator, num_rows: int) -> _Features:
  """Makes grey images of handwritten characters."""
  bytes_ = rng.integers(256, size=(num_rows, 28, 28, 1), dtype=np.uint8)
  return {
      'x': bytes_.astype(np.float32) / 255,
      'y': rng.integers(NUM_CHARACTERS, size=num_rows, dtype=np.int32),
  }


def _make_sequences(rng: np.random.Generator, num_rows: int) -> _Features:
  """Makes texts; each token's label is the token after it."""
  # Token 0 is for padding, and there is none.
  tokens = rng.integers(
      1, VOCABULARY_SIZE, size=(num_rows, SEQUENCE_LENGTH + 1), dtype=np.int32
  )
  return {'x': tokens[:, :-1], 'y': tokens[:, 1:]}


def _make_bags(rng: np.random.Generator, num_rows: int) -> _Features:
  """Makes questions as frequencies of words, and their tags."""
  examples = _make_words(rng, num_rows)
  words = _mark(examples['x'], NUM_WORDS)
  return {**examples, 'x': words / np.float32(WORDS_PER_EXAMPLE)}


def _make_words(rng: np.random.Generator, num_rows: int) -> _Features:
  """Makes the same questions as the numbers of their words."""
  tags = _choose(rng, num_rows, NUM_TAGS, _TAGS_PER_EXAMPLE)
  return {
      'x': _choose(rng, num_rows, NUM_WORDS, WORDS_PER_EXAMPLE),
      'y': _mark(tags, NUM_TAGS),
  }


def _choose(
    rng: np.random.Generator, num_rows: int, num_columns: int, num_chosen: int
) -> np.ndarray:
  """Returns rows of different numbers of columns."""
  rows = [
      rng.choice(num_columns, num_chosen, replace=False)
      for _ in range(num_rows)
  ]
  return np.stack(rows).astype(np.int32)


def _mark(chosen: np.ndarray, num_columns: int) -> np.ndarray:
  """Returns rows of zeros with ones in the columns that were chosen."""
  rows = np.zeros((len(chosen), num_columns), np.float32)
  np.put_along_axis(rows, chosen, 1, axis=1)
  return rows


# By the model that learns from them.
MAKERS = {
    'logistic': _make_vectors,
    'cnn': _make_images,
    'lstm': _make_sequences,
    'tags': _make_bags,
    'word_tags': _make_words,
}


def build_clients(
    workload: workloads.Workload, seed: int
) -> client_data.PackedClientArrays:
  """Builds the clients of a workload.

  Args:
    workload: The workload.
    seed: The seed of the data.

  Returns:
    The clients; their ids are strings.

  Example:

    >>> clients = build_clients(workloads.WORKLOADS['ragged'], seed=0)
    >>> clients.num_examples('0'), clients.num_examples('99')
    (1, 400)
  """
  rng = random_streams.stream(seed, 'benchmark', workload.model)
  sizes = np.linspace(*workload.examples_per_client, workload.num_clients)
  offsets = np.cumsum([0, *np.rint(sizes).astype(np.int64)])
  num_examples = offsets[-1]
  values = MAKERS[workload.model](rng, workload.num_rows or num_examples)
  indices = None
  if workload.num_rows is not None:
    indices = rng.integers(workload.num_rows, size=num_examples)
  return client_data.PackedClientArrays(
      values, offsets, map(str, range(workload.num_clients)), indices=indices
  )
