# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of rounds that keep the clients' states."""

from absl.testing import absltest

from experiments import rounds
from tests.tff_adaptive import testing
from tff_adaptive import algorithms
from tff_adaptive import optimizers
from tff_adaptive import runtime


class RoundsTest(absltest.TestCase):

  def test_clients_that_keep_states_need_ids(self):
    process = algorithms.build_fed_opt(
        testing.functional_model(), optimizers.build_scaffold_sgd(3)
    )
    found = rounds.Rounds(process)
    with (
        runtime.CompiledContext(),
        self.assertRaisesRegex(ValueError, 'name the 2 clients, found 1 ids'),
    ):
      found.train(testing.clients([2, 3]), ['ann'])
