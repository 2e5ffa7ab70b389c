# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the shapes for which programs are compiled."""

from absl.testing import parameterized
import numpy as np

from tff_adaptive.runtime.accelerators import cohort_arrays


class SizesTest(parameterized.TestCase):

  @parameterized.named_parameters(
      ('even', [[20, 20]], True, (20,), False),
      ('uneven', [[20, 20, 7]], True, (20,), True),
      ('uneven_later', [[20, 20], [20, 7]], True, (20,), True),
      ('even_again', [[20, 7], [20]], True, (20,), True),
      ('empty', [[20, 0, 7]], True, (0, 20), True),
      ('empty_alone', [[20], [0]], True, (0, 20), False),
      ('no_batch', [[]], True, (1,), False),
      ('much_smaller', [[100, 10, 10, 10]], True, (25, 50, 100), True),
      ('larger', [[20, 7], [30, 7]], True, (30,), True),
      ('larger_again', [[20, 7], [30, 7], [33, 60]], True, (64,), True),
      ('apart', [[20, 7], [3]], False, (3, 7, 20), False),
      ('all_apart', [[4, 2], [3], [1]], False, (1, 2, 3, 4), False),
  )
  def test_of_branches(self, cohorts, pads, expected, is_padded):
    sizes = cohort_arrays._Sizes()
    for lengths in cohorts:
      found = sizes.add(np.asarray(lengths, np.int32), pads)
    self.assertEqual(found, (expected, is_padded))

  def test_branches_stay_when_cohorts_are_smaller(self):
    sizes = cohort_arrays._Sizes()
    first = sizes.add(np.array([100, 10, 10, 10]), True)
    self.assertEqual(sizes.add(np.array([60, 1]), True), first)

  @parameterized.parameters((1, 16), (16, 16), (17, 32), (33, 64))
  def test_sizes_are_rounded_up(self, size, expected):
    self.assertEqual(cohort_arrays.bucket(size), expected)
