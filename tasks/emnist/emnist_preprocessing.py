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
"""Loading federated EMNIST, and making it what the models take."""

import collections
from collections.abc import Callable, Mapping
import os
from typing import Optional, Union

import attrs
import numpy as np
import tensorflow as tf

from tasks import client_memory
from tasks import data_files
from tff_adaptive.data import client_data
from tff_adaptive.data import feature_arrays
from tff_adaptive.data import sources
from tff_adaptive.data import sqlite
from tff_adaptive.data import transforms

IMAGE_SHAPE = (28, 28, 1)
NUM_PIXELS = 784
# One example as it is published.
RAW_SPEC = collections.OrderedDict(
    label=tf.TensorSpec([], tf.int32),
    pixels=tf.TensorSpec(IMAGE_SHAPE[:2], tf.float32),
)
# One example as the models take it.
CHARACTER_SPEC = collections.OrderedDict(
    x=tf.TensorSpec(IMAGE_SHAPE, tf.float32), y=tf.TensorSpec([], tf.int32)
)
AUTOENCODER_SPEC = collections.OrderedDict(
    x=tf.TensorSpec([NUM_PIXELS], tf.float32),
    y=tf.TensorSpec([NUM_PIXELS], tf.float32),
)

_NUM_DIGITS = 10
_NUM_CHARACTERS = 62
# Where TFF's loader keeps it, too, if its `cache_dir` is the folder `tff`.
_PLACE = 'tff/emnist_all.sqlite'


@attrs.frozen
class WriterData:
  """Federated EMNIST, or data in its form.

  Attributes:
    train: The writers' training examples.
    central_test: The test examples of all writers together.
    test: The writers' test examples, or None where nobody knows whose they are.
  """

  train: client_data.ClientArrays
  central_test: feature_arrays.Examples
  test: Optional[client_data.ClientArrays]

  def map(
      self,
      fn: Callable[[feature_arrays.Examples], feature_arrays.Examples],
      element_spec: feature_arrays.ElementSpec,
  ) -> 'WriterData':
    """Returns the same with other features.

    Args:
      fn: As for `transforms.map_clients`; cheap, since it is called
        whenever a client that is not in memory is asked for.
      element_spec: Names and `tf.TensorSpec`s of the new features.

    Returns:
      The new data, in memory or not as these are.
    """

    def map_clients(source):
      return transforms.map_clients(
          source, fn, element_spec, keeps_sizes=True, cache_bytes=0
      )

    return WriterData(
        map_clients(self.train),
        fn(self.central_test),
        None if self.test is None else map_clients(self.test),
    )


def num_classes(only_digits: bool) -> int:
  """Returns the number of classes: 10 digits, or those and 52 letters."""
  return _NUM_DIGITS if only_digits else _NUM_CHARACTERS


def load_emnist(
    data_dir: Union[str, os.PathLike],
    *,
    only_digits: bool = False,
    max_bytes_in_memory: int = client_memory.DEFAULT_MAX_BYTES,
) -> WriterData:
  """Loads federated EMNIST, a client for every writer.

  Read is `<data_dir>/tff/emnist_all.sqlite`, the file that
  `tff.simulation.datasets.emnist.load_data` keeps in its `cache_dir`.

  Args:
    data_dir: The folder of the data sets.
    only_digits: Whether there are no letters. Defaults to False.
    max_bytes_in_memory: If the examples of a split take no more than this, they
      are read into memory; else clients are read when they are sampled.
      Defaults to 1 GiB, in which the digits fit, while all characters (2.1 GB)
      do not. The central test data are in memory always.

  Returns:
    3,400 writers with 671,585 training and 77,483 test examples, or 3,383 with
    341,873 and 40,832 digits. 'label' is the class, int32 of shape
    [num_examples]: 0 to 9 are digits, 10 to 35 capital letters, 36 to 61 small
    ones; and 'pixels' float32 of shape [num_examples, 28, 28], 1 the background
    and 0 the ink.

  Raises:
    FileNotFoundError: If there is no such file; says where it belongs and how
      it is downloaded.
    ValueError: If the file is damaged: names it and what is wrong.

  Example:

    >>> emnist = load_emnist('data', only_digits=True)
    >>> len(emnist.train.client_ids), len(emnist.central_test['label'])
    (3383, 40832)

  References:
    Cohen et al., EMNIST: Extending MNIST to handwritten letters, IJCNN 2017,
    https://arxiv.org/abs/1702.05373. Caldas et al., LEAF: A Benchmark for
    Federated Settings, 2018, https://arxiv.org/abs/1812.01097.
  """
  path = data_files.find_data_file(data_dir, _PLACE, 'emnist')
  prefix = 'digits_only' if only_digits else 'all'

  def load(part: str) -> client_data.ClientArrays:
    clients = sqlite.load_sqlite_clients(path, f'{prefix}_{part}', RAW_SPEC)
    return client_memory.keep_if_small(clients, max_bytes_in_memory)

  test = load('test')
  return WriterData(load('train'), transforms.concatenate(test), test)


def read_emnist(
    train_data: sources.ClientSource,
    central_test: sources.ExampleSource,
    test_data: Optional[sources.ClientSource],
) -> WriterData:
  """Reads the caller's own data, in the form of federated EMNIST.

  Args:
    train_data: What `sources.read_clients` takes, of files the rows of
      split 'train'.
    central_test: What `sources.read_examples` takes, of files the rows of
      split 'test'.
    test_data: Clients to evaluate on, of files the rows of split 'test'; or
      None.

  Returns:
    The data, with the features of `RAW_SPEC`.

  Raises:
    FileNotFoundError: If a file is missing.
    TypeError: If a part has the wrong type.
    ValueError: If the features are not those of `RAW_SPEC`.
  """
  train = sources.read_clients(train_data, RAW_SPEC, split_name='train')
  central = sources.read_examples(
      central_test, RAW_SPEC, split_name='test', name='The central test data'
  )
  test = None
  if test_data is not None:
    test = sources.read_clients(
        test_data, RAW_SPEC, split_name='test', name='The test clients'
    )
  return WriterData(train, central, test)


def to_characters(raw: Mapping[str, np.ndarray]) -> feature_arrays.Examples:
  """Makes published examples those of character recognition.

  Args:
    raw: 'pixels', float32 of shape [num_examples, 28, 28], and 'label',
      integers of shape [num_examples].

  Returns:
    'x', the pixels as float32 of shape [num_examples, 28, 28, 1], not copied,
    and 'y', the labels.

  Example:

    >>> pixels = np.ones([3, 28, 28], np.float32)
    >>> to_characters({'label': np.arange(3), 'pixels': pixels})['x'].shape
    (3, 28, 28, 1)

  References:
    `tff.simulation.baselines.emnist`, which does the same.
  """
  return collections.OrderedDict(
      x=raw['pixels'][..., np.newaxis], y=raw['label']
  )


def to_autoencoder_pairs(
    raw: Mapping[str, np.ndarray],
) -> feature_arrays.Examples:
  """Makes published examples those of the autoencoder.

  ```
  x = y = 1 - pixels
  ```

  Args:
    raw: 'pixels', float32 of shape [num_examples, 28, 28].

  Returns:
    'x' and 'y', one array: float32 of shape [num_examples, 784], 0 the
    background and 1 the ink.

  Example:

    >>> pixels = np.ones([3, 28, 28], np.float32)
    >>> float(to_autoencoder_pairs({'pixels': pixels})['y'].max())
    0.0

  References:
    `tff.simulation.baselines.emnist`, which does the same.
  """
  ink = 1 - raw['pixels'].reshape(-1, NUM_PIXELS)
  return collections.OrderedDict(x=ink, y=ink)
