# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of reading images, and of scaling those in the form of MNIST."""

import pathlib
import pickle
import sys
import types
from unittest import mock

from absl.testing import parameterized
import numpy as np

from tasks.images import image_files
from tasks.images import mnist_data
from tasks.images import python_files
from tests import folder_testing
from tests.tasks import data_testing
from tests.tasks.images import cifar_testing

_DATASET = image_files.ImageDataset('letters', 'Letter-MNIST', (28, 28), 10)

# The first bytes of a .npy file.
_NPY = b'\x93NUMPY\x01\x00v\x00'


def _small(**changes):
  return {**cifar_testing.arrays(20, 10, 10, (28, 28)), **changes}


class _FakeBuilder:
  """A builder of tensorflow-datasets, with images that need no folder."""

  def __init__(self, arrays):
    self._arrays = arrays

  def as_dataset(self, split, batch_size):
    assert batch_size == -1
    return {
        'image': self._arrays[f'x_{split}'][..., np.newaxis],
        'label': self._arrays[f'y_{split}'].astype(np.int64),
    }


class ImageFilesTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    folder = folder_testing.new(self)
    self.data_dir = folder / 'data'
    self.data_dir.mkdir()
    self.npz = self.data_dir / 'letters.npz'

  def _fake_tfds(self, **functions):
    module = types.SimpleNamespace(as_numpy=lambda data: data, **functions)
    self.enter_context(
        mock.patch.dict(sys.modules, {'tensorflow_datasets': module})
    )

  def _assert_refused(self, *sentences, error=ValueError):
    with self.assertRaises(error) as caught:
      _DATASET.load(self.data_dir)
    text = str(caught.exception)
    for sentence in sentences:
      self.assertIn(sentence, text)
    self.assertNotIn('\n', text)
    self.assertEndsWith(text, '.')

  def test_reads_and_scales_a_file(self):
    arrays = _small()
    np.savez(self.npz, **arrays)
    parts = map(mnist_data.scale, _DATASET.load(str(self.data_dir)))
    for examples, name in zip(parts, ('train', 'test')):
      self.assertEqual(list(examples), ['x', 'y'])
      self.assertEqual(examples['x'].dtype, np.float32)
      self.assertEqual(examples['y'].dtype, np.int32)
      images = arrays[f'x_{name}'].astype(np.float64)[..., np.newaxis]
      np.testing.assert_allclose(
          examples['x'], (images / 255 - 0.1307) / 0.3081, rtol=1e-5, atol=1e-6
      )
      np.testing.assert_array_equal(examples['y'], arrays[f'y_{name}'])

  def test_missing_names_place_and_command(self):
    self._assert_refused(
        'Letter-MNIST was not found: put letters.npz (arrays x_train, y_train, '
        f'x_test, y_test) at {self.npz}',
        f'`.venv/bin/python -m tasks.fetch letters --data_dir={self.data_dir}`',
        error=FileNotFoundError,
    )

  @parameterized.named_parameters(
      ('empty', lambda good: b''),
      ('text', lambda good: b'no'),
      ('half', lambda good: good[: len(good) // 2]),
      ('changed_bytes', lambda good: good[:5000] + b'mistakes' + good[5008:]),
      ('one_array', lambda good: _NPY),
  )
  def test_file_that_is_damaged(self, damage):
    np.savez_compressed(self.npz, **_small())
    self.npz.write_bytes(damage(self.npz.read_bytes()))
    self._assert_refused(str(self.npz), 'could not be read (')

  def test_pickled_objects_are_not_loaded(self):
    np.savez(self.npz, **_small(x_test=np.array([{}], object)))
    self._assert_refused(str(self.npz), 'allow_pickle=False')

  @parameterized.parameters(
      ('x_train', np.zeros([20, 28, 28], np.float32), 'float32'),
      ('x_train', np.zeros([0, 28, 28], np.uint8), '[0, 28, 28]'),
      ('x_test', np.zeros([10, 32, 32], np.uint8), '[10, 32, 32]'),
      ('x_test', np.zeros([], np.uint8), 'found []'),
      ('y_train', np.zeros([19], np.uint8), 'found [19]'),
      ('y_train', np.zeros([20, 10], np.uint8), 'must have shape [20], '),
      ('y_train', np.arange(20, dtype=np.uint8), 'the label 10 at example 10'),
      ('y_test', np.arange(10) - 1, 'the label -1 at example 0'),
      ('y_test', np.full([10], 0.5, np.float32), 'float32'),
  )
  def test_arrays_that_cannot_be(self, name, array, found):
    np.savez(self.npz, **_small(**{name: array}))
    self._assert_refused(f'{self.npz}: {name} ', found)

  def test_arrays_that_are_missing(self):
    arrays = _small()
    np.savez(self.npz, x_train=arrays['x_train'], y_test=arrays['y_test'])
    self._assert_refused(
        f'{self.npz} must hold the arrays x_train, y_train, x_test, y_test, '
        'but lacks y_train, x_test; it holds x_train, y_test.'
    )

  def test_the_other_layout_is_named(self):
    np.savez(self.npz, client_id=['ann'], x=np.zeros([1, 4]), y=[0])
    with self.assertRaisesRegex(ValueError, 'it holds client_id, x, y. That'):
      _DATASET.check_files(self.data_dir)

  def test_reads_the_newest_prepared_version(self):
    data_testing.prepare(self.data_dir, 'letters', '3.0.1', '10.0.0', '9.0.0')
    seen = []

    def builder_from_directory(path):
      seen.append(path.name)
      return _FakeBuilder(_small())

    self._fake_tfds(builder_from_directory=builder_from_directory)
    train, test = _DATASET.load(self.data_dir)
    self.assertEqual(seen, ['10.0.0'])
    self.assertEqual(train['x'].shape, (20, 28, 28))
    np.testing.assert_array_equal(test['y'], np.arange(10))

  def test_prepared_folder_that_is_damaged(self):
    data_testing.prepare(self.data_dir, 'letters', '3.0.1')
    self._assert_refused(
        f'{self.data_dir / "tfds" / "letters" / "3.0.1"} could not be read',
        f'`.venv/bin/python -m tasks.fetch letters --data_dir={self.data_dir}`',
    )

  @parameterized.parameters(MemoryError, PermissionError)
  def test_prepared_folder_that_may_be_whole_is_not_called_damaged(self, error):
    data_testing.prepare(self.data_dir, 'letters', '3.0.1')
    self._fake_tfds(builder_from_directory=mock.Mock(side_effect=error))
    with self.assertRaises(error):
      _DATASET.load(self.data_dir)

  def test_the_file_comes_first(self):
    data_testing.prepare(self.data_dir, 'letters', '3.0.1')
    np.savez(self.npz, **_small())
    # Without any function: nothing of it is called.
    self._fake_tfds()
    _, test = _DATASET.load(self.data_dir)
    np.testing.assert_array_equal(test['y'], np.arange(10))


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
