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
"""Loading CIFAR-100: TFF's clients, or the central data set."""

import os
import pathlib
from typing import Optional, Union

import numpy as np

from tasks import client_memory
from tasks import npz_images
from tasks.cifar import cifar_files
from tasks.cifar import cifar_preprocessing
from tasks.cifar import cifar_tasks
from tff_adaptive.data import feature_arrays
from tff_adaptive.data import sqlite
from tff_adaptive.data import transforms

NUM_CLASSES = 100
# Of all training pixels.
STATISTICS = cifar_preprocessing.ChannelStatistics(
    mean=(0.5071, 0.4865, 0.4409), deviation=(0.2673, 0.2564, 0.2762)
)
FILES = cifar_files.CifarFiles(
    images=npz_images.ImageDataset(
        'cifar100', 'CIFAR-100', cifar_preprocessing.IMAGE_SHAPE, NUM_CLASSES
    ),
    folder='cifar-100-python',
    train_names=('train',),
    test_names=('test',),
    label_key='fine_labels',
)
# The coarse class of every class, both in alphabetical order.
# fmt: off
COARSE_CLASSES = np.array([
    4, 1, 14, 8, 0, 6, 7, 7, 18, 3,
    3, 14, 9, 18, 7, 11, 3, 9, 7, 11,
    6, 11, 5, 10, 7, 6, 13, 15, 3, 15,
    0, 11, 1, 10, 12, 14, 16, 9, 11, 5,
    5, 19, 8, 8, 15, 13, 14, 17, 18, 10,
    16, 4, 17, 4, 2, 0, 17, 4, 18, 17,
    10, 3, 2, 12, 12, 16, 12, 1, 9, 19,
    2, 10, 0, 1, 16, 12, 9, 13, 15, 13,
    16, 19, 2, 4, 6, 19, 5, 5, 8, 19,
    18, 1, 2, 15, 6, 0, 17, 8, 14, 13,
])
# fmt: on

_SQLITE = pathlib.Path('tff', 'cifar100.sqlite')
_PathLike = Union[str, os.PathLike]


def load_tff_cifar100(data_dir: _PathLike) -> Optional[cifar_tasks.CifarData]:
  """Loads TFF's clients of CIFAR-100, which Pachinko allocation has drawn.

  Args:
    data_dir: The folder of `tff/cifar100.sqlite`, the file that
      `tff.simulation.datasets.cifar100.load_data` keeps in its `cache_dir`.

  Returns:
    500 training and 100 test clients with 100 images each; None if there is no
    such file.

  Raises:
    ValueError: If the file is damaged: names it and what is wrong.

  Example:

    >>> data = load_tff_cifar100('data')
    >>> len(data.train.client_ids), len(data.central_test['y'])
    (500, 10000)

  References:
    Reddi et al., Adaptive Federated Optimization, ICLR 2021,
    https://arxiv.org/abs/2003.00295, Appendix F.
  """
  path = pathlib.Path(data_dir) / _SQLITE
  if not path.exists():
    return None
  train, test = (
      client_memory.keep_if_small(
          cifar_tasks.to_clients(
              sqlite.load_sqlite_clients(
                  path, split, cifar_preprocessing.RAW_SPEC
              )
          )
      )
      for split in ('train', 'test')
  )
  return cifar_tasks.CifarData(train, transforms.concatenate(test), test)


def load_cifar100(
    data_dir: _PathLike, *, download: bool = False
) -> tuple[feature_arrays.Examples, feature_arrays.Examples]:
  """Loads the central data set.

  Args:
    data_dir: The folder of `cifar100.npz`, of `tfds/cifar100`, or of
      `cifar-100-python`, see `cifar_files.CifarFiles.load`; if there is none,
      of `tff/cifar100.sqlite`, whose clients together are the data set.
    download: Whether tensorflow-datasets downloads the data to
      `<data_dir>/tfds` if there are none. Defaults to False.

  Returns:
    The training and the test examples, 50,000 and 10,000 in the original. In
    both 'x' is uint8 of shape [num_examples, 32, 32, 3], and 'y' the (fine)
    class, int32 of shape [num_examples]; `COARSE_CLASSES[y]` is the coarse one.

  Raises:
    FileNotFoundError: If there are no data; says where they belong and how they
      are downloaded.
    OSError: If they could not be downloaded.
    ValueError: If the data are damaged: names the file and what is wrong.

  Example:

    >>> train, test = load_cifar100('data')
    >>> train['x'].shape
    (50000, 32, 32, 3)

  References:
    Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009,
    https://www.cs.toronto.edu/~kriz/cifar.html.
  """
  try:
    return FILES.load(pathlib.Path(data_dir), download=download)
  except FileNotFoundError:
    data = load_tff_cifar100(data_dir)
    if data is None:
      raise
    return transforms.concatenate(data.train), data.central_test
