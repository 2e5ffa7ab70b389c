# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that a cohort without a healthy client changes nothing."""

import collections
import functools

from absl.testing import parameterized
import numpy as np
import pytest

from experiments import registry
from experiments.train import run_parts
from tests.experiments import hparams_testing
from tests.tff_adaptive import testing
from tests.tff_adaptive.runtime import compiled_testing
from tests.tff_adaptive.simulation import task_testing
from tff_adaptive.data import batching
from tff_adaptive.data import client_data
from tff_adaptive.data import cohort
from tff_adaptive.simulation import client_states
from tff_adaptive.simulation import structures

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
