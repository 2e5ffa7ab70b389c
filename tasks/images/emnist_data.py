# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Loads federated EMNIST and converts it for the models."""

import collections
from collections.abc import Mapping

import numpy as np

from tasks import data
from tasks import data_files
from tasks import synthetic_data
from tasks.arguments import Argument
from tff_adaptive.data import feature_arrays
from tff_adaptive.data import transforms

IMAGE_SHAPE = (28, 28, 1)
NUM_PIXELS = 784

_NUM_DIGITS = 10
_NUM_CHARACTERS = 62
# TFF's loader keeps it there, too, if its `cache_dir` is the folder `tff`.
_PLACE = 'tff/emnist_all.sqlite'


class Characters(data.Data):
  """The characters, with a client for each writer.

  There are 3,400 writers with 671,585 training and 77,483 test examples, or
  3,383 with 341,873 and 40,832 digits. A published example has the class
  'label', where 0 to 9 are digits, 10 to 35 uppercase and 36 to 61 lowercase
  letters, and 'pixels', with 1 for the background and 0 for the ink. The
  central test data are always in memory.

  References:
    Cohen et al., EMNIST: Extending MNIST to handwritten letters, IJCNN 2017,
    https://arxiv.org/abs/1702.05373. Caldas et al., LEAF: A Benchmark for
    Federated Settings, 2018, https://arxiv.org/abs/1812.01097. The preparation
    is that of `tff.simulation.baselines.emnist`.
  """

  arguments = (
      Argument('only_digits', False, 'Whether to use only digits, no letters.'),
      data_files.MAX_BYTES_IN_MEMORY,
  )
  # Preparation is fast.
  cache_bytes = 0

  def check_files(self, data_dir):
    data_files.find_data_file(data_dir, _PLACE, 'emnist')

  def load(self, args, data_dir, seed):
    del seed  # Unused.
    # Imported here because it imports TensorFlow.
    from tff_adaptive.data import sqlite  # pylint: disable=import-outside-toplevel

    path = data_files.find_data_file(data_dir, _PLACE, 'emnist')
    writers = 'digits_only' if args.only_digits else 'all'
    train, test = (
        data_files.keep_if_small(
            sqlite.load_sqlite_clients(
                path, f'{writers}_{part}', self.published_spec()
            ),
            args.max_bytes_in_memory,
        )
        for part in ('train', 'test')
    )
    return data.Splits(train, transforms.concatenate(test), test)

  def published_spec(self):
    return data.spec(label=('int32', []), pixels=('float32', IMAGE_SHAPE[:2]))

  def element_spec(self, args):
    return data.spec(x=('float32', IMAGE_SHAPE), y=('int32', []))

  def num_classes(self, args):
    return _NUM_DIGITS if args.only_digits else _NUM_CHARACTERS

  def build_prepare(self, args, train, data_dir):
    return _to_characters

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
    return _to_autoencoder_pairs


def _to_characters(raw: Mapping[str, np.ndarray]) -> feature_arrays.Examples:
  """Returns images and classes; the pixels are not copied."""
  return collections.OrderedDict(
      x=raw['pixels'][..., np.newaxis], y=raw['label']
  )


def _to_autoencoder_pairs(
    raw: Mapping[str, np.ndarray],
) -> feature_arrays.Examples:
  """Returns 1 - pixels twice, the same array: 1 is ink, 0 the background."""
  ink = 1 - raw['pixels'].reshape(-1, NUM_PIXELS)
  return collections.OrderedDict(x=ink, y=ink)
