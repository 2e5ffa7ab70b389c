# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of pages as Markdown."""

from absl.testing import absltest

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
