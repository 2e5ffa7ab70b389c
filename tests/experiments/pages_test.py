# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of pages as Markdown and HTML."""

import html.parser
import pathlib

from absl.testing import absltest

from experiments import markup
from experiments import pages
from tests import folder_testing

_VOID = ('meta', 'img')


class _Reader(html.parser.HTMLParser):
  """Collects tags and texts, and checks that tags are closed in order."""

  def __init__(self):
    super().__init__()
    self.open, self.tags, self.text = [], [], ''

  def handle_starttag(self, tag, attrs):
    self.tags.append((tag, dict(attrs)))
    if tag not in _VOID:
      self.open.append(tag)

  def handle_endtag(self, tag):
    assert self.open.pop() == tag, tag

  def handle_data(self, data):
    self.text += data


def _read(html_text):
  reader = _Reader()
  reader.feed(html_text)
  assert not reader.open, reader.open
  return reader


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
    self.html = (folder / 'page.html').read_text(encoding='utf-8')

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

  def test_html_is_escaped_and_well_formed(self):
    reader = _read(self.html)
    self.assertIn('Bold, a<b, <i> and us.', reader.text)
    self.assertIn('run <this> && that', reader.text)
    self.assertNotIn('shows>', [tag for tag, _ in reader.tags])
    tags = [tag for tag, _ in reader.tags]
    self.assertEqual(tags.count('strong'), 2)
    self.assertNotIn('i', tags)
    attributes = dict(reader.tags)
    self.assertEqual(attributes['a'], {'href': 'https://x.y/?a&b'})
    self.assertEqual(attributes['img']['alt'], 'What (it) <shows>.')

  def test_html_needs_no_other_file(self):
    reader = _read(self.html)
    sources = [a['src'] for _, a in reader.tags if 'src' in a]
    self.assertEqual(sources, ['data:image/png;base64,cGljdHVyZQ=='])
    self.assertNotIn('link', [tag for tag, _ in reader.tags])
    self.assertNotIn('script', [tag for tag, _ in reader.tags])

  def test_the_origin_of_a_page_without_runs_is_its_command(self):
    blocks = pages.origin([], 'make page')
    self.assertLen(blocks, 2)
    self.assertIn('make page', blocks[1])

  def test_html_is_made_for_phones_and_for_the_dark(self):
    text = self.html
    self.assertIn('name="viewport" content="width=device-width', text)
    self.assertIn('prefers-color-scheme: dark', text)
    wide = [a for tag, a in _read(self.html).tags if tag == 'div']
    self.assertEqual(wide, [{'class': 'wide'}])

  def test_words_stand_left_and_numbers_right(self):
    cells = [a.get('style') for tag, a in _read(self.html).tags if tag == 'td']
    self.assertEqual(cells, ['text-align: left;', 'text-align: right;'] * 2)

  def test_an_address_that_runs_code_is_no_link(self):
    blocks = [pages.paragraph('[x](javascript:alert)')]
    text = pages.to_html('', blocks, pathlib.Path())
    self.assertNotIn('a', dict(_read(text).tags))
