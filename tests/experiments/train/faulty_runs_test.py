# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of runs whose clients drop out, straggle or are rejected, up to all."""

import collections
import functools
import shutil
from unittest import mock

from absl.testing import parameterized
import numpy as np
import pytest

from experiments import command_line
from experiments import registry
from experiments.train import run_parts
from tests import folder_testing
from tests.experiments import hparams_testing
from tests.experiments.train import trainer_testing
from tests.tff_adaptive import testing
from tests.tff_adaptive.runtime import compiled_testing
from tests.tff_adaptive.simulation import task_testing
from tff_adaptive.data import batching
from tff_adaptive.data import client_data
from tff_adaptive.data import cohort
from tff_adaptive.simulation import checkpoints
from tff_adaptive.simulation import client_states
from tff_adaptive.simulation import structures

_DROPPED_OUT, _STRAGGLERS = 'clients/num_dropped_out', 'clients/num_stragglers'


class FaultyRunsTest(folder_testing.FolderTestCase):

  def _column(self, name):
    rows = folder_testing.read_rows(self.folder / 'run' / 'metrics.csv')
    return [float(row[name]) for row in rows]

  @parameterized.parameters('compiled', 'native')
  @pytest.mark.slow
  def test_run_without_clients_stays_where_it_is(self, name):
    arguments = ('--drop_clients=1', f'--runtime={name}')
    result, _ = trainer_testing.train(self.folder, *arguments)
    self.assertEqual(self._column(_DROPPED_OUT), [3, 3])
    self.assertEqual(self._column(_STRAGGLERS), [0, 0])
    self.assertEqual(self._column('clients/num_clients'), [0, 0])
    self.assertEqual(self._column('clients/num_rejected'), [0, 0])
    np.testing.assert_equal(self._column('clients/loss'), [np.nan] * 2)
    self.assertEqual(self._column('train/accuracy'), [0, 0])
    # The logistic regression begins with zero biases, that any step would move.
    _, bias = testing.trainable(result.state)
    np.testing.assert_array_equal(bias, np.zeros(10))

  @pytest.mark.slow
  def test_some_clients_drop_out_and_some_are_slow(self):
    trainer_testing.train(
        self.folder,
        *('--drop_clients=0.3', '--straggler_fraction=0.5'),
        *('--clients_per_round=6', '--client_batch_size=4'),
        '--total_rounds=4',
    )
    dropped, slow = self._column(_DROPPED_OUT), self._column(_STRAGGLERS)
    trained = self._column('clients/num_clients')
    self.assertEqual(np.add(dropped, trained).tolist(), [6.0] * 4)
    self.assertBetween(sum(dropped), 1, 16)
    self.assertBetween(sum(slow), 1, sum(trained) - 1)

  @pytest.mark.slow
  def test_stragglers_weigh_by_what_they_have_trained_on(self):
    arguments = ('--client_batch_size=1', '--total_rounds=1')
    trainer_testing.train(self.folder, *arguments)
    (whole,) = self._column('clients/num_examples')
    shutil.rmtree(self.folder / 'run')
    trainer_testing.train(self.folder, *arguments, '--straggler_fraction=1')
    self.assertEqual(self._column(_STRAGGLERS), [3])
    (examples,) = self._column('clients/num_examples')
    self.assertEqual(self._column('clients/num_steps'), [examples])
    self.assertBetween(examples, 3, whole - 3)

  @parameterized.parameters('compiled', 'native')
  @pytest.mark.slow
  def test_rejected_clients_are_named(self, runtime):
    from tff_adaptive.data import partition

    original = partition.dirichlet_per_client
    emptied = []

    def with_empty_clients(*args):
      parts = original(*args)
      emptied[:] = list(parts)[::2]
      return {
          name: part[: 0 if name in emptied else None]
          for name, part in parts.items()
      }

    with mock.patch.object(
        partition, 'dirichlet_per_client', with_empty_clients
    ):
      trainer_testing.train(
          self.folder,
          '--bad_clients=reject',
          '--clients_per_round=20',
          f'--runtime={runtime}',
      )
    rows = folder_testing.read_rows(self.folder / 'run/rejected_clients.csv')
    for round_num in ('1', '2'):
      found = [row for row in rows if row['round_num'] == round_num]
      self.assertCountEqual([row['client_id'] for row in found], emptied)
      self.assertEqual({row['reason'] for row in found}, {'no_example'})
    self.assertEqual(self._column('clients/num_rejected'), [10, 10])

  @pytest.mark.slow
  def test_exploding_clients_are_named(self):
    trainer_testing.train(
        self.folder, '--max_client_update_norm=1e-6', '--total_rounds=1'
    )
    text = (self.folder / 'run' / 'rejected_clients.csv').read_text()
    self.assertEqual(text.count(',too_large\n'), 3)
    manager = checkpoints.CheckpointManager(self.folder / 'run' / 'checkpoints')
    self.assertEqual(manager.round_nums(), [1])

  @pytest.mark.slow
  def test_a_run_of_exploding_clients_stops_and_can_be_continued(self):
    arguments = ('--max_client_update_norm=1e-6', '--total_rounds=8')
    # The second one trains no round, so it does not know the reasons.
    for reasons in (r' \(in the last one 3 too_large\)', ''):
      with self.assertRaisesRegex(
          command_line.UserError,
          f'5 rounds in a row{reasons}.*after round 5.*=0 continues this',
      ):
        trainer_testing.train(self.folder, *arguments)
      self.assertEqual(self._column('clients/num_rejected'), [3] * 5)
    manager = checkpoints.CheckpointManager(self.folder / 'run' / 'checkpoints')
    self.assertEqual(manager.round_nums()[-1], 5)
    trainer_testing.train(self.folder, *arguments, '--max_rejected_rounds=0')
    self.assertEqual(self._column('clients/num_rejected'), [3] * 8)


# The first one is tried always: it keeps states of clients, too.
_ALGORITHMS = sorted(registry.ROWS[registry.ALGORITHM], key='scaffold'.__ne__)
_LINE_SEARCHES = ('fedexpsls', 'fedli_ls', 'fedsls')
_ROUND_NUM = 'round_num'
_PLAN = batching.BatchPlan(4)


def _examples(size, seed=0, bad_example=None, scale=1.0):
  """Returns a client's examples; the features of one may be NaN."""
  generator = np.random.default_rng(seed)
  x = generator.normal(size=(size, testing.NUM_FEATURES)).astype(np.float32)
  if bad_example is not None:
    x[bad_example] = np.nan
  y = generator.integers(0, testing.NUM_CLASSES, size, np.int32)
  return collections.OrderedDict(x=scale * x, y=y)


_SOURCE = client_data.PackedClientArrays.from_clients(
    dict(
        first=_examples(10, seed=1),
        second=_examples(3, seed=2),
        nan=_examples(4, bad_example=1),
        late_nan=_examples(8, bad_example=7),
        empty=_examples(0),
        exploding=_examples(8, scale=np.float32(1e30)),
    )
)
_HEALTHY = ('first', 'second')
_UNHEALTHY = ('nan', 'empty', 'late_nan')


@functools.cache
def _build_process(algorithm):
  """Returns the process of an algorithm, with a server that has a state."""
  row = registry.ROWS[registry.ALGORITHM][algorithm]
  arguments = [f'--algorithm={algorithm}']
  is_free = registry.SERVER_OPTIMIZER not in [part.kind for part in row.parts]
  if is_free and not row.pools_clients:
    arguments.append('--server_optimizer=fedams')
  if not row.pools_clients:
    arguments.append('--max_client_update_norm=1e6')
  if algorithm not in _LINE_SEARCHES:  # They have no rate to schedule.
    arguments.append('--client_schedule=inverse_sqrt')
  run = hparams_testing.read(*arguments)
  task = task_testing.build_task(
      train_data=_SOURCE,
      functional_model=testing.functional_model(),
      variable_model_fn=testing.variable_model_fn(),
      central_test=_SOURCE.examples('first'),
  )
  return run_parts.build_process(*run, task)


def _next(process, state, client_ids, round_num):
  clients = cohort.Cohort(_SOURCE, client_ids, round_num, 0, _PLAN)
  spec = client_states.get_state_spec(process)
  if spec is not None:
    clients = cohort.StatefulCohort.of(clients, {}, spec)
  return process.next(state, clients)


def _leaves(state):
  """Returns the bytes of a state, but for the numbers of the round."""
  return {
      '/'.join(path): np.asarray(leaf).tobytes()
      for path, leaf in structures.flatten_with_path(state)
      if path[-1] != _ROUND_NUM
  }


class UnhealthyCohortsTest(compiled_testing.TestCase):

  def _assert_keeps_state(self, algorithm):
    process = _build_process(algorithm)
    keeps_states = client_states.get_state_spec(process) is not None
    self.assertEqual(keeps_states, algorithm in ('feddyn', 'scaffold'))
    initial = process.initialize()
    state = _next(process, initial, _HEALTHY, 0).state
    self.assertNotEqual(_leaves(state), _leaves(initial))
    unhealthy = _UNHEALTHY
    if algorithm != 'centralized':
      unhealthy += ('exploding',)
    for client_ids in (unhealthy, ('empty',), ()):
      output = _next(process, state, client_ids, 1)
      self.assertEqual(_leaves(output.state), _leaves(state))
      measured = output.metrics['client_work']['clients']
      self.assertEqual(measured['num_clients'], len(client_ids))
      self.assertEqual(measured['num_rejected'], len(client_ids))
      self.assertEqual(output.metrics['finalizer']['update_non_finite'], 1)

  @parameterized.parameters(*_ALGORITHMS)
  @pytest.mark.sample(1)
  def test_algorithm_builds_and_keeps_its_state(self, algorithm):
    with compiled_testing.installed(1):
      self._assert_keeps_state(algorithm)

  @parameterized.parameters(*_ALGORITHMS)
  @pytest.mark.slow
  @pytest.mark.usefixtures('native_runtime')
  def test_algorithm_keeps_its_state_on_the_native_runtime(self, algorithm):
    self._assert_keeps_state(algorithm)
