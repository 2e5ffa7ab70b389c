# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Turns the project's docstrings into what griffe's Google style asks for."""

import re

_FENCE = '```'
_SECTION = re.compile(r'(Args|Attributes|Raises|References|Returns|Yields):')


def normalize(text: str) -> str:
  """Returns a docstring in the form that griffe reads.

  An `Example:` is an `Examples:` section for griffe, which begins in the next
  line. A block that is indented, after an empty line and outside of a section,
  is code, as Markdown would take it for with four spaces.

  Args:
    text: The docstring, without the indentation of the function.

  Returns:
    The text, with the same words.
  """
  lines = text.splitlines()
  found: list[str] = []
  in_fence = False
  in_section = False
  i = 0
  while i < len(lines):
    line = lines[i]
    if line.startswith(_FENCE):
      in_fence = not in_fence
    if in_fence:
      found.append(line)
    elif line == 'Example:':
      in_section = True
      found.append('Examples:')
      while i + 1 < len(lines) and not lines[i + 1]:
        i += 1
    elif _SECTION.fullmatch(line):
      in_section = True
      found.append(line)
    elif line.startswith(' ') and not in_section and not lines[i - 1]:
      block = _take_indented(lines[i:])
      found.extend(_fenced(block))
      i += len(block) - 1
    else:
      in_section = in_section and (not line or line.startswith(' '))
      found.append(line)
    i += 1
  return '\n'.join(found)


def _take_indented(lines: list[str]) -> list[str]:
  """Returns the first lines, as far as they are indented or empty."""
  block = []
  for line in lines:
    if line and not line.startswith(' '):
      break
    block.append(line)
  return block


def _fenced(block: list[str]) -> list[str]:
  """Returns indented lines as a block of code."""
  lines = list(block)
  while not lines[-1]:
    del lines[-1]
  indent = min(len(x) - len(x.lstrip()) for x in lines if x)
  language = 'pycon' if lines[0].lstrip().startswith('>>>') else ''
  code = [line[indent:] for line in lines]
  # What follows is separated by an empty line, as before.
  return [_FENCE + language, *code, _FENCE, '']
