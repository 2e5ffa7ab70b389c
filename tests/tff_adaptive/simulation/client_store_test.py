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
"""Tests of the store of clients' states."""

import collections
import json
import pathlib
import tempfile

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np

from tests.tff_adaptive import file_testing
from tff_adaptive.simulation import checkpoints
from tff_adaptive.simulation import client_store
from tff_adaptive.simulation import structures

_Dict = collections.OrderedDict
_TEMPLATE = _Dict(b=np.zeros([2], np.float32), a=(np.zeros([], np.int64),))
# Of one client.
_NUM_BYTES = 2 * 4 + 8
_AWKWARD_ID = 'ü/../\0' + 'x' * 300


def _stacked(*numbers):
  """The states of several clients, a number each."""
  return _Dict(
      b=np.array([[number, -number] for number in numbers], np.float32),
      a=[np.array(numbers, np.int64)],
  )


class ClientStateStoreTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    folder = self.enter_context(tempfile.TemporaryDirectory())
    self.folder = pathlib.Path(folder) / 'client_states'

  def _store(self, **kwargs):
    return client_store.ClientStateStore(self.folder, **kwargs)

  def _file_names(self):
    return sorted(path.name for path in self.folder.iterdir())

  def assert_states(self, store, expected):
    """Fails unless the store has a state with each of these numbers."""
    self.assertLen(store, len(expected))
    for client_id, number in expected.items():
      state = store.get(client_id)
      self.assertEqual(list(state), ['b', 'a'])
      self.assertIsInstance(state['a'], tuple)
      np.testing.assert_array_equal(
          state['b'], np.array([number, -number], np.float32), strict=True
      )
      np.testing.assert_array_equal(
          state['a'][0], np.array(number, np.int64), strict=True
      )

  def test_keeps_what_is_not_updated(self):
    store = client_store.ClientStateStore()
    store.load('{}', _TEMPLATE)
    self.assertIsNone(store.get('ann'))
    store.update(1, ['ann', 'bob'], _stacked(1, 2))
    store.update(2, ['cid', 'ann'], _stacked(3, 4))
    store.update(3, [], _stacked())
    self.assert_states(store, {'ann': 4, 'bob': 2, 'cid': 3})
    self.assertIsNone(store.get('dan'))
    self.assertEqual(json.loads(store.index()), {'ann': 2, 'bob': 1, 'cid': 2})

  def test_the_last_of_a_client_that_occurs_twice_counts(self):
    store = self._store(max_bytes=0)
    store.load('{}', _TEMPLATE)
    store.update(1, ['ann', 'ann'], _stacked(1, 2))
    self.assert_states(store, {'ann': 2})

  def test_states_cannot_be_written_to_nor_keep_the_stack_alive(self):
    store = client_store.ClientStateStore()
    stacked = _stacked(1, 2)
    store.update(1, ['ann', 'bob'], stacked)
    stacked['b'][:] = 9
    state = store.get('ann')
    self.assertEqual(state['b'].tolist(), [1, -1])
    self.assertIsNone(state['b'].base)
    with self.assertRaisesRegex(ValueError, 'read-only'):
      state['b'][0] = 5

  @parameterized.product(
      max_bytes=[0, _NUM_BYTES, 5 * _NUM_BYTES],
      saves=[False, True],
  )
  def test_a_bound_changes_nothing(self, max_bytes, saves):
    store = self._store(max_bytes=max_bytes)
    store.load('{}', _TEMPLATE)
    expected = {}
    generator = np.random.default_rng(0)
    for round_num in range(1, 10):
      ids = generator.choice(list('abcdefg'), 3, replace=False)
      numbers = generator.integers(100, size=3)
      store.update(round_num, ids, _stacked(*numbers))
      expected.update(zip(ids, numbers))
      self.assert_states(store, expected)
      resident = structures.flatten_with_path(store._resident)
      self.assertLessEqual(sum(leaf.nbytes for _, leaf in resident), max_bytes)
      # The newest state of each client, and what a checkpoint may need.
      files = file_testing.read_files(self.folder)
      self.assertLessEqual(len(files), 14 if saves else 7)
      if saves and round_num % 4 == 0:
        store.save()
        store.drop_unused([])
        self.assertLen(self._file_names(), len(expected))

  def test_used_last_stay_in_memory(self):
    store = self._store(max_bytes=2 * _NUM_BYTES)
    store.update(1, ['ann', 'bob'], _stacked(1, 2))
    self.assertFalse(self.folder.exists())
    store.get('ann')
    store.update(2, ['cid'], _stacked(3))
    self.assertLen(self._file_names(), 1)
    (self.folder / self._file_names()[0]).unlink()
    store.get('ann')
    store.get('cid')
    with self.assertRaisesRegex(checkpoints.CheckpointError, "'bob'"):
      store.get('bob')

  def test_without_a_folder_the_bound_is_an_error(self):
    store = client_store.ClientStateStore(max_bytes=2 * _NUM_BYTES)
    store.update(1, ['ann', 'bob'], _stacked(1, 2))
    with self.assertRaisesRegex(
        client_store.ClientStoreMemoryError,
        '3 clients take more than 32 bytes.*`directory`.*larger `max_bytes`',
    ):
      store.update(2, ['cid'], _stacked(3))
    with self.assertRaisesRegex(ValueError, 'without `directory`'):
      store.save()

  def test_save_and_load(self):
    store = self._store()
    store.update(1, ['ann', _AWKWARD_ID], _stacked(1, 2))
    store.save()
    first, first_files = store.index(), file_testing.read_files(self.folder)
    store.update(2, ['ann', 'bob'], _stacked(3, 4))
    store.save()
    files = file_testing.read_files(self.folder)
    self.assertLen(files, 4)
    self.assertEqual({name: files[name] for name in first_files}, first_files)
    other = self._store()
    other.load(store.index(), _TEMPLATE)
    self.assert_states(other, {'ann': 3, 'bob': 4, _AWKWARD_ID: 2})
    other.load(first, _TEMPLATE)
    self.assert_states(other, {'ann': 1, _AWKWARD_ID: 2})

  def test_only_what_changed_is_written(self):
    store = self._store()
    store.update(1, ['ann', 'bob'], _stacked(1, 2))
    store.save()
    before = {path: path.stat().st_mtime_ns for path in self.folder.iterdir()}
    store.update(2, ['ann'], _stacked(3))
    store.save()
    self.assertLen(self._file_names(), 3)
    for path, modified in before.items():
      self.assertEqual(path.stat().st_mtime_ns, modified)

  def test_drops_what_nothing_needs(self):
    store = self._store(max_bytes=0)
    indices = []
    for round_num in range(1, 4):
      store.update(round_num, ['ann'], _stacked(round_num))
      store.save()
      indices.append(store.index())
    (self.folder / 'notes.txt').write_text('mine')
    (self.folder / f'{self._file_names()[0]}.tmp').write_text('unfinished')
    store.update(4, ['bob'], _stacked(4))
    store.drop_unused(indices[1:])
    names = self._file_names()
    self.assertCountEqual(
        [name for name in names if name != 'notes.txt'],
        [
            client_store._file_name('ann', 2),
            client_store._file_name('ann', 3),
            client_store._file_name('bob', 4),
        ],
    )
    self.assertIn('notes.txt', names)
    store.load(indices[1], _TEMPLATE)
    self.assert_states(store, {'ann': 2})

  def test_missing_and_damaged_files_are_named(self):
    store = self._store()
    store.update(1, ['ann', 'bob'], _stacked(1, 2))
    store.save()
    ann, bob = (
        self.folder / client_store._file_name(name, 1)
        for name in ('ann', 'bob')
    )
    whole = ann.read_bytes()
    damages = {
        'is damaged': [whole[:-9], whole[:200] + b'\xff' + whole[201:], b''],
        'is of the client': [bob.read_bytes()],
    }
    for message, contents in damages.items():
      for content in contents:
        ann.write_bytes(content)
        with self.assertRaisesRegex(
            checkpoints.CheckpointError,
            f"{ann} {message}.*client 'ann' after round 1; bring",
        ):
          store.load(store.index(), _TEMPLATE)
    ann.unlink()
    with self.assertRaisesRegex(
        checkpoints.CheckpointError, f"no {ann}.*'ann' after round 1"
    ):
      store.load(store.index(), _TEMPLATE)

  def test_a_full_disk_keeps_what_was_there(self):
    store = self._store()
    store.update(1, ['ann'], _stacked(1))
    store.save()
    index, files = store.index(), file_testing.read_files(self.folder)
    store.update(2, ['ann', 'bob'], _stacked(3, 4))
    with file_testing.max_file_size(100):
      with self.assertRaisesRegex(OSError, r'-00000002.npz: File too large'):
        store.save()
    self.assertEqual(file_testing.read_files(self.folder), files)
    # There is room again.
    store.save()
    self.assertLen(self._file_names(), 3)
    store.load(index, _TEMPLATE)
    self.assert_states(store, {'ann': 1})

  @parameterized.parameters(
      (_Dict(b=np.zeros([1, 2], np.float32)), 'lack `a/0`'),
      (
          _Dict(b=np.zeros([1, 3], np.float32), a=[np.zeros([1], np.int64)]),
          r'`b`.*must be float32\[2\], found float32\[3\]',
      ),
      (
          _Dict(b=np.zeros([1, 2]), a=[np.zeros([1], np.int64)]),
          r'`b`.*must be float32\[2\], found float64\[2\]',
      ),
  )
  def test_states_of_another_kind_raise(self, states, message):
    store = client_store.ClientStateStore()
    store.load('{}', _TEMPLATE)
    with self.assertRaisesRegex(ValueError, message):
      store.update(1, ['ann'], states)

  def test_negative_bound_raises(self):
    with self.assertRaisesRegex(ValueError, '`max_bytes`.*found -1'):
      client_store.ClientStateStore(max_bytes=-1)


if __name__ == '__main__':
  absltest.main()
