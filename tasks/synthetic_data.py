# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Synthetic data in the formats of the published data sets.

With them every task runs without a download, for trying commands, testing and
measuring time. They can be learned, but the results say nothing about the
original data set.
"""

import collections
from collections.abc import Callable, Mapping
import functools
import gzip
import json
import pathlib
import tempfile
from typing import Any, Optional

import numpy as np

from tff_adaptive.data import client_data
from tff_adaptive.data import random_streams

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


Write = Callable[[pathlib.Path, np.random.Generator], None]


def write(files: Mapping[str, Write], data_dir: pathlib.Path) -> None:
  """Writes synthetic data, given functions by path; existing files are kept."""
  for place, write_file in files.items():
    path = data_dir / place
    if path.exists():
      continue
    path.parent.mkdir(parents=True, exist_ok=True)
    # Several runs may write the same file at once.
    with tempfile.TemporaryDirectory(prefix='.', dir=path.parent) as folder:
      part = pathlib.Path(folder) / path.name
      write_file(part, random_streams.stream(_SEED, 'synthetic_data', place))
      part.replace(path)


def npz(
    num_classes: int, *shape: int, client_ids: Optional[str] = None
) -> Write:
  """Returns a function that writes examples of a shape, as in Keras.

  Args:
    num_classes: The number of classes.
    *shape: The shape of an example.
    client_ids: The name of an array with the client of each training example.
      Defaults to none.
  """
  return functools.partial(
      _write_npz, num_classes=num_classes, shape=shape, client_ids=client_ids
  )


def texts(num_classes: int) -> Write:
  """Returns a function that writes labelled texts."""
  return functools.partial(_write_texts, num_classes=num_classes)


def _draw_images(
    generator: np.random.Generator,
    labels: np.ndarray,
    templates: np.ndarray,
) -> np.ndarray:
  """Returns noisy coarse patterns, one for each class, in [0, 1]."""
  noise = generator.random((len(labels), *templates.shape[1:]), np.float32)
  return 0.6 * templates[labels] + 0.4 * noise


def _draw_templates(
    generator: np.random.Generator, num_classes: int, shape: tuple[int, ...]
) -> np.ndarray:
  """Returns a coarse pattern for each class, in [0, 1]."""
  coarse = generator.random((num_classes, 4, 4, *shape[2:]), np.float32)
  height, width = (-(-size // 4) for size in shape[:2])
  wide = coarse.repeat(height, axis=1).repeat(width, axis=2)
  return wide[:, : shape[0], : shape[1]]


def _write_npz(
    path: pathlib.Path,
    generator: np.random.Generator,
    num_classes: int,
    shape: tuple[int, ...],
    client_ids: Optional[str],
) -> None:
  """Writes the arrays of a Keras data set: x_train, y_train, and so on."""
  # Examples that are not images are generated as columns of pixels.
  drawn = shape if len(shape) > 1 else (*shape, 1)
  templates = _draw_templates(generator, num_classes, drawn)
  arrays = {}
  for split, size in _NUM_IMAGES.items():
    labels = generator.integers(num_classes, size=size)
    images = 255 * _draw_images(generator, labels, templates)
    arrays[f'x_{split}'] = images.astype(np.uint8).reshape(-1, *shape)
    arrays[f'y_{split}'] = labels.astype(np.min_scalar_type(num_classes - 1))
  if client_ids is not None:
    arrays[client_ids] = np.arange(_NUM_IMAGES['train']) % _NUM_CLIENTS
  with open(path, 'wb') as file:
    np.savez_compressed(file, **arrays)


def _build_clients(
    num_clients: int, draw: Callable[[], Mapping[str, np.ndarray]]
) -> client_data.ClientArrays:
  return client_data.PackedClientArrays.from_clients(
      {f'client_{i:03}': draw() for i in range(num_clients)}
  )


def _write_sqlite(
    path: pathlib.Path, splits: Mapping[str, client_data.ClientArrays]
) -> None:
  # Imported here because it imports TensorFlow.
  from tff_adaptive.data import sqlite  # pylint: disable=import-outside-toplevel

  sqlite.write_sqlite_clients(path, splits)


def write_emnist(path: pathlib.Path, generator: np.random.Generator) -> None:
  """Writes TFF's file of EMNIST: dark characters on white."""
  templates = _draw_templates(generator, 62, (28, 28))

  def build(split: str, num_classes: int) -> client_data.ClientArrays:
    def draw():
      labels = generator.integers(num_classes, size=_IMAGES_PER_CLIENT[split])
      return collections.OrderedDict(
          label=labels.astype(np.int32),
          pixels=_draw_images(generator, labels, templates),
      )

    return _build_clients(_NUM_CLIENTS, draw)

  _write_sqlite(
      path,
      {
          f'{prefix}_{split}': build(split, num_classes)
          for prefix, num_classes in (('all', 62), ('digits_only', 10))
          for split in ('train', 'test')
      },
  )


def write_cifar100(path: pathlib.Path, generator: np.random.Generator) -> None:
  """Writes TFF's file of CIFAR-100."""
  templates = _draw_templates(generator, 100, (32, 32, 3))

  def draw(split):
    labels = generator.integers(100, size=_IMAGES_PER_CLIENT[split])
    images = 255 * _draw_images(generator, labels, templates)
    return collections.OrderedDict(
        coarse_label=labels // 5, image=images.astype(np.uint8), label=labels
    )

  _write_sqlite(
      path,
      {
          'train': _build_clients(_NUM_CLIENTS, lambda: draw('train')),
          'test': _build_clients(_NUM_HELD_OUT, lambda: draw('test')),
      },
  )


def write_shakespeare(
    path: pathlib.Path, generator: np.random.Generator
) -> None:
  """Writes TFF's file of Shakespeare: a few lines, their words in any order."""

  def draw(size):
    chosen = generator.choice(np.array(_LINES, np.object_), size=size)
    words = [generator.permutation(line.split(b' ')) for line in chosen]
    return {'snippets': np.array([b' '.join(w) for w in words], np.object_)}

  _write_sqlite(
      path,
      {
          'train': _build_clients(_NUM_CLIENTS, lambda: draw(20)),
          'test': _build_clients(_NUM_CLIENTS, lambda: draw(4)),
      },
  )


def _word(number: int) -> str:
  """Returns a made-up word for a number."""
  letters = 'bdfgklmnprstvz'
  vowels = 'aeiou'
  syllables = []
  number += len(letters) * len(vowels)  # At least two syllables.
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


def write_stackoverflow(
    path: pathlib.Path, generator: np.random.Generator
) -> None:
  """Writes TFF's file of Stack Overflow; tags make some words more likely."""
  common = _zipf_weights(_NUM_WORDS)
  tag_weights = _zipf_weights(_NUM_TAGS)

  def draw():
    tags = generator.choice(_NUM_TAGS, _SENTENCES_PER_CLIENT, p=tag_weights)
    words = generator.choice(_NUM_WORDS, (_SENTENCES_PER_CLIENT, 14), p=common)
    # Every other word is one of ten that belong to the tag.
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

  _write_sqlite(
      path,
      {
          'train': _build_clients(_NUM_CLIENTS + _NUM_CLIENTS // 2, draw),
          'heldout': _build_clients(_NUM_HELD_OUT, draw),
          'test': _build_clients(_NUM_HELD_OUT, draw),
      },
  )


def write_word_counts(
    path: pathlib.Path, generator: np.random.Generator
) -> None:
  """Writes TFF's file of word counts."""
  del generator  # Unused.
  lines = [f'{_word(i)} {2 * _NUM_WORDS - i}\n' for i in range(_NUM_WORDS)]
  path.write_text(''.join(lines))


def write_tag_counts(
    path: pathlib.Path, generator: np.random.Generator
) -> None:
  """Writes TFF's file of tag counts."""
  del generator  # Unused.
  path.write_text(
      json.dumps({_tag(i): _NUM_TAGS - i for i in range(_NUM_TAGS)})
  )


def _write_texts(
    path: pathlib.Path, generator: np.random.Generator, num_classes: int
) -> None:
  """Writes labelled texts; classes make some words more likely."""
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
