# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Parsers of flags whose values are neither numbers nor texts."""

from typing import Union


def parse_factors(text: str) -> dict[int, float]:
  """Parses the argument of `build_table` from a flag's text.

  Args:
    text: Pairs of a round and a factor, such as '0:1,100:0.5'.

  Returns:
    A dictionary from rounds to factors.

  Raises:
    ValueError: If the text has another form.

  Example:

    >>> parse_factors('0:1,100:0.5')
    {0: 1.0, 100: 0.5}
  """
  try:
    pairs = [pair.split(':') for pair in text.split(',')]
    table = {int(round_num): float(factor) for round_num, factor in pairs}
  except ValueError as error:
    raise ValueError(
        'A table of factors must look like 0:1,100:0.5 (round:factor), found '
        f'{text!r}.'
    ) from error
  if len(table) < len(pairs):
    raise ValueError(f'A table must name each round once, found {text!r}.')
  return table


def parse_scale(text: str) -> Union[str, float]:
  """Parses the argument of `build_line_search_step` from a flag's text.

  Args:
    text: 'max', 'unit' or a number, such as '0.5'.

  Returns:
    The number, or the text itself if it is not a number.

  Example:

    >>> parse_scale('unit'), parse_scale('0.5')
    ('unit', 0.5)
  """
  try:
    return float(text)
  except ValueError:
    return text


# The parsers of arguments, by the module of the builder and the argument.
OF_ARGUMENTS = {
    ('tff_adaptive.optimizers.schedules', 'factors'): parse_factors,
    ('tff_adaptive.optimizers.server.fedli', 'scale'): parse_scale,
}
