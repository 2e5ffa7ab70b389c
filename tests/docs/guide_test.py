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
"""Tests that the user guide is true: its blocks, commands, flags and links."""

import re

from absl.testing import absltest
from absl.testing import parameterized
import pytest

from tests import page_testing
from tests.docs import flags_testing

_FOLDER = 'docs/guide'
_PAGES = tuple(
    path.relative_to(page_testing.ROOT).as_posix()
    for path in sorted((page_testing.ROOT / _FOLDER).glob('*.md'))
)
# The pages whose blocks build several processes, or train on both runtimes.
_LONG_PAGES = tuple(
    f'{_FOLDER}/{name}.md'
    for name in ('one_optimizer', 'the_runtime', 'your_own_model')
)
# A page that sets TensorFlow for good, so that no other one may follow it.
_LAST_PAGE = f'{_FOLDER}/reproducibility.md'
_BINARIES = ('benchmark', 'export', 'report', 'sweep', 'trace', 'train')
# Of absl, of other programs.
_OTHER_FLAGS = ('help', 'flagfile', 'logdir', 'list')


def _commands(page):
  return page_testing.commands_of(page_testing.read(page))


class GuideTest(parameterized.TestCase):

  def _assert_blocks_run(self, pages):
    found = page_testing.run_python_blocks(pages)
    for name in pages:
      blocks = [
          block
          for block in page_testing.find_blocks(page_testing.read(name))
          if block.language == 'python'
      ]
      self.assertEqual(found[name]['error'], '', name)
      for block, output in zip(blocks, found[name]['outputs'], strict=True):
        self.assertTrue(
            page_testing.is_shown(block.shown, output),
            f'{name}, line {block.line} prints\n{output}\nand shows\n'
            f'{block.shown}',
        )

  @parameterized.parameters(*_PAGES)
  def test_links_lead_somewhere(self, page):
    self.assertEmpty(page_testing.broken_links(page))

  @parameterized.parameters(*_PAGES)
  def test_is_one_to_four_screens(self, page):
    text = page_testing.read(page)
    self.assertStartsWith(text, '# ')
    self.assertLess(len(text.splitlines()), 300)

  @parameterized.parameters(*_PAGES)
  def test_flags_exist(self, page):
    known = set(_OTHER_FLAGS)
    for binary in _BINARIES:
      known.update(flags_testing.define_flags(binary))
    named = re.findall(r'--(?:no)?(\w+)', page_testing.read(page))
    self.assertEmpty(set(named) - known)

  def test_errors_of_flags_are_those_that_are_shown(self):
    commands = [
        command
        for page in _PAGES
        for command in _commands(page)
        if command.shown.startswith('error:')
    ]
    self.assertNotEmpty(commands)
    for command in commands:
      result = page_testing.run(command.text, page_testing.ROOT)
      self.assertEqual(result.returncode, 2)
      self.assertEqual(result.stderr, command.shown)

  def test_blocks_run(self):
    pages = [p for p in _PAGES if p not in (*_LONG_PAGES, _LAST_PAGE)]
    self._assert_blocks_run([*pages, _LAST_PAGE])

  @pytest.mark.slow
  def test_long_blocks_run(self):
    self._assert_blocks_run(_LONG_PAGES)


if __name__ == '__main__':
  absltest.main()
