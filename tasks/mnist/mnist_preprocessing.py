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
"""Loading MNIST from a file, or through tensorflow-datasets, and scaling it."""

import os
from typing import Union

from tasks import npz_images
from tff_adaptive.data import feature_arrays

DATASET = npz_images.ImageDataset('mnist', 'MNIST')


def load_mnist(
    data_dir: Union[str, os.PathLike], *, download: bool = False
) -> tuple[feature_arrays.Examples, feature_arrays.Examples]:
  """Loads MNIST, with pixels of mean 0 and variance 1.

  Args:
    data_dir: The folder of `mnist.npz`, or of `tfds/mnist`; see
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

    >>> train, test = load_mnist('data')
    >>> train['x'].shape, test['y'].shape
    ((60000, 28, 28, 1), (10000,))

  References:
    LeCun et al., Gradient-Based Learning Applied to Document Recognition,
    Proceedings of the IEEE, 1998, http://yann.lecun.com/exdb/mnist.
  """
  return DATASET.load(data_dir, download=download)
