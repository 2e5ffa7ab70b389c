# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of runs whose clients are all rejected, or take very long steps."""

import collections
import warnings

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests import folder_testing
from tests.tff_adaptive.runtime import compiled_testing
from tests.tff_adaptive.simulation import loop_testing
from tff_adaptive import algorithms
from tff_adaptive import data
from tff_adaptive import optimizers
from tff_adaptive.simulation import checkpoints
from tff_adaptive.simulation import client_states
from tff_adaptive.simulation import interruptions

_Dict = collections.OrderedDict
# Codes of `Rejection`.
_HEALTHY, _EMPTY, _NOT_FINITE, _TOO_LARGE = range(4)
_FAILED = (_NOT_FINITE, _TOO_LARGE)


class _Process(loop_testing.Process):
  """Rejects clients by a list of codes for each round."""

  def __init__(self, *rounds, step_sizes=()):
    super().__init__()
    self._rounds = rounds
    self._step_sizes = step_sizes

  def next(self, state, cohort):
    output = super().next(state, cohort)
    place = int(state['rounds'])
    clients = _Dict(loss=np.float32(1))
    if place < len(self._step_sizes):
      clients['relative_step_size_max'] = np.float32(self._step_sizes[place])
    codes = np.array(self._rounds[place], np.int64)
    work = _Dict(clients=clients, rejections=codes)
    return output._replace(metrics=_Dict(client_work=work))


class RejectedRoundsTest(loop_testing.LoopTestCase):

  def _train(self, *rounds, **kwargs):
    arguments = dict(max_rejected_rounds=3, total_rounds=len(rounds))
    return self.run_loop(process=_Process(*rounds), **{**arguments, **kwargs})

  def _round_nums(self):
    folder = self.folder / 'run' / 'checkpoints'
    return checkpoints.CheckpointManager(folder).round_nums()

  def test_a_run_of_rejected_clients_stops_with_the_reason(self):
    rounds = [(_HEALTHY, _HEALTHY), *[_FAILED] * 9]
    with self.assertRaisesRegex(
        interruptions.AllClientsRejectedError,
        r'in 3 rounds in a row \(in the last one 1 not_finite, 1 too_large\).*'
        'after round 4.*smaller learning rate.*max_rejected_rounds',
    ):
      self._train(*rounds)
    # The last finished round is saved, and its row is there.
    self.assertEqual(self._round_nums()[-1], 4)
    self.assertLen(self.rows(), 1 + 4)

  def test_the_default_is_five_rounds(self):
    process = _Process(*[_FAILED] * 9)
    with self.assertRaisesRegex(
        interruptions.AllClientsRejectedError, 'after round 5'
    ):
      self.run_loop(process=process)

  def test_rounds_with_a_healthy_client_end_the_series(self):
    rounds = [_FAILED, _FAILED, (_NOT_FINITE, _HEALTHY)] * 3
    self.assertEqual(self._train(*rounds).round_num, 9)

  def test_rounds_without_examples_neither_count_nor_end_the_series(self):
    nobody, empty = (), (_EMPTY, _EMPTY)
    self.assertEqual(self._train(*[nobody, empty] * 4).round_num, 8)
    rounds = [_FAILED, nobody, _FAILED, empty, (_EMPTY, _NOT_FINITE), _FAILED]
    with self.assertRaisesRegex(
        interruptions.AllClientsRejectedError, 'after round 5'
    ):
      self.run_loop(
          'other',
          _Process(*rounds),
          max_rejected_rounds=3,
          total_rounds=6,
      )

  def test_a_resumed_run_stops_where_an_uninterrupted_one_does(self):
    rounds = [(_HEALTHY,), *[_FAILED] * 9]
    # The only checkpoint is that of round 2, after one rejected round.
    self._train(*rounds, total_rounds=2)
    with self.assertRaisesRegex(
        interruptions.AllClientsRejectedError, 'after round 4'
    ):
      self._train(*rounds)
    # The same command stops at once, and one without the limit continues.
    with self.assertRaisesRegex(
        interruptions.AllClientsRejectedError, 'after round 4'
    ):
      self._train(*rounds)
    result = self._train(*rounds, max_rejected_rounds=None)
    self.assertEqual((result.round_num, result.num_new_rounds), (10, 6))

  def test_checkpoints_without_the_count_can_be_resumed(self):
    self._train((_HEALTHY,), _FAILED, _FAILED)
    manager = checkpoints.CheckpointManager(self.folder / 'run' / 'checkpoints')
    round_num, leaves = manager.load_latest_leaves()
    del leaves['rejected_rounds']
    checkpoints.write_structure(manager.path(round_num), round_num, leaves)
    rounds = [(_HEALTHY,), *[_FAILED] * 9]
    with self.assertRaisesRegex(
        interruptions.AllClientsRejectedError, 'after round 6'
    ):
      self._train(*rounds)


class LongStepsTest(loop_testing.LoopTestCase):

  def _warnings(self, *step_sizes):
    rounds = [(_HEALTHY,)] * len(step_sizes)
    with warnings.catch_warnings(record=True) as caught:
      warnings.simplefilter('always')
      self.run_loop(
          process=_Process(*rounds, step_sizes=step_sizes),
          total_rounds=len(rounds),
      )
    return [str(warning.message) for warning in caught]

  def test_a_step_size_that_runs_away_is_a_warning_once(self):
    (message,) = self._warnings(1.0, 2e4, 3e4)
    self.assertIn('2e+04 times the learning rate', message)
    self.assertIn('`max_step_size`', message)

  def test_others_are_none(self):
    self.assertEmpty(self._warnings(1.0, 999.0, np.nan))


class RejectedStatesTest(folder_testing.FolderTestCase):

  def _store(self, folder=None, **kwargs):
    store = client_states.ClientStateStore(folder, **kwargs)
    store.load('{}', {'n': np.zeros([], np.int64)})
    store.update(1, ['ann', 'bob'], {'n': np.array([1, 2])})
    return store

  def test_a_client_that_fails_three_times_in_a_row_starts_afresh(self):
    store = self._store()
    store.count_rejections(['ann', 'cid'])
    store.count_rejections(['ann'])
    self.assertEqual(store.get('ann'), {'n': 1})
    store.count_rejections(['ann'])
    self.assertIsNone(store.get('ann'))
    self.assertEqual(store.get('bob'), {'n': 2})
    self.assertEqual(store.index(), '{"bob": 1}')
    store.update(5, ['ann'], {'n': np.array([7])})
    self.assertEqual(store.get('ann'), {'n': 7})

  def test_a_healthy_round_ends_the_series(self):
    store = self._store(max_rejections=2)
    for round_num in range(2, 6):
      store.count_rejections(['ann'])
      store.update(round_num, ['ann'], {'n': np.array([round_num])})
    self.assertEqual(store.get('ann'), {'n': 5})

  def test_no_limit_keeps_all_states(self):
    store = self._store(max_rejections=None)
    for _ in range(9):
      store.count_rejections(['ann'])
    self.assertEqual(store.get('ann'), {'n': 1})
    self.assertEqual(store.index(), '{"ann": 1, "bob": 1}')

  @parameterized.parameters(0, 100)
  def test_counts_are_saved(self, max_bytes):
    folder = self.folder
    store = self._store(folder, max_bytes=max_bytes)
    store.count_rejections(['ann'])
    store.count_rejections(['ann'])
    self.assertEqual(store.index(), '{"ann": [1, 2], "bob": 1}')
    store.save()
    resumed = client_states.ClientStateStore(folder)
    resumed.load(store.index(), {'n': np.zeros([], np.int64)})
    self.assertEqual(resumed.get('ann'), {'n': 1})
    self.assertEqual(resumed.index(), store.index())
    resumed.count_rejections(['ann'])
    self.assertIsNone(resumed.get('ann'))
    # The file stays for the checkpoint that lists it.
    other = client_states.ClientStateStore(folder)
    other.load(store.index(), {'n': np.zeros([], np.int64)})
    self.assertEqual(other.get('ann'), {'n': 1})
    resumed.drop_unused([])
    with self.assertRaisesRegex(Exception, "'ann' after round 1"):
      other.load(store.index(), {'n': np.zeros([], np.int64)})


_IDS = ('first', 'second')


def _model():
  """Returns least squares on one feature."""
  spec = _Dict(
      x=tf.TensorSpec([None, 1], tf.float32),
      y=tf.TensorSpec([None, 1], tf.float32),
  )

  @tf.function
  def predict(model_weights, x, training):
    del training  # Unused.
    (kernel,), _ = model_weights
    return tf.matmul(x, kernel)

  def loss(output, label, sample_weight=None):
    del sample_weight  # Unused.
    return tf.reduce_mean(tf.square(output - label))

  return tff.learning.models.FunctionalModel(
      initial_weights=((np.zeros([1, 1], np.float32),), ()),
      predict_on_batch_fn=predict,
      loss_fn=loss,
      input_spec=spec,
  )


def _cohort(round_index):
  # Of zeros there is no gradient.
  nothing = _Dict(
      x=np.zeros([150, 1], np.float32), y=np.zeros([150, 1], np.float32)
  )
  source = data.PackedClientArrays.from_clients(dict.fromkeys(_IDS, nothing))
  return data.Cohort(source, _IDS, round_index, 0, data.BatchPlan(1))


class RecoveryTest(loop_testing.LoopTestCase):

  def _train(self, name, store, **kwargs):
    return self.run_loop(
        name,
        algorithms.build_fed_opt(
            _model(),
            optimizers.build_delta_sgd(growth='always', carry_state=True),
        ),
        cohort_fn=_cohort,
        evaluate_fn=None,
        client_store=store,
        **kwargs,
    )

  def _store(self, name):
    return client_states.ClientStateStore(self.folder / name / 'client_states')

  @pytest.mark.slow
  def test_clients_with_a_step_size_that_overflowed_start_afresh(self):
    # A step size is beyond float32 after 1,808 steps, and the sum of those of a
    # round in the 12th. After the 14th the states are discarded.
    with compiled_testing.installed(1):
      with self.assertWarnsRegex(RuntimeWarning, 'times the learning rate'):
        self._train('whole', self._store('whole'), total_rounds=17)
      with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        self._train('run', self._store('run'), total_rounds=13)
        self._train('run', self._store('run'), total_rounds=17)
    self.assertEqual(self.rows('run'), self.rows('whole'))
    header, *rows = [row.split(',') for row in self.rows('whole')]
    place = header.index('clients/num_rejected')
    rejected = [int(row[place]) for row in rows]
    first = rejected.index(2)
    self.assertEqual(first, 11)
    self.assertEqual(rejected, [0] * first + [2] * 3 + [0] * (17 - first - 3))
    step_sizes = [
        float(row[header.index('clients/step_size_max')]) for row in rows
    ]
    self.assertEqual(step_sizes[first + 3], step_sizes[0])
