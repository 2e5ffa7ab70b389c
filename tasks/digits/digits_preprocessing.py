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
"""Loading and splitting scikit-learn's handwritten digits."""

import collections

import numpy as np
import tensorflow as tf

from tff_adaptive.data import feature_arrays
from tff_adaptive.data import partition
from tff_adaptive.data import random_streams

NUM_CLASSES = 10
IMAGE_SHAPE = (8, 8, 1)
# Of one example, as `load_digits` returns them.
ELEMENT_SPEC = collections.OrderedDict(
    x=tf.TensorSpec(IMAGE_SHAPE, tf.float32), y=tf.TensorSpec([], tf.int32)
)
TEST_FRACTION = 0.2

# The split is part of the task, not of a run: accuracies of different seeds are
# measured on the same test images.
_SPLIT_SEED = 0
_MAX_PIXEL = 16.0


def load_digits() -> tuple[feature_arrays.Examples, feature_arrays.Examples]:
  """Loads the digits, scaled and split into training and test examples.

  1,797 images of 10 classes, 8x8 pixels each, which come with scikit-learn (the
  test part of the UCI data set "Optical Recognition of Handwritten Digits").
  In every class a fifth of the images, rounded, is for testing; which ones is
  fixed for ever and depends on no seed.

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
  # Here, because it takes a second that no other task should pay.
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


def partition_digits(
    labels: np.ndarray, num_clients: int, alpha: float, seed: int
) -> partition.ClientIndices:
  """Splits training examples among clients that differ in their classes.

  Args:
    labels: The class of every training example, integers of shape
      [num_examples].
    num_clients: Number of clients, positive, and at most that of examples.
    alpha: Concentration of `partition.dirichlet_per_client`, positive;
      infinity for i.i.d. clients.
    seed: The seed of the partition, a non-negative integer.

  Returns:
    For every client id the rows that it holds; every example is in exactly one.

  Raises:
    ValueError: If `alpha` or `num_clients` is out of range.

  Example:

    >>> parts = partition_digits(np.zeros([9], np.int32), 3, 0.3, seed=1)
    >>> [len(rows) for rows in parts.values()]
    [3, 3, 3]
  """
  if num_clients > len(labels):
    raise ValueError(
        f'`num_clients` must be at most {len(labels)}, the number of training '
        f'images, found {num_clients}.'
    )
  if np.isposinf(alpha):
    return partition.iid(len(labels), num_clients, seed)
  return partition.dirichlet_per_client(labels, num_clients, alpha, seed)


def _stratified_choice(labels: np.ndarray, fraction: float) -> np.ndarray:
  """Returns which examples are chosen: a fraction of every class, rounded."""
  chosen = np.zeros(labels.shape, bool)
  for label in np.unique(labels):
    rows = np.flatnonzero(labels == label)
    generator = random_streams.stream(
        _SPLIT_SEED, random_streams.DATA_SPLIT, 'digits', int(label)
    )
    count = round(fraction * len(rows))
    chosen[generator.permutation(rows)[:count]] = True
  return chosen
