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
"""Where the data sets are published, and where their files belong.

No TensorFlow is imported here.
"""

from typing import Optional

import attrs

_TFF = 'https://storage.googleapis.com/tff-datasets-public/'
_AG_NEWS = (
    'https://raw.githubusercontent.com/mhjabreel/CharCnn_Keras/master/data/'
    'ag_news_csv/'
)
_DBPEDIA = (
    'https://drive.google.com/uc?export=download&confirm=t&'
    'id=0Bz8a_Dbh9QhbQ2Vic1kxMmZZQ1k'
)
_NPZ = '{}.npz (arrays x_train, y_train, x_test and y_test, uint8)'
_JSONL = '{}.jsonl.gz (rows with split, text and label)'


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


def _sqlite(
    name: str, digest: Optional[str], size: Optional[int]
) -> RemoteFile:
  """Returns a SQLite file of TFF, which TFF's own loaders find there, too."""
  return RemoteFile(
      url=f'{_TFF}{name}.sqlite.lzma',
      path=f'tff/{name}.sqlite.lzma',
      digest=digest,
      size=size,
      unpacked=(f'tff/{name}.sqlite',),
  )


def _counts(name: str, digest: str) -> RemoteFile:
  """Returns a file of counts; TFF's own loaders ask for the archive as well."""
  return RemoteFile(
      url=f'{_TFF}{name}.tar.bz2',
      path=f'tff/datasets/{name}.tar.bz2',
      digest=digest,
      unpacked=(f'tff/datasets/{name}',),
      is_kept=True,
  )


def _images(
    name: str, source: str, licence: str, *, size: int, url: str
) -> Dataset:
  return Dataset(
      name=name,
      source=f'{source}, through tensorflow-datasets',
      licence=licence,
      tfds_name=name,
      tfds_size=size,
      tfds_url=url,
      by_hand=_NPZ.format(name),
  )


# TFF publishes checksums of the counts alone. FedJAX checks Shakespeare and
# CIFAR-100 against these; torchtext checks AG News and DBpedia.
DATASETS = (
    Dataset(
        name='emnist',
        source='TensorFlow Federated, from NIST Special Database 19',
        licence='United States government work; cite Cohen et al. 2017',
        files=(
            _sqlite(
                'emnist_all',
                'sha256:c3aaf91b4cf4e69d53d81627ad119eccdc878ff906f68e66063ff10'
                'f67faad48',
                170_507_172,
            ),
        ),
    ),
    Dataset(
        name='shakespeare',
        source='TensorFlow Federated, from Project Gutenberg by LEAF',
        licence='the text is in the public domain',
        files=(
            _sqlite(
                'shakespeare',
                'sha256:d3d11fceb9e105439ac6f4d52af6efafed5a2a1e1eb24c5bd2dd54c'
                'ed242f5c4',
                1_329_828,
            ),
        ),
    ),
    Dataset(
        name='stackoverflow',
        source='TensorFlow Federated, from Stack Overflow',
        licence='CC BY-SA 3.0',
        files=(
            _counts(
                'stackoverflow.word_count',
                'sha256:1dc00256d6e527c54b9756d968118378ae14e6692c0b3b6cad470cd'
                'd3f0c519c',
            ),
            _counts(
                'stackoverflow.tag_count',
                'sha256:6fe281cec490d9384a290d560072438e7e2b377bbb823876ce7bd6f'
                '82696772d',
            ),
            _sqlite('stackoverflow', None, None),
        ),
    ),
    Dataset(
        name='cifar100',
        source='TensorFlow Federated, 500 and 100 clients',
        licence='no formal licence; cite Krizhevsky 2009',
        files=(
            _sqlite(
                'cifar100',
                'sha256:23d3916c9caa33395737ee560cc7cb77bbd05fc7b73647ee7be3a7e'
                '764172939',
                153_019_920,
            ),
        ),
    ),
    _images(
        'cifar10',
        'University of Toronto',
        'no formal licence; cite Krizhevsky 2009',
        size=170_052_171,
        url='https://www.cs.toronto.edu',
    ),
    _images(
        'mnist',
        'LeCun and Cortes',
        'usually given as CC BY-SA 3.0',
        size=11_594_722,
        url='https://storage.googleapis.com',
    ),
    _images(
        'fashion_mnist',
        'Zalando Research',
        'MIT',
        size=30_878_645,
        url='http://fashion-mnist.s3-website.eu-central-1.amazonaws.com',
    ),
    Dataset(
        name='ag_news',
        source='Zhang et al. 2015, by mhjabreel/CharCnn_Keras',
        licence='research and other non-commercial use',
        files=(
            RemoteFile(
                url=f'{_AG_NEWS}train.csv',
                path='ag_news_csv/train.csv',
                digest='md5:b1a00f826fdfbd249f79597b59e1dc12',
                size=29_470_338,
            ),
            RemoteFile(
                url=f'{_AG_NEWS}test.csv',
                path='ag_news_csv/test.csv',
                digest='md5:d52ea96a97a2d943681189a97654912d',
                size=1_857_427,
            ),
        ),
        by_hand=_JSONL.format('ag_news'),
    ),
    Dataset(
        name='dbpedia',
        source='Zhang et al. 2015, at Google Drive',
        licence='CC BY-SA 3.0',
        files=(
            RemoteFile(
                url=_DBPEDIA,
                path='dbpedia_csv.tar.gz',
                digest='md5:dca7b1ae12b1091090db52aa7ec5ca64',
                size=68_341_698,
                unpacked=('dbpedia_csv/train.csv', 'dbpedia_csv/test.csv'),
            ),
        ),
        by_hand=_JSONL.format('dbpedia'),
    ),
)
