# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Pipelines as people write them give TFF's numbers, and are faster."""

import functools

from absl.testing import absltest
from absl.testing import parameterized
import pytest

from tests.pipelines import measuring
from tests.pipelines import pipeline

_compare = functools.cache(measuring.compare)
_every_pipeline = parameterized.parameters(*pipeline.PIPELINES)


class PipelinesTest(parameterized.TestCase):

  @classmethod
  def tearDownClass(cls):
    super().tearDownClass()
    measuring.close()

  def test_there_are_many(self):
    self.assertGreaterEqual(len(pipeline.PIPELINES), 25)

  @_every_pipeline
  @pytest.mark.sample(18)
  def test_numbers_are_those_of_tff(self, name):
    law = pipeline.PIPELINES[name].law
    self.assertLessEqual(_compare(name).difference, law.limit, law.text)

  @_every_pipeline
  @pytest.mark.sample(18)
  def test_path(self, name):
    self.assertEqual(_compare(name).path, pipeline.PIPELINES[name].path)

  @_every_pipeline
  @pytest.mark.slow
  def test_needs_a_part_of_the_cpu_seconds_of_tff(self, name):
    found = measuring.compare(name, costs=True)
    known_ratio = pipeline.PIPELINES[name].known_ratio
    self.assertLessEqual(found.ratio, known_ratio, found)


if __name__ == '__main__':
  absltest.main()
