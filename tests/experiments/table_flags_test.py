# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the flags of published tables."""

from absl import flags
from absl.testing import absltest
import pytest

from experiments import published
from experiments import table_flags
from tests.experiments.report import made_up_runs


def _parse(*arguments):
  values = flags.FlagValues()
  table_flags.define(values)
  values(['report', *arguments])
  return values


class TableFlagsTest(absltest.TestCase):

  def test_names_are_separated_by_commas_and_tables_are_there_once(self):
    table = made_up_runs.build_table(
        groups=['alpha = 1', 'h'], rows=['a', 'b', 'c']
    )
    (found,) = table_flags.restrict(
        [table, table], _parse('--rows=c,a', '--groups=alpha = 1')
    )
    self.assertEqual(
        [cell.key for cell in found.cells],
        [('alpha = 1', 'a', 'digits'), ('alpha = 1', 'c', 'digits')],
    )
    self.assertEqual(table_flags.restrict([table], _parse()), [table])

  def test_a_flag_that_is_given_twice_is_refused(self):
    with self.assertRaisesRegex(flags.Error, 'rows=b: already defined'):
      _parse('--rows=a', '--rows=b')

  @pytest.mark.slow
  def test_no_published_name_has_a_comma(self):
    for table in published.load_tables():
      for axis in published.AXES:
        for entry in getattr(table, axis):
          self.assertNotIn(',', entry.name)
