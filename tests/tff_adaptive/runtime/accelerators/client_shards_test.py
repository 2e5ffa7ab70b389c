# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that several devices have the results of one."""

import pathlib
import pickle

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow_federated as tff

from tests import folder_testing
from tests import program_testing
from tests.tff_adaptive import client_state_testing
from tests.tff_adaptive import testing
from tests.tff_adaptive.runtime import compiled_testing
from tff_adaptive import aggregators
from tff_adaptive import runtime
from tff_adaptive.runtime import values
from tff_adaptive.runtime.accelerators import client_shards

_FOUR = {'XLA_FLAGS': '--xla_force_host_platform_device_count=4'}
_ROWS_TYPE = tff.TensorType(np.float32, [2])


def _uneven():
  return compiled_testing.process(), [testing.clients((4, 9, 1, 0, 5))]


def _small_steps():
  """Returns what trains side by side on a device."""
  rounds = [testing.clients([5] * number) for number in (12, 3)]
  return compiled_testing.process(), rounds


def _kept_states():
  rounds = [
      client_state_testing.stateful_cohort(ids, {})
      for ids in (('b', 'none', 'long', 'a', 'short', 'bad', 'c'), ())
  ]
  return client_state_testing.process(), rounds


# What clients do one by one on each device, or side by side.
_PROCESSES = {
    'one_by_one': (_uneven, 1),
    'small_steps': (_small_steps, None),
    'kept_states': (_kept_states, None),
}


def _train(name, devices, path):
  """Returns the leaves of the results of rounds."""
  build, num_parallel_clients = _PROCESSES[name]
  process, rounds = build()
  found = []
  flatten = values.build_flatten(process.next.type_signature.result)
  with runtime.CompiledContext(
      devices=devices,
      strict=True,
      seed=1,
      num_parallel_clients=num_parallel_clients,
  ) as context:
    state = process.initialize()
    for clients in rounds:
      output = process.next(state, clients)
      state = output.state
      found.append([np.array(leaf) for leaf in flatten(output)])
    assert context.path_of(process.next) == path, devices
  return found


@tff.federated_computation(tff.FederatedType(_ROWS_TYPE, tff.CLIENTS))
def _last_rows(rows):
  """Returns the rows of the clients, from the last one to the first."""
  stacked = aggregators.stack_at_server(rows)
  reverse = tff.tensorflow.computation(
      lambda values: values[::-1], stacked.type_signature.member
  )
  return tff.federated_map(reverse, stacked)


@tff.federated_computation(tff.FederatedType(np.float32, tff.CLIENTS))
def _sum_from_five(numbers):
  """Returns a sum whose zero is none."""
  add = tff.tensorflow.computation(lambda a, b: a + b, (np.float32, np.float32))
  zero = tff.tensorflow.computation(lambda: 5.0)()
  report = tff.tensorflow.computation(lambda a: a, np.float32)
  return tff.federated_aggregate(numbers, zero, add, add, report)


def _on_four(path):
  """Writes what four devices return, in a process that has them."""
  found = {
      (name, path): _train(name, devices, path)
      for name in _PROCESSES
      for devices, path in (('CPU', 'compiled'), ('XLA:CPUs', 'xla'))
  }
  with runtime.CompiledContext(devices='XLA:CPU:1-3', strict=True) as context:
    found['some'] = context.device
  with runtime.CompiledContext(devices='xla:cpus', strict=True) as context:
    found['device'] = context.device
    rows = np.arange(10, dtype=np.float32).reshape([5, 2])
    found['rows'] = _last_rows(list(rows)).tolist()
    try:
      _sum_from_five([1.0, 2.0])
    except runtime.UnsupportedComputationError as error:
      found['error'] = str(error)
  pathlib.Path(path).write_bytes(pickle.dumps(found))


class SeveralDevicesTest(absltest.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    path = folder_testing.new(cls) / 'found.pickle'
    ended = program_testing.Program(_on_four, str(path), **_FOUR).wait()
    assert not ended.returncode, ended.stderr
    cls._found = pickle.loads(path.read_bytes())

  def test_results_are_those_of_one_device(self):
    for name in _PROCESSES:
      expected = self._found[name, 'compiled']
      found = self._found[name, 'xla']
      for of_round, reference in zip(found, expected, strict=True):
        for one, other in zip(of_round, reference, strict=True):
          self.assertEqual(one.dtype, other.dtype)
          if one.dtype.kind == 'f':
            np.testing.assert_allclose(one, other, 1e-5, 1e-5)
          else:
            np.testing.assert_array_equal(one, other)

  def test_the_name_tells_how_many(self):
    self.assertEqual(self._found['device'], 'XLA:CPU:0-3')
    self.assertEqual(self._found['some'], 'XLA:CPU:1-3')

  def test_rows_are_in_the_order_of_the_clients(self):
    self.assertEqual(self._found['rows'], list(range(9, -1, -1)))

  def test_sums_that_cannot_be_merged_are_refused(self):
    self.assertRegex(
        self._found['error'], 'a sum begins with more than zero, so that sums'
    )


class ShareOutTest(parameterized.TestCase):

  @parameterized.parameters(0, 1, 3, 4, 5, 31)
  def test_each_client_has_one_place(self, num_clients):
    lengths = np.random.default_rng(0).integers(0, 9, num_clients)
    num_padded = max(16, num_clients)
    shares = client_shards.share_out(lengths, num_padded, num_devices=4)
    of_devices = [
        members[:count] for members, count in zip(shares.members, shares.counts)
    ]
    self.assertCountEqual(np.concatenate(of_devices), range(num_clients))
    self.assertLessEqual(np.ptp(shares.counts), 1)
    # Also those of padded clients, which no client has.
    self.assertLen(set(shares.places.tolist()), num_padded)
    flat = shares.members.ravel()[shares.places[:num_clients]]
    self.assertEqual(flat.tolist(), list(range(num_clients)))

  def test_devices_have_as_many_batches(self):
    lengths = np.arange(40)
    shares = client_shards.share_out(lengths, 40, num_devices=4)
    self.assertEqual(lengths[shares.members].sum(1).tolist(), [195] * 4)
    self.assertTrue(np.all(np.diff(lengths[shares.members]) < 0))
