# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Loads federated EMNIST and converts it for the models."""

import collections
from collections.abc import Mapping
import os
from typing import Union

import numpy as np

from tasks import data
from tasks import data_files
from tasks import synthetic_data
from tasks.arguments import Argument
from tff_adaptive.data import client_data
from tff_adaptive.data import feature_arrays
from tff_adaptive.data import transforms

IMAGE_SHAPE = (28, 28, 1)
NUM_PIXELS = 784

_NUM_DIGITS = 10
_NUM_CHARACTERS = 62
# TFF's loader keeps it there, too, if its `cache_dir` is the folder `tff`.
_PLACE = 'tff/emnist_all.sqlite'


class Characters(data.Data):
  """The characters, with a client for each writer."""

  arguments = (
      Argument('only_digits', False, 'Whether to use only digits, no letters.'),
      data_files.MAX_BYTES_IN_MEMORY,
  )
  # Preparation is fast.
  cache_bytes = 0

  def load(self, args, data_dir, seed):
    del seed  # Unused.
    return load_emnist(
        data_dir,
        only_digits=args.only_digits,
        max_bytes_in_memory=args.max_bytes_in_memory,
    )

  def published_spec(self):
    return data.spec(label=('int32', []), pixels=('float32', IMAGE_SHAPE[:2]))

  def element_spec(self, args):
    return data.spec(x=('float32', IMAGE_SHAPE), y=('int32', []))

  def num_classes(self, args):
    return _NUM_DIGITS if args.only_digits else _NUM_CHARACTERS

  def build_prepare(self, args, train, data_dir):
    return to_characters

  @property
  def synthetic_files(self):
    return {_PLACE: synthetic_data.write_emnist}


class Pictures(Characters):
  """The characters as inputs and outputs of an autoencoder."""

  def element_spec(self, args):
    return data.spec(x=('float32', [NUM_PIXELS]), y=('float32', [NUM_PIXELS]))

  def num_classes(self, args):
    return None

  def build_prepare(self, args, train, data_dir):
    return to_autoencoder_pairs


def load_emnist(
    data_dir: Union[str, os.PathLike],
    *,
    only_digits: bool = False,
    max_bytes_in_memory: int = data_files.DEFAULT_MAX_BYTES,
) -> data.Splits:
  """Loads federated EMNIST, with a client for each writer.

  Reads `<data_dir>/tff/emnist_all.sqlite`, the file that
  `tff.simulation.datasets.emnist.load_data` keeps in its `cache_dir`.

  Args:
    data_dir: The folder of the data sets.
    only_digits: Whether to use only digits, no letters. Defaults to False.
    max_bytes_in_memory: The maximum size of a split that is read into memory;
      of a larger one, clients are read when they are sampled. Defaults to 1
      GiB, enough for the digits, but not for all characters (2.1 GB). The
      central test data are always in memory.

  Returns:
    3,400 writers with 671,585 training and 77,483 test examples, or 3,383 with
    341,873 and 40,832 digits. 'label' is the class, int32 of shape
    [num_examples]: 0 to 9 are digits, 10 to 35 uppercase and 36 to 61 lowercase
    letters; 'pixels' is float32 of shape [num_examples, 28, 28], with 1 for the
    background and 0 for the ink.

  Raises:
    FileNotFoundError: If the file does not exist; says where to put it and how
      to download it.
    ValueError: If the file is damaged; names it and the problem.

  Example:

    >>> emnist = load_emnist('data', only_digits=True)
    >>> len(emnist.train.client_ids), len(emnist.central_test['label'])
    (3383, 40832)

  References:
    Cohen et al., EMNIST: Extending MNIST to handwritten letters, IJCNN 2017,
    https://arxiv.org/abs/1702.05373. Caldas et al., LEAF: A Benchmark for
    Federated Settings, 2018, https://arxiv.org/abs/1812.01097.
  """
  # Imported here because it imports TensorFlow.
  from tff_adaptive.data import sqlite  # pylint: disable=import-outside-toplevel

  path = data_files.find_data_file(data_dir, _PLACE, 'emnist')
  published = Characters().published_spec()
  prefix = 'digits_only' if only_digits else 'all'

  def load(part: str) -> client_data.ClientArrays:
    clients = sqlite.load_sqlite_clients(path, f'{prefix}_{part}', published)
    return data_files.keep_if_small(clients, max_bytes_in_memory)

  test = load('test')
  return data.Splits(load('train'), transforms.concatenate(test), test)


def to_characters(raw: Mapping[str, np.ndarray]) -> feature_arrays.Examples:
  """Converts published examples for character recognition.

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
    `tff.simulation.baselines.emnist`, with the same preprocessing.
  """
  return collections.OrderedDict(
      x=raw['pixels'][..., np.newaxis], y=raw['label']
  )


def to_autoencoder_pairs(
    raw: Mapping[str, np.ndarray],
) -> feature_arrays.Examples:
  """Converts published examples for the autoencoder.

  ```
  x = y = 1 - pixels
  ```

  Args:
    raw: 'pixels', float32 of shape [num_examples, 28, 28].

  Returns:
    'x' and 'y', the same array: float32 of shape [num_examples, 784], with 0
    for the background and 1 for the ink.

  Example:

    >>> pixels = np.ones([3, 28, 28], np.float32)
    >>> float(to_autoencoder_pairs({'pixels': pixels})['y'].max())
    0.0

  References:
    `tff.simulation.baselines.emnist`, with the same preprocessing.
  """
  ink = 1 - raw['pixels'].reshape(-1, NUM_PIXELS)
  return collections.OrderedDict(x=ink, y=ink)
