# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The publications of data sets and the places of their files.

This module does not import TensorFlow.
"""

from typing import Optional

import attrs

_TFF = 'https://storage.googleapis.com/tff-datasets-public/'


@attrs.frozen
class RemoteFile:
  """A file to download. Paths are relative to the folder of the data sets.

  Attributes:
    url: The URL.
    path: The path of the downloaded file.
    digest: The expected digest, 'sha256:' or 'md5:' and hexadecimal digits.
      None if its publisher gives none; then the server's digest is used.
    size: The size in bytes; None if unknown.
    unpacked: The files that it is unpacked to, by their names in the archive;
      empty for a file that is used directly.
    is_kept: Whether to keep it after unpacking.
  """

  url: str
  path: str
  digest: Optional[str] = None
  size: Optional[int] = None
  unpacked: tuple[str, ...] = ()
  is_kept: bool = False

  @property
  def results(self) -> tuple[str, ...]:
    """The files after downloading and unpacking."""
    return self.unpacked or (self.path,)


@attrs.frozen
class Dataset:
  """A data set, which this package or tensorflow-datasets downloads.

  Attributes:
    name: The name for `python -m tasks.fetch`.
    source: The publisher.
    licence: A note on the licence.
    files: The files, if this package downloads them.
    tfds_name: The name in tensorflow-datasets, if that downloads it.
    tfds_size: The size of that download, in bytes.
    tfds_url: A server of that download.
    by_hand: The file to put into the folder of the data sets instead.
  """

  name: str
  source: str
  licence: str
  files: tuple[RemoteFile, ...] = ()
  tfds_name: Optional[str] = None
  tfds_size: Optional[int] = None
  tfds_url: str = ''
  by_hand: Optional[str] = None

  @property
  def size(self) -> Optional[int]:
    """The size of the download in bytes; None if unknown."""
    sizes = [file.size for file in self.files] or [self.tfds_size]
    return None if None in sizes else sum(filter(None, sizes))

  @property
  def places(self) -> tuple[str, ...]:
    """The resulting paths, relative to the folder of the data sets."""
    if self.tfds_name is not None:
      return (f'tfds/{self.tfds_name}',)
    return tuple(path for file in self.files for path in file.results)


def tff_sqlite(
    name: str, digest: Optional[str], size: Optional[int]
) -> RemoteFile:
  """Returns a SQLite file of TFF, at the place where TFF's loaders find it."""
  return RemoteFile(
      url=f'{_TFF}{name}.sqlite.lzma',
      path=f'tff/{name}.sqlite.lzma',
      digest=digest,
      size=size,
      unpacked=(f'tff/{name}.sqlite',),
  )


def tff_counts(name: str, digest: str) -> RemoteFile:
  """Returns a file of counts; keeps the archive for TFF's own loaders."""
  return RemoteFile(
      url=f'{_TFF}{name}.tar.bz2',
      path=f'tff/datasets/{name}.tar.bz2',
      digest=digest,
      unpacked=(f'tff/datasets/{name}',),
      is_kept=True,
  )


def tfds_images(
    name: str, source: str, licence: str, *, size: int, url: str
) -> Dataset:
  """Returns an image data set that tensorflow-datasets downloads."""
  return Dataset(
      name=name,
      source=f'{source}, through tensorflow-datasets',
      licence=licence,
      tfds_name=name,
      tfds_size=size,
      tfds_url=url,
      by_hand=f'{name}.npz (arrays x_train, y_train, x_test and y_test, uint8)',
  )
