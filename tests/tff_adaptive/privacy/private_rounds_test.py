# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that nothing that clients send goes past differential privacy."""

import functools

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import payloads_testing
from tests.tff_adaptive import testing
from tests.tff_adaptive.runtime import compiled_testing
from tff_adaptive import algorithms
from tff_adaptive import optimizers
from tff_adaptive import privacy

_UNIFORM = tff.learning.ClientWeighting.UNIFORM
_SIZE = 20
# Half of the draws have an effect on every rule.
_MAX_DRAWS = 30
_BOUND = 0.5

# How often the noise counts, if not once.
_SHARES = {
    # The change, and the share of the clients that took part, as their duals.
    ('feddyn', 'change'): 1 + _SIZE / payloads_testing.NUM_CLIENTS,
    ('scaffold', 'control'): _SIZE / payloads_testing.NUM_CLIENTS,
    ('scaffold_and_fedexp', 'control'): _SIZE / payloads_testing.NUM_CLIENTS,
    ('fedmuon_lmo', 'control'): _SIZE / payloads_testing.NUM_CLIENTS,
    ('fedhyper_client_local', 'mean_change'): 1 / _SIZE,
    ('mimelite', 'momentum'): 1 - 0.9,
}


def _build(name, model, **kwargs):
  """The process of a row, private or with other arguments."""
  client, server, _, _ = payloads_testing.RULES[name]
  kwargs.setdefault('client_weighting', _UNIFORM)
  return algorithms.build_fed_opt(model, client(), server(), **kwargs)


def _privacy(name, noise_multiplier, bound):
  _, _, shared, reports = payloads_testing.RULES[name]
  return privacy.DifferentialPrivacy(
      noise_multiplier=noise_multiplier,
      clients_per_round=_SIZE,
      clip_norm=bound,
      payload_clip_norms={payload: bound for payload in (*shared, *reports)},
  )


@functools.cache
def _wide_model():
  """Returns a model of 8,000 weights, so that deviations can be measured."""
  return testing.least_squares_model(np.float32, 2_000)


def _flat(parts):
  return np.concatenate([np.ravel(part) for part in tf.nest.flatten(parts)])


def _aggregator_names(name, state_type):
  """Returns the names of aggregators in a state, and which are private."""
  fields = dict(tff.structure.iter_elements(state_type))
  if None in fields or not fields:
    return {name: False}
  if 'query_state' in fields:
    return {name: 'dp_event' in fields}
  names = {}
  for field, member in fields.items():
    names |= _aggregator_names(field, member)
  return names


class CoverageTest(tf.test.TestCase, parameterized.TestCase):

  def _check_aggregators(self, name, process):
    """Asserts that all aggregators are private and named in the row."""
    state_type = process.initialize.type_signature.result.member
    _, _, shared, reports = payloads_testing.RULES[name]
    names = _aggregator_names('change', state_type['aggregator'])
    if shared:
      work = state_type['client_work']
      sent = [field for field, _ in tff.structure.iter_elements(work['shared'])]
      self.assertCountEqual(sent, shared)
      names |= _aggregator_names('shared', work['aggregator'])
    # The expected number of clients, which tells nothing of those that came.
    names.pop('num_clients', None)
    self.assertEqual(names, dict.fromkeys(('change', *shared, *reports), True))

  @parameterized.parameters(*payloads_testing.RULES)
  @pytest.mark.sample(1)
  def test_all_that_clients_send_is_covered(self, name):
    _, _, shared, reports = payloads_testing.RULES[name]
    process = _build(name, _wide_model(), privacy=_privacy(name, 0.8, _BOUND))
    self._check_aggregators(name, process)
    # Nobody takes part: what changes is the noise.
    with compiled_testing.installed():
      start = process.initialize()
      for _ in range(_MAX_DRAWS):
        end = process.next(start, []).state
        change = _flat(testing.trainable(end)) - _flat(testing.trainable(start))
        # FedLi-LU stays where it is if the noise makes the loss negative.
        if np.any(change):
          break
    deviation = 0.8 * np.sqrt(1 + len(shared) + len(reports)) * _BOUND / _SIZE
    self.assertTrue(np.all(np.isfinite(change)))
    if payloads_testing.RULES[name][1] is optimizers.build_fedavg:
      expected = deviation * _SHARES.get((name, 'change'), 1.0)
      self.assertAllClose(np.std(change), expected, rtol=0.05)
    else:
      self.assertGreater(np.count_nonzero(change), 0.99 * change.size)
    for payload in shared:
      noise = _flat(end.client_work['shared'][payload])
      noise = noise - _flat(start.client_work['shared'][payload])
      expected = deviation * _SHARES.get((name, payload), 1.0)
      if 'global_direction' in shared and payload == 'num_steps':
        self.assertEqual(noise, 1.0)  # The direction is of one step at least.
      elif noise.size < 10:
        largest = np.abs(noise).max()
        self.assertBetween(largest, 1e-3 * expected, 5 * expected)
      else:
        self.assertAllClose(np.std(noise), expected, rtol=0.05)

  @pytest.mark.slow
  def test_noise_on_a_report_reaches_the_server_rule(self):
    name = 'fedli_lu'
    process = _build(
        name, testing.functional_model(), privacy=_privacy(name, 0.8, _BOUND)
    )
    with compiled_testing.installed():
      state = process.next(process.initialize(), []).state
    deviation = 0.8 * np.sqrt(2) * _BOUND / _SIZE
    objective = abs(float(state.finalizer['objective']))
    self.assertBetween(objective, 1e-3 * deviation, 5 * deviation)

  @parameterized.parameters(*payloads_testing.RULES)
  @pytest.mark.slow
  def test_without_noise_and_bounds_it_is_the_plain_algorithm(self, name):
    model = testing.functional_model()
    clients = [testing.client(8, seed % 3) for seed in range(_SIZE)]
    states = []
    for kwargs in ({'privacy': _privacy(name, 0.0, 1e6)}, {}):
      process = _build(name, model, **kwargs)
      with compiled_testing.installed():
        state = process.initialize()
        for _ in range(2):
          state = process.next(state, testing.with_ids(process, clients)).state
      states.append(state)
    private, plain = states
    for w, v in zip(testing.trainable(private), testing.trainable(plain)):
      self.assertAllClose(w, v, rtol=1e-4, atol=1e-5)
    if payloads_testing.RULES[name][2]:
      self.assertAllClose(
          _flat(private.client_work['shared']),
          _flat(plain.client_work['shared']),
          rtol=1e-4,
          atol=1e-5,
      )

  @pytest.mark.slow
  def test_rejected_clients_send_zeros_and_the_divisor_stays(self):
    model = testing.functional_model()
    private, plain = (
        _build('scaffold', model, **kwargs)
        for kwargs in ({'privacy': _privacy('scaffold', 0.0, 1e6)}, {})
    )
    changes, controls = [], []
    for process, clients in (
        (private, [testing.client(8, 0), testing.unhealthy_client()]),
        (plain, [testing.client(8, 0)]),
    ):
      with compiled_testing.installed():
        start = process.initialize()
        end = process.next(start, testing.with_ids(process, clients)).state
      changes.append(
          _flat(testing.trainable(end)) - _flat(testing.trainable(start))
      )
      controls.append(_flat(end.client_work['shared']))
    self.assertAllClose(_SIZE * changes[0], changes[1], atol=1e-5)
    # The sum of what clients send over the number of all clients, either way.
    self.assertAllClose(controls[0], controls[1], atol=1e-6)

  @pytest.mark.slow
  @pytest.mark.usefixtures('native_runtime')
  def test_native_runtime_draws_other_noise_in_every_round(self):
    process = _build(
        'scaffold', _wide_model(), privacy=_privacy('scaffold', 0.8, _BOUND)
    )
    states = [process.initialize()]
    for _ in range(2):
      states.append(process.next(states[-1], []).state)
    points = [_flat(testing.trainable(state)) for state in states]
    first, second = np.diff(points, axis=0)
    deviation = 0.8 * np.sqrt(2) * _BOUND / _SIZE
    for noise in (first, second):
      self.assertAllClose(np.std(noise), deviation, rtol=0.05)
    self.assertLess(abs(np.corrcoef(first, second)[0, 1]), 0.05)


class RefusalsTest(tf.test.TestCase, parameterized.TestCase):

  def test_of_a_report_and_a_shared_part_of_one_name(self):
    server = optimizers.build_fedexp()
    number = optimizers.Report(lambda end: end.num_steps)
    server.client_reports = {**server.client_reports, 'num_steps': number}
    with self.assertRaisesRegex(ValueError, "'num_steps'.*FedAdamW.*rename"):
      algorithms.build_fed_opt(
          testing.functional_model(), optimizers.build_fedadamw(), server
      )

  def test_of_float64(self):
    with self.assertRaisesRegex(TypeError, 'float32.*float64'):
      _build(
          'sgd',
          testing.least_squares_model(np.float64, 2),
          privacy=_privacy('sgd', 1.0, 1.0),
      )

  @parameterized.parameters(True, False)
  @pytest.mark.sample(1)
  def test_of_a_private_change_beside_what_is_not(self, zeroing):
    aggregator = tff.learning.dp_aggregator(0.1, 10.0, zeroing)
    with self.assertRaisesRegex(ValueError, "private.*'control'.*in the clear"):
      _build(
          'scaffold', testing.functional_model(), model_aggregator=aggregator
      )
    _build(
        'scaffold',
        testing.functional_model(),
        model_aggregator=aggregator,
        payload_aggregators={'control': aggregator},
    )
