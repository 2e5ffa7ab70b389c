# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The cohort and the round that the tests of FedOpt share."""

from tests.tff_adaptive import testing


def clients():
  """Two clients, with 10 and 7 examples."""
  return [testing.client(10, seed=1), testing.client(7, seed=2)]


def run_round(process, cohort, state=None):
  """The output of a round, by default of the first one."""
  return process.next(state or process.initialize(), cohort)
