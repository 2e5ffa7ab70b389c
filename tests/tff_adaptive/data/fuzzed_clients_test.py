# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that a round of any clients ends in a result or in a sentence."""

import functools

from absl.testing import parameterized
import hypothesis
import numpy as np
import pytest

from tests.tff_adaptive import fuzz_testing
from tests.tff_adaptive import property_testing  # noqa: F401
from tests.tff_adaptive import testing
from tests.tff_adaptive.data import client_set_testing
from tests.tff_adaptive.runtime import compiled_testing
from tff_adaptive import algorithms
from tff_adaptive import data
from tff_adaptive import optimizers
from tff_adaptive import runtime
from tff_adaptive.client_works import totals

_CLEAN = (TypeError, ValueError, KeyError, runtime.UnsupportedComputationError)


@functools.cache
def _process():
  return algorithms.build_fed_opt(
      testing.functional_model(), optimizers.build_sgd(0.1)
  )


class FuzzedClientsTest(compiled_testing.TestCase):

  def _check(self, state, drawn):
    """Trains a round, and fails unless it ends as it should."""
    try:
      with fuzz_testing.watched():
        clients = client_set_testing.build(drawn)
        output = _process().next(state, clients)
    except _CLEAN as error:
      if not fuzz_testing.is_raised_by_us(error):
        raise
      self.assertEqual(fuzz_testing.find_fault(str(error)), '', str(error))
      return
    for before, after in zip(*map(testing.trainable, (state, output.state))):
      self.assertEqual(before.shape, after.shape)
      self.assertEqual(before.dtype, after.dtype)
      self.assertTrue(np.isfinite(after).all())
    work = output.metrics['client_work']
    codes = work['rejections']
    self.assertLen(codes, len(clients))
    self.assertEqual(work['clients']['num_clients'], len(clients))
    self.assertEqual(work['clients']['num_rejected'], np.count_nonzero(codes))
    sizes = _sizes(clients)
    np.testing.assert_array_equal(
        codes == totals.Rejection.NO_EXAMPLE, np.equal(sizes, 0)
    )
    self.assertEqual(
        work['clients']['num_examples'], np.sum(sizes, where=codes == 0)
    )

  def _check_all(self, seed, number, max_examples):
    with compiled_testing.installed(number):
      state = _process().initialize()

      @hypothesis.seed(seed)
      @hypothesis.given(client_set_testing.client_sets())
      @hypothesis.settings(max_examples=max_examples)
      def check(drawn):
        self._check(state, drawn)

      check()

  def test_some_clients_end_in_a_result_or_in_a_sentence(self):
    self._check_all(seed=0, number=None, max_examples=20)

  @parameterized.parameters(1, 4)
  @pytest.mark.slow
  def test_many_clients_end_in_a_result_or_in_a_sentence(self, number):
    self._check_all(seed=1, number=number, max_examples=100)


def _sizes(clients):
  """Returns how many examples each client trains on, over all epochs."""
  if isinstance(clients, data.Cohort):
    return [sum(clients.batch_sizes(i)) for i in range(len(clients))]
  return [sum(len(batch['y']) for batch in client) for client in clients]
