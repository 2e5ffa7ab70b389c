# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""CIFAR-10 and CIFAR-100: their files, and the data of clients."""

import collections
from collections.abc import Mapping
import pathlib

import attrs
import numpy as np

from tasks import data
from tasks import data_files
from tasks import synthetic_data
from tasks.arguments import Argument
from tasks.images import cifar_augmentation
from tasks.images import image_files
from tasks.images import python_files
from tff_adaptive import _files
from tff_adaptive.data import feature_arrays
from tff_adaptive.data import transforms

# The coarse class of each class, both in alphabetical order.
# fmt: off
COARSE_CLASSES = (
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
)
# fmt: on

_SQLITE = 'tff/cifar100.sqlite'


@attrs.frozen
class Cifar(data.Data):
  """Clients' images in their published form, augmented in training.

  Attributes:
    images: The data set's npz file and its name in tensorflow-datasets.
    folder: The folder in the published archive.
    train_names: The files of training images.
    test_names: The files of test images.
    label_key: The key of the classes in the files.
    statistics: The scaling of the pixels.
    default_augmentation: The default of `augmentation`.
  """

  images: image_files.ImageDataset
  folder: str
  train_names: tuple[str, ...]
  test_names: tuple[str, ...]
  label_key: str
  statistics: cifar_augmentation.ChannelStatistics
  default_augmentation: str

  cache_bytes = 0

  @property
  def arguments(self) -> tuple[Argument, ...]:
    """The arguments of a task on these data."""
    return (
        Argument(
            'norm',
            'group',
            'The normalization of resnet18 and resnet50: by groups of '
            'channels, by the statistics of each batch alone (batch), with '
            'moving averages in evaluation that are aggregated like the update '
            '(batch_moving), or with these where the Delta-SGD code has them '
            '(batch_delta_sgd): in the stem and the shortcuts of resnet18, '
            'everywhere in resnet50.',
            choices=('group', 'batch', 'batch_moving', 'batch_delta_sgd'),
            models=('resnet18', 'resnet50'),
        ),
        Argument(
            'augmentation',
            self.default_augmentation,
            'The experiments whose cropping, flipping and scaling are used; '
            'none only scales.',
            choices=cifar_augmentation.AUGMENTATIONS,
        ),
    )

  def check_files(self, data_dir):
    if not (pathlib.Path(data_dir) / self.folder).exists():
      self.images.check_files(data_dir)

  def load(self, args, data_dir, seed):
    del args, seed  # Unused.
    return data.Splits(*self.read(data_dir))

  def published_spec(self):
    shape = cifar_augmentation.IMAGE_SHAPE
    return data.spec(image=('uint8', shape), label=('int32', []))

  def client_spec(self, args):
    image, label = self.published_spec().values()
    return {'x': image, 'y': label}

  def element_spec(self, args):
    return cifar_augmentation.element_spec(args.augmentation)

  def num_classes(self, args):
    return self.images.num_classes

  def build_prepare(self, args, train, data_dir):
    return lambda raw: collections.OrderedDict(x=raw['image'], y=raw['label'])

  def augmentation(self, args):
    return cifar_augmentation.build_augmentation(
        args.augmentation, self.statistics
    )

  @property
  def synthetic_files(self):
    images = self.images
    write = synthetic_data.npz(images.num_classes, *images.image_shape)
    return {f'{images.name}.npz': write}

  def read(
      self, data_dir: _files.PathLike
  ) -> tuple[feature_arrays.Examples, feature_arrays.Examples]:
    """Loads the central data set.

    Reads the first of these that exists: the folder of the published archive,
    which Keras keeps in `~/.keras/datasets`; `<data_dir>/<name>.npz` with the
    arrays 'x_train', 'y_train', 'x_test' and 'y_test', as Keras returns them;
    `<data_dir>/tfds/<name>`, as prepared by tensorflow-datasets.

    Args:
      data_dir: The folder of the data sets.

    Returns:
      The training and the test examples. In both 'image' is uint8 of shape
      [num_examples, 32, 32, 3], and 'label' the class, int32 of shape
      [num_examples].

    Raises:
      FileNotFoundError: If there are no data; says where to put them and how to
        download them.
      ValueError: If the data are damaged; names the file and the problem.
    """
    folder = pathlib.Path(data_dir) / self.folder
    if folder.exists():
      train = self._read_archive(folder, 'train', self.train_names)
      test = self._read_archive(folder, 'test', self.test_names)
    else:
      train, test = self.images.load(data_dir)
    return _as_published(train), _as_published(test)

  def _read_archive(
      self, folder: pathlib.Path, part: str, names: tuple[str, ...]
  ) -> feature_arrays.Examples:
    examples = python_files.read_python_files(folder, names, self.label_key)
    self.images.check_examples(folder, part, examples)
    return examples


def _as_published(
    examples: Mapping[str, np.ndarray],
) -> feature_arrays.Examples:
  """Renames features as in tensorflow-datasets and TFF."""
  return collections.OrderedDict(
      image=examples['x'], label=examples['y'].astype(np.int32)
  )


class CifarOrTffClients(Cifar):
  """TFF's clients of CIFAR-100, or else the central data set.

  TFF's clients are from a Pachinko allocation: 500 training and 100 test
  clients with 100 images each, in `tff/cifar100.sqlite`, the file that
  `tff.simulation.datasets.cifar100.load_data` keeps in its `cache_dir`.

  References:
    Reddi et al., Adaptive Federated Optimization, ICLR 2021,
    https://arxiv.org/abs/2003.00295, Appendix F.
  """

  def check_files(self, data_dir):
    if not (pathlib.Path(data_dir) / _SQLITE).exists():
      super().check_files(data_dir)

  def load(self, args, data_dir, seed):
    has_clients = (pathlib.Path(data_dir) / _SQLITE).exists()
    if has_clients and args.partition == 'tff':
      return self._read_clients(data_dir)
    try:
      return super().load(args, data_dir, seed)
    except FileNotFoundError:
      if not has_clients:
        raise
      # The central data set is the union of its clients.
      clients = self._read_clients(data_dir)
      return data.Splits(
          transforms.concatenate(clients.train), clients.central_test
      )

  @property
  def synthetic_files(self):
    return {_SQLITE: synthetic_data.write_cifar100}

  def _read_clients(self, data_dir: _files.PathLike) -> data.Splits:
    # Imported here because it imports TensorFlow.
    from tff_adaptive.data import sqlite  # pylint: disable=import-outside-toplevel

    train, test = (
        data_files.keep_if_small(
            sqlite.load_sqlite_clients(
                pathlib.Path(data_dir) / _SQLITE, split, self.published_spec()
            )
        )
        for split in ('train', 'test')
    )
    return data.Splits(train, transforms.concatenate(test), test)


CIFAR10 = Cifar(
    images=image_files.ImageDataset(
        'cifar10', 'CIFAR-10', cifar_augmentation.IMAGE_SHAPE, 10
    ),
    folder='cifar-10-batches-py',
    train_names=tuple(f'data_batch_{i}' for i in range(1, 6)),
    test_names=('test_batch',),
    label_key='labels',
    # The values of https://github.com/kuangliu/pytorch-cifar. The deviations
    # are means of per-image deviations; those of all pixels are near 0.25.
    statistics=cifar_augmentation.ChannelStatistics(
        mean=(0.4914, 0.4822, 0.4465), deviation=(0.2023, 0.1994, 0.2010)
    ),
    default_augmentation=cifar_augmentation.DELTA_SGD,
)
CIFAR100 = CifarOrTffClients(
    images=image_files.ImageDataset(
        'cifar100', 'CIFAR-100', cifar_augmentation.IMAGE_SHAPE, 100
    ),
    folder='cifar-100-python',
    train_names=('train',),
    test_names=('test',),
    label_key='fine_labels',
    # Computed over all training pixels.
    statistics=cifar_augmentation.ChannelStatistics(
        mean=(0.5071, 0.4865, 0.4409), deviation=(0.2673, 0.2564, 0.2762)
    ),
    default_augmentation=cifar_augmentation.FEDOPT,
)
