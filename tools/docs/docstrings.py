# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Converts the project's docstrings to griffe's Google style."""

import re

_FENCE = '```'
_SECTION = re.compile(r'(Args|Attributes|Raises|References|Returns|Yields):')


def normalize(text: str) -> str:
  """Converts a docstring to the form that griffe reads.

  `Example:` becomes an `Examples:` section, which starts on the next line. An
  indented block after an empty line and outside of a section becomes a fenced
  code block.

  Args:
    text: The docstring, without the indentation of the function.
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
  """Returns the leading lines that are indented or empty."""
  block = []
  for line in lines:
    if line and not line.startswith(' '):
      break
    block.append(line)
  return block


def _fenced(block: list[str]) -> list[str]:
  """Returns indented lines as a fenced code block."""
  lines = list(block)
  while not lines[-1]:
    del lines[-1]
  indent = min(len(x) - len(x.lstrip()) for x in lines if x)
  language = 'pycon' if lines[0].lstrip().startswith('>>>') else ''
  code = [line[indent:] for line in lines]
  # The empty line separates the block from the next one, as before.
  return [_FENCE + language, *code, _FENCE, '']
