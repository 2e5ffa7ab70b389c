# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Flags of the binaries that work on published tables."""

from collections.abc import Iterable

from absl import flags

from experiments import published


def define(flag_values: flags.FlagValues):
  """Defines the flags that select parts of tables.

  Args:
    flag_values: Where to define the flags.
  """
  for axis in published.AXES:
    flags.DEFINE_list(
        axis,
        [],
        f'Only these comma-separated {axis} of the tables.',
        flag_values=flag_values,
        # A repeated flag would silently overwrite the first.
        allow_overwrite=False,
    )


def restrict(
    tables: Iterable[published.Table], flag_values: flags.FlagValues
) -> list[published.Table]:
  """Returns the parts of tables that the flags select.

  Args:
    tables: The tables.
    flag_values: The parsed flags.

  Returns:
    Each table once, with the named groups, rows and columns; all if none are
    named.

  Raises:
    PublishedError: If a table lacks a named group, row or column.
  """
  names = {axis: flag_values[axis].value for axis in published.AXES}
  return [
      table.restrict(**names)
      for table in {table.place: table for table in tables}.values()
  ]
