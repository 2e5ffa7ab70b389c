# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that the laws of pipelines hold and break where they should."""

import collections
from unittest import mock

from absl.testing import parameterized
import numpy as np

from tests.pipelines import pipeline
from tff_adaptive.runtime import plans

_FLOATS = np.asarray([1.0, 200.0], np.float32)


def _nothing():
  raise NotImplementedError


def _holds(law, native, compiled):
  return law.difference(native, compiled) <= law.limit


class LawsTest(parameterized.TestCase):

  def test_equal_is_relative_to_large_numbers(self):
    near = _FLOATS + np.asarray([0, 1e-3], np.float32)
    self.assertTrue(_holds(pipeline.EQUAL, [_FLOATS], [near]))
    self.assertFalse(
        _holds(pipeline.EQUAL, [_FLOATS], [near + np.float32(1e-3)])
    )

  @parameterized.named_parameters(
      ('a_count', np.int32(3), np.int32(4)),
      ('a_word', 'one', 'two'),
      ('a_type', np.float32(1), np.float64(1)),
      ('a_shape', np.zeros([1], np.float32), np.zeros([1, 1], np.float32)),
      ('nan', np.float32(1), np.float32(np.nan)),
      ('infinity', np.float32(1), np.float32(np.inf)),
  )
  def test_equal_breaks_with(self, native, compiled):
    self.assertTrue(_holds(pipeline.EQUAL, [native], [native]))
    self.assertFalse(_holds(pipeline.EQUAL, [native], [compiled]))

  def test_equal_takes_nan_on_both_for_equal(self):
    result = [np.float32(np.nan)]
    self.assertTrue(_holds(pipeline.EQUAL, result, result))

  def test_other_structures_are_an_error(self):
    left = [collections.OrderedDict(a=_FLOATS)]
    with self.assertRaises((TypeError, ValueError)):
      pipeline.EQUAL.difference(left, [collections.OrderedDict(b=_FLOATS)])

  def test_near_is_a_share_of_the_way(self):
    start = np.asarray([5.0, 5.0], np.float32)
    native, compiled = [start, start + 10], [start, start + 11]
    self.assertAlmostEqual(
        pipeline.near(0.2).difference(native, compiled), 0.1, places=6
    )
    self.assertTrue(_holds(pipeline.near(0.2), native, compiled))
    self.assertFalse(_holds(pipeline.near(0.05), native, compiled))

  def test_near_breaks_if_two_rounds_are_the_same(self):
    start = np.asarray([5.0, 5.0], np.float32)
    native = [start, start + 10, start + 20]
    self.assertFalse(
        _holds(pipeline.near(2), native, [start, start + 10, start + 10])
    )

  def test_drawn_holds_for_samples_alone(self):
    generator = np.random.default_rng(0)
    law = pipeline.drawn(1.0, 2.0)

    def sample(mean=1.0, deviation=2.0):
      return [(), *(generator.normal(mean, deviation, 1000) for _ in range(3))]

    self.assertTrue(_holds(law, sample(), sample()))
    self.assertFalse(_holds(law, sample(), sample(mean=1.3)))
    self.assertFalse(_holds(law, sample(), sample(deviation=2.4)))
    start, first, second, _ = sample()
    frozen = [start, first, second, second]
    self.assertFalse(_holds(law, sample(), frozen))

  def test_names_and_paths_are_checked(self):
    with self.assertRaisesRegex(ValueError, "found 'fast'"):
      pipeline.pipeline('fast')
    add = pipeline.pipeline(plans.COMPILED)
    with mock.patch.dict(pipeline.PIPELINES):
      add(_nothing)
      with self.assertRaisesRegex(ValueError, 'Two pipelines have the name'):
        add(_nothing)
