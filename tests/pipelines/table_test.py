# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the page about the pipelines."""

from absl.testing import absltest

from tests import page_testing
from tests.pipelines import measuring
from tests.pipelines import pipeline
from tests.pipelines import table

_NAME = 'average temperature'


def _comparison(difference=1e-7, path='compiled', compiled=0.02):
  return measuring.Comparison(
      difference, path, measuring.Cost(0.1, 0.2), measuring.Cost(compiled, 0.03)
  )


class TableTest(absltest.TestCase):

  def test_row_and_ratio(self):
    page = table.to_page({_NAME: _comparison()})
    self.assertIn(
        '| average temperature | compiled | equal | 1.0e-07 | 0.1000 | 0.0200 '
        '| 0.20 | 0.2000 | 0.0300 |',
        page,
    )
    self.assertNotIn('Not as they should be', page)

  def test_faults_are_listed(self):
    page = table.to_page({_NAME: _comparison(0.1, 'native', 0.09)})
    self.assertIn(
        '* average temperature: results differ by more than 1e-05; the path is '
        'not compiled; the ratio is above 0.3.',
        page,
    )

  def test_nan_is_a_fault(self):
    found = table.faults(_NAME, _comparison(float('nan')))
    self.assertLen(found, 1)

  def test_error_has_its_row(self):
    page = table.to_page({_NAME: ValueError('no data\nat all')})
    self.assertIn('| average temperature | ValueError: no data |', page)
    self.assertIn('* average temperature: it raised ValueError.', page)

  def test_measures_a_pipeline(self):
    self.addCleanup(measuring.close)
    outcome = table.measure([_NAME])[_NAME]
    self.assertEqual(outcome.path, 'compiled')
    for cost in (outcome.native, outcome.compiled):
      self.assertGreater(cost.cpu, 0)
      self.assertGreater(cost.wall, 0)

  def test_page_has_every_pipeline(self):
    rows = page_testing.table_rows(
        page_testing.read('docs/results/pipelines.md'), 'pipeline'
    )
    self.assertEqual([row[0] for row in rows], list(pipeline.PIPELINES))
