# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of pages as Markdown, and of their numbers, times and CSV files."""

import math

from absl.testing import absltest
from absl.testing import parameterized

from experiments import formatting
from experiments import markup
from experiments import pages
from tests import folder_testing


class PageRenderingTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    folder = folder_testing.new(self)
    png = folder / 'table_1.png'
    png.write_bytes(b'picture')
    blocks = [
        pages.heading('Numbers'),
        pages.paragraph('**Bold**, `a<b`, <i> and [us](https://x.y/?a&b).'),
        pages.table(
            ['row', 'x|y'],
            [['a', markup.Markup('**1.0** (0.0)')], ['b', '2 †']],
        ),
        pages.figure(png, 'What [it] <shows>.', 'python -m x'),
        pages.code('run <this> && that'),
    ]
    pages.write_page(folder / 'page', 'A < B & "C"', blocks)
    self.markdown = (folder / 'page.md').read_text(encoding='utf-8')

  def test_markdown(self):
    self.assertEqual(
        self.markdown,
        """# A &lt; B & "C"

## Numbers

**Bold**, `a<b`, &lt;i> and [us](https://x.y/?a&b).

| row | x\\|y |
| :--- | ---: |
| a | **1.0** (0.0) |
| b | 2 † |

![What (it) &lt;shows>.](table_1.png)

What [it] &lt;shows>. Made by `python -m x`.

```
run <this> && that
```
""",
    )

  def test_the_origin_of_a_page_without_runs_is_its_command(self):
    blocks = pages.origin([], 'make page')
    self.assertLen(blocks, 2)
    self.assertIn('make page', blocks[1])


class CsvFilesTest(parameterized.TestCase):

  @parameterized.parameters(
      (None, ''),
      (math.nan, ''),
      (-math.inf, '-inf'),
      (0.1 + 0.2, '0.3'),
      (2.0, '2'),
      (123456789012345.0, '123456789012345'),
      (1e300, '1e+300'),
      (7, '7'),
      ('a, b', 'a, b'),
  )
  def test_values(self, value, text):
    self.assertEqual(formatting.format_value(value), text)

  def test_a_table_has_a_line_a_row(self):
    folder = folder_testing.new(self)
    formatting.write_csv(folder / 'x', ('x', 'y'), [('a, b', 0.5), (1, None)])
    self.assertEqual((folder / 'x').read_text(), 'x,y\n"a, b",0.5\n1,\n')


class DurationsTest(parameterized.TestCase):

  @parameterized.parameters(
      (0.2, '1 s'),
      (200, '3 min 20 s'),
      (7500, '2 h 5 min'),
      (59.5, '1 min 0 s'),
      (None, 'unknown'),
      (math.nan, 'unknown'),
      (math.inf, 'unknown'),
  )
  def test_times_in_words(self, seconds, text):
    self.assertEqual(formatting.format_seconds(seconds), text)
