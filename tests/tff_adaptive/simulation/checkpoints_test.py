# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of checkpoints."""

import errno
import gc
import os
import pickle
import sys
from unittest import mock

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf

from tests import folder_testing
from tests.tff_adaptive import file_testing
from tests.tff_adaptive.simulation import checkpoint_testing
from tff_adaptive.data import npz_files
from tff_adaptive.simulation import checkpoints


class CheckpointFilesTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    folder = folder_testing.new(self)
    self.path = folder / 'saved' / 'state.npz'

  def _save(self, state):
    checkpoints.write_structure(self.path, 1, state)

  def _restore(self, template):
    return checkpoints.read_structure(self.path, template)

  def test_restores_every_leaf_with_its_type_and_bits(self):
    state = checkpoint_testing.state(2.0)
    self._save(state)
    restored = self._restore(checkpoint_testing.state())
    self.assertIs(type(restored), type(state))
    self.assertEqual(
        checkpoint_testing.leaves(restored), checkpoint_testing.leaves(state)
    )

  def test_takes_tensors(self):
    self._save({'w': tf.constant([1.0, 2.0])})
    restored = self._restore({'w': tf.zeros([2])})
    self.assertEqual(restored['w'].tolist(), [1.0, 2.0])

  @parameterized.parameters(
      tf.bfloat16,
      tf.as_dtype('float8_e5m2'),
      tf.as_dtype('float8_e4m3fn'),
      tf.as_dtype('int4'),
  )
  def test_types_that_numpy_does_not_have(self, dtype):
    values = np.array([1, 2, 3], dtype.as_numpy_dtype)
    self._save({'w': values})
    restored = self._restore({'w': np.zeros_like(values)})['w']
    self.assertEqual(restored.dtype, values.dtype)
    self.assertEqual(restored.tobytes(), values.tobytes())

  @parameterized.parameters('', b'', 'a\0', b'\xff\0\0', 'ü')
  def test_texts_keep_the_zeros_at_their_end(self, text):
    self._save({'t': text})
    self.assertEqual(self._restore({'t': type(text)()}), {'t': text})

  def test_leaves_are_read_without_a_template(self):
    bfloat16 = tf.bfloat16.as_numpy_dtype
    self._save({'a': [np.float32(1.5), np.ones([2], bfloat16)], 'b': 'text'})
    leaves = checkpoints.read_leaves(self.path)
    self.assertEqual(
        {
            name: (leaf.dtype.name, leaf.tolist())
            for name, leaf in leaves.items()
        },
        {
            'a/0': ('float32', 1.5),
            'a/1': ('bfloat16', [1.0, 1.0]),
            'b': ('str128', 'text'),
        },
    )
    self.path.write_bytes(b'damaged')
    with self.assertRaisesRegex(
        checkpoints.CheckpointError, 'state.npz is damaged'
    ):
      checkpoints.read_leaves(self.path)
    self.path.unlink()
    with self.assertRaisesRegex(FileNotFoundError, 'state.npz does not exist'):
      checkpoints.read_leaves(self.path)

  def test_files_that_are_checkpoints(self):
    self.assertFalse(checkpoints.is_checkpoint(self.path))
    self._save(checkpoint_testing.state())
    self.assertTrue(checkpoints.is_checkpoint(self.path))
    np.savez(self.path, a=np.ones(2))
    self.assertFalse(checkpoints.is_checkpoint(self.path))
    self.path.write_bytes(b'text')
    self.assertFalse(checkpoints.is_checkpoint(self.path))

  def test_pickles_nothing(self):
    self._save(checkpoint_testing.state())
    with np.load(self.path, allow_pickle=False) as file:
      for name in file.files:
        self.assertNotEqual(file[name].dtype.kind, 'O')
    before = self.path.read_bytes()
    with self.assertRaisesRegex(TypeError, '`b/0` of type object'):
      self._save({'b': [object()]})
    with self.assertRaisesRegex(ValueError, 'named `a/b`'):
      self._save({'a/b': 1, 'a': {'b': 2}})
    self.assertEqual(self.path.read_bytes(), before)

  @parameterized.named_parameters(
      ('missing', {'a': np.zeros(2), 'c': 1.0}, 'lacks `c`'),
      ('extra', {}, 'has `a`, unknown'),
      (
          'shape',
          {'a': np.zeros(3)},
          r'`a` is float64\[2\] in the checkpoint, but float64\[3\]',
      ),
      (
          'dtype',
          {'a': np.zeros(2, np.float32)},
          r'`a` is float64\[2\] in the checkpoint, but float32\[2\]',
      ),
      (
          'bfloat16',
          {'a': np.zeros(2, tf.bfloat16.as_numpy_dtype)},
          r'but bfloat16\[2\]',
      ),
  )
  def test_names_the_difference_to_the_template(self, template, message):
    self._save({'a': np.zeros(2)})
    with self.assertRaisesRegex(checkpoints.CheckpointError, message):
      self._restore(template)


class CheckpointsTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    self.directory = folder_testing.new(self) / 'saved'
    self.manager = checkpoints.CheckpointManager(self.directory)

  def _path(self, round_num):
    return self.directory / f'checkpoint_{round_num:08d}.npz'

  def test_leaves_are_loaded_without_a_template(self):
    self.assertIsNone(self.manager.load_latest_leaves())
    self.manager.save(3, {'a': np.int64(3)})
    self.manager.save(4, {'a': np.int64(4)})
    self.assertEqual(self.manager.load_latest_leaves(), (4, {'a': np.int64(4)}))
    self._path(4).write_bytes(b'damaged')
    with self.assertLogs(level='WARNING'):
      self.assertEqual(self.manager.load_latest_leaves()[0], 3)

  def test_keeps_the_newest_and_cleans_up(self):
    self.manager.save(1, checkpoint_testing.state())
    (self.directory / 'checkpoint_00000009.npz.tmp').write_bytes(b'half')
    for round_num in (2, 3, 4):
      self.manager.save(round_num, checkpoint_testing.state())
    self.assertEqual(self.manager.round_nums(), [2, 3, 4])
    self.assertLen(os.listdir(self.directory), 3)

  def test_old_ones_of_a_run_killed_before_it_dropped_them(self):
    for round_num in range(1, 6):
      checkpoints.CheckpointManager(self.directory, 9).save(
          round_num, checkpoint_testing.state()
      )
    (self.directory / 'best.npz.tmp').write_bytes(b'half')
    self.manager.drop_old(4)
    self.assertEqual(self.manager.round_nums(), [2, 3, 4, 5])
    self.assertLen(os.listdir(self.directory), 4)

  def test_damaged_files_of_later_rounds_displace_no_whole_one(self):
    manager = checkpoints.CheckpointManager(self.directory, keep_total=1)
    manager.save(5, checkpoint_testing.state())
    manager.save(9, checkpoint_testing.state())
    self._path(9).write_bytes(b'damaged')
    # Other rounds are due than before.
    manager.save(6, checkpoint_testing.state())
    self.assertEqual(manager.round_nums(), [6])
    self.assertEqual(manager.load_latest(checkpoint_testing.state())[0], 6)

  @parameterized.parameters(0, 1, 20, 200, 0.5, 0.9, 0.999)
  def test_skips_a_file_that_is_cut_short(self, length):
    self.manager.save(1, checkpoint_testing.state(1.0))
    self.manager.save(2, checkpoint_testing.state(2.0))
    data = self._path(2).read_bytes()
    if isinstance(length, float):
      length = int(length * len(data))
    self._path(2).write_bytes(data[:length])
    with self.assertLogs(level='WARNING') as logs:
      round_num, state = self.manager.load_latest(checkpoint_testing.state())
    self.assertIn('checkpoint_00000002.npz', logs.output[0])
    self.assertEqual(round_num, 1)
    self.assertEqual(
        checkpoint_testing.leaves(state),
        checkpoint_testing.leaves(checkpoint_testing.state(1.0)),
    )

  def test_notices_any_changed_byte_that_matters(self):
    self.manager.save(1, checkpoint_testing.state(1.0))
    self.manager.save(2, checkpoint_testing.state(2.0))
    data = bytearray(self._path(2).read_bytes())
    found = set()
    for place in np.linspace(0, len(data) - 1, 150).astype(int):
      changed = bytearray(data)
      changed[place] ^= 0x55
      self._path(2).write_bytes(changed)
      round_num, state = self.manager.load_latest(checkpoint_testing.state())
      # A byte that nothing reads, such as a date, may differ.
      self.assertEqual(
          checkpoint_testing.leaves(state),
          checkpoint_testing.leaves(checkpoint_testing.state(float(round_num))),
      )
      found.add(round_num)
    self.assertEqual(found, {1, 2})

  def test_unpickles_nothing(self):
    class Harmful:

      def __reduce__(self):
        return os.mkdir, (str(harm),)

    harm = self.directory.parent / 'harm'
    self.manager.save(1, checkpoint_testing.state())
    np.savez(self._path(2), manifest=np.array([Harmful()]))
    self._path(3).write_bytes(pickle.dumps(Harmful()))
    with self.assertLogs(level='WARNING') as logs:
      self.assertEqual(
          self.manager.load_latest(checkpoint_testing.state())[0], 1
      )
    self.assertLen(logs.output, 2)
    self.assertFalse(harm.exists())
    pickle.loads(self._path(3).read_bytes())
    self.assertTrue(harm.exists())

  @parameterized.parameters(MemoryError, OSError)
  def test_a_file_that_cannot_be_read_now_is_not_damaged(self, error):
    self.manager.save(1, checkpoint_testing.state())
    with (
        mock.patch.object(npz_files, 'read', side_effect=error),
        self.assertRaises(error),
    ):
      self.manager.load_latest(checkpoint_testing.state())

  @parameterized.parameters(errno.EACCES, errno.EMFILE)
  def test_a_file_that_cannot_be_opened_is_not_damaged(self, number):
    self.manager.save(1, checkpoint_testing.state())
    self.manager.save(2, checkpoint_testing.state())
    error = OSError(number, os.strerror(number), f'{self._path(2)}')
    with mock.patch.object(os, 'open', side_effect=error):
      with self.assertRaisesRegex(OSError, f'{self._path(2)}'):
        self.manager.load_latest(checkpoint_testing.state())

  @parameterized.parameters(0, 1, 100, 2000, 9000, 40000)
  @pytest.mark.sample(1)
  def test_a_limit_of_the_system_keeps_the_last_checkpoint(self, max_size):
    # Larger than the buffer of a file.
    state = {'a': np.zeros(2000), 'b': np.arange(4000.0)}
    self.manager.save(1, state)
    before = file_testing.read_files(self.directory)
    messages = []
    with mock.patch.object(sys, 'unraisablehook', messages.append):
      with file_testing.max_file_size(max_size):
        with self.assertRaisesRegex(
            OSError,
            f'^could not write {self._path(2)}: File too large; earlier '
            'checkpoints are kept$',
        ):
          self.manager.save(2, state)
      gc.collect()
    self.assertEmpty(messages)
    self.assertEqual(file_testing.read_files(self.directory), before)
    self.manager.save(2, state)
    self.assertEqual(self.manager.load_latest(state)[0], 2)

  def test_refuses_another_format(self):
    with mock.patch.object(checkpoints, '_FORMAT', 'something else'):
      self.manager.save(1, checkpoint_testing.state())
    with self.assertRaisesRegex(
        checkpoints.CheckpointError, "the format 'something else'"
    ):
      self.manager.load_latest(checkpoint_testing.state())
