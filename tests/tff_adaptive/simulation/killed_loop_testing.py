# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""A test case that kills the training loop at chosen instants."""

import json
from typing import Any

from tests.tff_adaptive import kill_testing
from tests.tff_adaptive.simulation import loop_testing

KILLED = -9


class KilledLoopTestCase(loop_testing.LoopTestCase):
  """Runs everything in forks of this process, which runs no TensorFlow."""

  def run_to_the_end(self, name: str) -> None:
    """Trains, or continues to train, in the folder of a name."""
    raise NotImplementedError

  def contents(self, name: str) -> Any:
    """Returns what must be equal, however often a run was killed."""
    raise NotImplementedError

  def train(self, name, kill_at=0):
    """Runs in a fork; returns its exit code and the instants it has seen."""
    instants = kill_testing.Instants(self.folder / name, kill_at)
    seen = self.folder / f'{name}.json'

    def run():
      with instants.watched():
        self.run_to_the_end(name)
      seen.write_text(json.dumps(instants.names))

    code = kill_testing.wait(kill_testing.fork(run))
    return code, json.loads(seen.read_text()) if code == 0 else None

  def check_killed_runs(self, step, expected_instants):
    """Kills runs at every `step`-th instant, and finishes them."""
    code, instants = self.train('whole')
    self.assertEqual(code, 0)
    self.assertContainsSubset(expected_instants, instants)
    whole = self.contents('whole')
    for number in range(1, len(instants) + 1, step):
      with self.subTest(f'{number}: {instants[number - 1]}'):
        name = f'killed_{number}'
        self.assertEqual(self.train(name, number)[0], KILLED)
        self.assertEqual(self.train(name)[0], 0)
        self.assertEqual(self.contents(name), whole)
