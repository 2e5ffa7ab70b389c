# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that later processes find the programs that JAX has compiled."""

import os

from tests import folder_testing
from tests import program_testing
from tests.tff_adaptive import testing
from tests.tff_adaptive.runtime import compiled_testing
from tff_adaptive import runtime


def _train():
  process = compiled_testing.process()
  with runtime.CompiledContext(devices='XLA:CPU', strict=True, seed=0):
    process.next(process.initialize(), [testing.client(5, seed=0)])


class CompileCacheTest(folder_testing.FolderTestCase):

  def _train(self, **environment):
    """Trains in a new process; returns when each kept file was written."""
    ended = program_testing.Program(
        _train,
        XDG_CACHE_HOME=str(self.folder / 'caches'),
        JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS='0',
        **environment,
    ).wait()
    self.assertEqual(ended.returncode, 0, ended.stderr)
    return {
        path: path.stat().st_mtime_ns
        for path in self.folder.rglob('*-cache')
    }

  def test_programs_are_kept_and_found(self):
    on = {'JAX_ENABLE_COMPILATION_CACHE': 'true'}
    kept = self._train(**on)
    self.assertNotEmpty(kept)
    for path in kept:
      self.assertIn('caches/tff_adaptive/xla', str(path))
    self.assertEqual(self._train(**on), kept)
    self.assertNotEmpty(
        self._train(
            **on, JAX_COMPILATION_CACHE_DIR=str(self.folder / 'other')
        ).keys()
        - kept.keys()
    )

  def test_jax_may_be_told_to_keep_nothing(self):
    self.assertEmpty(self._train(JAX_ENABLE_COMPILATION_CACHE='false'))
    self.assertEmpty(os.listdir(self.folder))
