# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Text as Markdown, and Markdown as HTML, which run no code of others.

Values from a run's folder may be those of somebody else. A `str` is text, of
which nothing is markup; only the program's own sentences are `Markup`, in which
such values stand as `text` or `code`. Whatever gets into a sentence all the
same, the HTML has no tags but those of the program, no pictures but its own,
and no links but web addresses.
"""

import re
from typing import Any
from xml.etree import ElementTree

import markdown
from markdown import treeprocessors


class Markup(str):
  """A sentence of the program with `code`, **bold** or [links](https://...)."""


# An underscore within a word is no emphasis.
_SPECIAL = re.compile(
    r'\\(?![\w\s])|[`*<]|&(?=#?\w+;)|(?<![^\W_])_|_(?![^\W_])'
    r'|~(?=~)|(?<=~)~|(?<=\])[(\[]'
)
_CODE = re.compile('(`[^`]*`)')
# A tag or a picture, or a link to anything but the web or another file.
_ACTIVE = re.compile(
    r'<|!(?=\[)|(?<=\])\(\s*(?!https?:)(?=[a-z][\w+.-]*:)', re.I
)
# Control characters, some of which Markdown uses for its own marks.
_CONTROL = re.compile(r'[\x00-\x08\x0e-\x1b\x7f]')
_ENTITIES = {'<': '&lt;', '&': '&amp;', '*': r'\*', '_': r'\_'}


def text(value: Any) -> Markup:
  """Returns a value as text in one line, of which nothing is markup.

  Args:
    value: The value, which may come from anywhere.

  Example:
    >>> text('**a** <b>')
    '\\\\*\\\\*a\\\\*\\\\* &lt;b>'
  """
  return Markup(_SPECIAL.sub(_to_entity, _in_one_line(value)))


def _in_one_line(value: Any) -> str:
  return ' '.join(_CONTROL.sub('', str(value)).split())


def _to_entity(match: re.Match) -> str:
  return _ENTITIES.get(match[0], f'&#{ord(match[0])};')


def code(value: Any) -> Markup:
  """Returns a value as code in one line.

  Args:
    value: The value, which may come from anywhere; one that would end the code
      is shown as text.
  """
  line = _in_one_line(value)
  return text(line) if '`' in line or not line else Markup(f'`{line}`')


def escape(sentence: str) -> str:
  """Returns `Markup` as Markdown without tags, pictures and links to scripts.

  Args:
    sentence: The sentence.
  """
  # Only pairs of single backticks are code for every reader.
  is_plain = '``' in sentence or '\\`' in sentence or sentence.count('`') % 2
  parts = [sentence] if is_plain else _CODE.split(sentence)
  parts[::2] = [_ACTIVE.sub(_to_entity, part) for part in parts[::2]]
  return ''.join(parts)


class _Links(treeprocessors.Treeprocessor):
  """Removes links to anything but the web."""

  def run(self, root: ElementTree.Element):
    for link in root.iter('a'):
      address = link.attrib.get('href', '')
      link.attrib.clear()
      if re.match('https?://', address):
        link.set('href', address)


def to_html(block: str) -> str:
  """Returns a block of Markdown as HTML.

  Args:
    block: The Markdown. Tags and pictures in it are shown as they are written,
      and links with other addresses than http:// and https:// lead nowhere.
  """
  converter = markdown.Markdown(
      extensions=['fenced_code', 'tables'], output_format='html'
  )
  converter.preprocessors.deregister('html_block')
  converter.parser.blockprocessors.deregister('reference')
  for name in ('html', 'autolink', 'automail', 'image_link', 'reference'):
    converter.inlinePatterns.deregister(name)
  for name in ('image_reference', 'short_reference', 'short_image_ref'):
    converter.inlinePatterns.deregister(name)
  # After the inline patterns.
  converter.treeprocessors.register(_Links(converter), 'web_links', 1)
  return converter.convert(block)
