# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `python_files`."""

import pathlib
import pickle

from absl.testing import parameterized
import numpy as np

from tasks.images import python_files
from tests import folder_testing


def _pixels(num_images):
  """Returns rows of red, green, then blue pixels, as published."""
  generator = np.random.default_rng(1)
  return generator.integers(0, 256, [num_images, 3072]).astype(np.uint8)


class PythonFilesTest(folder_testing.FolderTestCase):

  def _write(self, name, contents, protocol=2):
    (self.folder / name).write_bytes(pickle.dumps(contents, protocol))

  def _assert_refused(self, sentence, error=ValueError):
    with self.assertRaises(error) as caught:
      python_files.read_python_files(self.folder, ['a'], 'labels')
    self.assertIn(f'{self.folder / "a"} {sentence}', str(caught.exception))
    self.assertNotIn('\n', str(caught.exception))

  @parameterized.parameters(2, 4)
  def test_puts_files_together_and_channels_last(self, protocol):
    pixels = _pixels(5)
    for name, rows in (('a', slice(0, 3)), ('b', slice(3, 5))):
      self._write(
          name,
          {
              b'data': pixels[rows],
              b'labels': list(range(5))[rows],
              b'batch_label': b'some of 2',
              b'filenames': [b'a.png'],
          },
          protocol,
      )
    examples = python_files.read_python_files(self.folder, ['a', 'b'], 'labels')
    self.assertEqual(examples['x'].shape, (5, 32, 32, 3))
    self.assertEqual(examples['x'].dtype, np.uint8)
    np.testing.assert_array_equal(examples['y'], np.arange(5))
    np.testing.assert_array_equal(
        examples['x'][4, 2, 7], pixels[4, [71, 1024 + 71, 2048 + 71]]
    )

  def test_missing(self):
    self._assert_refused('is missing; unpack', FileNotFoundError)

  @parameterized.named_parameters(
      ('empty', b''),
      ('text', b'no pickle'),
      (
          'truncated',
          pickle.dumps({b'data': _pixels(2), b'labels': [1, 2]})[:-9],
      ),
      ('other_keys', pickle.dumps({b'data': _pixels(2)})),
      ('a_list', pickle.dumps([1, 2])),
  )
  def test_damaged(self, contents):
    (self.folder / 'a').write_bytes(contents)
    self._assert_refused('is damaged (')

  def test_code_is_not_run(self):
    self._write('a', pathlib.PurePosixPath('x'))
    self._assert_refused('is damaged (UnpicklingError: it holds a pathlib.')

  @parameterized.named_parameters(
      ('fewer', {b'data': _pixels(2), b'labels': [1]}),
      ('floats', {b'data': _pixels(2), b'labels': [1.0, 2.0]}),
      ('wider', {b'data': np.zeros([2, 784], np.uint8), b'labels': [1, 2]}),
      ('type', {b'data': np.zeros([2, 3072]), b'labels': [1, 2]}),
      ('no_array', {b'data': [[1]], b'labels': [1]}),
  )
  def test_other_contents(self, contents):
    self._write('a', contents)
    self._assert_refused('must have an image of 3072 bytes for each of its')
