# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that results do not depend on who computed them, nor on who died."""

import json
import pathlib
import subprocess
import sys
import tempfile

from absl.testing import absltest
import pytest

_ROOT = pathlib.Path(__file__).resolve().parents[4]
_TIMEOUT_SECONDS = 3000


class EqualityTest(absltest.TestCase):

  @pytest.mark.slow
  def test_bits_are_equal_for_any_number_of_workers(self):
    # Output goes to files: what Ray starts would hold a pipe open.
    with (
        tempfile.TemporaryFile('w+') as stdout,
        tempfile.TemporaryFile('w+') as stderr,
    ):
      code = subprocess.run(
          [sys.executable, '-m', f'{__package__}.equality_driver'],
          cwd=_ROOT,
          stdin=subprocess.DEVNULL,
          stdout=stdout,
          stderr=stderr,
          timeout=_TIMEOUT_SECONDS,
          check=False,
      ).returncode
      stdout.seek(0)
      stderr.seek(0)
      self.assertEqual(code, 0, stderr.read())
      digests = json.loads(stdout.read().splitlines()[-1])
    self.assertEqual(digests.pop('num_killed'), 3)
    killed = digests.pop('emnist_cnn killed')
    self.assertEqual(killed, digests['emnist_cnn compiled'])
    for name in ('emnist_cnn', 'fedcada'):
      expected = digests.pop(f'{name} compiled')
      found = [digests.pop(f'{name} ray {n}') for n in (1, 3)]
      self.assertEqual(found, [expected] * 2)
    self.assertEmpty(digests)
