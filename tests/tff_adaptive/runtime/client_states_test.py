# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that processes with clients' state run as on the native runtime."""

from unittest import mock

import pytest

from tests.tff_adaptive import client_state_testing
from tests.tff_adaptive.runtime import compiled_testing
from tests.tff_adaptive.runtime import equality_testing
from tff_adaptive import runtime
from tff_adaptive import simulation
from tff_adaptive.runtime import rounds

# Nobody has a state in the first round; all, some and none have one later. The
# sizes of cohorts change.
_ROUNDS = (
    ('a', 'b'),
    ('b', 'a'),
    ('c', 'a', 'd'),
    ('b', 'd', 'c', 'a'),
    ('short', 'bad', 'a'),
    (),
    ('bad',),
    ('none', 'long', 'b', 'bad', 'short'),
    ('none', 'none', 'a'),
)


def _train(cohorts):
  """Returns the outputs of rounds, in the context that is installed."""
  process = client_state_testing.process()
  store = simulation.ClientStateStore()
  state, outputs = process.initialize(), []
  for round_num, client_ids in enumerate(cohorts, 1):
    states = {name: store.get(name) for name in client_ids}
    states = {name: state for name, state in states.items() if state}
    clients = client_state_testing.stateful_cohort(client_ids, states)
    output = process.next(state, clients)
    state = output.state
    kept = output.metrics['client_work']['client_states']
    store.update(
        round_num,
        [client_id.decode() for client_id in kept['client_id']],
        kept['client_state'],
    )
    outputs.append(output)
  return outputs


@pytest.fixture(scope='module')
def native_outputs(native_runtime):
  """Returns the result on the native runtime."""
  del native_runtime  # It is installed.
  return _train(_ROUNDS)


class ClientStatesTest(equality_testing.TestCase):

  @pytest.fixture(autouse=True)
  def _take_outputs(self, native_outputs):
    self.native_outputs = native_outputs

  def test_native_runtime_keeps_states(self):
    kept = self.native_outputs[7].metrics['client_work']['client_states']
    # Examples of all rounds; those of `bad` are not kept, nor its counter.
    self.assertEqual(
        dict(
            zip(
                kept['client_id'].tolist(),
                kept['client_state']['counts']['examples'][0].tolist(),
            )
        ),
        {b'none': 0, b'long': 7, b'b': 16, b'short': 6},
    )
    self.assertAllEqual(
        kept['client_state']['counts']['rounds'],
        [
            {b'none': 1, b'long': 1, b'b': 4, b'short': 2}[name]
            for name in kept['client_id'].tolist()
        ],
    )
    for place in (5, 6):
      kept = self.native_outputs[place].metrics['client_work']['client_states']
      self.assertEqual(kept['client_state']['total'].shape, (0, 2))

  def _check(self, cohorts):
    """Compares with the native runtime; returns how many graphs were built."""
    build = rounds.CompiledRound._build
    with mock.patch.object(
        rounds.CompiledRound, '_build', autospec=True
    ) as spy:
      spy.side_effect = build
      outputs = _train(cohorts)
    for place, output in enumerate(outputs):
      self.assert_same(
          self.native_outputs[place], output, 1e-6, f'round {place}'
      )
    return spy.call_count

  def test_compiled_rounds_equal_native_ones_in_one_graph(self):
    with compiled_testing.installed():
      # Other tests have the same context and may have built it.
      self.assertLessEqual(self._check(_ROUNDS), 1)
      self.assertEqual(self._check(_ROUNDS), 0)

  @pytest.mark.slow
  def test_plans_give_the_same(self):
    with runtime.CompiledContext(
        devices='CPU', num_parallel_clients=1, strict=True
    ):
      # A state for none, for all and for some: one graph.
      self.assertEqual(self._check(_ROUNDS[:2]), 1)
      self.assertEqual(self._check(_ROUNDS), 0)

  @pytest.mark.slow
  def test_chunks_of_several_clients_are_in_order(self):
    ids = ['a', 'short', 'long', 'b', 'none'] * 9
    with compiled_testing.installed():
      (output,) = _train([ids])
    kept = output.metrics['client_work']['client_states']
    self.assertEqual(
        kept['client_id'].tolist(), [name.encode() for name in ids]
    )

  def test_lists_of_datasets_give_the_same(self):
    process = client_state_testing.process()
    clients = client_state_testing.stateful_cohort(_ROUNDS[-1], {})
    with compiled_testing.installed():
      state = process.initialize()
      self.assert_same(
          process.next(state, clients), process.next(state, list(clients)), 0
      )
