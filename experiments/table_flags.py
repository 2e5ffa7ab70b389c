# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The flags of binaries that work on published tables."""

from collections.abc import Iterable

from absl import flags

from experiments import published


def define(flag_values: flags.FlagValues):
  """Defines the flags of the parts of tables.

  Args:
    flag_values: Where to define them.
  """
  for axis in published.AXES:
    flags.DEFINE_list(
        axis,
        [],
        f'Of the tables, only these {axis}, separated by commas.',
        flag_values=flag_values,
        # Given twice, the first one would be lost without a word.
        allow_overwrite=False,
    )


def restrict(
    tables: Iterable[published.Table], flag_values: flags.FlagValues
) -> list[published.Table]:
  """Returns the parts of tables that the flags choose.

  Args:
    tables: The tables.
    flag_values: The parsed flags.

  Returns:
    Each table once, with the groups, rows and columns that are named; all of
    them where none is.

  Raises:
    PublishedError: If a table has no such group, row or column.
  """
  names = {axis: flag_values[axis].value for axis in published.AXES}
  return [
      table.restrict(**names)
      for table in {table.place: table for table in tables}.values()
  ]
