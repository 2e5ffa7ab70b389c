# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Small files in the form of Stack Overflow's."""

import pathlib

import numpy as np

from tests.tasks import sqlite_testing

WORDS = ('.', 'how', 'do', 'i', 'sort', 'a', 'list', '<URL>', "don't")
TAGS = ('python', 'c#', 'sorting', 'list', 'sql')
# Fewer, as many and more words than fit; other spaces, unknown and no words.
TOKENS = (
    b'',
    b'how do i sort a list .',
    b'how do i',
    b'how do i sort',
    b'how do i sort a',
    b'  how  do',
    b'how\tdo\ni sort ',
    b'xyzzy',
    b"i don't sort <URL> .",
    'caf\u00e9 how'.encode(),
)
TITLES = (
    b'',
    b'list a list',
    b'xyzzy',
    b'sort',
    b' i  do',
    b'',
    b'plugh',
    b'',
    b'how\x0bdo',
    b'.',
)
TAG_LISTS = (
    b'',
    b'python|sorting|list',
    b'python|python',
    b'java',
    b'c#|java|list',
    b'|',
    b'list',
    b'python ',
    b'sorting|',
    b'c#',
)


def examples(places=range(len(TOKENS))):
  """Returns raw examples, of all texts by default."""
  features = dict(tokens=TOKENS, title=TITLES, tags=TAG_LISTS)
  return {
      name: np.array([values[place] for place in places] + [None])[:-1]
      for name, values in features.items()
  }


def write_counts(folder: pathlib.Path):
  """Writes both files of counts."""
  counts = folder / 'tff' / 'datasets'
  counts.mkdir(parents=True, exist_ok=True)
  lines = (f'{word} {100 - place}\n' for place, word in enumerate(WORDS))
  (counts / 'stackoverflow.word_count').write_text(
      ''.join(lines), encoding='utf-8'
  )
  # Not sorted, and two equally frequent tags.
  (counts / 'stackoverflow.tag_count').write_text(
      '{"sorting": 5, "python": 9, "list": 5, "sql": 1, "c#": 6}',
      encoding='utf-8',
  )


def write(folder: pathlib.Path) -> pathlib.Path:
  """Writes all files, and returns the path of the posts."""
  write_counts(folder)
  path = folder / 'tff' / 'stackoverflow.sqlite'
  sqlite_testing.write(
      path,
      {
          'train': {'ann': examples(), 'bob': examples([1, 4])},
          'heldout': {'cho': examples([2, 3]), 'dee': examples([8])},
          'test': {'ann': examples([1, 1, 3]), 'eve': examples(range(5))},
      },
  )
  return path
