# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that damaged files of a run end in a sentence, or do no harm."""

from collections.abc import Callable
import os
import pathlib
import random
import shutil

from absl.testing import parameterized
import pytest

from tests.tff_adaptive.simulation import loop_testing
from tff_adaptive import _run_metrics
from tff_adaptive.simulation import checkpoints
from tff_adaptive.simulation import metrics_writers
from tff_adaptive.simulation import run_directory

# Errors that the binaries turn into a sentence.
_SENTENCES = (
    OSError,
    checkpoints.CheckpointError,
    metrics_writers.MetricsFileError,
    run_directory.RunDirectoryError,
)


def _flip(path: pathlib.Path, generator: random.Random):
  data = bytearray(path.read_bytes())
  for _ in range(generator.choice([1, 1, 3])):
    data[generator.randrange(len(data))] ^= 1 << generator.randrange(8)
  path.write_bytes(bytes(data))


def _flip_early(path: pathlib.Path, generator: random.Random):
  """Flips a bit where the headers of archives and arrays are."""
  data = bytearray(path.read_bytes())
  data[generator.randrange(min(200, len(data)))] ^= 1 << generator.randrange(8)
  path.write_bytes(bytes(data))


def _cut(path: pathlib.Path, generator: random.Random):
  os.truncate(path, generator.randrange(path.stat().st_size))


def _empty(path: pathlib.Path, generator: random.Random):
  del generator  # Unused.
  os.truncate(path, 0)


def _make_folder(path: pathlib.Path, generator: random.Random):
  path.unlink()
  path.mkdir()
  if generator.random() < 0.5:
    (path / 'file').touch()


def _make_link(path: pathlib.Path, generator: random.Random):
  path.unlink()
  path.symlink_to(generator.choice(['nothing', '.', '/dev/null', path.name]))


def _insert(path: pathlib.Path, generator: random.Random):
  data = path.read_bytes()
  place = generator.choice([0, generator.randrange(len(data)), len(data)])
  piece = generator.choice(
      [b'\xef\xbb\xbf', b'\xff\xfe', b'\n\n', b'\r', b'"', b'\0', b'nan', b',']
  )
  path.write_bytes(data[:place] + piece + data[place:])


_DAMAGES: dict[str, Callable[[pathlib.Path, random.Random], None]] = {
    'flip': _flip,
    'flip_early': _flip_early,
    'cut': _cut,
    'empty': _empty,
    'folder': _make_folder,
    'link': _make_link,
    'insert': _insert,
}


class DamagedFilesTest(loop_testing.LoopTestCase):

  def _train(self, name, total_rounds):
    directory = run_directory.RunDirectory(self.folder, name)
    directory.open({'seed': 1, 'total_rounds': 10})
    return self.run_in_directory(directory, total_rounds=total_rounds)

  def _damaged_copy(self, relative, damage, generator):
    """Returns the name of a copy of the run in which one file is damaged."""
    shutil.rmtree(self.folder / 'copy', ignore_errors=True)
    shutil.copytree(self.folder / 'run', self.folder / 'copy')
    damage(self.folder / 'copy' / relative, generator)
    return 'copy'

  @parameterized.parameters(60, 200)
  @pytest.mark.sample(1)
  def test_all_end_in_a_sentence_or_continue(self, num_cases):
    self._train('run', 7)
    files = sorted(
        path.relative_to(self.folder / 'run')
        for path in (self.folder / 'run').rglob('*')
        if path.is_file()
    )
    self.assertGreater(len(files), 5)
    generator = random.Random(1)
    counts = {'went on': 0, 'a sentence': 0}
    for number in range(num_cases):
      relative = generator.choice(files)
      kind = generator.choice(sorted(_DAMAGES))
      name = self._damaged_copy(relative, _DAMAGES[kind], generator)
      with self.subTest(f'{number}: {kind} {relative}'):
        try:
          result = self._train(name, 10)
        except _SENTENCES as error:
          counts['a sentence'] += 1
          self.assertIn('copy', str(error))
        else:
          counts['went on'] += 1
          self.assertEqual(result.state['rounds'], 10)
        try:
          _run_metrics.read_columns(self.folder / name / 'metrics.csv')
        except (OSError, ValueError) as error:
          self.assertIn('metrics.csv', str(error))
    self.assertEqual(sum(counts.values()), num_cases)
    self.assertGreater(min(counts.values()), num_cases // 10, counts)

  @parameterized.parameters((b'\xef\xbb\xbf', 0), (b'\n', 0), (b'\n\n', -1))
  def test_what_an_editor_leaves_does_no_harm(self, piece, place):
    self._train('run', 7)
    path = self.folder / 'run' / 'metrics.csv'
    lines = path.read_bytes().splitlines(keepends=True)
    lines.insert(place % len(lines), piece)
    path.write_bytes(b''.join(lines))
    self._train('run', 10)
    for total_rounds in (7, 10):
      self._train('whole', total_rounds)
    self.assertEqual(self.rows('run'), self.rows('whole'))

  def test_the_checkpoint_before_a_damaged_one_is_taken(self):
    self._train('run', 7)
    newest = self.folder / 'run' / 'checkpoints' / 'checkpoint_00000007.npz'
    data = newest.read_bytes()
    place = data.index(b'NUMPY')
    for bit in range(8 * len(b'NUMPY')):
      flipped = bytearray(data)
      flipped[place + bit // 8] ^= 1 << bit % 8
      shutil.rmtree(self.folder / 'copy', ignore_errors=True)
      shutil.copytree(self.folder / 'run', self.folder / 'copy')
      path = self.folder / 'copy' / newest.relative_to(self.folder / 'run')
      path.write_bytes(bytes(flipped))
      self.assertEqual(self._train('copy', 10).state['rounds'], 10)
