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
"""Tests that README and docs are true: each command and block is run."""

import pathlib
import re

from absl.testing import absltest
import pytest

from experiments import registry
from tasks import synthetic_data
from tests import page_testing

_ROOT = page_testing.ROOT
_README = page_testing.read('README.md')
_WRITE_YOUR_OWN = page_testing.read('docs/write_your_own.md')

# What the blocks of README and docs/write_your_own.md take for granted.
_GIVEN = """
from tests.tff_adaptive import testing
model = testing.functional_model()
client_datasets = [testing.client(8, seed=seed) for seed in range(2)]
"""


def _commands():
  return [command.text for command in page_testing.commands_of(_README)]


def _shown():
  """The blocks of the README that are output."""
  return page_testing.blocks_of(_README, '')


class ReadmeTest(absltest.TestCase):

  def _copy_project(self) -> pathlib.Path:
    return self.enter_context(page_testing.copied_project())

  def test_output_of_the_tests_is_a_summary(self):
    shown = [block for block in _shown() if ' passed' in block]
    self.assertLen(shown, 1)
    self.assertRegex(
        shown[0],
        r'^=+ \d{4} passed, 3 skipped in [\d.:() s]+ =+\n$',
    )

  def test_linked_files_and_headings_exist(self):
    self.assertEmpty(page_testing.broken_links('README.md'))

  def test_methods_have_the_flags_and_builders_that_there_are(self):
    rows = [row for row in page_testing.table_rows(_README, 'method') if row[1]]
    self.assertGreater(len(rows), 20)
    for _, called, what, *_, to_tune, paper in rows:
      flag, builder = page_testing.names_in([called])
      kind, _, name = flag[2:].partition('=')
      self.assertEqual(
          registry.ROWS[kind][name].builder,
          f'tff_adaptive.{builder.replace(".", ":")}',
      )
      self.assertTrue(what and to_tune and paper, flag)

  @pytest.mark.slow
  def test_python_blocks_run(self):
    """Runs the blocks of each page with a small model, counting the rounds."""
    found = page_testing.run_python_blocks(
        ['README.md', 'docs/write_your_own.md'], _GIVEN
    )
    printed = []
    for name, page in found.items():
      self.assertEqual(page['error'], '', name)
      self.assertNotEmpty(page['outputs'])
      printed += map(float, ''.join(page['outputs']).split())
    self.assertLen(printed, 10 + 3)
    for agreement in printed[10:]:
      self.assertBetween(agreement, 0.0, 1.001)

  def test_rules_of_ones_own_are_short(self):
    for block in page_testing.blocks_of(_WRITE_YOUR_OWN, 'python'):
      self.assertLess(sum(bool(line) for line in block.splitlines()), 30)

  def test_files_that_a_new_rule_touches_exist(self):
    named = re.findall(r'^\d\. `([^`]+)`', _WRITE_YOUR_OWN, re.M)
    self.assertLen(named, 4)
    for name in named:
      if 'sign_descent' not in name:
        self.assertTrue((_ROOT / name).is_file(), name)

  @pytest.mark.slow
  def test_demo(self):
    copy = self._copy_project()
    for _ in range(2):  # The second call finds the run finished.
      result = page_testing.run('make demo', copy)
      self.assertEqual(result.returncode, 0, result.stderr)
      last = result.stdout.splitlines()[-1]
      self.assertRegex(last, r'^test accuracy: 0\.9\d$')
    for name in ('metrics.csv', 'hparams.json', 'plots/training.png'):
      self.assertTrue((copy / 'runs/demo' / name).is_file(), name)
    # The README shows this output; another TensorFlow rounds otherwise.
    shown = [b for b in _shown() if 'test accuracy' in b][0].splitlines()
    self.assertEqual(shown[0], result.stdout.splitlines()[0])
    self.assertAlmostEqual(
        float(shown[-1].split()[-1]), float(last.split()[-1]), delta=0.015
    )

  @pytest.mark.slow
  def test_check(self):
    result = page_testing.run('make check', _ROOT)
    self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

  @pytest.mark.slow
  def test_published_tables(self):
    """Lists a table, runs two of its cells briefly on made-up data, reports."""
    listing, report = [c for c in _commands() if 'experiments.report' in c]
    (sweep,) = [c for c in _commands() if 'experiments.sweep' in c]
    copy = self._copy_project()
    synthetic_data.write_synthetic_data('mnist', copy / 'data')
    result = page_testing.run(listing, copy)
    self.assertEqual(result.returncode, 0, result.stderr)
    self.assertLen(result.stdout.splitlines(), 1 + 120)
    some = ' --rows=SGD --groups="alpha = 0.1,alpha = 1"'
    result = page_testing.run(
        f'{sweep}{some} --total_rounds=2 --max_examples=8', copy
    )
    self.assertEqual(result.returncode, 0, result.stderr)
    result = page_testing.run(report, copy)
    self.assertEqual(result.returncode, 0, result.stderr)
    page = (copy / 'results/delta_sgd/table_1.md').read_text(encoding='utf-8')
    # Runs of two rounds are not those of the table, and do not count.
    self.assertEqual(page.count('total_rounds'), 2)


if __name__ == '__main__':
  absltest.main()
