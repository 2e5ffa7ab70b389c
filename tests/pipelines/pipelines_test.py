# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Pipelines as people write them give TFF's numbers, and are faster."""

from absl.testing import parameterized
import pytest

from tests.pipelines import measuring
from tests.pipelines import pipeline
from tff_adaptive.runtime import plans

# Short ones, of every law and every path of the compiled runtime.
_FAST = (
    'average temperature',
    'for batch in dataset',
    'mean and variance',
    'noise at clients',
    'random numbers in groups',
    'working with client data',
)


class PipelinesTest(parameterized.TestCase):

  @classmethod
  def tearDownClass(cls):
    super().tearDownClass()
    measuring.close()

  def test_there_are_many(self):
    self.assertGreaterEqual(len(pipeline.PIPELINES), 25)

  def test_paths_and_laws_have_a_fast_pipeline(self):
    kinds = [
        {kind for p in pipelines for kind in (p.path, p.law.text.split()[0])}
        for pipelines in (
            [pipeline.PIPELINES[name] for name in _FAST],
            [p for p in pipeline.PIPELINES.values() if p.path != plans.NATIVE],
        )
    ]
    self.assertEqual(*kinds)

  def _compare(self, name, costs=False):
    found = measuring.compare(name, costs=costs)
    expected = pipeline.PIPELINES[name]
    self.assertLessEqual(
        found.difference, expected.law.limit, expected.law.text
    )
    self.assertEqual(found.path, expected.path)
    return found

  @parameterized.parameters(*_FAST)
  def test_numbers_are_those_of_tff_by_the_expected_path(self, name):
    self._compare(name)

  @parameterized.parameters(*pipeline.PIPELINES)
  @pytest.mark.slow
  def test_needs_a_part_of_the_cpu_seconds_of_tff(self, name):
    found = self._compare(name, costs=True)
    known_ratio = pipeline.PIPELINES[name].known_ratio
    self.assertLessEqual(found.ratio, known_ratio, found)
