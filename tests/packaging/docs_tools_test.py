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
"""Tests of the tools that make the documentation site."""

import pathlib
import tempfile
import textwrap

from absl.testing import absltest
from absl.testing import parameterized

from tools.docs import docstrings
from tools.docs import markdown_extension
from tools.docs import page_tree
from tools.docs import public_api


class DocstringsTest(parameterized.TestCase):

  @parameterized.named_parameters(
      (
          'example',
          """\
          Does it.

          Args:
            x: A number,
              positive.

          Example:

            >>> do(1)
            2

          References:
            Somebody, 2020.
          """,
          """\
          Does it.

          Args:
            x: A number,
              positive.

          Examples:
            >>> do(1)
            2

          References:
            Somebody, 2020.""",
      ),
      (
          'indented_formula',
          """\
          Computes:

            y = x
              + 1

          and returns it.
          """,
          """\
          Computes:

          ```
          y = x
            + 1
          ```

          and returns it.""",
      ),
      (
          'indented_code_at_the_end',
          """\
          For example:

            >>> 1 + 1
            2
          """,
          """\
          For example:

          ```pycon
          >>> 1 + 1
          2
          ```
          """,
      ),
      (
          'fenced_formula',
          """\
          Computes

          ```
          y = x

            + 1
          Example:
          ```
          """,
          """\
          Computes

          ```
          y = x

            + 1
          Example:
          ```""",
      ),
  )
  def test_normalize(self, text, expected):
    text = textwrap.dedent(text)
    self.assertEqual(docstrings.normalize(text), textwrap.dedent(expected))


class PageTreeTest(absltest.TestCase):

  def test_expand_puts_pages_in_the_place_of_patterns(self):
    navigation = [
        {'Home': 'README.md'},
        {'Results': ['docs/results/best.md', 'docs/results/*']},
        {'Reference': 'api/*'},
    ]
    pages = [
        'README.md',
        'api/b.md',
        'api/a.md',
        'docs/results/table_10.md',
        'docs/results/table_2.md',
        'docs/results/best.md',
    ]
    expected = [
        {'Home': 'README.md'},
        {
            'Results': [
                'docs/results/best.md',
                'docs/results/table_2.md',
                'docs/results/table_10.md',
            ]
        },
        {'Reference': ['api/a.md', 'api/b.md']},
    ]
    self.assertEqual(page_tree.expand(navigation, pages), expected)

  def test_expand_leaves_sections_without_a_page_out(self):
    navigation = ['README.md', {'Results': [{'Paper': ['docs/results/*']}]}]
    self.assertEqual(page_tree.expand(navigation, ['README.md']), ['README.md'])

  def test_expand_keeps_pages_that_are_missing(self):
    self.assertEqual(page_tree.expand(['docs/gone.md'], []), ['docs/gone.md'])


class MendLinkTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    folder = self.enter_context(tempfile.TemporaryDirectory())
    self.root = pathlib.Path(folder)
    for name in ('docs/a.md', 'presets/paper/README.md', 'library/code.py'):
      (self.root / name).parent.mkdir(parents=True, exist_ok=True)
      (self.root / name).touch()

  @parameterized.named_parameters(
      ('elsewhere', 'https://example.org/x', 'https://example.org/x'),
      ('heading', '#there', '#there'),
      ('page', 'a.md#there', 'a.md#there'),
      ('folder_with_a_page', '../presets/paper', '../presets/paper/README.md'),
      ('folder', '../library/', None),
      ('source', '../library/code.py#L3', None),
      # MkDocs says that it is not found.
      ('missing', '../library/gone.py', '../library/gone.py'),
  )
  def test_mend_link(self, address, expected):
    pages = {'docs/a.md', 'docs/b.md', 'presets/paper/README.md'}
    mended = markdown_extension.mend_link(
        address, 'docs/b.md', pages, self.root
    )
    self.assertEqual(mended, expected)


class FindTargetTest(parameterized.TestCase):

  @parameterized.parameters(
      ('optimizers.build_sgd', 'tff_adaptive.optimizers.build_sgd'),
      (
          'tff_adaptive.optimizers.build_sgd',
          'tff_adaptive.optimizers.build_sgd',
      ),
      (
          "optimizers.build_delta_sgd(previous_gradient='reuse')",
          'tff_adaptive.optimizers.build_delta_sgd',
      ),
      ('data.partition', 'tff_adaptive.data.partition'),
      (
          'simulation.EarlyStopping',
          'tff_adaptive.simulation.EarlyStopping',
      ),
      ('tff.learning.optimizers.build_sgdm', None),
      ('--client_optimizer=sgd', None),
      ('build_sgd', None),
      ('partition', None),
  )
  def test_find_target(self, code, expected):
    found = markdown_extension.find_target(code, is_api=False)
    self.assertEqual(found, expected)

  @parameterized.parameters(
      ('build_sgd', 'tff_adaptive.optimizers.build_sgd'),
      ('Cohort', 'tff_adaptive.data.Cohort'),
      # An argument of that name is more likely.
      ('shards', None),
      # Several tasks have one.
      ('build_keras_model', None),
  )
  def test_find_target_in_the_reference(self, code, expected):
    found = markdown_extension.find_target(code, is_api=True)
    self.assertEqual(found, expected)


class PublicApiTest(absltest.TestCase):
  """Finds the public names of a small tree."""

  def setUp(self):
    super().setUp()
    folder = self.enter_context(tempfile.TemporaryDirectory())
    self.root = pathlib.Path(folder)
    self._write('tff_adaptive/__init__.py', '"""A library."""\n')
    self._write(
        'tff_adaptive/rules/__init__.py',
        '"""Rules.\n\nRates are in `rates`.\n"""\n\n'
        'from tff_adaptive.rules.inner import Rule as SmallRule\n'
        'from tff_adaptive.rules.first import build_first\n'
        'from os import path\n',
    )
    self._write(
        'tff_adaptive/rules/first.py',
        '"""No."""\ndef build_first():\n'
        '  """Builds it.\n\n  At length.\n  """\n',
    )
    self._write(
        'tff_adaptive/rules/inner/__init__.py',
        '"""Inner."""\n\nfrom tff_adaptive.rules.inner.rule import Rule\n',
    )
    self._write(
        'tff_adaptive/rules/inner/rule.py', 'class Rule:\n  """A rule."""\n'
    )
    self._write(
        'tff_adaptive/rules/rates.py',
        '"""Rates."""\n\nimport os\n\n# A rate, of\n# a round.\nRate = float\n'
        '_HIDDEN = 1\n\n\ndef build_rate():\n  """Builds one."""\n',
    )
    self._write('tff_adaptive/alone.py', 'def lonely():\n  """Is."""\n')
    self._write(
        'tff_adaptive/program.py',
        'def main():\n  """Runs."""\n\n\nif __name__ == \'__main__\':\n'
        '  main()\n',
    )

  def _write(self, name, text):
    path = self.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)

  def test_find_modules(self):
    found = {
        module.name: {
            name: definition.summary
            for name, definition in module.names.items()
        }
        for module in public_api.find_modules(self.root)
    }
    expected = {
        'tff_adaptive.alone': {'lonely': 'Is.'},
        'tff_adaptive.rules': {
            'build_first': 'Builds it.',
            'SmallRule': 'A rule.',
        },
        'tff_adaptive.rules.inner': {'Rule': 'A rule.'},
        'tff_adaptive.rules.rates': {
            'build_rate': 'Builds one.',
            'Rate': 'A rate, of a round.',
        },
    }
    self.assertEqual(found, expected)

  def test_find_described_takes_the_innermost_package(self):
    modules = public_api.find_modules(self.root)
    expected = {
        'tff_adaptive.alone.lonely': 'tff_adaptive.alone.lonely',
        'tff_adaptive.rules.first.build_first': (
            'tff_adaptive.rules.build_first'
        ),
        'tff_adaptive.rules.inner.rule.Rule': 'tff_adaptive.rules.inner.Rule',
        'tff_adaptive.rules.rates.Rate': 'tff_adaptive.rules.rates.Rate',
        'tff_adaptive.rules.rates.build_rate': (
            'tff_adaptive.rules.rates.build_rate'
        ),
    }
    self.assertEqual(public_api.find_described(modules), expected)


if __name__ == '__main__':
  absltest.main()
