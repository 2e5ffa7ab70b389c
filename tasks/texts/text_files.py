# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads texts and their classes from the files of a published data set."""

import collections
from collections.abc import Iterator, Mapping
import pathlib
import re
from typing import Any, Optional

import attrs
import numpy as np

from tasks import data
from tasks import data_files
from tasks import synthetic_data
from tasks.arguments import Argument
from tasks.texts import pretrained
from tasks.texts import word_vocabulary
from tff_adaptive import _error_texts
from tff_adaptive import _files
from tff_adaptive.data import checks
from tff_adaptive.data import conversion
from tff_adaptive.data import feature_arrays
from tff_adaptive.data import sources
from tff_adaptive.data import transforms

DEFAULT_VOCAB_SIZE = 10_000
DEFAULT_MAX_LENGTH = 128

# Of at most nine digits, which 32 bits hold.
_CLASS = re.compile('[0-9]{1,9}')
_TRAIN, _TEST = _PARTS = ('train', 'test')


@attrs.frozen
class Texts(data.Data):
  """Texts as tokens, with their files.

  Attributes:
    name: The name of the task, and of the files `<name>.jsonl.gz` and
      `<name>_csv`.
    title: The name in error messages.
    classes: Labels are in [0, classes).
    tfds_name: The name in tensorflow-datasets; None (the default) if it is not
      there.
    tfds_fields: The fields of tensorflow-datasets that make up a text.
  """

  name: str
  title: str
  classes: int
  tfds_name: Optional[str] = None
  tfds_fields: tuple[str, ...] = ()

  arguments = (
      Argument(
          'vocab_size',
          DEFAULT_VOCAB_SIZE,
          'The number of tokens, the most frequent words.',
          minimum=4,
      ),
      Argument(
          'max_length',
          DEFAULT_MAX_LENGTH,
          'The maximum number of tokens of a text.',
          minimum=1,
      ),
      Argument(
          'pretrained_dir',
          None,
          'For distilbert: a folder with its tokens and weights, in Hugging '
          "Face's layout; unset: random weights.",
          type=str,
          models=('distilbert',),
      ),
  )
  in_memory = True

  def check_files(self, data_dir):
    self._find(pathlib.Path(data_dir))

  def load(self, args, data_dir, seed):
    del args, seed  # Unused.
    return data.Splits(*self.read(data_dir))

  def published_spec(self):
    return data.spec(text=('string', []), label=('int32', []))

  def element_spec(self, args):
    return data.spec(x=('int32', [args.max_length]), y=('int32', []))

  def num_classes(self, args):
    return self.classes

  def build_prepare(self, args, train, data_dir):
    vocabulary = _build_vocabulary(train, args)

    def encode(examples):
      return collections.OrderedDict(
          x=vocabulary.encode(examples['text'], args.max_length),
          y=examples['label'],
      )

    return encode

  def check(self, splits):
    self._check(transforms.concatenate(splits.train), 'The training data')
    self._check(splits.central_test, 'The central test data')

  @property
  def synthetic_files(self):
    return {f'{self.name}.jsonl.gz': synthetic_data.texts(self.classes)}

  def read(
      self, data_dir: _files.PathLike
  ) -> tuple[feature_arrays.Examples, feature_arrays.Examples]:
    """Loads the texts and their classes.

    Reads the first of these that exists:

    - `<data_dir>/<name>.jsonl.gz`: an object per line with 'split' ('train' or
      'test'), 'text' and 'label', starting at 0;
    - `<data_dir>/tfds/<tfds_name>`: as prepared by tensorflow-datasets;
    - `<data_dir>/<name>_csv`: `train.csv` and `test.csv` of the original
      release: the class, starting at 1, a title and a body, without a header.

    A text is the title and the body, separated by a space.

    Args:
      data_dir: The folder of the data sets.

    Returns:
      The training and the test examples. In both 'text' is an array of UTF-8
      strings (bytes) and 'label' the class, int32, of shape [num_examples].

    Raises:
      FileNotFoundError: If there are no data; says where to put them and how to
        download them.
      ValueError: If the data are damaged; names the file and the problem.

    Example:

      >>> train, test = Texts('ag_news', 'AG News', 4).read('data')
      >>> train['text'].shape, test['label'].shape
      ((120000,), (7600,))
    """
    source = self._find(pathlib.Path(data_dir))
    if source.name.endswith('.jsonl.gz'):
      parts = {
          part: sources.read_examples(
              source, self.published_spec(), split_name=part
          )
          for part in _PARTS
      }
    elif source.name.endswith('_csv'):
      parts = {part: _read_csv(source / f'{part}.csv') for part in _PARTS}
    else:
      parts = data_files.read_prepared(
          source, self._from_prepared, 'prepare it again'
      )
    for part in _PARTS:
      self._check(parts[part], f'{source}, split {part!r}')
    return parts[_TRAIN], parts[_TEST]

  def _find(self, folder: pathlib.Path) -> pathlib.Path:
    """Returns the file or folder with the data; see `read`."""
    jsonl = folder / f'{self.name}.jsonl.gz'
    if jsonl.exists():
      return jsonl
    prepared = self.tfds_name and data_files.prepared_version(
        folder, self.tfds_name
    )
    if prepared:
      return prepared
    csv_folder = folder / f'{self.name}_csv'
    if not csv_folder.is_dir():
      raise FileNotFoundError(
          f'{self.title} was not found: put {jsonl.name} (rows with split, '
          f'text and label) at {jsonl}, or download it with '
          f'{data_files.how_to_fetch(self.name, folder)}.'
      )
    for part in _PARTS:
      if not (csv_folder / f'{part}.csv').exists():
        raise FileNotFoundError(
            f'{csv_folder} must hold train.csv and test.csv, but {part}.csv is '
            'missing.'
        )
    return csv_folder

  def _check(self, examples: Mapping[str, np.ndarray], owner: str) -> None:
    """Raises unless there are texts, and all labels are in range."""
    checks.check_central_examples(
        examples, name=owner, num_classes=self.classes, label_key='label'
    )

  def _from_prepared(
      self, columns: Mapping[str, np.ndarray]
  ) -> feature_arrays.Examples:
    texts = zip(*(columns[name] for name in self.tfds_fields))
    return _to_examples(map(_join, texts), columns['label'])


def _build_vocabulary(train: Any, args: data.Arguments) -> Any:
  """Returns the vocabulary of the model."""
  if args.pretrained_dir:
    return pretrained.load_word_pieces(args.pretrained_dir)
  if not isinstance(train, Mapping):
    train = transforms.concatenate(train)  # Its arrays may have other rows.
  return word_vocabulary.build_word_vocabulary(train['text'], args.vocab_size)


def _read_csv(path: pathlib.Path) -> feature_arrays.Examples:
  rows = list(_csv_rows(path))
  return _to_examples((text for text, _ in rows), [label for _, label in rows])


def _csv_rows(path: pathlib.Path) -> Iterator[tuple[bytes, int]]:
  """Yields the text and the class, starting at 0, of each row."""
  try:
    with open(path, encoding='utf-8-sig', newline='') as file:
      for line, row in _files.parse_csv(file):
        if len(row) != 3 or not _CLASS.fullmatch(row[0]):
          raise ValueError(
              f'{path}, line {line} must have a class number, a title and a '
              f'body, found {len(row)} cells, the first {row[:1]}.'
          )
        yield _join(cell.encode() for cell in row[1:]), int(row[0]) - 1
  except _files.DamagedCSVError as error:
    raise ValueError(
        f'{path}, line {error.line_num} cannot be split into cells ({error}); '
        'replace the file by an intact copy.'
    ) from error
  except UnicodeDecodeError as error:
    raise ValueError(
        f'{path} could not be read ({_error_texts.first_line(error)}); replace '
        'it by an intact copy.'
    ) from error


def _join(fields: Any) -> bytes:
  return b' '.join(field for field in fields if field)


def _to_examples(texts: Any, labels: Any) -> feature_arrays.Examples:
  spec = data.spec(label=('int32', []))['label']
  labels = conversion.convert(labels, 'label', spec, lambda _: 'The texts')
  return collections.OrderedDict(
      text=np.array(list(texts), dtype=object), label=labels
  )
