# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Text as Markdown, which runs no code of others.

Values from a run's folder may be those of somebody else. A `str` is text, of
which nothing is markup; only the program's own sentences are `Markup`, in which
such values stand as `text` or `code`. Whatever gets into a sentence all the
same, it brings no tags, no pictures and no links but web addresses.
"""

import re
from typing import Any


class Markup(str):
  """A sentence of the program with `code`, **bold** or [links](https://...)."""


# An underscore within a word is no emphasis.
_SPECIAL = re.compile(
    r'\\(?![\w\s])|[`*<]|&(?=#?\w+;)|(?<![^\W_])_|_(?![^\W_])'
    r'|~(?=~)|(?<=~)~|(?<=\])[(\[]'
)
_CODE = re.compile('(`[^`]*`)')
# A tag or a picture; a link to anything but the web or another file, in place
# or defined below.
_ACTIVE = re.compile(
    r'<|!(?=\[)|(?<=\]):'
    r'|(?<=\])\((?=\s*(?!https?:)([a-z][\w+.-]*:|[^\w./#-]))',
    re.I,
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
