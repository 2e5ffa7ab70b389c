# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Where data sets are published, and where their files belong.

No TensorFlow is imported here.
"""

from typing import Optional

import attrs

_TFF = 'https://storage.googleapis.com/tff-datasets-public/'


@attrs.frozen
class RemoteFile:
  """A file to download. Paths are relative to the folder of the data sets.

  Attributes:
    url: Its address.
    path: Where it is downloaded to.
    digest: What it must be, 'sha256:' or 'md5:' and hexadecimal digits. None
      where its publisher names none; then what the server says about it is
      compared.
    size: Its size in bytes; None if it is not known.
    unpacked: The files that it is unpacked to, by their names in the archive;
      none for a file that is used as it is.
    is_kept: Whether it stays when it is unpacked.
  """

  url: str
  path: str
  digest: Optional[str] = None
  size: Optional[int] = None
  unpacked: tuple[str, ...] = ()
  is_kept: bool = False

  @property
  def results(self) -> tuple[str, ...]:
    """The files that are there in the end."""
    return self.unpacked or (self.path,)


@attrs.frozen
class Dataset:
  """A data set, which is downloaded here or by tensorflow-datasets.

  Attributes:
    name: What `python -m tasks.fetch` calls it.
    source: Who has published it.
    licence: A note on its licence.
    files: Its files, if they are downloaded here.
    tfds_name: What tensorflow-datasets calls it, if that downloads it.
    tfds_size: How much that downloads, in bytes.
    tfds_url: A server that it downloads from.
    by_hand: What may be put into the folder of the data sets instead.
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
    """How much is downloaded, in bytes; None if it is not known."""
    sizes = [file.size for file in self.files] or [self.tfds_size]
    return None if None in sizes else sum(filter(None, sizes))

  @property
  def places(self) -> tuple[str, ...]:
    """Where it is in the end, relative to the folder of the data sets."""
    if self.tfds_name is not None:
      return (f'tfds/{self.tfds_name}',)
    return tuple(path for file in self.files for path in file.results)


def tff_sqlite(
    name: str, digest: Optional[str], size: Optional[int]
) -> RemoteFile:
  """Returns a SQLite file of TFF, where TFF's own loaders find it too."""
  return RemoteFile(
      url=f'{_TFF}{name}.sqlite.lzma',
      path=f'tff/{name}.sqlite.lzma',
      digest=digest,
      size=size,
      unpacked=(f'tff/{name}.sqlite',),
  )


def tff_counts(name: str, digest: str) -> RemoteFile:
  """Returns a file of counts; TFF's own loaders ask for the archive as well."""
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
  """Returns images that tensorflow-datasets downloads.

  Args:
    name: The name of the data set, here and there.
    source: Who has published it.
    licence: A note on its licence.
    size: How much is downloaded, in bytes.
    url: A server that it is downloaded from.
  """
  return Dataset(
      name=name,
      source=f'{source}, through tensorflow-datasets',
      licence=licence,
      tfds_name=name,
      tfds_size=size,
      tfds_url=url,
      by_hand=f'{name}.npz (arrays x_train, y_train, x_test and y_test, uint8)',
  )
