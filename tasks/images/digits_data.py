# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Loads scikit-learn's handwritten digits."""

import collections

import numpy as np

from tasks import data
from tff_adaptive.data import feature_arrays
from tff_adaptive.data import random_streams

NUM_CLASSES = 10
IMAGE_SHAPE = (8, 8, 1)
TEST_FRACTION = 0.2

# The split belongs to the task, not to a run: accuracies of different seeds are
# measured on the same test images.
_SPLIT_SEED = 0
_MAX_PIXEL = 16.0


def load_digits() -> tuple[feature_arrays.Examples, feature_arrays.Examples]:
  """Loads the digits, scaled and split into training and test examples.

  1,797 images of 10 classes, 8x8 pixels each, which come with scikit-learn (the
  test part of the UCI data set "Optical Recognition of Handwritten Digits").
  In every class a fifth of the images, rounded, is held out for testing; the
  split is fixed and does not depend on a seed.

  Returns:
    The 1,438 training and the 359 test examples. In both 'x' is float32 of
    shape [num_examples, 8, 8, 1] in [0, 1], and 'y' the class, int32 of shape
    [num_examples].

  Example:

    >>> train, test = load_digits()
    >>> train['x'].shape, test['y'].shape
    ((1438, 8, 8, 1), (359,))

  References:
    E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, UCI
    Machine Learning Repository, 1998, https://doi.org/10.24432/C50P49.
  """
  # Imported here because it takes a second, which other tasks should not pay.
  from sklearn import datasets  # pylint: disable=g-import-not-at-top

  digits = datasets.load_digits()
  images = (digits.images / _MAX_PIXEL).astype(np.float32)
  images = images.reshape((-1,) + IMAGE_SHAPE)
  labels = digits.target.astype(np.int32)
  is_test = _stratified_choice(labels, TEST_FRACTION)
  return (
      collections.OrderedDict(x=images[~is_test], y=labels[~is_test]),
      collections.OrderedDict(x=images[is_test], y=labels[is_test]),
  )


class Digits(data.Data):
  """The digits, scaled to [0, 1]."""

  reads_files = False

  def load(self, args, data_dir, seed):
    del args, data_dir, seed  # Unused.
    return data.Splits(*load_digits())

  def published_spec(self):
    return data.spec(x=('float32', IMAGE_SHAPE), y=('int32', []))

  def element_spec(self, args):
    return self.published_spec()

  def num_classes(self, args):
    return NUM_CLASSES


def _stratified_choice(labels: np.ndarray, fraction: float) -> np.ndarray:
  """Returns a mask that selects a fraction of each class, rounded."""
  chosen = np.zeros(labels.shape, bool)
  for label in np.unique(labels):
    rows = np.flatnonzero(labels == label)
    generator = random_streams.stream(
        _SPLIT_SEED, random_streams.DATA_SPLIT, 'digits', int(label)
    )
    count = round(fraction * len(rows))
    chosen[generator.permutation(rows)[:count]] = True
  return chosen
