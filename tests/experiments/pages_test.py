# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of pages as Markdown, and of texts, CSV files and LaTeX."""

import html.parser
import json
import math

from absl.testing import absltest
from absl.testing import parameterized
import markdown

from experiments import formatting
from experiments import pages
from experiments.run_results import run_folder
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
            [['a', pages.Markup('**1.0** (0.0)')], ['b', '2 †']],
        ),
        pages.figure(png, 'What [it] <shows>.', 'python -m x'),
        pages.code_block('run <this> && that'),
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


class PageFilesTest(folder_testing.FolderTestCase):

  def test_names_may_have_dots(self):
    for name in ('table_1.5', 'table_1.6'):
      pages.write_page(self.folder / name, name, [])
    self.assertCountEqual(
        [path.name for path in self.folder.iterdir()],
        ['table_1.5.md', 'table_1.6.md'],
    )


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


_PAYLOADS = (
    '<script>alert(1)</script>',
    '<img src=x onerror=alert(1)>',
    '\\`<script>alert(1)</script>\\`',
    '`` `<script>alert(1)</script>`',
    '` ` <img src=x onerror=alert(1)> `',
    '```\n<script>alert(1)</script>\n```',
    '~~~\n<script>',
    '[x](javascript:alert(1))',
    '[x](javascript:alert(1) "t")',
    "[x](javascript:alert(1) 't')",
    '[x](<javascript:alert(1)>)',
    '[x]( &#106;avascript:alert(1))',
    '[x](data:text/html;base64,PHNjcmlwdD4=)',
    '[x](https://x.y)',
    '[x][1]\n\n[1]: javascript:alert(1)',
    '<javascript:alert(1)>',
    '<https://x.y>',
    '![x](secret.txt)',
    '![x](/etc/hostname)',
    '![x](https://x.y/z.png)',
    '![x](table.png)',
    '![x][1]',
    '**bold** *i* __b__ _i_ ~~s~~',
    '# heading',
    'a|b \\| c \\',
    '&lt;script&gt; &amp; &#60;',
    '{: onclick=alert(1) }',
    '"><svg onload=alert(1)>',
    '</td></table><iframe src=//x.y>',
    '<!-- -->',
    '<?php ?>',
    ']]><b>',
    '\u202e$\\frac{1}{2}$',
)
# The tags of a page with a heading, a sentence, a table and a picture.
_TAGS = frozenset('h1 h2 p table thead tbody tr th td code pre img'.split())


def _to_html(text):
  return markdown.markdown(text, extensions=['fenced_code', 'tables'])


class _Reader(html.parser.HTMLParser):
  """Collects tags with their attributes, and the texts of table cells."""

  def __init__(self, text):
    super().__init__()
    self.tags, self.cells, self._is_cell = [], [], False
    self.feed(text)

  def handle_starttag(self, tag, attrs):
    self.tags.append((tag, dict(attrs)))
    if tag in ('td', 'th'):
      self.cells.append('')
      self._is_cell = True

  def handle_endtag(self, tag):
    self._is_cell = self._is_cell and tag not in ('td', 'th')

  def handle_data(self, data):
    if self._is_cell:
      self.cells[-1] += data


class PayloadTest(folder_testing.FolderTestCase):

  def setUp(self):
    super().setUp()
    self.png = self.folder / 'table.png'
    self.png.write_bytes(b'picture')

  def _read(self, title, blocks):
    pages.write_page(self.folder / 'page', title, blocks)
    text = (self.folder / 'page.md').read_text(encoding='utf-8')
    reader = _Reader(_to_html(text))
    for tag, attributes in reader.tags:
      self.assertIn(tag, _TAGS)
      allowed = {'alt', 'src'} if tag == 'img' else {'style'}
      self.assertLessEqual(set(attributes), allowed)
    sources = [a['src'] for tag, a in reader.tags if tag == 'img']
    self.assertLessEqual(set(sources), {'table.png'})
    return reader

  @parameterized.parameters(*_PAYLOADS)
  def test_a_text_is_shown_as_it_is_written(self, payload):
    reader = self._read(
        payload, [pages.table([payload, 'b'], [[payload, 'next']])]
    )
    shown = ' '.join(payload.split())
    self.assertEqual(
        [' '.join(cell.split()) for cell in reader.cells],
        [shown, 'b', shown, 'next'],
    )

  @parameterized.parameters(*_PAYLOADS)
  def test_a_text_is_shown_in_sentences(self, payload):
    self._read(
        payload,
        [
            pages.heading(payload),
            pages.paragraph(
                f'From {pages.text(payload)} and {pages.code(payload)}.'
            ),
            pages.figure(self.png, f'{pages.text(payload)}.', payload),
            pages.code_block(payload),
        ],
    )

  @parameterized.parameters(*_PAYLOADS)
  def test_even_a_sentence_has_no_tags_pictures_and_scripts(self, payload):
    page = _to_html(pages.paragraph(payload))
    for tag, attributes in _Reader(page).tags:
      self.assertNotIn(tag, ('script', 'img', 'svg', 'iframe', 'b'))
      self.assertNotIn('onclick', attributes)
      if tag == 'a':
        self.assertNotRegex(attributes['href'], r'(?i)^\s*(javascript|data):')
        self.assertLessEqual(set(attributes), {'href'})

  def _run(self, payload):
    """Returns a run in which every value is a payload."""
    folder = self.folder / ' '.join(payload.split()).replace('/', '_')
    folder.mkdir()
    hparams = {'total_rounds': 1, 'seed': 0, 'task': payload, payload: payload}
    (folder / 'hparams.json').write_text(json.dumps(hparams))
    (folder / 'environment.json').write_text(
        json.dumps([{payload: payload, 'python': payload}])
    )
    return run_folder.read_run(folder)

  @parameterized.parameters(*_PAYLOADS)
  def test_the_environment_of_a_run_is_text(self, payload):
    reader = self._read('t', pages.origin([self._run(payload)], payload))
    shown = ' '.join(payload.split())
    cells = [' '.join(cell.split()) for cell in reader.cells]
    self.assertEqual(cells.count(shown), 3)

  def test_markup_of_the_program_is_kept(self):
    sentence = '**Bold** `a<b_c` [us](https://x.y/?a&b "t") _x_'
    self.assertEqual(
        _to_html(pages.escape(sentence)),
        '<p><strong>Bold</strong> <code>a&lt;b_c</code> '
        '<a href="https://x.y/?a&amp;b" title="t">us</a> <em>x</em></p>',
    )

  def test_usual_texts_are_written_as_they_are(self):
    for usual in ('a_b=1.5', '2.3 [-0.9, 5.4] (n = 3)', 'x: y, 5 % ± 1', 'a&b'):
      self.assertEqual(pages.text(usual), usual)
    self.assertEqual(pages.code('--a=b c'), '`--a=b c`')

  def test_control_characters_make_no_link(self):
    # Markdown puts some around its own marks, and removes them at last.
    for mark in '\x02\x03':
      shown = _to_html(pages.text(f'[x]{mark}(https://x.y)'))
      self.assertEqual(shown, '<p>[x]&#40;https://x.y)</p>')


class LatexTest(parameterized.TestCase):

  @parameterized.parameters(
      ('lr < 0.1 | > 1', r'lr \textless{} 0.1 \textbar{} \textgreater{} 1'),
      ('[1] FedAvg*', '{[}1] FedAvg{*}'),
      ('a_b \\ {c}^-\n2', r'a\_b \textbackslash{} \{c\}\textasciicircum{}- 2'),
  )
  def test_text_is_shown_as_it_is(self, text, shown):
    self.assertEqual(formatting.escape_latex(text), shown)

  def test_a_row_does_not_continue_the_one_before(self):
    table = formatting.to_latex(
        ['a', 'b'], [['x', '1'], ['[y]', '2']], 'About y.'
    )
    self.assertIn('x & 1 \\\\\n{[}y] & 2 \\\\\n', table)
