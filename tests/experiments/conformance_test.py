# Copyright 2026 The tff_adaptive Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""Tests of the conformance binary, as it is called."""

import json
import pathlib
import tempfile

from absl.testing import absltest

from tests import program_testing


def _run(goldens, name):
  """A run of the binary on one run with the given server."""
  run = {
      'config': {
          'name': name,
          'client': {'name': 'sgd', 'lr': 0.5},
          'server': {'name': name, 'lr': 1.0},
          'weighting': 'uniform',
          'rounds': 1,
          'problem': 'quadratic',
          'batch_size': 1,
          'epochs': 1,
      },
      'float32_error': 0.0,
      'trajectory': [
          {
              'clients': [{'id': 0, 'etas': [0.5]}],
              # The gradient of 1/2 (x - 1)^2 at 0 is -1.
              'server': {'x': [0.5, 0.0, 0.0, 0.0]},
          }
      ],
  }
  problem = {
      'name': 'quadratic',
      'x0': [0.0] * 4,
      'clients': [{'X': [[1.0, 0, 0, 0]], 'y': [1.0]}],
  }
  goldens['problems'] = [problem]
  goldens.setdefault('runs', []).append(run)


class ConformanceTest(absltest.TestCase):

  def _call(self, text):
    with tempfile.TemporaryDirectory() as folder:
      path = pathlib.Path(folder) / 'goldens.json'
      if text is not None:
        path.write_text(text)
      return program_testing.run('experiments.conformance', f'--goldens={path}')

  def test_prints_a_line_a_run_and_counts(self):
    goldens = {}
    _run(goldens, 'sgd')
    _run(goldens, 'lion')
    result = self._call(json.dumps(goldens))
    self.assertEqual(result.returncode, 1, result.stderr)
    self.assertEqual(
        result.stdout.splitlines(),
        [
            'sgd quadratic 0 2e-05 ok',
            "lion quadratic - 2e-05 FAIL (unknown server 'lion')",
            '1 passed, 1 failed',
        ],
    )

  def test_missing_and_broken_files_are_one_sentence(self):
    for text, found in (
        (None, 'No such file'),
        ('{', 'is not a JSON file'),
        ('{"runs": []}', "no 'problems'"),
    ):
      result = self._call(text)
      self.assertEqual(result.returncode, 2)
      self.assertLen(result.stderr.splitlines(), 1)
      self.assertStartsWith(result.stderr, 'error: ')
      self.assertIn(found, result.stderr)


if __name__ == '__main__':
  absltest.main()
