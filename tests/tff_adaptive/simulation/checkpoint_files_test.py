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
"""Tests of checkpoint files."""

import pathlib
import tempfile

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tests.tff_adaptive.simulation import checkpoint_testing
from tff_adaptive.simulation import checkpoint_files


class CheckpointFilesTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    folder = self.enter_context(tempfile.TemporaryDirectory())
    self.path = pathlib.Path(folder) / 'saved' / 'state.npz'

  def _save(self, state):
    checkpoint_files.write_structure(self.path, 1, state)

  def _restore(self, template):
    return checkpoint_files.read_structure(self.path, template)

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

  def test_leaves_are_read_without_a_template(self):
    bfloat16 = tf.bfloat16.as_numpy_dtype
    self._save({'a': [np.float32(1.5), np.ones([2], bfloat16)], 'b': 'text'})
    leaves = checkpoint_files.read_leaves(self.path)
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
        checkpoint_files.CheckpointError, 'state.npz is damaged'
    ):
      checkpoint_files.read_leaves(self.path)
    self.path.unlink()
    with self.assertRaisesRegex(FileNotFoundError, 'no .*state.npz'):
      checkpoint_files.read_leaves(self.path)

  def test_files_that_are_checkpoints(self):
    self.assertFalse(checkpoint_files.is_checkpoint(self.path))
    self._save(checkpoint_testing.state())
    self.assertTrue(checkpoint_files.is_checkpoint(self.path))
    np.savez(self.path, a=np.ones(2))
    self.assertFalse(checkpoint_files.is_checkpoint(self.path))
    self.path.write_bytes(b'text')
    self.assertFalse(checkpoint_files.is_checkpoint(self.path))

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
    with self.assertRaisesRegex(checkpoint_files.CheckpointError, message):
      self._restore(template)


if __name__ == '__main__':
  absltest.main()
