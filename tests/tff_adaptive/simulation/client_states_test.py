# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of clients that keep state, and of its store."""

import collections
import json
import os
import types

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow_federated as tff

from tests import folder_testing
from tests.tff_adaptive import client_state_testing
from tests.tff_adaptive import file_testing
from tests.tff_adaptive.simulation import killed_loop_testing
from tests.tff_adaptive.simulation import loop_testing
from tff_adaptive import runtime
from tff_adaptive import simulation
from tff_adaptive.simulation import checkpoints
from tff_adaptive.simulation import client_states
from tff_adaptive.simulation import structures

_Dict = collections.OrderedDict
# Clients by round; `d` comes first in round 4, and `c` never.
_COHORTS = (
    ('a', 'b'),
    ('b', 'short'),
    ('bad', 'a'),
    ('d', 'none'),
    ('b', 'bad'),
    ('a', 'd', 'long'),
    ('short', 'b'),
)
_STATE_BYTES = 2 * 4 + 4


def _cohort(round_index):
  ids = _COHORTS[round_index % len(_COHORTS)]
  return client_state_testing.cohort(ids, round_index)


def _signature(result_state=None):
  """Returns the type of `next`, or one whose metrics hold other states."""
  state = _Dict(
      total=tff.TensorType(np.float32, [2]), count=tff.TensorType(np.int32)
  )
  stacked = _Dict(
      total=tff.TensorType(np.float32, [None, 2]),
      count=tff.TensorType(np.int32, [None]),
  )
  batch = _Dict(x=tff.TensorType(np.float32, [None]))
  client = _Dict(
      data=tff.SequenceType(batch),
      client_id=tff.SequenceType(np.str_),
      client_state=tff.SequenceType(state),
  )
  client_states = _Dict(
      client_id=tff.TensorType(np.str_, [None]),
      client_state=result_state or stacked,
  )
  metrics = _Dict(client_work=_Dict(client_states=client_states))
  at_server = lambda member: tff.FederatedType(member, tff.SERVER)
  return tff.FunctionType(
      [at_server(np.float32), tff.FederatedType(client, tff.CLIENTS)],
      _Dict(state=at_server(np.float32), metrics=at_server(metrics)),
  )


class _Process(loop_testing.Process):
  """Adds up each client's data; looks like a learning process."""

  def next(self, state, cohort):
    self._on_next(state)
    sequences = cohort.ids_and_states()
    kept = []
    for place, (client_id,) in enumerate(sequences['client_id']):
      old = sequences['client_state'][place]
      old = old[0] if old else _Dict(total=np.zeros(2), count=0)
      examples = np.concatenate(
          [np.zeros(0), *(batch['x'] for batch in cohort.batches(place))]
      )
      change = [np.sum(examples), state['weights']]
      total = np.asarray(old['total'] + change, np.float32)
      if np.isfinite(total).all():
        kept.append((client_id.encode(), total, old['count'] + 1))
    ids, totals, counts = zip(*kept) if kept else ((), (), ())
    client_states = _Dict(
        client_id=np.array(ids, object),
        client_state=_Dict(
            total=np.array(totals, np.float32).reshape([-1, 2]),
            count=np.array(counts, np.int32),
        ),
    )
    weights = np.float32(state['weights'] + sum(map(np.sum, totals)) / 100)
    return types.SimpleNamespace(
        state={'weights': weights, 'rounds': state['rounds'] + np.int32(1)},
        metrics=_Dict(
            client_work=_Dict(loss=1 / weights, client_states=client_states)
        ),
    )

  # As a computation of TFF has it.
  setattr(next, 'type_signature', _signature())


class _LoopTestCase(loop_testing.LoopTestCase):

  def store(self, name='run', **kwargs):
    folder = self.folder / name / 'client_states'
    return simulation.ClientStateStore(folder, **kwargs)

  def run_loop(self, name='run', process=None, **kwargs):
    arguments = dict(cohort_fn=_cohort, total_rounds=7, rounds_per_checkpoint=2)
    arguments.update(kwargs)
    arguments.setdefault('client_store', self.store(name))
    return super().run_loop(name, process or _Process(), **arguments)

  def manager(self, name='run', keep_total=3):
    return checkpoints.CheckpointManager(
        self.folder / name / 'checkpoints', keep_total
    )


class ClientStatesTest(_LoopTestCase):

  def test_states_come_back_and_those_of_others_stay(self):
    seen = []
    store = self.store()

    def look(_):
      seen.append({name: store.get(name) for name in 'abcd'})

    self.run_loop(process=_Process(look), client_store=store)
    counts = [
        [states[name] and int(states[name]['count']) for name in 'abcd']
        for states in seen
    ]
    self.assertEqual(
        counts,
        [
            [None, None, None, None],
            [1, 1, None, None],
            [1, 2, None, None],
            [2, 2, None, None],
            [2, 2, None, 1],
            [2, 3, None, 1],
            [3, 3, None, 2],
        ],
    )
    self.assertIsNone(store.get('bad'))
    self.assertEqual(store.get('short')['total'][0], 2 * (40 + 41 + 42))
    self.assertEqual(store.get('b')['total'][0], 4 * (10 + 11 + 12 + 13))

  def test_states_reach_no_writer(self):
    self.run_loop()
    self.assertEqual(self.rows()[0], 'round_num,loss,evaluation/accuracy')

  @parameterized.product(
      killed_in=[1, 2, 3, 4, 6, 7],
      error=[KeyboardInterrupt, RuntimeError],
      max_bytes=[0, 2 * _STATE_BYTES, 10**6],
  )
  @pytest.mark.sample(9)
  def test_a_resumed_run_equals_an_uninterrupted_one(
      self, killed_in, error, max_bytes
  ):
    whole = self.run_loop('whole')

    def fail(state):
      if state['rounds'] == killed_in - 1:
        raise error

    store = self.store(max_bytes=max_bytes)
    with self.assertRaises(error):
      self.run_loop(process=_Process(fail), client_store=store)
    result = self.run_loop(client_store=self.store(max_bytes=max_bytes))
    self.assertEqual(result.state, whole.state)
    if error is RuntimeError or killed_in % 2:
      # Else there is a checkpoint of Ctrl-C besides the others.
      self.assert_same_run('run', 'whole')

  def test_files_are_those_that_checkpoints_need(self):
    for keep_total in (3, 1):
      manager = self.manager(keep_total=keep_total)
      self.run_loop(checkpoints=manager)
      needed = set()
      for round_num in manager.round_nums():
        leaves = checkpoints.read_leaves(manager.path(round_num))
        index = json.loads(leaves['client_states'].item())
        self.assertLessEqual(max(index.values()), round_num)
        needed.update(client_states._file_name(*item) for item in index.items())
      folder = self.folder / 'run' / 'client_states'
      self.assertEqual({path.name for path in folder.iterdir()}, needed)
      self.assertLen(manager.round_nums(), keep_total)

  def test_a_damaged_checkpoint_keeps_the_files_of_others(self):
    self.run_loop('whole')
    self.run_loop(total_rounds=5)
    path = self.manager().path(5)
    path.write_bytes(path.read_bytes()[:-9])
    with self.assertLogs('absl', 'WARNING'):
      self.run_loop()
    # It counts as one that is kept, and nobody knows what it needs.
    self.assertEqual(self.manager().round_nums(), [5, 6, 7])
    names, whole = (
        set(os.listdir(self.folder / name / 'client_states'))
        for name in ('run', 'whole')
    )
    self.assertContainsSubset(whole, names)
    self.assertGreater(len(names), len(whole))
    for name in ('run', 'whole'):
      self.run_loop(name, total_rounds=12)
    self.assert_same_run('run', 'whole')

  @parameterized.parameters(
      (lambda path: path.unlink(), 'does not exist'),
      (lambda path: path.write_bytes(path.read_bytes()[:-9]), 'is damaged'),
  )
  def test_a_bad_file_is_an_error_before_the_first_round(self, damage, message):
    self.run_loop(total_rounds=4)
    path = self.folder / 'run' / 'client_states'
    path = path / client_states._file_name('short', 2)
    damage(path)
    with self.assertRaisesRegex(checkpoints.CheckpointError, message) as caught:
      self.run_loop(process=_Process(self.fail))
    self.assertIn(f'{path}', str(caught.exception))
    self.assertIn("'short' after round 2", str(caught.exception))

  @parameterized.parameters(0, 10**6)
  def test_a_full_disk_keeps_the_last_state(self, max_bytes):
    self.run_loop('whole')
    self.run_loop(total_rounds=2, checkpoints=self.manager(), writers=())
    # Rows and checkpoints are smaller or larger, states come in between.
    with file_testing.max_file_size(300):
      with self.assertRaisesRegex(OSError, r'-0000000\d.npz: File too large'):
        self.run_loop(client_store=self.store(max_bytes=max_bytes), writers=())
    self.assertEqual(self.manager().round_nums(), [2])
    self.run_loop(writers=())
    for name in file_testing.read_files(self.folder / 'whole'):
      if name != 'metrics.csv':
        self.assertEqual(
            (self.folder / 'run' / name).read_bytes(),
            (self.folder / 'whole' / name).read_bytes(),
            name,
        )

  def test_without_checkpoints_each_run_begins_anew(self):
    store = simulation.ClientStateStore()
    first = self.run_loop(checkpoints=None, client_store=store)
    again = self.run_loop('again', checkpoints=None, client_store=store)
    self.assertEqual(again.state, first.state)
    self.assertEqual(self.rows(), self.rows('again'))

  def test_process_and_store_must_belong_together(self):
    with self.assertRaisesRegex(ValueError, 'pass a `ClientStateStore`'):
      self.run_loop(client_store=None)
    with self.assertRaisesRegex(ValueError, 'does not take `client_state`'):
      self.run_loop(process=loop_testing.Process())
    with self.assertRaisesRegex(ValueError, 'has no `directory`'):
      self.run_loop(client_store=simulation.ClientStateStore())
    with self.assertRaisesRegex(TypeError, 'must return a `Cohort`.*list'):
      self.run_loop(cohort_fn=lambda _: [])

  @parameterized.parameters(
      ({'total': [None, 2]},),
      ({'total': [None, 3], 'count': [None]},),
      ({'total': [None, 2], 'count': []},),
  )
  def test_metrics_that_hold_other_states_raise(self, shapes):
    dtypes = {'total': np.float32, 'count': np.int32}
    process = _Process()
    process.next = types.SimpleNamespace(
        type_signature=_signature(
            _Dict(
                (name, tff.TensorType(dtypes[name], shape))
                for name, shape in shapes.items()
            )
        )
    )
    with self.assertRaisesRegex(TypeError, 'client_state=<.*found <client_id'):
      self.run_loop(process=process)


class KillTest(_LoopTestCase, killed_loop_testing.KilledLoopTestCase):

  def run_to_the_end(self, name):
    self.run_loop(
        name,
        checkpoints=self.manager(name, keep_total=2),
        # Some states have to be written between checkpoints, too.
        client_store=self.store(name, max_bytes=2 * _STATE_BYTES),
    )

  def train(self, name, kill_at=0):
    (self.folder / name).mkdir(exist_ok=True)
    return super().train(name, kill_at)

  def contents(self, name):
    files = file_testing.read_files(self.folder / name)
    del files['metrics.csv']
    return self.rows(name), files

  @parameterized.parameters(97, 3)
  @pytest.mark.sample(1)
  def test_killed_at_some_instants(self, step):
    file_name = client_states._file_name('a', 1)
    self.check_killed_runs(
        step, [f'after replace {file_name}.tmp', f'before unlink {file_name}']
    )


@pytest.mark.usefixtures('native_runtime')
class RuntimesTest(_LoopTestCase):

  @pytest.mark.slow
  def test_a_real_process_trains_alike_on_both_runtimes(self):
    process = client_state_testing.process()
    native, compiled = self.store('native'), self.store('compiled')
    expected = self.run_loop('native', process, client_store=native)
    with runtime.CompiledContext(devices='CPU', strict=True):
      found = self.run_loop('compiled', process, client_store=compiled)
      # Again, from the checkpoint of round 4 on.
      self.run_loop('resumed', process, total_rounds=4)
      self.run_loop('resumed', process)
    self.assert_same_run('resumed', 'compiled')
    np.testing.assert_allclose(
        found.state['weights'], expected.state['weights'], rtol=1e-6
    )
    self.assertEqual(compiled.index(), native.index())
    for name in ('a', 'b', 'd', 'short', 'long', 'none'):
      states = native.get(name), compiled.get(name)
      for left, right in zip(*map(_leaves, states)):
        np.testing.assert_allclose(left, right, rtol=1e-6)


def _leaves(state):
  return tff.structure.flatten(tff.structure.from_container(state, True))


_TEMPLATE = _Dict(b=np.zeros([2], np.float32), a=(np.zeros([], np.int64),))
# The metrics of one client.
_NUM_BYTES = 2 * 4 + 8
_AWKWARD_ID = 'ü/../\0' + 'x' * 300 + '\0'


def _stacked(*numbers):
  """Returns the states of several clients, a number each."""
  return _Dict(
      b=np.array([[number, -number] for number in numbers], np.float32),
      a=[np.array(numbers, np.int64)],
  )


class ClientStateStoreTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    folder = folder_testing.new(self)
    self.folder = folder / 'client_states'

  def _store(self, **kwargs):
    return client_states.ClientStateStore(self.folder, **kwargs)

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
    store = client_states.ClientStateStore()
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
    store = client_states.ClientStateStore()
    stacked = _stacked(1, 2)
    store.update(1, ['ann', 'bob'], stacked)
    stacked['b'][:] = 9
    state = store.get('ann')
    self.assertEqual(state['b'].tolist(), [1, -1])
    self.assertIsNone(state['b'].base)
    with self.assertRaisesRegex(ValueError, 'read-only'):
      state['b'][0] = 5

  @parameterized.product(
      max_bytes=[0, _NUM_BYTES, 5 * _NUM_BYTES], saves=[False, True]
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
    store = client_states.ClientStateStore(max_bytes=2 * _NUM_BYTES)
    store.update(1, ['ann', 'bob'], _stacked(1, 2))
    with self.assertRaisesRegex(
        client_states.ClientStoreMemoryError,
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
            client_states._file_name('ann', 2),
            client_states._file_name('ann', 3),
            client_states._file_name('bob', 4),
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
        self.folder / client_states._file_name(name, 1)
        for name in ('ann', 'bob')
    )
    whole = ann.read_bytes()
    damages = {
        'is damaged': [whole[:-9], whole[:200] + b'\xff' + whole[201:], b''],
        'belongs to the client': [bob.read_bytes()],
    }
    for message, contents in damages.items():
      for content in contents:
        ann.write_bytes(content)
        with self.assertRaisesRegex(
            checkpoints.CheckpointError,
            f"{ann} {message}.*client 'ann' after round 1; restore",
        ):
          store.load(store.index(), _TEMPLATE)
    ann.unlink()
    with self.assertRaisesRegex(
        checkpoints.CheckpointError, f"{ann} does.*'ann' after round 1"
    ):
      store.load(store.index(), _TEMPLATE)

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
    store = client_states.ClientStateStore()
    store.load('{}', _TEMPLATE)
    with self.assertRaisesRegex(ValueError, message):
      store.update(1, ['ann'], states)
