# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that later processes find the programs that JAX has compiled."""

import functools

import jax

from tests import folder_testing
from tests import program_testing
from tests.tff_adaptive.runtime import compiled_testing
from tff_adaptive import runtime


def _compute(**config):
  """Computes in a process that has imported JAX before."""
  for name, value in config.items():
    jax.config.update(f'jax_{name}', value)
  add_up = compiled_testing.build_sum()
  with runtime.CompiledContext(devices='XLA:CPU', strict=True) as context:
    add_up([1.0, 2.0])
    assert context.path_of(add_up) == 'xla'


class CompileCacheTest(folder_testing.FolderTestCase):

  def _compute(self, **config):
    """Computes in a new process; returns when each kept file was written."""
    compute = functools.partial(
        _compute, persistent_cache_min_compile_time_secs=0.0, **config
    )
    caches = str(self.folder / 'caches')
    ended = program_testing.Program(compute, XDG_CACHE_HOME=caches).wait()
    self.assertEqual(ended.returncode, 0, ended.stderr)
    return {
        path: path.stat().st_mtime_ns for path in self.folder.rglob('*-cache')
    }

  def test_programs_are_kept_and_found(self):
    kept = self._compute(enable_compilation_cache=True)
    self.assertNotEmpty(kept)
    for path in kept:
      self.assertIn('caches/tff_adaptive/xla', str(path))
    self.assertEqual(self._compute(enable_compilation_cache=True), kept)

  def test_jax_may_be_told_where_to(self):
    other = self.folder / 'other'
    kept = self._compute(
        enable_compilation_cache=True, compilation_cache_dir=str(other)
    )
    self.assertEqual({path.parent for path in kept}, {other})

  def test_jax_may_be_told_to_keep_nothing(self):
    self._compute(enable_compilation_cache=False)
    self.assertEmpty(list(self.folder.iterdir()))
