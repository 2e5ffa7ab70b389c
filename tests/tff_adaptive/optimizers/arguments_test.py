# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the checks of arguments."""

import math
from typing import Literal, Optional, Union

from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tff_adaptive import ranges
from tff_adaptive.optimizers import arguments


@arguments.checked
def _build(
    eta: ranges.Positive = 0.1,
    beta: Optional[ranges.Share] = None,
    *,
    steps: ranges.Count = 1,
    kind: Literal['a', 'b'] = 'a',
    scale: Union[Literal['max'], float] = 'max',
):
  """Builds a rule."""
  return eta, beta, steps, kind, scale


class ArgumentsTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.parameters(
      dict(eta=0.0),
      dict(eta=1e-50),  # float32 has no such small number.
      dict(eta=-1.0),
      dict(eta=math.inf),
      dict(eta=math.nan),
      dict(eta=1e39),
      dict(beta=1.0),
      dict(beta=0.99999997),
      dict(beta=np.float64(1 - 1e-12)),
      dict(steps=0),
      dict(kind='c'),
  )
  def test_values_out_of_range_raise_with_their_name(self, **values):
    ((name, value),) = values.items()
    with self.assertRaises(ValueError) as caught:
      _build(**values)
    message = str(caught.exception)
    self.assertStartsWith(message, f'`_build`: `{name}` must be ')
    self.assertIn(str(value), message)

  @parameterized.parameters(
      dict(eta='0.1'),
      dict(eta=b'0.1'),
      dict(eta=None),
      dict(eta={}),
      dict(eta=(0.1, 0.2)),
      dict(steps=1.0),
      dict(steps=True),
  )
  def test_values_that_are_no_numbers_raise(self, **values):
    ((name, value),) = values.items()
    with self.assertRaisesRegex(TypeError, f'`{name}` must be an? '):
      _build(**values)

  @parameterized.parameters(
      [1], [0.5], [np.float32(0.5)], [np.array(0.5)], [tf.constant(0.5)]
  )
  def test_numbers_of_all_kinds_pass(self, value):
    self.assertEqual(_build(value)[0], value)

  def test_other_values_pass(self):
    found = _build(1.0, None, steps=np.int32(2), kind='b', scale=-1.0)
    self.assertEqual(found, (1.0, None, 2, 'b', -1.0))
    self.assertEqual(_build.__doc__, 'Builds a rule.')

  def test_symbolic_rates_are_accepted(self):
    @tf.function
    def build(rate):
      return _build(rate)[0]

    self.assertAllEqual(build(tf.constant(-1.0)), -1.0)
