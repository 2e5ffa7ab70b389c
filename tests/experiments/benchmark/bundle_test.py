# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that a bundle runs with NumPy and JAX alone, with the CPU's results."""

import ast
import json
import sys

import attrs
import numpy as np
import pytest

from experiments.benchmark import bundle
from experiments.benchmark import measurement
from experiments.benchmark import workloads
from tests import folder_testing
from tests import program_testing

_FEW = attrs.evolve(
    workloads.WORKLOADS['tiny_many'],
    name='few',
    num_clients=9,
    clients_per_round=(5,),
    examples_per_client=(1, 70),
)


class BundleTest(folder_testing.FolderTestCase):

  def _run(self, *arguments):
    runner = str(self.folder / 'run_bundle.py')
    return program_testing.run_command(
        sys.executable, runner, *arguments, cwd=self.folder, JAX_PLATFORMS='cpu'
    )

  def test_programs_have_the_results_of_the_cpu(self):
    chosen = [_FEW, workloads.WORKLOADS['tasks']]
    lines = list(
        bundle.write(chosen, str(self.folder), measurement.Settings(3))
    )
    self.assertLen(lines, 1)
    (self.folder / 'broken.npz').write_bytes(b'')
    ended = self._run()
    self.assertEqual(ended.returncode, 0, ended.stderr)
    broken, *found = map(json.loads, ended.stdout.splitlines())
    self.assertRegex(broken['error'], 'exit code 1: .*broken.npz|EOFError')
    (line,) = found
    self.assertEqual(line['workload'], 'few_5')
    self.assertEqual(line['rounds_per_call'], 3)
    self.assertLess(line['difference'], 1e-5)
    self.assertLess(line['relative_difference'], 1e-5)
    self.assertGreater(line['sec_per_round_median'], 0)
    self.assertGreater(line['compile_seconds'], 0)
    self.assertGreater(line['peak_memory_mb'], 1)
    written = (self.folder / 'results.jsonl').read_text(encoding='utf-8')
    self.assertEqual(written, ended.stdout)

  @pytest.mark.slow
  def test_other_results_are_seen(self):
    path, _ = (
        self.folder / line.split()[0]
        for line in bundle.write(
            [attrs.evolve(_FEW, clients_per_round=(3, 5))],
            str(self.folder),
            measurement.Settings(1),
        )
    )
    arrays = dict(np.load(path))
    arrays['expected/000'] = arrays['expected/000'] + np.float32(0.5)
    np.savez(path, **arrays)
    ended = self._run(str(path))
    self.assertEqual(ended.returncode, 0, ended.stderr)
    self.assertAlmostEqual(json.loads(ended.stdout)['difference'], 0.5, 3)

  def test_runner_imports_numpy_and_jax_alone(self):
    tree = ast.parse(bundle.RUNNER.read_text(encoding='utf-8'))
    imported = set()
    for node in ast.walk(tree):
      if isinstance(node, ast.Import):
        imported.update(alias.name for alias in node.names)
      elif isinstance(node, ast.ImportFrom):
        imported.add(node.module)
    self.assertEqual(imported - set(sys.stdlib_module_names), {'numpy', 'jax'})
