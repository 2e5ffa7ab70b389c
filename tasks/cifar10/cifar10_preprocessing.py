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
"""Loading CIFAR-10."""

import os
import pathlib
from typing import Union

from tasks import npz_images
from tasks.cifar import cifar_files
from tasks.cifar import cifar_preprocessing
from tff_adaptive.data import feature_arrays

NUM_CLASSES = 10
# Those that https://github.com/kuangliu/pytorch-cifar scales by. The deviations
# are means of the images' own ones; those of all pixels are near 0.25.
STATISTICS = cifar_preprocessing.ChannelStatistics(
    mean=(0.4914, 0.4822, 0.4465), deviation=(0.2023, 0.1994, 0.2010)
)
FILES = cifar_files.CifarFiles(
    images=npz_images.ImageDataset(
        'cifar10', 'CIFAR-10', cifar_preprocessing.IMAGE_SHAPE, NUM_CLASSES
    ),
    folder='cifar-10-batches-py',
    train_names=tuple(f'data_batch_{i}' for i in range(1, 6)),
    test_names=('test_batch',),
    label_key='labels',
)


def load_cifar10(
    data_dir: Union[str, os.PathLike], *, download: bool = False
) -> tuple[feature_arrays.Examples, feature_arrays.Examples]:
  """Loads CIFAR-10.

  Args:
    data_dir: The folder of `cifar10.npz`, of `tfds/cifar10`, or of
      `cifar-10-batches-py`; see `cifar_files.CifarFiles.load`.
    download: Whether tensorflow-datasets downloads the data to
      `<data_dir>/tfds` if there are none. Defaults to False.

  Returns:
    The training and the test examples, 50,000 and 10,000 in the original. In
    both 'x' is uint8 of shape [num_examples, 32, 32, 3], and 'y' the class,
    int32 of shape [num_examples].

  Raises:
    FileNotFoundError: If there are no data; says where they belong and how they
      are downloaded.
    OSError: If they could not be downloaded.
    ValueError: If the data are damaged: names the file and what is wrong.

  Example:

    >>> train, test = load_cifar10('data')
    >>> train['x'].shape
    (50000, 32, 32, 3)

  References:
    Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009,
    https://www.cs.toronto.edu/~kriz/cifar.html.
  """
  return FILES.load(pathlib.Path(data_dir), download=download)
