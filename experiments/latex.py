# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tables in LaTeX, for papers."""

from collections.abc import Iterable, Sequence
import re

_TABLE = r"""% Needs \usepackage{{booktabs}}. {comment}
\begin{{tabular}}{{{columns}}}
\toprule
{header} \\
\midrule
{rows}
\bottomrule
\end{{tabular}}
"""
_SPECIAL = {
    **{character: f'\\{character}' for character in '&%$#_{}'},
    '~': r'\textasciitilde{}',
    '^': r'\textasciicircum{}',
    '\\': r'\textbackslash{}',
    '±': r'$\pm$',
    # The usual encoding of fonts has other characters in their places.
    '<': r'\textless{}',
    '>': r'\textgreater{}',
    '|': r'\textbar{}',
    # At the beginning of a row, they would belong to the end of the one before.
    '[': '{[}',
    '*': '{*}',
}
_IS_SPECIAL = re.compile(f'[{re.escape("".join(_SPECIAL))}]')


def escape(text: str) -> str:
  r"""Returns text in which LaTeX sees no commands.

  Example:

    >>> escape('a_b: 97.5 ± 0.1 %')
    'a\\_b: 97.5 $\\pm$ 0.1 \\%'
  """
  line = ' '.join(text.split())
  return _IS_SPECIAL.sub(lambda match: _SPECIAL[match[0]], line)


def to_table(
    header: Sequence[str], rows: Iterable[Sequence[str]], comment: str
) -> str:
  """Returns a table in the style of booktabs.

  Args:
    header: The names of the columns; the first one is left-aligned, the others
      are right-aligned.
    rows: The texts of the cells.
    comment: A sentence above the table, for whoever includes it.
  """
  to_line = lambda cells: ' & '.join(map(escape, cells))
  return _TABLE.format(
      comment=' '.join(comment.split()),
      columns='l' + 'r' * (len(header) - 1),
      header=to_line(header),
      rows='\n'.join(f'{to_line(row)} \\\\' for row in rows),
  )
