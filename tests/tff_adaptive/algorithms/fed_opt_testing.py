# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The cohort and the rounds that the tests of FedOpt share."""

from tests.tff_adaptive import testing


def clients():
  """Returns two clients, with 10 and 7 examples."""
  return [testing.client(10, seed=1), testing.client(7, seed=2)]


def run_round(process, cohort=None, state=None):
  """Returns the output of a round, by default of the first one."""
  if cohort is None:
    cohort = clients()
  return process.next(state or process.initialize(), cohort)


def train(process, cohort=None):
  """Returns the weights after the first round."""
  return testing.trainable(run_round(process, cohort).state)


def change(process, cohort=None):
  """Returns the change of the first tensor of weights in the first round."""
  start = testing.trainable(process.initialize())[0]
  return train(process, cohort)[0] - start
