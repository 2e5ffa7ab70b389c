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
"""Made-up data in the formats of the published data sets.

With them every task runs without a download: to try a command, to test, to
measure seconds. They can be learned, but what is learned says nothing about the
data set whose form they have.
"""

import collections
from collections.abc import Callable, Mapping
import gzip
import json
import os
import pathlib
from typing import Any, Union

import numpy as np

from tff_adaptive.data import client_data
from tff_adaptive.data import random_streams
from tff_adaptive.data import sqlite

_SEED = 0
_NUM_IMAGES = {'train': 4000, 'test': 500}
_NUM_CLIENTS = 40
_NUM_HELD_OUT = 10
_IMAGES_PER_CLIENT = {'train': 40, 'test': 8}
_NUM_TEXTS = {'train': 4000, 'test': 500}
_WORDS_PER_CLASS = 40
_NUM_WORDS = 12_000
_NUM_TAGS = 600
_SENTENCES_PER_CLIENT = 60
_LINES = (
    b'What say you now, good sir? The night is long, and we must part.',
    b'I know not how; but if thou wilt, my lord, the king shall hear of it.',
    b'Come, let us go: the day is young, and there is much to do.',
    b'O, that this too, too solid task would melt!\nAye, there it goes.',
)


def write_synthetic_data(
    task_name: str, data_dir: Union[str, os.PathLike]
) -> None:
  """Writes made-up data for a task where its loader looks for real ones.

  Args:
    task_name: The name of the task, as in `--task`. A task whose data come with
      a package, such as digits, needs none.
    data_dir: The folder of the data sets, made if need be. Files that are there
      stay; they are the same every time.

  Example:

    >>> from tasks import mnist
    >>> write_synthetic_data('mnist', 'made_up')
    >>> mnist.create_mnist_task('made_up', model_id='logistic').name
    'mnist'
  """
  for place, write in _FILES.get(task_name, {}).items():
    path = pathlib.Path(data_dir) / place
    if path.exists():
      continue
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f'new_{path.name}')
    part.unlink(missing_ok=True)
    write(part, random_streams.stream(_SEED, 'synthetic_data', place))
    part.rename(path)


def _draw_images(
    generator: np.random.Generator,
    labels: np.ndarray,
    templates: np.ndarray,
) -> np.ndarray:
  """Returns pictures of classes: coarse patterns under noise, in [0, 1]."""
  noise = generator.random((len(labels), *templates.shape[1:]), np.float32)
  return 0.6 * templates[labels] + 0.4 * noise


def _draw_templates(
    generator: np.random.Generator, num_classes: int, shape: tuple[int, ...]
) -> np.ndarray:
  """Returns a coarse pattern for every class, in [0, 1]."""
  coarse = generator.random((num_classes, 4, 4, *shape[2:]), np.float32)
  scale = -(-shape[0] // 4)
  wide = coarse.repeat(scale, axis=1).repeat(scale, axis=2)
  return wide[:, : shape[0], : shape[1]]


def _write_npz(
    path: pathlib.Path,
    generator: np.random.Generator,
    num_classes: int,
    shape: tuple[int, ...],
) -> None:
  """Writes the arrays of a data set of Keras: x_train, y_train, and so on."""
  templates = _draw_templates(generator, num_classes, shape)
  arrays = {}
  for split, size in _NUM_IMAGES.items():
    labels = generator.integers(num_classes, size=size)
    images = 255 * _draw_images(generator, labels, templates)
    arrays[f'x_{split}'] = images.astype(np.uint8)
    arrays[f'y_{split}'] = labels.astype(np.uint8)
  with open(path, 'wb') as file:
    np.savez_compressed(file, **arrays)


def _build_clients(
    num_clients: int, draw: Callable[[], Mapping[str, np.ndarray]]
) -> client_data.ClientArrays:
  return client_data.PackedClientArrays.from_clients(
      {f'client_{i:03}': draw() for i in range(num_clients)}
  )


def _write_emnist(path: pathlib.Path, generator: np.random.Generator) -> None:
  """Writes TFF's file of EMNIST: dark characters on a white ground."""
  templates = _draw_templates(generator, 62, (28, 28))

  def build(split: str, num_classes: int) -> client_data.ClientArrays:
    def draw():
      labels = generator.integers(num_classes, size=_IMAGES_PER_CLIENT[split])
      return collections.OrderedDict(
          label=labels.astype(np.int32),
          pixels=_draw_images(generator, labels, templates),
      )

    return _build_clients(_NUM_CLIENTS, draw)

  sqlite.write_sqlite_clients(
      path,
      {
          f'{prefix}_{split}': build(split, num_classes)
          for prefix, num_classes in (('all', 62), ('digits_only', 10))
          for split in ('train', 'test')
      },
  )


def _write_cifar100(path: pathlib.Path, generator: np.random.Generator) -> None:
  """Writes TFF's file of CIFAR-100."""
  templates = _draw_templates(generator, 100, (32, 32, 3))

  def draw(split):
    labels = generator.integers(100, size=_IMAGES_PER_CLIENT[split])
    images = 255 * _draw_images(generator, labels, templates)
    return collections.OrderedDict(
        coarse_label=labels // 5, image=images.astype(np.uint8), label=labels
    )

  sqlite.write_sqlite_clients(
      path,
      {
          'train': _build_clients(_NUM_CLIENTS, lambda: draw('train')),
          'test': _build_clients(_NUM_HELD_OUT, lambda: draw('test')),
      },
  )


def _write_shakespeare(
    path: pathlib.Path, generator: np.random.Generator
) -> None:
  """Writes TFF's file of Shakespeare: a few lines again and again."""

  def draw(size):
    lines = generator.choice(np.array(_LINES, np.object_), size=size)
    return {'snippets': lines}

  sqlite.write_sqlite_clients(
      path,
      {
          'train': _build_clients(_NUM_CLIENTS, lambda: draw(20)),
          'test': _build_clients(_NUM_CLIENTS, lambda: draw(4)),
      },
  )


def _word(number: int) -> str:
  """Returns a made-up word; equal numbers have equal words."""
  letters = 'bdfgklmnprstvz'
  vowels = 'aeiou'
  syllables = []
  number += len(letters) * len(vowels)  # Two syllables or more.
  while number:
    number, rest = divmod(number, len(letters) * len(vowels))
    consonant, vowel = divmod(rest, len(vowels))
    syllables.append(letters[consonant] + vowels[vowel])
  return ''.join(syllables)


def _tag(number: int) -> str:
  return f'tag-{number}'


def _zipf_weights(size: int) -> np.ndarray:
  weights = 1.0 / np.arange(1, size + 1)
  return weights / weights.sum()


def _write_stackoverflow(
    path: pathlib.Path, generator: np.random.Generator
) -> None:
  """Writes TFF's file of Stack Overflow; a tag makes some words likely."""
  common = _zipf_weights(_NUM_WORDS)
  tag_weights = _zipf_weights(_NUM_TAGS)

  def draw():
    tags = generator.choice(_NUM_TAGS, _SENTENCES_PER_CLIENT, p=tag_weights)
    words = generator.choice(_NUM_WORDS, (_SENTENCES_PER_CLIENT, 14), p=common)
    # Every other word is one of ten that go with the tag.
    words[:, ::2] = 10 * tags[:, np.newaxis] + generator.integers(
        10, size=words[:, ::2].shape
    )
    sentences = [' '.join(map(_word, row)).encode() for row in words]
    return collections.OrderedDict(
        creation_date=np.full(len(tags), b'2018-01-01 00:00:00', np.object_),
        score=np.zeros(len(tags), np.int64),
        tags=np.array([_tag(tag).encode() for tag in tags], np.object_),
        title=np.full(len(tags), b'a title', np.object_),
        tokens=np.array(sentences, np.object_),
        type=np.full(len(tags), b'question', np.object_),
    )

  sqlite.write_sqlite_clients(
      path,
      {
          'train': _build_clients(_NUM_CLIENTS + _NUM_CLIENTS // 2, draw),
          'heldout': _build_clients(_NUM_HELD_OUT, draw),
          'test': _build_clients(_NUM_HELD_OUT, draw),
      },
  )


def _write_word_counts(
    path: pathlib.Path, generator: np.random.Generator
) -> None:
  del generator  # Unused.
  lines = [f'{_word(i)} {2 * _NUM_WORDS - i}\n' for i in range(_NUM_WORDS)]
  path.write_text(''.join(lines))


def _write_tag_counts(
    path: pathlib.Path, generator: np.random.Generator
) -> None:
  del generator  # Unused.
  path.write_text(
      json.dumps({_tag(i): _NUM_TAGS - i for i in range(_NUM_TAGS)})
  )


def _write_texts(
    path: pathlib.Path, generator: np.random.Generator, num_classes: int
) -> None:
  """Writes labelled texts; a class makes some words likely."""
  with gzip.open(path, 'wt', encoding='utf-8') as file:
    for split, size in _NUM_TEXTS.items():
      for label in generator.integers(num_classes, size=size).tolist():
        words = generator.integers(_NUM_WORDS, size=24)
        own = _NUM_WORDS + label * _WORDS_PER_CLASS
        words[::3] = own + generator.integers(_WORDS_PER_CLASS, size=8)
        row: dict[str, Any] = {
            'split': split,
            'label': label,
            'text': ' '.join(map(_word, words.tolist())),
        }
        file.write(json.dumps(row) + '\n')


_Write = Callable[[pathlib.Path, np.random.Generator], None]


def _npz(num_classes: int, *shape: int) -> _Write:
  return lambda path, generator: _write_npz(path, generator, num_classes, shape)


def _texts(num_classes: int) -> _Write:
  return lambda path, generator: _write_texts(path, generator, num_classes)


_EMNIST_FILES: dict[str, _Write] = {'tff/emnist_all.sqlite': _write_emnist}
_STACKOVERFLOW_FILES: dict[str, _Write] = {
    'tff/stackoverflow.sqlite': _write_stackoverflow,
    'tff/datasets/stackoverflow.word_count': _write_word_counts,
    'tff/datasets/stackoverflow.tag_count': _write_tag_counts,
}
# By task, the files of its data set.
_FILES: dict[str, dict[str, _Write]] = {
    'mnist': {'mnist.npz': _npz(10, 28, 28)},
    'fashion_mnist': {'fashion_mnist.npz': _npz(10, 28, 28)},
    'emnist_cr': _EMNIST_FILES,
    'emnist_ae': _EMNIST_FILES,
    'cifar10': {'cifar10.npz': _npz(10, 32, 32, 3)},
    'cifar100': {'tff/cifar100.sqlite': _write_cifar100},
    'shakespeare': {'tff/shakespeare.sqlite': _write_shakespeare},
    'stackoverflow_nwp': _STACKOVERFLOW_FILES,
    'stackoverflow_lr': _STACKOVERFLOW_FILES,
    'ag_news': {'ag_news.jsonl.gz': _texts(4)},
    'dbpedia': {'dbpedia.jsonl.gz': _texts(14)},
}
