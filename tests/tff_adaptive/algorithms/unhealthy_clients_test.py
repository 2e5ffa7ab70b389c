# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that unhealthy clients have no effect, whatever the client rule."""

import functools

from absl.testing import parameterized
import numpy as np
import pytest

from tests.tff_adaptive import testing
from tests.tff_adaptive.algorithms import client_rules_testing
from tests.tff_adaptive.optimizers import federated_testing
from tests.tff_adaptive.runtime import compiled_testing

_HEALTHY = dict(zip('ab', testing.clients([10, 3])))


def _unhealthy():
  """Returns clients with NaN or infinity, early and late, and an empty one."""
  infinite, late = testing.client(8, seed=4), testing.client(8, seed=5)
  infinite[0]['x'][0, 0] = np.inf
  late[1]['x'][3, 1] = -np.inf
  return dict(
      nan=testing.unhealthy_client(), infinite=infinite, late=late, empty=[]
  )


@functools.cache
def _process(name):
  return client_rules_testing.build(name, testing.functional_model())


class UnhealthyClientsTest(compiled_testing.TestCase):

  @parameterized.parameters(*client_rules_testing.NAMES)
  @pytest.mark.sample(1)
  def test_count_nowhere(self, name):
    with client_rules_testing.context(name):
      healthy, mixed = (federated_testing.Store(_process(name)) for _ in 'ab')
      for _ in range(2):
        healthy.next(_HEALTHY)
        metrics = mixed.next({**_unhealthy(), **_HEALTHY})
    self.assert_same_bits(healthy.state, mixed.state)
    self.assertEqual(healthy.kept.keys(), mixed.kept.keys())
    for client_id, kept in healthy.kept.items():
      self.assert_same_bits(kept, mixed.kept[client_id])
    measured = metrics['client_work']['clients']
    self.assertEqual(measured['num_rejected'], len(_unhealthy()))
    self.assertEqual(measured['num_clients'], len(_unhealthy()) + 2)

  @parameterized.parameters(*client_rules_testing.NAMES)
  @pytest.mark.slow
  def test_rounds_of_them_alone_change_nothing(self, name):
    with client_rules_testing.context(name):
      healthy, mixed = (federated_testing.Store(_process(name)) for _ in 'ab')
      for _ in range(2):
        healthy.next(_HEALTHY)
        mixed.next(_unhealthy())
        mixed.next(_HEALTHY)
    self.assert_same_bits(healthy.state, mixed.state)
    self.assertEqual(healthy.kept.keys(), mixed.kept.keys())
    for client_id, kept in healthy.kept.items():
      self.assert_same_bits(kept, mixed.kept[client_id])
