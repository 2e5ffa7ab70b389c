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
"""Loading Fashion-MNIST from a file, or through tensorflow-datasets."""

import os
from typing import Union

from tasks import npz_images
from tff_adaptive.data import feature_arrays

DATASET = npz_images.ImageDataset('fashion_mnist', 'Fashion-MNIST')


def load_fashion_mnist(
    data_dir: Union[str, os.PathLike], *, download: bool = False
) -> tuple[feature_arrays.Examples, feature_arrays.Examples]:
  """Loads Fashion-MNIST, with the pixels scaled as those of MNIST.

  The Delta-SGD experiments scale it by MNIST's mean and deviation, so that its
  own pixels have mean 0.50 and standard deviation 1.15 here.

  Args:
    data_dir: The folder of `fashion_mnist.npz`, or of `tfds/fashion_mnist`; see
      `npz_images.ImageDataset.load`.
    download: Whether tensorflow-datasets downloads the data to
      `<data_dir>/tfds` if there are none. Defaults to False.

  Returns:
    The training and the test examples, 60,000 and 10,000 in the original, as
    `npz_images.scale` makes them.

  Raises:
    FileNotFoundError: If there are no data; says where they belong and how they
      are downloaded.
    OSError: If they could not be downloaded.
    ValueError: If the data are damaged: names the file and what is wrong.

  Example:

    >>> train, test = load_fashion_mnist('data')
    >>> train['x'].shape, test['y'].shape
    ((60000, 28, 28, 1), (10000,))

  References:
    Xiao et al., Fashion-MNIST: a Novel Image Dataset for Benchmarking Machine
    Learning Algorithms, 2017, https://arxiv.org/abs/1708.07747.
  """
  return DATASET.load(data_dir, download=download)
