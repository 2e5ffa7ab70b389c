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
"""Where the central data sets of CIFAR are looked for."""

import collections
from collections.abc import Mapping
import pathlib

import attrs
import numpy as np

from tasks import npz_images
from tasks.cifar import python_files
from tff_adaptive.data import feature_arrays


@attrs.frozen
class CifarFiles:
  """The files of one of the data sets.

  Attributes:
    images: Where npz files and tensorflow-datasets have them.
    folder: What the published archive unpacks to.
    train_names: Its files of training images.
    test_names: Its files of test images.
    label_key: What it calls the classes.
  """

  images: npz_images.ImageDataset
  folder: str
  train_names: tuple[str, ...]
  test_names: tuple[str, ...]
  label_key: str

  def load(
      self, data_dir: pathlib.Path, *, download: bool
  ) -> tuple[feature_arrays.Examples, feature_arrays.Examples]:
    """Loads the images.

    Read is the first of these that is there: the folder of the published
    archive, which Keras has in `~/.keras/datasets`; `<data_dir>/<name>.npz`
    with the arrays 'x_train', 'y_train', 'x_test' and 'y_test', as Keras
    returns them; `<data_dir>/tfds/<name>`, as tensorflow-datasets prepares it.

    Args:
      data_dir: The folder of the data sets.
      download: Whether tensorflow-datasets downloads the data if there are
        none.

    Returns:
      The training and the test examples. In both 'x' is uint8 of shape
      [num_examples, 32, 32, 3], and 'y' the class, int32 of shape
      [num_examples].

    Raises:
      FileNotFoundError: If there are no data; says where they belong and how
        they are downloaded.
      OSError: If they could not be downloaded.
      ValueError: If the data are damaged: names the file and what is wrong.
    """
    folder = data_dir / self.folder
    if folder.exists():
      train = self._read(folder, 'train', self.train_names)
      test = self._read(folder, 'test', self.test_names)
    else:
      train, test = self.images.load_raw(data_dir, download=download)
    return _with_int32_labels(train), _with_int32_labels(test)

  def _read(
      self, folder: pathlib.Path, part: str, names: tuple[str, ...]
  ) -> feature_arrays.Examples:
    examples = python_files.read_python_files(folder, names, self.label_key)
    self.images.check_examples(folder, part, examples)
    return examples


def _with_int32_labels(
    examples: Mapping[str, np.ndarray],
) -> feature_arrays.Examples:
  return collections.OrderedDict(
      x=examples['x'], y=examples['y'].astype(np.int32)
  )
